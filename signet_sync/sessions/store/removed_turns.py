"""Finds and deletes the buffered turns and recorded answers of removed sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.ids import token_of
from signet_sync.sessions.store import live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.tombstones import store as tombstones_store


def live_of(database: Database, tombstone: Tombstone) -> list[tuple[str, str, str]]:
    """Returns agent, key and id of the buffered turns that a tombstone covers, while rows tell whose they are."""
    return list(_live(database, tombstone, tombstones_store.sessions_of(database, tombstone.scope)))


def forget(database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> None:
    """Deletes buffered turns and recorded answers of removed sessions. In the caller's transaction."""
    for one in list(_live(database, tombstone, sessions)):
        live.forget(database, *one)
    database.executemany(
        "delete from flow_results where agent_id = ? and session_id = ?",
        [(tombstone.agent_id, session_id) for session_id in sorted(_ids(tombstone, sessions))],
    )


def _ids(tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> set[str]:
    return {session_id for session_id, _ in sessions}.union(tombstone.session_ids)


def covers_live(tombstones: Sequence[Tombstone], agent_id: str, session_key: str, session_id: str) -> bool:
    """Returns whether a tombstone covers buffered turns by what their session is called."""
    names = {name for name in (session_key, session_id) if name}
    tokens = {token_of(agent_id, name) for name in names} if tombstones else set()
    return any(
        tombstone.agent_id == agent_id
        and (
            not names.isdisjoint(tombstone.session_ids)
            or (tombstone.session_token in tokens and not tombstone.session_ids)
        )
        for tombstone in tombstones
    )


def _live(
    database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]
) -> Iterator[tuple[str, str, str]]:
    """Returns live turns by their ids, by what they are called where the token covers all of it.

    Under a key that sessions outside the tombstone share, turns whose session nobody named may tell of the removed one:
    they go once, with the removal. Later ones are another session's.
    """
    agent_id, token = tombstone.key
    ids, of_rows = _ids(tombstone, sessions), {key for _, key in sessions if key is not None}
    fresh = tombstones_store.is_due(database, agent_id, token)
    for key, session_id, *_ in live.sessions(database, agent_id):
        names = {name for name in (key, session_id) if name}
        tokens = {token_of(agent_id, name) for name in names}
        named = not names.isdisjoint(ids) or (token in tokens and not tombstone.session_ids)
        shared = not session_id and (token in tokens or key in of_rows)
        if named or (shared and fresh):
            yield agent_id, key, session_id
