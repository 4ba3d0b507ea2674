"""Backups of native rows: a small SQLite file beside the database, written whole, kept in a few generations."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

import apsw

from signet_sync.errors import DatabaseCorrupt
from signet_sync.index.database import Database, translate
from signet_sync.index.schema import BACKED_UP, LATER, LATER_COLUMNS

# Tables of which any row may change by itself: their rows are the mark, by the columns that can tell. A memory's id is
# made of its words, and a promotion stays as it was.
_BY_ROW = {
    "memories": tuple(column for column in BACKED_UP["memories"] if column != "content"),
    "memory_sources": BACKED_UP["memory_sources"],
    "pins": BACKED_UP["pins"],
    "node_telemetry": BACKED_UP["node_telemetry"],
    "memory_promotions": ("agent_id", "memory_id", "sweep_id"),
    "garden_chain": BACKED_UP["garden_chain"],
}
# Tables without a key of their own that a row could be known by.
_KEYLESS = ("recall_events",)
# In SQLite's header: who made the file, and the place of the number in which we keep the checksum of all other bytes.
_SEALED = 0x5349534B
_CHECKSUM_AT = 60
_CHUNK = 1 << 20


def fingerprint(database: Database) -> str:
    """Changes whenever a row that belongs into a backup does; cheap, because sums and small tables are."""
    parts = [
        # A seal that is written again gets a new rowid; counting and this look at no blob.
        database.value("select count(*) || ':' || coalesce(max(rowid), 0) from seals"),
        database.value(
            "select count(*) || ':' || coalesce(max(removed_at), '') || ':' || coalesce(sum(length(removed_paths)), 0)"
            " from memory_artifact_tombstones"
        ),
        database.value(
            "select count(*) || ':' || coalesce(sum(accesses), 0) || ':' || coalesce(max(last_accessed_at), '')"
            " from artifact_telemetry"
        ),
        database.value("select count(*) || ':' || coalesce(max(at), '') from flow_results"),
        database.value("select count(*) || ':' || coalesce(max(at), '') from captures"),
        database.value("select count(*) || ':' || coalesce(max(id), 0) from recall_events"),
        database.value("select count(*) || ':' || coalesce(max(sweep_id), '') from dream_sweeps"),
        *(_hash(database, table, columns) for table, columns in _BY_ROW.items()),
    ]
    return "|".join(str(part) for part in parts)


def _hash(database: Database, table: str, columns: Sequence[str]) -> str:
    """The hash of some columns of a table's rows, which SQLite puts together in order of their key."""
    row = " || ',' || ".join(f"quote({column})" for column in columns)
    rows = database.value(f"select group_concat({row}, ';') from (select * from {table} order by 1, 2)")
    return sha256((rows or "").encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write(database: Database, target: str) -> None:
    """Copies the native rows that are worth keeping into a new SQLite file, durably, in place of an old one."""
    temporary = f"{target}.{os.getpid()}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        database.execute("attach database ? as kept", (temporary,))
        try:
            database.execute("pragma kept.journal_mode = off")
            database.execute("pragma kept.synchronous = off")
            for table, columns in BACKED_UP.items():
                database.execute(f"create table kept.{table} as select {', '.join(columns)} from main.{table}")
            database.execute(f"pragma kept.application_id = {_SEALED}")
        finally:
            database.execute("detach database kept")
        handle = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(handle, _checksum(handle).to_bytes(4, "big"), _CHECKSUM_AT)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, target)
        folder = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except apsw.Error as error:
        raise translate(error, temporary) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def restore(database: Database, source: str) -> dict[str, int]:
    """Brings backed-up rows back into a database that lost them; rows that are there win. Gives the rows by table.

    Raises `DatabaseCorrupt` with the backup's path where not every byte of its rows is as it was written.
    """
    counts: dict[str, int] = {}
    try:
        database.execute("attach database ? as kept", (source,))
        try:
            if not _is_whole(database, source):
                raise DatabaseCorrupt("the backup is damaged", path=source, hint="an older one is tried by itself")
            with database.transaction():
                for table, columns in _kept(database).items():
                    names = ", ".join(columns)
                    before: int = database.value(f"select count(*) from main.{table}")
                    database.execute(
                        f"insert or ignore into main.{table}({names}) select {names} from kept.{table}"
                        + (f" where ({names}) not in (select {names} from main.{table})" if table in _KEYLESS else "")
                    )
                    counts[table] = database.value(f"select count(*) from main.{table}") - before
                # Where a first try failed, a pass has been since, without these rows: the next one makes all anew.
                database.execute("delete from main.meta where key in ('restore', 'graph')")
        finally:
            database.execute("detach database kept")
    except apsw.Error as error:
        raise translate(error, source) from error
    except UnicodeDecodeError:
        raise DatabaseCorrupt("the backup is damaged", path=source, hint="an older one is tried by itself") from None
    return counts


def _kept(database: Database) -> dict[str, list[str]]:
    """Tables of the attached backup with their columns; one that was written under an older schema lacks some."""
    there = {row[0] for row in database.execute("select name from kept.sqlite_schema where type = 'table'")}
    return {
        table: [column for column in columns if column not in LATER_COLUMNS or _has(database, table, column)]
        for table, columns in BACKED_UP.items()
        if table in there or table not in LATER
    }


def _has(database: Database, table: str, column: str) -> bool:
    # No name is read: of a damaged backup it may be none.
    count: int = database.value("select count(*) from pragma_table_info(?, 'kept') where name = ?", (table, column))
    return bool(count)


def _is_whole(database: Database, source: str) -> bool:
    """Whether the attached backup is as it was written, to the byte: SQLite would not notice a flipped letter."""
    told: int = database.value("pragma kept.user_version") % (1 << 32)
    if database.value("pragma kept.application_id") != _SEALED:
        return told == _checksum_of_rows(database)
    handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return told == _checksum(handle)
    finally:
        os.close(handle)


def _checksum(handle: int) -> int:
    """A CRC-32 of a file but for the four bytes in which it is kept."""
    crc = place = 0
    while chunk := os.pread(handle, _CHUNK, place):
        if not place:
            chunk = chunk[:_CHECKSUM_AT] + bytes(4) + chunk[_CHECKSUM_AT + 4 :]
        crc = zlib.crc32(chunk, crc)
        place += len(chunk)
    return crc


def _checksum_of_rows(database: Database) -> int:
    """What a backup keeps that was written before there were dreams: a CRC-32 of its rows."""
    crc = 0
    for table, columns in _kept(database).items():
        # By rowid where the first two are equal: the order in which the rows were copied.
        for row in database.execute(f"select {', '.join(columns)} from kept.{table} order by 1, 2, rowid"):
            crc = zlib.crc32(repr(row).encode("utf-8", "surrogatepass"), crc)
    return crc
