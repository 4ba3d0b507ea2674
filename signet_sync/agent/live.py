"""The turns that a harness streams while a session runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from signet_sync.agent.removed import is_removed, removed_session
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.identities import session_name
from signet_sync.contracts.inputs import session_input
from signet_sync.contracts.sanitizer import sanitize_counted, sanitize_line_counted
from signet_sync.contracts.tokens import token_of
from signet_sync.contracts.turns import Turn
from signet_sync.errors import UsageError
from signet_sync.index import live, tombstones
from signet_sync.index.live import LiveTurn

# A pass over a large vault may hold the database for a while; a turn that was said is not given up for that.
PATIENCE_MS = 60_000


def append(
    workspace: Workspace, turns: Iterable[Turn], *, agent_id: str, session_key: str, session_id: str | None = None
) -> dict[str, Any]:
    """Buffers the turns of a running session, all or none, sanitized; gives the answer of `transcript append`.

    A turn that is there already is counted as a duplicate. Raises `UsageError` (`input-invalid`, `agent-invalid`,
    `turn-conflict`, `removed-session`), `DatabaseError`.
    """
    session_id = session_id or ""
    _check_names(agent_id, session_key, session_id)
    session_key, session_id = session_name(session_key), session_name(session_id) if session_id else ""
    counts: dict[str, int] = {}
    clean = [_sanitized(turn, counts) for turn in turns]
    database = workspace.database
    database.connection.set_busy_timeout(PATIENCE_MS)
    with database.transaction(durable=True):
        # In the transaction: a removal that comes later finds the turns.
        refuse_removed(workspace, agent_id, session_key, session_id)
        appended = live.buffer(database, agent_id, session_key, clean, session_id=session_id)
        held = live.count(database, agent_id, session_key, session_id)
    return {
        "agent_id": agent_id,
        "session_key": session_key,
        "turns": held,
        "appended": appended,
        "duplicates": len(clean) - appended,
        "redactions": counts,
    }


def _check_names(agent_id: str, session_key: str, session_id: str) -> None:
    """Holds the names to what an ending may be called by: else the session could never end."""
    names = {"agent_id": agent_id, "session_key": session_key, "session_id": session_id or "-", "transcript": ""}
    try:
        given = session_input(names, now_us=0)
    except UsageError as error:
        raise _refused(error.message, error.code) from None
    if given.session_key is None:
        raise _refused("session_key must be a text that is not blank")


def _refused(message: str, code: str = "input-invalid") -> UsageError:
    return UsageError(message, hint="see signet-sync transcript append --help; nothing was written", code=code)


def _sanitized(turn: Turn, counts: dict[str, int]) -> LiveTurn:
    role, of_role = sanitize_line_counted(turn.role)
    text, of_text = sanitize_counted(turn.text)
    for found in (of_role, of_text):
        for rule, number in found.items():
            counts[rule] = counts.get(rule, 0) + number
    return LiveTurn(turn.turn, role, text, turn.at)


def refuse_removed(workspace: Workspace, agent_id: str, session_key: str, session_id: str) -> None:
    """Raises `UsageError` (`removed-session`) where key or id are those of a removed session."""
    token = token_of(agent_id, session_key)
    ids = {
        name
        for stone in tombstones.mirrored(workspace.database)
        if stone.agent_id == agent_id
        for name in stone.session_ids
    }
    for name in filter(None, (session_id, session_key)):
        if name in ids or is_removed(workspace, agent_id, token, name):
            raise removed_session(name)
