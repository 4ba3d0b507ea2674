"""Native rows of another database taken into ours: rows that are there win."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from signet_sync.index import backup, live, memories
from signet_sync.index import lines as recall_lines
from signet_sync.index.database import Database
from signet_sync.index.schema import BACKED_UP, kept_rows

# Not a table: seals that lost their bytes and got them back.
BYTES = "sealed_bytes"


def counts(database: Database) -> dict[str, int]:
    """The number of rows by table, of those that are worth keeping."""
    return {table: database.value(f"select count(*) from {kept_rows(table)}") for table in BACKED_UP}


def missing(database: Database, other: Database) -> dict[str, int]:
    """How many rows of the other database ours lacks, by table."""
    found = {
        table: len(backup.news(database, table, columns, _rows(other, table, columns)))
        for table, columns in BACKED_UP.items()
    }
    return {**found, BYTES: len(list(_bytes(database, other)))}


def merge(database: Database, other: Database) -> dict[str, int]:
    """Takes over what ours lacks; gives how many rows by table. In the caller's transaction.

    A seal that has lost its bytes gets them back from an equal one.
    """
    given = list(_bytes(database, other))
    database.executemany("update seals set packed = ? where path = ?", given)
    taken = {}
    for table, columns in BACKED_UP.items():
        names = (*columns, "packed") if table == "seals" else columns
        taken[table] = backup.adopt(database, table, names, _rows(other, table, names))
    remembered = memories.marks_of_all(database)
    marks = other.execute(f"select key, value from meta where {backup.MARKED}")
    database.executemany(
        "insert or ignore into meta(key, value) values(?, ?)", [mark for mark in marks if mark[0] not in remembered]
    )
    if taken["session_transcripts"]:
        live.set_filed(database, filed=False)
    if taken["memories"]:
        recall_lines.put(database, memories.lines(database))
    return {**taken, BYTES: len(given)}


def _rows(database: Database, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    # Events, which have no key of their own, stay in the order in which they were written.
    order = "rowid" if table in ("seals", "recall_events") else "1, 2"
    return database.execute(f"select {', '.join(columns)} from {kept_rows(table)} order by {order}")


def _bytes(database: Database, other: Database) -> Iterator[tuple[bytes, str]]:
    """Bytes and paths of seals of which ours lost the bytes and the other has not."""
    for path, *seal in list(database.execute("select path, digest, file_sha256 from seals where packed is null")):
        packed = other.value(
            "select packed from seals where path = ? and digest = ? and file_sha256 = ?", (path, *seal)
        )
        if packed:
            yield packed, path
