"""Finds the sessions that are here, by every name that they have."""

from __future__ import annotations

from signet_sync.formats.session_token import token_of
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import SessionRef


def sessions(database: Database) -> list[SessionRef]:
    """Returns every session of the index, the newest last."""
    return [
        SessionRef(*row)
        for row in database.execute(
            "select agent_id, session_token, session_id, max(session_key) from memory_artifacts group by 1, 2, 3"
            " order by max(captured_us), 2, 3"
        )
    ]


def identities(ref: SessionRef) -> set[tuple[str, str]]:
    """Returns agent and token of every identity of a session."""
    named = (token_of(ref.agent_id, name) for name in (ref.session_id, ref.session_key) if name)
    return {(ref.agent_id, token) for token in (ref.session_token, *named)}
