"""Stores what one pass leaves for the next, in one row: a halt, what is due, and when something was last done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from signet_sync.storage.database.connection import Database

if TYPE_CHECKING:
    from signet_sync.sync.planner import Cliff

_TABLE = "passes"


def is_halted(database: Database) -> bool:
    """Returns whether passes are halted."""
    return bool(halt_message(database))


def halt_message(database: Database) -> str:
    """Returns why passes are halted; empty if they are not."""
    return database.state(_TABLE, "halted") or ""


def halt(database: Database, cliff: Cliff) -> None:
    """Records a halt."""
    if halt_message(database) != cliff.message:
        with database.transaction():
            database.set_state(_TABLE, "halted", cliff.message)


def end_halt(database: Database) -> None:
    """Ends a halt. In the caller's transaction."""
    database.set_state(_TABLE, "halted", None)


# What is due: a look for sessions without a manifest, by the next full pass that may write; wiping free space that may
# hold expired rows; rebuilding full text without the words of deleted recall lines.
Due = Literal["manifests_due", "wipe_due", "scour_due"]


def expect(database: Database, what: Due) -> None:
    """Records that something is due. In the caller's transaction."""
    database.set_state(_TABLE, what, 1)


def is_due(database: Database, what: Due) -> bool:
    """Returns whether something is due."""
    return bool(database.state(_TABLE, what))


def done(database: Database, what: Due) -> None:
    """Records that something is no longer due. In the caller's transaction."""
    database.set_state(_TABLE, what, 0)


def examined_at(database: Database) -> str:
    """Returns when native rows were last examined (ISO 8601 UTC); empty if unknown."""
    return database.state(_TABLE, "examined_at") or ""


def examined(database: Database, at: str) -> None:
    """Records when native rows were examined. In the caller's transaction."""
    database.set_state(_TABLE, "examined_at", at)


def days_summarized_on(database: Database) -> str:
    """Returns the day on which the change logs of entities were last updated; empty if unknown."""
    return database.state(_TABLE, "days_told_on") or ""


def summarized_days(database: Database, day: str) -> None:
    """Records the day on which the change logs of entities were updated. In the caller's transaction."""
    database.set_state(_TABLE, "days_told_on", day)


def any_due(database: Database) -> bool:
    """Returns whether something is due for the next full pass."""
    return is_halted(database) or is_due(database, "manifests_due") or is_due(database, "wipe_due")
