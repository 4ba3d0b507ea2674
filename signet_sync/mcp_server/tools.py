"""Defines the tools as a client sees them (name, description, schemas, hints) and calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel

from signet_sync.mcp_server import read_tools, schemas, write_tools
from signet_sync.mcp_server.dispatch import Document, Failure, attempted, error_text, text_of
from signet_sync.mcp_server.memory import ServedMemory

Act = Callable[[ServedMemory, Any], Document]


@dataclass(frozen=True)
class Offer:
    """A tool: its arguments, its answer, and its function.

    `shared` is its description if others read the answers, too; if empty, the tool is not offered there.
    """

    name: str
    title: str
    description: str
    takes: type[schemas.ToolArguments]
    answers: type[schemas.ToolAnswer]
    act: Act
    shared: str = ""
    writes: bool = False
    destroys: bool = False
    again: bool = True  # calling it again with the same arguments changes nothing further

    @cached_property
    def tool(self) -> Tool:
        """Returns the tool as it is listed."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=_schema(self.takes, "validation"),
            output_schema=_or_error(_schema(self.answers, "serialization")),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=not self.writes,
                destructive_hint=self.destroys,
                idempotent_hint=self.again,
                open_world_hint=False,
            ),
        )


def _schema(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    schema = model.model_json_schema(mode=mode)
    # Docstrings and class names are for readers of the code.
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        part.pop("description", None)
        for field in part.get("properties", {}).values():
            field.pop("title", None)
    return schema


def _or_error(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema that errors match, too: some clients validate answers and show nothing of one that fails."""
    fields = schema["properties"] | {"error": _schema(schemas.ErrorOutput, "serialization")}
    either = [{"required": schema["required"]}, {"required": ["error"]}]
    return {key: value for key, value in schema.items() if key != "required"} | {"properties": fields, "anyOf": either}


OFFERS = (
    Offer(
        "memory_recall",
        "Recall",
        "Ask this agent's memory a question. Finds what answers it: remembered facts, decisions and preferences first, "
        "then threads and summaries of past sessions, then passages of transcripts, each with its kind and time. "
        "Start here when you wonder whether something was decided, tried or said before; follow a hit's id with "
        "memory_expand.",
        schemas.RecallArguments,
        schemas.RecallAnswer,
        read_tools.recall,
        shared="Ask what this agent remembers and may share: decisions, preferences and notes that answer a question.",
    ),
    Offer(
        "memory_search",
        "Search",
        "Full-text search over the files of this agent's past sessions (summaries, transcripts, compactions), best "
        "match first, with a snippet. For exact words: a file name, an error message, a person. For a question use "
        "memory_recall.",
        schemas.SearchArguments,
        schemas.SearchAnswer,
        read_tools.search,
    ),
    Offer(
        "memory_expand",
        "Expand",
        "Follow an id, ^handle, path or session down to its source: its own text, what is above, below and beside it, "
        "and the passage of the transcript, within a budget of tokens.",
        schemas.ExpandArguments,
        schemas.ExpandAnswer,
        read_tools.expand,
    ),
    Offer(
        "memory_context",
        "Context",
        "The context of a session's start (what memory holds of the project, preferences, other projects, and the "
        "workspace's identity files); with `prompt` what memory contains about it, in a few lines.",
        schemas.ContextArguments,
        schemas.ContextAnswer,
        read_tools.context,
        shared="The workspace's identity files; with `prompt` what this agent remembers about it and may share, then "
        "the identity files.",
    ),
    Offer(
        "memory_remember",
        "Remember",
        "Remember one thought for later sessions: a decision, a constraint, a preference, a fact about a person, a "
        "blocker, a note. MEMORY.md shows it from now on and memory_recall finds it. Secrets are redacted. Equal texts "
        "are kept once.",
        schemas.RememberArguments,
        schemas.RememberAnswer,
        write_tools.remember,
        writes=True,
    ),
    Offer(
        "memory_forget",
        "Forget",
        "Forget a memory (m-…) for good, to the last byte; this cannot be undone. Use it for what was remembered in "
        "error or what a person wants deleted. What comes from a session's files is not a memory and cannot be "
        "forgotten here.",
        schemas.ForgetArguments,
        schemas.ForgetAnswer,
        write_tools.forget,
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
        schemas.CheckpointAnswer,
        write_tools.checkpoint,
        writes=True,
    ),
    Offer(
        "memory_history",
        "History",
        "The newest commits of the workspace's history, and with `include_diff` what was added to this agent's files "
        "since the oldest of them and still exists. What was removed is never shown.",
        schemas.HistoryArguments,
        schemas.HistoryAnswer,
        read_tools.history,
    ),
    Offer(
        "memory_stats",
        "Statistics",
        "Count what this agent remembers: memories, promotions, sessions, files, and what was recalled in the last "
        "seven days.",
        schemas.NoArguments,
        schemas.StatsAnswer,
        read_tools.stats,
    ),
    Offer(
        "session_open",
        "Open a session",
        "One past session by key, id or token: its sentence, its segments with the paths of summaries and "
        "transcripts, the state of its files. Pass a path to memory_expand to read it.",
        schemas.SessionArguments,
        schemas.SessionAnswer,
        read_tools.session,
    ),
    Offer(
        "entity_read",
        "Read an entity",
        "Curated files about the user, parts of a subject and relationships: without an id a list of all, with an id "
        "its sections, list items with their keys, what is pinned or locked, and open proposals.",
        schemas.EntityArguments,
        schemas.EntityAnswer,
        read_tools.entity,
    ),
    Offer(
        "entity_edit",
        "Edit an entity",
        "Change one section of an entity: set its text, append a paragraph or an item, prune an item with a reason. "
        "Every change is recorded as an event; sections that a person pinned or locked are refused.",
        schemas.EditArguments,
        schemas.EditAnswer,
        write_tools.edit,
        writes=True,
        again=False,
    ),
)


def offered(memory: ServedMemory) -> dict[str, Offer]:
    """Returns the tools of a memory by name.

    With shared scope no tool writes: what others make an agent remember would appear in the MEMORY.md that only the
    agent reads. Sessions, files, entities, history and statistics contain private things, too.
    """
    if memory.shared:
        return {one.name: replace(one, description=one.shared) for one in OFFERS if one.shared and not one.writes}
    return {one.name: one for one in OFFERS if not (one.writes and memory.read_only)}


def call(memory: ServedMemory, offer: Offer, arguments: dict[str, Any]) -> CallToolResult:
    """Calls a tool; an error is an answer, too."""
    done = attempted(lambda: offer.act(memory, offer.takes.model_validate(arguments)), memory.place)
    if isinstance(done, Failure):
        return _result(done.document, error_text(done.document), failed=True)
    return _result(done, text_of(done), failed=False)


def _result(document: Document, text: str, *, failed: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], structured_content=document, is_error=failed)
