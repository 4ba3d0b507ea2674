"""Implements the tools that write: remember, forget, checkpoint, edit an entity."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from signet_sync.digest.notes import hand_over
from signet_sync.entities import operations
from signet_sync.entities.execute import Caller, EntityResult
from signet_sync.history import operations as history_operations
from signet_sync.host.repository import project_at
from signet_sync.mcp_server import schemas
from signet_sync.mcp_server.dispatch import Document, answer
from signet_sync.mcp_server.memory import ServedMemory
from signet_sync.pages.readable import belongs
from signet_sync.privacy import forget as privacy_forget
from signet_sync.recall import pinning
from signet_sync.storage.clock import now_us
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.sync.workspace import Workspace

_log = logging.getLogger(__name__)


def remember(memory: ServedMemory, asked: schemas.RememberArguments) -> Document:
    """`memory_remember`."""
    done = memory.ask(
        "remember",
        text=asked.text,
        kind=asked.type,
        tags=asked.tags,
        private=asked.private,
        session=asked.session,
        project="" if asked.everywhere else project_at(os.getcwd()),
        now_us=now_us(),
    )
    with reading(memory.place) as database:
        return answer(done["memory"], _events(memory, database, done["events"], done["waiting"]))


def note(memory: ServedMemory, asked: schemas.NoteArguments) -> Document:
    """`memory_note`: the transcript has the call and its lines; only what it says of statements is written now."""
    lines = [{"label": line.label, "text": line.text} for line in (hand_over(asked.note) if asked.note else ())]
    said: list[pinning.Marked] = []
    words: list[tuple[str, pinning.Mark]] = [(one, "done") for one in asked.done]
    words += [(one, "withdrawn") for one in asked.withdrawn]
    more = None
    if words:
        with memory.place.opened() as workspace:
            for one, status in words:
                said.append(pinning.mark(workspace, memory.agent_id, one, status, now_us(), by_agent=True))
            more = _events(memory, workspace.database, workspace.events, said[-1].waiting)
    return answer({"lines": lines, "said": [{"id": m.id, "text": m.text, "status": m.status} for m in said]}, more)


def forget(memory: ServedMemory, asked: schemas.ForgetArguments) -> Document:
    """`memory_forget`: deletes a memory."""
    with memory.place.opened() as workspace:
        done = privacy_forget.forget(workspace, memory.agent_id, asked.id, now_us())
        return answer(
            privacy_forget.forgotten_document(done), _events(memory, workspace.database, workspace.events, done.waiting)
        )


def checkpoint(memory: ServedMemory, asked: schemas.CheckpointArguments) -> Document:
    """`memory_checkpoint`; of the files left out, those of other agents are not named."""
    with memory.place.opened() as workspace:
        done = history_operations.checkpoint(workspace, memory.agent_id, asked.note, now_us())
        more = _events(memory, workspace.database, workspace.events, done.hint)
    document = done.document()
    with reading(memory.place) as database:
        document["skipped_files"] = [path for path in done.skipped_files if belongs(database, memory.agent_id, path)]
    return answer(document, more)


def edit(memory: ServedMemory, asked: schemas.EditArguments) -> Document:
    """`entity_edit`: over MCP the actor is an agent, so sections that a person locked or pinned are refused."""
    with memory.place.opened() as workspace:
        done = _edit_entity(workspace, memory.agent_id, asked)
        return answer(done.document(), _events(memory, workspace.database, workspace.events, done.waiting))


def _edit_entity(workspace: Workspace, agent_id: str, asked: schemas.EditArguments) -> EntityResult:
    to, ref, section, text = (workspace, agent_id), asked.id or "", asked.section or "", asked.text or ""
    caller: Caller = {"actor": "agent", "now_us": now_us()}
    match asked.op:
        case "create":
            kind, between = asked.kind or "part", asked.between or ()
            return operations.create(*to, kind, asked.title or "", relation=asked.type, between=between, **caller)
        case "prune":
            return operations.prune(*to, ref, section, asked.item or "", reason=asked.reason or "", **caller)
        case "status":
            return operations.set_status(*to, ref, text, reason=asked.reason, **caller)
        case "undo":
            return operations.undo(*to, asked.event or "", **caller)
        case op:
            grounds = {name: getattr(asked, name) for name in ("rationale", "evidence", "expect", "propose", "reason")}
            act = operations.set_section if op == "set" else operations.append
            return act(*to, ref, section, text, **caller, **grounds)


def _events(memory: ServedMemory, database: Database, events: Iterable[str], waiting: str) -> str | None:
    """Returns the events of the call, and what waits; a pass covers all agents, and others' events are only logged."""
    own = []
    for line in events:
        if _concerns(memory, database, line):
            own.append(line)
        else:
            _log.warning(line)
    return "; ".join([*own, *filter(None, [waiting])]) or None


def _concerns(memory: ServedMemory, database: Database, line: str) -> bool:
    """Returns whether an event concerns this agent: it names no file, or begins with one of the agent's."""
    path, _, _ = line.partition(": ")
    return not ("/" in line or ".md" in line) or belongs(database, memory.agent_id, path)
