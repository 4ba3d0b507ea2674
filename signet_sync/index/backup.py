"""Backups of native rows: a small SQLite file beside the database, written whole, kept in a few generations."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from hashlib import sha256

import apsw

from signet_sync.errors import DatabaseCorrupt
from signet_sync.index.database import Database, translate
from signet_sync.index.schema import BACKED_UP, SINCE_2

# Small tables in which any value may change by itself: their rows are the mark.
_BY_ROW = ("memories", "memory_sources", "pins", "node_telemetry")


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
        *(_hash(database, table) for table in _BY_ROW),
    ]
    return "|".join(str(part) for part in parts)


def _hash(database: Database, table: str) -> str:
    """The hash of a table's rows, which SQLite puts together in order of their key (they have no rowid)."""
    row = " || ',' || ".join(f"quote({column})" for column in BACKED_UP[table])
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
            database.execute(f"pragma kept.user_version = {_checksum(database)}")
        finally:
            database.execute("detach database kept")
        handle = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
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
            if database.value("pragma kept.user_version") != _checksum(database):
                raise DatabaseCorrupt("the backup is damaged", path=source, hint="an older one is tried by itself")
            with database.transaction():
                for table in _kept(database):
                    names = ", ".join(BACKED_UP[table])
                    before: int = database.value(f"select count(*) from main.{table}")
                    database.execute(f"insert or ignore into main.{table}({names}) select {names} from kept.{table}")
                    counts[table] = database.value(f"select count(*) from main.{table}") - before
                database.execute("delete from main.meta where key = 'restore'")
        finally:
            database.execute("detach database kept")
    except apsw.Error as error:
        raise translate(error, source) from error
    except UnicodeDecodeError:
        raise DatabaseCorrupt("the backup is damaged", path=source, hint="an older one is tried by itself") from None
    return counts


def _kept(database: Database) -> list[str]:
    """The tables of the attached backup; one that was written under schema 1 lacks those that came later."""
    there = {row[0] for row in database.execute("select name from kept.sqlite_schema where type = 'table'")}
    return [table for table in BACKED_UP if table in there or table not in SINCE_2]


def _checksum(database: Database) -> int:
    """A CRC-32 of the attached backup's rows as a signed number: SQLite itself would not notice a flipped letter."""
    crc = 0
    for table in _kept(database):
        # By rowid where the first two are equal: the order in which the rows were copied.
        for row in database.execute(f"select {', '.join(BACKED_UP[table])} from kept.{table} order by 1, 2, rowid"):
            crc = zlib.crc32(repr(row).encode("utf-8", "surrogatepass"), crc)
    return crc - (1 << 32) if crc >= 1 << 31 else crc
