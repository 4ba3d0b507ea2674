"""Keeps what one pass leaves for the next, in one row: a halt, what is due, and when something was done last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_sync.index.database import Database

if TYPE_CHECKING:
    from signet_sync.reconcile import Cliff

_TABLE = "passes"


def is_halted(database: Database) -> bool:
    """Says whether passes are halted."""
    return bool(halt_message(database))


def halt_message(database: Database) -> str:
    """Says why passes are halted; empty where they are not."""
    return database.state(_TABLE, "halted") or ""


def halt(database: Database, cliff: Cliff) -> None:
    """Remembers a halt."""
    if halt_message(database) != cliff.message:
        with database.transaction():
            database.set_state(_TABLE, "halted", cliff.message)


def end_halt(database: Database) -> None:
    """Forgets a halt. In the caller's transaction."""
    database.set_state(_TABLE, "halted", None)


def expect_missing_manifests(database: Database) -> None:
    """Has the next full pass that may write look for sessions without a manifest. In the caller's transaction."""
    database.set_state(_TABLE, "manifests_due", 1)


def may_miss_manifests(database: Database) -> bool:
    """Says whether some session may lack its manifest."""
    return bool(database.state(_TABLE, "manifests_due"))


def found_all_manifests(database: Database) -> None:
    """Forgets that one may be missing. In the caller's transaction."""
    database.set_state(_TABLE, "manifests_due", 0)


def expect_wipe(database: Database) -> None:
    """Remembers that rows went whose time was up, and may have left bytes. In the caller's transaction."""
    database.set_state(_TABLE, "wipe_due", 1)


def is_wipe_due(database: Database) -> bool:
    """Says whether such bytes may be left."""
    return bool(database.state(_TABLE, "wipe_due"))


def wiped(database: Database) -> None:
    """Forgets that any may be left. In the caller's transaction."""
    database.set_state(_TABLE, "wipe_due", 0)


def expect_scour(database: Database) -> None:
    """Remembers that full text holds words of recall lines that were dropped. In the caller's transaction."""
    database.set_state(_TABLE, "scour_due", 1)


def is_scour_due(database: Database) -> bool:
    """Says whether full text may hold such words."""
    return bool(database.state(_TABLE, "scour_due"))


def scoured(database: Database) -> None:
    """Forgets that it may. In the caller's transaction."""
    database.set_state(_TABLE, "scour_due", 0)


def examined_at(database: Database) -> str:
    """Says when native rows were last examined (ISO 8601 UTC); empty where that is not known."""
    return database.state(_TABLE, "examined_at") or ""


def examined(database: Database, at: str) -> None:
    """Remembers when they were. In the caller's transaction."""
    database.set_state(_TABLE, "examined_at", at)


def days_told_on(database: Database) -> str:
    """Says on which day the change logs of entities were last brought up to date; empty where that is not known."""
    return database.state(_TABLE, "days_told_on") or ""


def told_days(database: Database, day: str) -> None:
    """Remembers on which day they were. In the caller's transaction."""
    database.set_state(_TABLE, "days_told_on", day)


def any_due(database: Database) -> bool:
    """Says whether something waits for the next pass over everything."""
    return is_halted(database) or may_miss_manifests(database) or is_wipe_due(database)
