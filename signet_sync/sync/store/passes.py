"""Stores what one pass leaves for the next: a halt, what is due, when something was last done, and by which rules."""

from __future__ import annotations

from typing import Literal

from signet_sync.storage.database.connection import Database

_TABLE = "passes"


def is_halted(database: Database) -> bool:
    """Returns whether passes are halted."""
    return bool(halt_message(database))


def halt_message(database: Database) -> str:
    """Returns why passes are halted; empty if they are not."""
    return database.state(_TABLE, "halted") or ""


def halt(database: Database, message: str) -> None:
    """Records a halt, and why."""
    if halt_message(database) != message:
        with database.transaction():
            database.set_state(_TABLE, "halted", message)


def end_halt(database: Database) -> None:
    """Ends a halt. In the caller's transaction."""
    database.set_state(_TABLE, "halted", None)


def unread(database: Database) -> int:
    """Returns how many files an unfinished first index has left to read."""
    return database.state(_TABLE, "unread") or 0


def leave_unread(database: Database, count: int) -> None:
    """Records how many files a first index has left to read. In the caller's transaction."""
    if count != unread(database):
        database.set_state(_TABLE, "unread", count)


# What is due: a look for sessions without a manifest, by the next full pass that may write; wiping free space that may
# hold expired rows; rebuilding full text without the words of deleted recall lines; pages that wait for many passes.
Due = Literal["manifests_due", "wipe_due", "scour_due", "pages_due"]


def expect(database: Database, what: Due) -> None:
    """Records that something is due. In the caller's transaction."""
    database.set_state(_TABLE, what, 1)


def is_due(database: Database, what: Due) -> bool:
    """Returns whether something is due."""
    return bool(database.state(_TABLE, what))


def done(database: Database, what: Due) -> None:
    """Records that something is no longer due. In the caller's transaction."""
    database.set_state(_TABLE, what, 0)


def read_examined(database: Database) -> str:
    """Returns when native rows were last examined (ISO 8601 UTC); empty if unknown."""
    return database.state(_TABLE, "examined_at") or ""


def record_examined(database: Database, at: str) -> None:
    """Records when native rows were examined. In the caller's transaction."""
    database.set_state(_TABLE, "examined_at", at)


def any_due(database: Database) -> bool:
    """Returns whether something is due for the next full pass."""
    return is_halted(database) or any(is_due(database, what) for what in ("manifests_due", "wipe_due", "pages_due"))


def version_of(database: Database, name: str) -> str | None:
    """Returns the version by which rows of a name were made; None where they are to be made again."""
    found: str | None = database.value("select version from derivers where name = ?", (name,))
    return found


def set_version(database: Database, name: str, version: str) -> None:
    """Says so; nothing is written where it is known. In the caller's transaction."""
    database.execute(
        "insert into derivers(name, version) values(?, ?) on conflict(name) do update set version = excluded.version"
        " where version <> excluded.version",
        (name, version),
    )
