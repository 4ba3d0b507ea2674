"""The mirror of tombstone files, and the removal of every row that a tombstone covers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from signet_sync.contracts.tokens import token_of
from signet_sync.index.artifacts import delete_rows, forget_files
from signet_sync.index.database import Database
from signet_sync.index.live import reset

if TYPE_CHECKING:
    from signet_sync.contracts.artifacts import Tombstone


def mirrored(database: Database) -> list[Tombstone]:
    """The tombstones that the database knows."""
    found = []
    for agent_id, token, removed_at, reason, paths, session_ids in database.execute(
        "select agent_id, session_token, removed_at, reason, removed_paths, session_ids from memory_artifact_tombstones"
        " order by agent_id, session_token"
    ):
        fields: dict[str, Any] = {
            "kind": "tombstone",
            "agent_id": agent_id,
            "session_token": token,
            "removed_at": removed_at,
            "reason": reason,
            "removed_paths": json.loads(paths),
            "session_ids": json.loads(session_ids) if session_ids else None,
        }
        # Only a vault with tombstones pays for the models.
        from signet_sync.contracts.artifacts import validate_tombstone

        found.append(validate_tombstone(fields))
    return found


def mirror(database: Database, stones: Sequence[Tombstone]) -> None:
    """Writes tombstones into the mirror; equal ones are not written again."""
    for stone in stones:
        database.execute(
            "insert into memory_artifact_tombstones"
            "(agent_id, session_token, removed_at, reason, removed_paths, session_ids) values(?, ?, ?, ?, ?, ?)"
            " on conflict(agent_id, session_token) do update set removed_at = excluded.removed_at,"
            " reason = excluded.reason, removed_paths = excluded.removed_paths, session_ids = excluded.session_ids,"
            " scrubbed = 0 where removed_at <> excluded.removed_at or reason <> excluded.reason"
            " or removed_paths <> excluded.removed_paths or session_ids is not excluded.session_ids",
            (
                stone.agent_id,
                stone.session_token,
                stone.removed_at.text,
                stone.reason,
                json.dumps(list(stone.removed_paths)),
                json.dumps(list(stone.session_ids)) if stone.session_ids else None,
            ),
        )


def lift(database: Database, agent_id: str, token: str) -> None:
    """Drops a tombstone from the mirror."""
    database.execute(
        "delete from memory_artifact_tombstones where agent_id = ? and session_token = ?", (agent_id, token)
    )


def remove_covered(database: Database, stones: Sequence[Tombstone]) -> tuple[list[tuple[str, str, str]], int]:
    """Drops everything the tombstones cover: rows, full text, seals, telemetry, violations.

    Gives the sessions whose ledger rows may go, and the number of rows dropped. Scope is agent and token (and ids).
    """
    touched: list[tuple[str, str, str]] = []
    removed = 0
    for stone in stones:
        scope = "agent_id = ? and session_token = ?"
        bindings: list[Any] = [stone.agent_id, stone.session_token]
        if stone.session_ids:
            scope += f" and session_id in ({', '.join('?' * len(stone.session_ids))})"
            bindings += stone.session_ids
        database.execute(f"delete from flow_results where {scope}", bindings)
        _forget_live(database, stone)
        paths = {
            row[0] for row in database.execute(f"select source_path from memory_artifacts where {scope}", bindings)
        }
        paths |= {row[0] for row in database.execute(f"select path from seals where {scope}", bindings)}
        if not paths:
            continue
        gone = sorted(paths)
        dropped = delete_rows(database, gone)
        touched += dropped
        removed += len(dropped)
        touched += [
            (a, t, s)
            for a, t, s in database.execute(
                f"select distinct agent_id, session_token, session_id from seals where {scope}", bindings
            )
        ]
        database.execute(f"delete from seals where {scope}", bindings)
        for path in gone:
            database.execute(
                "delete from artifact_telemetry where agent_id = ? and source_path = ?",
                (stone.agent_id, path),
            )
            database.execute("delete from violations where path = ?", (path,))
            database.execute("delete from meta where key = ?", (f"accepted:{path}",))
        forget_files(database, gone)
    return touched, removed


def _forget_live(database: Database, stone: Tombstone) -> None:
    """Buffered turns are known by key alone: they go unless the tombstone covers only other sessions of the key."""
    keys = database.execute(
        "select distinct session_key from session_transcripts where agent_id = ?", (stone.agent_id,)
    )
    for (key,) in list(keys):
        whole = not stone.session_ids and token_of(stone.agent_id, key) == stone.session_token
        if whole or key in stone.session_ids:
            reset(database, stone.agent_id, key)


def unscrubbed(database: Database) -> bool:
    """Whether a removal has not yet been followed by its scrub."""
    return bool(database.value("select exists(select 1 from memory_artifact_tombstones where scrubbed = 0)"))


def mark_scrubbed(database: Database) -> None:
    """Remembers that no byte of the removed sessions is left in our files."""
    database.execute("update memory_artifact_tombstones set scrubbed = 1 where scrubbed = 0")
