"""Defines the tools: each is a function whose name, docstring and arguments are what a client sees.

A client lists the tools before its model's first word, so what a call needs is imported by the call.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import Kind
from signet_sync.mcp_server.memory import (
    Document,
    ServedMemory,
    answer,
    describe,
    render_document,
    render_forgotten,
    render_hits,
    render_note,
    render_remembered,
)
from signet_sync.recall.as_text import list_expanded_lines, session_lines
from signet_sync.storage.locations import now_us
from signet_sync.text.memory import LONGEST, MOST_TAGS

if TYPE_CHECKING:
    from signet_sync.recall.pinning import Mark

Answer = tuple[Document, str | None]  # what a tool found, and what that leaves out
_Act = TypeVar("_Act", bound=Callable[..., Answer])
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Offer:
    """A tool, and how its answer is rendered.

    `shared` is its description if others read the answers, too; if empty, the tool is not offered there. `core` tools
    are offered by default: every request of a coding agent repeats the list.
    """

    act: Callable[..., Answer]
    title: str
    description: str
    render: Callable[[Document], str]
    shared: str
    core: bool
    writes: bool
    destroys: bool

    @property
    def name(self) -> str:
        return self.act.__name__

    @cached_property
    def takes(self) -> type[BaseModel]:
        """Returns the type of its arguments: nothing is coerced, and an unknown one is an error.

        A text in an annotation describes the argument.
        """
        hints, fields = get_type_hints(self.act, include_extras=True), dict[str, Any]()
        for one in inspect.signature(self.act).parameters.values():
            if one.name != "memory":
                said = [text for text in hints[one.name].__metadata__ if isinstance(text, str)]
                about = Field(... if one.default is one.empty else one.default, description=said[-1])
                fields[one.name] = (hints[one.name], about)
        return create_model(self.name, __config__=ConfigDict(extra="forbid", strict=True), **fields)

    @cached_property
    def tool(self) -> Document:
        hints = {"readOnlyHint": not self.writes, "openWorldHint": False}
        if self.writes:
            hints |= {"destructiveHint": self.destroys}
        about = {"name": self.name, "title": self.title, "description": self.description}
        return about | {"inputSchema": _schema(self.takes), "annotations": hints}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the schema of arguments without what a model does not need.

    That is titles, "nothing" as a default, and most lengths, which the error for a longer one names.
    """
    schema = model.model_json_schema()
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        if "anyOf" in field:
            given, _ = field.pop("anyOf")
            field.update(given)
        if field.get("default") in (None, "", []):
            field.pop("default", None)
        for part in (field, field.get("items", {})):
            for key in ("title", "minLength", "maxLength", "maxItems"):
                part.pop(key, None)
    return schema


OFFERS: list[Offer] = []


def _tool(
    title: str,
    render: Callable[[Document], str] = render_document,
    *,
    shared: str = "",
    core: bool = False,
    writes: bool = False,
    destroys: bool = False,
) -> Callable[[_Act], _Act]:
    def add(act: _Act) -> _Act:
        description = " ".join((act.__doc__ or "").split())
        OFFERS.append(Offer(act, title, description, render, shared, core, writes, destroys))
        return act

    return add


def list_offers(memory: ServedMemory) -> dict[str, Offer]:
    """Returns the tools of a memory by name.

    With shared scope no tool writes: what others make an agent remember would appear in the MEMORY.md that only the
    agent reads. Sessions, files, entities and history contain private things, too.
    """
    chosen = [one for one in OFFERS if one.core or memory.all_tools]
    if memory.shared:
        return {one.name: replace(one, description=one.shared) for one in chosen if one.shared and not one.writes}
    return {one.name: one for one in chosen if not (one.writes and memory.read_only)}


def call(memory: ServedMemory, offer: Offer, arguments: Document) -> Document:
    """Calls a tool; an error is an answer, too: a call that fails must not end the server."""
    try:
        found, more = offer.act(memory, **dict(offer.takes.model_validate(arguments)))
        text, failed = answer(offer.render(found), more), False
    except Exception as error:  # noqa: BLE001 - unexpected errors are logged
        text, failed = describe(error, memory.place), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


# ── arguments ──


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("control characters are not allowed")
    return text


# Ids, handles, paths, names. Not a pattern of the schema: some models' interfaces refuse unknown patterns.
Name = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_one_line)]
Words = Annotated[str, Field(min_length=1, max_length=4_000)]
Kinds = Literal["preference", "decision", "constraint", "person", "blocker", "note"]
_MOST_HITS, _MOST_COMMITS = 50, 100


def _more(found: int, limit: int, most: int = _MOST_HITS) -> str | None:
    if found < limit:
        return None
    return "there may be more; use a larger `limit`" if limit < most else "there may be more; use a narrower query"


# ── what was said and kept ──


@_tool(
    "Recall",
    render_hits,
    core=True,
    shared="Ask what this agent remembers and may share: decisions, preferences and notes that answer a question.",
)
def memory_recall(
    memory: ServedMemory,
    query: Annotated[Words, "A question or some words."],
    since: Annotated[Name | None, "Only since this day."] = None,
    project: Annotated[Name | None, "Only of this project."] = None,
    limit: Annotated[int, Field(ge=1, le=_MOST_HITS), "Maximum number of hits."] = 10,
) -> Answer:
    """Ask what was decided or said in past and running sessions, before you assume that it was not. Follow a hit's id
    with memory_expand.
    """
    from signet_sync.formats.timestamps import LAST_US, parse_moment

    asked_us = now_us()
    begins = None if since is None else parse_moment(since, asked_us)
    if since is not None and begins is None:
        raise UsageError("`since` is not a day or an ISO 8601 time", hint="2026-03-28", code="arguments-invalid")
    found = memory.ask(
        "recall",
        query=query,
        limit=limit,
        now_us=asked_us,
        period=None if begins is None else [begins, LAST_US],
        project=project,
        shared=memory.shared,
        counted=memory.counts,
    )
    return {"hits": found["hits"]}, _more(len(found["hits"]), limit)


@_tool("Expand", lambda found: "\n".join(list_expanded_lines(found)), core=True)
def memory_expand(
    memory: ServedMemory,
    handle: Annotated[
        Name, "An id (^f-…) or its beginning, a file's path (memory/…--summary.md), or a session's key, id or token."
    ],
    budget: Annotated[int, Field(ge=50, le=8_000), "Most tokens of text."] = 2_000,
) -> Answer:
    """Follow an id, path or session to its source: the full text, what is around it, the passage of the transcript.
    Use it when a hit or a line of MEMORY.md says too little.
    """
    return memory.ask("expand", handle=handle, budget=budget, counted=memory.counts), None


@_tool("Context", lambda found: str(found["text"]), shared="The workspace's identity files.")
def memory_context(
    memory: ServedMemory,
    project: Annotated[
        Annotated[str, Field(max_length=4_096)] | None,
        "Absolute path of the project to start with. Default: the server's working directory.",
    ] = None,
    budget: Annotated[Annotated[int, Field(ge=50, le=10_000)] | None, "Most tokens (default: 2,000)."] = None,
) -> Answer:
    """The context of a session's start: where the project stands, quotes of its last session, what holds, and the
    workspace's identity files.
    """
    found = memory.ask("context", project=project or os.getcwd(), shared=memory.shared, budget=budget)
    more = [f"not read: {trouble}" for trouble in found["troubles"]]
    if not found["context"]["text"]:
        more.append("no context yet, or nothing of it fits into `budget`")
    return found["context"], "; ".join(more) or None


@_tool("Remember", render_remembered, core=True, writes=True)
def memory_remember(
    memory: ServedMemory,
    text: Annotated[str, Field(min_length=1, max_length=LONGEST), "Makes sense without this session."],
    type: Annotated[Kinds, "Its section in MEMORY.md."] = "note",
    tags: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MOST_TAGS), "Words to find it by."
    ] = [],
    private: Annotated[bool, "True: in no shared context."] = False,
    everywhere: Annotated[bool, "True: for every project."] = False,
    session: Annotated[Name | None, "The session it comes from and is removed with."] = None,
) -> Answer:
    """Remember a thought for later sessions, once it is certain: MEMORY.md shows it, memory_recall finds it, for this
    project.
    """
    from signet_sync.host.repository import project_at

    given: dict[str, Any] = {"text": text, "kind": type, "tags": tags, "private": private, "session": session}
    project = "" if everywhere else project_at(os.getcwd())
    done = memory.ask("remember", **given, project=project, now_us=now_us())
    return done["memory"], done["waiting"] or None


@_tool("Forget", render_forgotten, core=True, writes=True, destroys=True)
def memory_forget(memory: ServedMemory, id: Annotated[Name, "Its id or beginning."]) -> Answer:
    """Delete a wrong or unwanted memory (^m-…)."""

    from signet_sync.privacy import remove

    with memory.place.open_workspace() as workspace:
        done = remove.forget(workspace, memory.agent_id, id, now_us())
        return remove.forget_document(done), done.waiting or None


@_tool("Hand over", render_note, writes=True)
def memory_note(
    memory: ServedMemory,
    note: Annotated[
        str,
        Field(max_length=8_000),
        "One to three lines: `Outcome: …`, `Decided: …`, `Next: …`, `Blocked: …`, `Tried: …` (what, "
        "and how it failed).",
    ] = "",
    done: Annotated[list[Name], Field(max_length=20), "Steps and blockers that are done (^f-…)."] = [],
    withdrawn: Annotated[list[Name], Field(max_length=20), "What an agent said and is not true (^f-…)."] = [],
) -> Answer:
    """Say which statements are done or not true; hand your work over to the next session at the end of a turn, if its
    report does not end with these lines anyway.
    """
    from signet_sync.digest.reports import hand_over
    from signet_sync.recall import pinning

    # The transcript has the call and its lines; only what it says of statements is written now.
    lines = [{"label": line.label, "text": line.text} for line in (hand_over(note) if note else ())]
    said, more = [], None
    words: list[tuple[str, Mark]] = [*((one, "done") for one in done), *((one, "withdrawn") for one in withdrawn)]
    if words:
        with memory.place.open_workspace() as workspace:
            for one, status in words:
                said.append(pinning.mark(workspace, memory.agent_id, one, status, now_us(), by_agent=True))
            more = said[-1].waiting or None
    return {"lines": lines, "said": [{"id": m.id, "text": m.text, "status": m.status} for m in said]}, more


# ── sessions, history, numbers ──


@_tool("Open a session", lambda found: "\n".join(session_lines(found)), core=True)
def session_open(
    memory: ServedMemory,
    session: Annotated[Name, "Its key, id or token, or the beginning of one."],
) -> Answer:
    """One session: what was done in it, how it ended, and the paths of its summaries and transcripts; memory_expand
    reads a path.
    """
    return memory.ask("open_session", session=session), None


@_tool("Checkpoint", writes=True)
def memory_checkpoint(
    memory: ServedMemory,
    note: Annotated[str, Field(max_length=500), "Why: the subject of the commit."] = "",
) -> Answer:
    """Commit the workspace to its git history as it is now, before a risky change or after an instruction that matters.
    Makes no commit if nothing changed or the history is off (`skipped`, `reason`).
    """
    from signet_sync.history import operations

    with memory.place.open_workspace() as workspace:
        done = operations.checkpoint(workspace, memory.agent_id, note, now_us())
    # Files that were left out may be another agent's.
    return {name: value for name, value in done.document().items() if name != "skipped_files"}, done.hint or None


@_tool("History")
def memory_history(
    memory: ServedMemory,
    limit: Annotated[int, Field(ge=1, le=_MOST_COMMITS), "Most commits, the newest first."] = 10,
    include_diff: Annotated[
        bool, "True: also what was added from the oldest to the newest, as a unified diff."
    ] = False,
) -> Answer:
    """The newest commits of the workspace's history, and with `include_diff` what was added to this agent's files since
    the oldest of them and still exists. What was removed is never shown.
    """
    from signet_sync.history import log
    from signet_sync.history.operations import DISABLED, REMEDY

    found = log.list_visible_commits(memory.place, memory.agent_id, limit, with_diff=include_diff)
    more = _more(len(found.commits), limit, _MOST_COMMITS)
    if not found.commits:
        more = "no commits yet" if memory.place.settings().history_enabled else f"{DISABLED}: {REMEDY}"
    return {"diff": None, **found.document()}, "; ".join(filter(None, (more, found.cut))) or None


# ── entities ──


@_tool("Read an entity")
def entity_read(
    memory: ServedMemory,
    id: Annotated[
        Name | None, "An entity's id or its beginning, its folder's name, or its title. Default: all are listed."
    ] = None,
    kind: Annotated[Kind | None, "List only these (without an id)."] = None,
) -> Answer:
    """Curated files about the user, parts of a subject and relationships: without an id a list of all, with an id its
    sections, list items with their keys, what is pinned or locked, and open proposals.
    """
    from signet_sync.entities import queries

    with queries.open_read_only(memory.place, memory.agent_id, now_us()) as repo:
        if id is None:
            return {"entities": [one.document() for one in queries.list_entities(repo, kind)]}, None
        return {"entity": queries.view(repo, repo.require(id)).document()}, None


@_tool("Create an entity", writes=True)
def entity_create(
    memory: ServedMemory,
    kind: Annotated[Kind, "Its kind."],
    title: Annotated[Name, "Its name."],
    type: Annotated[Name | None, "The type of a relationship: reviews, protects, polarized …"] = None,
    between: Annotated[list[Name], Field(max_length=20), "The participants of a relationship."] = [],
) -> Answer:
    """Create an entity, once entity_read shows that there is none."""
    from signet_sync.entities import operations

    with memory.place.open_workspace() as workspace:
        made = operations.create(
            workspace, memory.agent_id, kind, title, relation=type, between=between, actor="agent", now_us=now_us()
        )
        return made.document(), made.waiting or None


@_tool("Edit an entity", writes=True)
def entity_edit(
    memory: ServedMemory,
    id: Annotated[Name, "As in entity_read."],
    section: Annotated[Name, "A section's `name` as in entity_read, or its heading."],
    text: Annotated[str, Field(max_length=100_000), "The text; empty with a reason to empty a narrative section."],
    append: Annotated[bool, "True: add a paragraph or list item; else the text of a narrative section is replaced."],
    propose: Annotated[bool, "Let a person decide, as a pinned or locked section needs."] = False,
    expect: Annotated[Name | None, "Refuse if the section's sha256 is another by now."] = None,
    reason: Annotated[Name | None, "Why a section is emptied."] = None,
    rationale: Annotated[
        Annotated[str, Field(min_length=1, max_length=2_000)] | None,
        'Why a soft cap is exceeded: "why: …; until: …; plan: …".',
    ] = None,
    evidence: Annotated[Name | None, "PATH#LINE of an artifact that supports it; an item of Evidence needs it."] = None,
) -> Answer:
    """Change a section. Every change is an event with the text before and after. What a person pinned or locked can
    only be proposed.
    """
    from signet_sync.entities import operations

    grounds: dict[str, Any] = {"rationale": rationale, "evidence": evidence, "propose": propose, "expect": expect}
    act = operations.append if append else operations.set_section
    with memory.place.open_workspace() as workspace:
        made = act(
            workspace, memory.agent_id, id, section, text, **grounds, reason=reason, actor="agent", now_us=now_us()
        )
        return made.document(), made.waiting or None
