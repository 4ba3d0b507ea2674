"""Stores the version of the rules under which rows were made."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database


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
