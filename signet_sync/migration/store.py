"""Finds the sessions that are here."""

from __future__ import annotations

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
