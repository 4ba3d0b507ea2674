"""Keeps what one pass leaves for the next: a halt, and whether some manifest may be missing."""

from __future__ import annotations

import json

from signet_sync.index.database import Database
from signet_sync.reconcile import Cliff

_HALT, _MANIFESTS = "halted", "manifests"


def is_halted(database: Database) -> bool:
    """Says whether passes are halted."""
    return database.meta(_HALT) is not None


def halt_message(database: Database) -> str:
    """Says why passes are halted; empty where they are not."""
    stored = database.meta(_HALT)
    return str(json.loads(stored)["message"]) if stored is not None else ""


def halt(database: Database, cliff: Cliff) -> None:
    """Remembers a halt."""
    value = json.dumps({"would_remove": cliff.would_remove, "indexed": cliff.indexed, "message": cliff.message})
    if database.meta(_HALT) != value:
        with database.transaction():
            database.set_meta(_HALT, value)


def end_halt(database: Database) -> None:
    """Forgets a halt. In the caller's transaction."""
    database.execute("delete from meta where key = ?", (_HALT,))


def expect_missing_manifests(database: Database) -> None:
    """Has the next full pass that may write look for sessions without a manifest. In the caller's transaction."""
    database.set_meta(_MANIFESTS, "due")


def may_miss_manifests(database: Database) -> bool:
    """Says whether some session may lack its manifest."""
    return database.meta(_MANIFESTS) is not None


def found_all_manifests(database: Database) -> None:
    """Forgets that one may be missing. In the caller's transaction."""
    database.execute("delete from meta where key = ?", (_MANIFESTS,))
