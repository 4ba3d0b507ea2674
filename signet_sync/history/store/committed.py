"""Records what commits of the git history have listed, so that nothing is listed twice. One row."""

from __future__ import annotations

import json
from collections.abc import Sequence

from signet_sync.storage.database.connection import Database

_TABLE = "history_told"


def dreams(database: Database) -> str | None:
    """Returns the newest sweep whose promotions a commit lists."""
    found: str | None = database.state(_TABLE, "sweep_id")
    return found


def set_dreams(database: Database, sweep_id: str) -> None:
    """Records it. In the caller's transaction."""
    database.set_state(_TABLE, "sweep_id", sweep_id)


def ends(database: Database) -> tuple[str, frozenset[str]] | None:
    """Returns up to when (ISO 8601 UTC) commits list ends of sessions, and the flows shortly before that are listed."""
    ended_at, keys = database.state(_TABLE, "ended_at"), database.state(_TABLE, "flow_keys")
    return (ended_at, frozenset(json.loads(keys))) if ended_at and keys else None


def set_ends(database: Database, ended_at: str, flow_keys: Sequence[str]) -> None:
    """Records it. In the caller's transaction."""
    database.set_state(_TABLE, "ended_at", ended_at)
    database.set_state(_TABLE, "flow_keys", json.dumps(flow_keys))
