"""Defines the tools' arguments as types, from which the JSON schemas for clients are generated."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from signet_sync.formats import entity_paths
from signet_sync.text.memory import LONGEST, MOST_TAGS


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("control characters are not allowed")
    return text


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Ids, handles, paths, names. Not a pattern of the schema: some models' interfaces refuse unknown patterns.
Name = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_one_line)]
Words = Annotated[str, Field(min_length=1, max_length=4_000)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class ToolArguments(BaseModel):
    """Arguments of a tool: nothing is coerced, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NoArguments(ToolArguments):
    """A tool without arguments."""


class RecallArguments(ToolArguments):
    """Arguments of `memory_recall`."""

    query: Words = Field(description="A question or some words.")
    since: Name | None = Field(None, description="Only since this day.")
    project: Name | None = Field(None, description="Only of this project.")
    limit: int = Field(10, ge=1, le=50, description="Maximum number of hits.")


class ExpandArguments(ToolArguments):
    """Arguments of `memory_expand`."""

    handle: Name = Field(
        description="An id (^f-…) or its beginning, a file's path (memory/…--summary.md), or a session's key, id or "
        "token."
    )
    budget: int = Field(2_000, ge=50, le=8_000, description="Most tokens of text.")


class ContextArguments(ToolArguments):
    """Arguments of `memory_context`."""

    prompt: Words | None = Field(
        None, description="What you are about to work on. Default: the context of a session's start."
    )
    project: str | None = Field(
        None,
        max_length=4_096,
        description="Absolute path of the project to start with. Default: the server's working directory.",
    )
    budget: int | None = Field(
        None, ge=50, le=10_000, description="Most tokens (default: 800 with a prompt, 2,000 without)."
    )


class RememberArguments(ToolArguments):
    """Arguments of `memory_remember`."""

    text: str = Field(min_length=1, max_length=LONGEST, description="Makes sense without this session.")
    type: Literal["preference", "decision", "constraint", "person", "blocker", "note"] = Field(
        "note", description="Its section in MEMORY.md."
    )
    tags: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(
        [], max_length=MOST_TAGS, description="Words to find it by."
    )
    private: bool = Field(False, description="True: in no shared context.")
    everywhere: bool = Field(False, description="True: for every project.")
    session: Name | None = Field(None, description="The session it comes from and is removed with.")


class NoteArguments(ToolArguments):
    """Arguments of `memory_note`."""

    note: str = Field(
        "",
        max_length=8_000,
        description="One to three lines: `Outcome: …`, `Decided: …`, `Next: …`, `Blocked: …`, "
        "`Tried: …` (what, and how it failed).",
    )
    done: list[Name] = Field([], max_length=20, description="Steps and blockers that are done (^f-…).")
    withdrawn: list[Name] = Field([], max_length=20, description="What an agent said and is not true (^f-…).")


class ForgetArguments(ToolArguments):
    """Arguments of `memory_forget`."""

    id: Name = Field(description="Its id or beginning.")


class CheckpointArguments(ToolArguments):
    """Arguments of `memory_checkpoint`."""

    note: str = Field("", max_length=500, description="Why: the subject of the commit.")


class HistoryArguments(ToolArguments):
    """Arguments of `memory_history`."""

    limit: int = Field(10, ge=1, le=100, description="Most commits, the newest first.")
    include_diff: bool = Field(
        False, description="True: also what was added from the oldest to the newest, as a unified diff."
    )


class SessionArguments(ToolArguments):
    """Arguments of `session_open`."""

    session: Name = Field(description="Its key, id or token, or the beginning of one.")


class EntityArguments(ToolArguments):
    """Arguments of `entity_read`."""

    id: Name | None = Field(
        None, description="An entity's id or its beginning, its folder's name, or its title. Default: all are listed."
    )
    kind: entity_paths.Kind | None = Field(None, description="List only these (without an id).")


class EditArguments(ToolArguments):
    """Arguments of `entity_edit`."""

    op: Literal["create", "set", "append", "prune", "status", "undo"] = Field(
        description="create: a new entity; set: replace the text of a narrative section; append: add a paragraph or an "
        "item; prune: remove an item from a list; status: change the entity's; undo: take one edit back."
    )
    id: Name | None = Field(None, description="As in entity_read (not for create and undo).")
    section: Name | None = Field(None, description="A section's `name` as in entity_read, or its heading.")
    text: Annotated[str, Field(max_length=100_000)] | None = Field(
        None, description="The text (set and append), empty with a reason to empty a section; the new status."
    )
    propose: bool = Field(False, description="Let a person decide, as a pinned or locked section needs (set, append).")
    expect: Name | None = Field(None, description="Refuse if the section's sha256 is another by now (set and append).")
    item: Name | None = Field(None, description="The item's number or key (prune).")
    reason: Annotated[str, Field(min_length=1, max_length=1_000)] | None = Field(
        None, description="Why (prune, status, and set to an empty text)."
    )
    rationale: Annotated[str, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description='Why a soft cap is exceeded: "why: …; until: …; plan: …" (set and append).'
    )
    evidence: Name | None = Field(
        None, description="PATH#LINE of an artifact that supports it (set and append); an item of Evidence needs it."
    )
    kind: entity_paths.Kind | None = Field(None, description="The kind of a new entity.")
    title: Name | None = Field(None, description="The name of a new entity.")
    type: Name | None = Field(None, description="The type of a new relationship: reviews, protects, polarized …")
    between: Annotated[list[Name], Field(max_length=20)] | None = Field(
        None, description="The participants of a new relationship."
    )
    event: Name | None = Field(None, description="The event_id or ev:… of the edit to take back (undo).")

    @model_validator(mode="after")
    def _fits_the_operation(self) -> Self:
        given = {name for name, value in self if name != "op" and value is not None and value is not False}
        needs, may = _EDITS[self.op]
        missing, surplus = sorted(needs - given), sorted(given - needs - may)
        if missing:
            raise ValueError(f"{self.op} needs `{missing[0]}`")
        if surplus:
            raise ValueError(f"{self.op} takes no `{surplus[0]}`")
        return self


_GROUNDS = {"rationale", "evidence", "propose", "expect"}
# What each operation of `entity_edit` needs, and what it takes besides.
_EDITS: dict[str, tuple[set[str], set[str]]] = {
    "create": ({"kind", "title"}, {"type", "between"}),
    "set": ({"id", "section", "text"}, _GROUNDS | {"reason"}),
    "append": ({"id", "section", "text"}, _GROUNDS),
    "prune": ({"id", "section", "item", "reason"}, set()),
    "status": ({"id", "text"}, {"reason"}),
    "undo": ({"event"}, set()),
}
