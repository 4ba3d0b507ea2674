"""Keeps what one pass leaves for the next, in one row: a halt, what is due, and when something was done last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from signet_sync.storage.database.connection import Database

if TYPE_CHECKING:
    from signet_sync.sync.planner import Cliff

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


# What waits: a look for sessions without a manifest, by the next full pass that may write; the wiping of bytes that
# rows may have left whose time was up; full text without the words of recall lines that were dropped.
Due = Literal["manifests_due", "wipe_due", "scour_due"]


def expect(database: Database, what: Due) -> None:
    """Remembers that something is due. In the caller's transaction."""
    database.set_state(_TABLE, what, 1)


def is_due(database: Database, what: Due) -> bool:
    """Says whether it is."""
    return bool(database.state(_TABLE, what))


def done(database: Database, what: Due) -> None:
    """Forgets that it was. In the caller's transaction."""
    database.set_state(_TABLE, what, 0)


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
    return is_halted(database) or is_due(database, "manifests_due") or is_due(database, "wipe_due")
