"""Deletes memories of removed sessions in the pass that removes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from signet_sync.formats.session_token import token_of
from signet_sync.memories.store import memories
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Eraser

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone


class Memories(Eraser):
    """Deletes what is remembered of removed sessions."""

    name = "memories"

    def forget(self, database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> int:
        """Deletes what is remembered of removed sessions alone, by whichever of their identities."""
        gone = memories.forget_session(database, tombstone.agent_id, tombstone.session_token, tombstone.session_ids)
        others: dict[str, set[str]] = {}
        for session_id, key in sessions:
            for identity in filter(None, (session_id, key)):
                others.setdefault(token_of(tombstone.agent_id, identity), set()).add(session_id)
        others.pop(tombstone.session_token, None)
        for token, ids in others.items():
            gone += memories.forget_session(database, tombstone.agent_id, token, sorted(ids))
        return gone
