"""Stores what was last seen of a Signet in this workspace: the end of its daemon, trouble with its database."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database

_TABLE = "beside_signet"


def trouble(database: Database) -> str:
    """Returns what was last reported about Signet's database; empty if it could be read."""
    return database.state(_TABLE, "trouble") or ""


def set_trouble(database: Database, trouble: str) -> None:
    """Records what was reported about Signet's database. In the caller's transaction."""
    database.set_state(_TABLE, "trouble", trouble or None)


def daemon_ended_at(database: Database) -> float | None:
    """Returns when Signet's daemon was found to have ended on this machine, in seconds since 1970."""
    ended: float | None = database.state(_TABLE, "daemon_ended_at")
    return ended


def set_daemon_ended_at(database: Database, ended: float | None) -> None:
    """Records when it was found to have ended; None while it runs. In the caller's transaction."""
    database.set_state(_TABLE, "daemon_ended_at", ended)
