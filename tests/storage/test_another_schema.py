"""A database of another schema: what is native is taken over by the names of columns, what is derived made anew."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import apsw
import pytest
from workbench import Vault

from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import VERSION, native_tables

CANARY = "zanzibar"
Rows = dict[str, list[tuple[Any, ...]]]


def another(path: Path) -> Rows:
    """Makes a database of another schema with three rows in each native table; gives those that are to be kept."""
    with Database(str(path)).connection as connection:
        for table in native_tables():
            connection.execute(f"delete from {table}")
            kinds = dict(connection.execute("select name, type from pragma_table_info(?)", (table,)))
            for number in range(3 if "one" not in kinds else 1):
                row = [made_up(name, kind, number + ("one" in kinds)) for name, kind in kinds.items()]
                connection.execute(f"insert into {table} values({', '.join('?' * len(row))})", row)
        for statement in (
            "drop table garden_days",
            "alter table dream_sweeps add column colour text",
            "alter table memories drop column concept_tags",
            "drop index seals_bytes",
            "create index seals_digest on seals(digest)",
            "create table highlights(text)",
            "create virtual table glosses using fts5(text)",
            f"insert into highlights values('{CANARY} highlights')",
            "alter table ledger_rows add column colour text",
            "pragma user_version = 7",
        ):
            connection.execute(statement)
    kept = native(connection)
    connection.close()
    kept["garden_days"] = []
    kept["dream_sweeps"] = [row[:6] for row in kept["dream_sweeps"]]
    # The column that the other schema lacks is empty, in its place.
    kept["memories"] = [(*row[:-1], None, row[-1]) for row in kept["memories"]]
    return kept


def made_up(column: str, kind: str, number: int) -> object:
    match kind.lower():
        case "integer":
            return number
        case "real":
            return number / 4
        case "blob":
            return b"%d" % number
    return f"{CANARY} {column} {number}"


def native(connection: apsw.Connection) -> Rows:
    there = {name for (name,) in connection.execute("select name from pragma_table_list")}
    found = {}
    for table in there.intersection(native_tables()):
        found[table] = sorted(connection.execute(f"select * from {table}"), key=repr)
    return found


def whole(database: Database) -> bool:
    """Whether the database is what a new one would be."""
    assert shapes(database) == shapes(Database(":memory:"))
    assert database.value("pragma user_version") == VERSION
    return not database.problems()


def shapes(database: Database) -> set[tuple[str, str, str]]:
    listed = database.execute("select type, name, coalesce(sql, '') from sqlite_schema")
    return {(kind, name, " ".join(sql.replace('"', "").split())) for kind, name, sql in listed}


def test_every_native_row_is_there_afterwards_and_what_is_derived_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    kept = another(path)
    with pytest.raises(Exception, match="of another version"):
        Database(str(path), readonly=True)
    database = Database(str(path))
    assert native(database.connection) == kept
    assert whole(database)
    assert not database.value("select count(*) from ledger_rows")
    database.close()
    reopened = Database(str(path), readonly=True)
    assert native(reopened.connection) == kept
    reopened.close()
    word = f"{CANARY} highlights".encode()
    assert not [name for name in tmp_path.iterdir() if word in name.read_bytes()], "no text of a table that is unknown"


def test_a_backup_is_read_by_the_names_of_tables_and_columns(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    assert vault.call("remember", "The lamp of the lantern is lit at dusk.").code == 0
    place = tmp_path / "other.backup"
    assert vault.call("backup", "create", str(place)).code == 0
    with apsw.Connection(str(place)) as connection:
        for statement in (
            "alter table memories drop column concept_tags",
            "alter table seals add column colour text",
            "drop table node_telemetry",
            "create table highlights(text)",
        ):
            connection.execute(statement)
    connection.close()
    raw = place.read_bytes()
    place.write_bytes(raw[:60] + zlib.crc32(raw[:60] + bytes(4) + raw[64:]).to_bytes(4, "big") + raw[64:])
    fresh = Database(":memory:")
    counts = native_backup.restore(fresh, str(place))
    assert (counts["memories"], counts["seals"]) == (1, 2) and not counts.keys() & {"node_telemetry", "highlights"}
    assert fresh.value("select concept_tags is null from memories")
    with native_backup.open_backup(str(place)) as kept:
        assert kept.counts() == counts
