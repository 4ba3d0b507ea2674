"""Defines the tools as a client sees them (name, description, schemas, hints) and calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from signet_sync.mcp_server import schemas
from signet_sync.mcp_server.memory import ServedMemory

Document = dict[str, Any]
Act = Callable[[ServedMemory, Any], Document]


def _load_late(module: str, name: str) -> Callable[..., Any]:
    """Returns a function of one of our modules, which is imported at the first call: a client lists the tools first."""

    def act(*given: Any) -> Any:
        return getattr(import_module(f"signet_sync.mcp_server.{module}"), name)(*given)

    return act


_OUTLINE = _load_late("texts", "outline")


@dataclass(frozen=True)
class Offer:
    """A tool: its arguments, its function, and how its answer is rendered.

    `shared` is its description if others read the answers, too; if empty, the tool is not offered there. `core` tools
    are offered by default: every request of a coding agent repeats the list.
    """

    name: str
    title: str
    description: str
    takes: type[schemas.ToolArguments]
    act: Act
    render: Callable[[Document], str] = _OUTLINE
    shared: str = ""
    core: bool = False
    writes: bool = False
    destroys: bool = False
    again: bool = True  # calling it again with the same arguments changes nothing further

    @cached_property
    def tool(self) -> Document:
        """Returns the tool as it is listed."""
        hints = {"readOnlyHint": not self.writes, "openWorldHint": False}
        if self.writes:
            hints |= {"destructiveHint": self.destroys, "idempotentHint": self.again}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": _schema(self.takes),
            "annotations": hints,
        }


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the schema of arguments without what a model does not need.

    That is names of classes, "nothing" as a default, and most lengths, which the error for a longer one names.
    """
    schema = model.model_json_schema()
    for part in ("title", "description"):  # of the class, for readers of the code
        schema.pop(part, None)
    fields = schema.get("properties", {})
    for field in fields.values():
        if "anyOf" in field:
            given, _ = field.pop("anyOf")
            field.update(given)
        if field.get("default") in (None, "", []):
            field.pop("default", None)
        for part in (field, field.get("items", {})):
            for key in ("title", "minLength", "maxLength", "maxItems"):
                part.pop(key, None)
    return schema


OFFERS = (
    Offer(
        "memory_recall",
        "Recall",
        "Ask what was decided or said in past and running sessions, before you assume that it was not. "
        "Follow a hit's id with memory_expand.",
        schemas.RecallArguments,
        _load_late("read_tools", "recall"),
        _load_late("texts", "render_hits"),
        core=True,
        shared="Ask what this agent remembers and may share: decisions, preferences and notes that answer a question.",
    ),
    Offer(
        "memory_expand",
        "Expand",
        "Follow an id, path or session to its source: the full text, what is around it, the passage of the "
        "transcript. Use it when a hit or a line of MEMORY.md says too little.",
        schemas.ExpandArguments,
        _load_late("read_tools", "expand"),
        _load_late("texts", "render_expanded"),
        core=True,
    ),
    Offer(
        "memory_context",
        "Context",
        "The context of a session's start (where the project stands, quotes of its last session, what holds, and "
        "the workspace's identity files); with `prompt` what memory contains about it, in a few lines.",
        schemas.ContextArguments,
        _load_late("read_tools", "context"),
        _load_late("texts", "render_context"),
        shared="The workspace's identity files; with `prompt` what this agent remembers about it and may share, then "
        "the identity files.",
    ),
    Offer(
        "memory_remember",
        "Remember",
        "Remember a thought for later sessions, once it is certain: MEMORY.md shows it, memory_recall "
        "finds it, for this project.",
        schemas.RememberArguments,
        _load_late("write_tools", "remember"),
        _load_late("texts", "render_remembered"),
        core=True,
        writes=True,
    ),
    Offer(
        "memory_forget",
        "Forget",
        "Delete a wrong or unwanted memory (^m-…).",
        schemas.ForgetArguments,
        _load_late("write_tools", "forget"),
        _load_late("texts", "render_forgotten"),
        core=True,
        writes=True,
        destroys=True,
        again=False,
    ),
    Offer(
        "memory_checkpoint",
        "Checkpoint",
        "Commit the workspace to its git history as it is now, before a risky change or after an instruction that "
        "matters. Makes no commit if nothing changed or the history is off (`skipped`, `reason`).",
        schemas.CheckpointArguments,
        _load_late("write_tools", "checkpoint"),
        writes=True,
    ),
    Offer(
        "memory_note",
        "Hand over",
        "Say which statements are done or not true; hand your work over to the next session at the end of a turn, if "
        "its report does not end with these lines anyway.",
        schemas.NoteArguments,
        _load_late("write_tools", "note"),
        _load_late("texts", "render_note"),
        writes=True,
    ),
    Offer(
        "memory_history",
        "History",
        "The newest commits of the workspace's history, and with `include_diff` what was added to this agent's files "
        "since the oldest of them and still exists. What was removed is never shown.",
        schemas.HistoryArguments,
        _load_late("read_tools", "history"),
    ),
    Offer(
        "memory_stats",
        "Statistics",
        "Count what this agent remembers: memories, promotions, sessions, files, and what was recalled in the last "
        "seven days.",
        schemas.NoArguments,
        _load_late("read_tools", "stats"),
    ),
    Offer(
        "session_open",
        "Open a session",
        "One session: what was done in it, how it ended, and the paths of its summaries and transcripts; "
        "memory_expand reads a path.",
        schemas.SessionArguments,
        _load_late("read_tools", "session"),
        _load_late("texts", "render_session"),
        core=True,
    ),
    Offer(
        "entity_read",
        "Read an entity",
        "Curated files about the user, parts of a subject and relationships: without an id a list of all, with an id "
        "its sections, list items with their keys, what is pinned or locked, and open proposals.",
        schemas.EntityArguments,
        _load_late("read_tools", "entity"),
    ),
    Offer(
        "entity_edit",
        "Edit an entity",
        "Create an entity; set, append to or prune a section; change its status; take an edit back. Every change is an "
        "event with the text before and after. What a person pinned or locked can only be proposed.",
        schemas.EditArguments,
        _load_late("write_tools", "edit"),
        writes=True,
        again=False,
    ),
)


def list_offers(memory: ServedMemory) -> dict[str, Offer]:
    """Returns the tools of a memory by name.

    With shared scope no tool writes: what others make an agent remember would appear in the MEMORY.md that only the
    agent reads. Sessions, files, entities, history and statistics contain private things, too.
    """
    chosen = [one for one in OFFERS if one.core or memory.all_tools]
    if memory.shared:
        return {one.name: replace(one, description=one.shared) for one in chosen if one.shared and not one.writes}
    return {one.name: one for one in chosen if not (one.writes and memory.read_only)}


def call(memory: ServedMemory, offer: Offer, arguments: Document) -> Document:
    """Calls a tool; an error is an answer, too."""
    from signet_sync.mcp_server.dispatch import Failure, attempt, error_text, text_of

    done = attempt(lambda: offer.act(memory, offer.takes.model_validate(arguments)), memory.place)
    failed = isinstance(done, Failure)
    text = error_text(done.document) if isinstance(done, Failure) else text_of(done, offer.render)
    return {"content": [{"type": "text", "text": text}], "isError": failed}
