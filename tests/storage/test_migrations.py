"""A database and state of an earlier release: opened by this version they are whole, and nothing native goes.

`old_schemas/` holds the statements of each release whose schema was another one.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import artifacts_fixture as made
import pytest
from workbench import NOW, Vault, numbered

from signet_sync.formats import seal
from signet_sync.formats.session_token import forgotten_mark
from signet_sync.storage.database import native_backup, salvage
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import FIRST
from signet_sync.storage.database.table import native as declared
from signet_sync.storage.database.tables import TABLES, VERSION, native_tables, statements

RELEASED = Path(__file__).parent / "old_schemas" / "0.1.0.sql"
CANARY = "zanzibar"


def old(path: Path) -> apsw.Connection:
    """A database of 0.1.0, with three rows in each of its tables."""
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal; pragma secure_delete = on")
    connection.execute(RELEASED.read_text(encoding="utf-8"))
    for table in tables(connection):
        for number in range(3):
            row = tuple(made_up(table, name, kind, number) for name, kind in columns(connection, table))
            connection.execute(f"insert into {table} values({', '.join('?' * len(row))})", row)
    return connection


def tables(connection: apsw.Connection) -> list[str]:
    """The tables that hold rows of ours; those of full text are made of others."""
    listed = connection.execute("select name from pragma_table_list where type = 'table' and schema = 'main'")
    return [name for (name,) in listed if not name.startswith("sqlite_")]


def columns(connection: apsw.Connection, table: str) -> list[tuple[str, str]]:
    return list(connection.execute("select name, type from pragma_table_info(?)", (table,)))


def made_up(table: str, column: str, kind: str, number: int) -> object:
    match kind.lower():
        case "integer":
            return number
        case "real":
            return number / 4
        case "blob":
            return b"%d" % number
    return f"{CANARY} {table} {column} {number}"


def native(connection: apsw.Connection) -> dict[str, list[dict[str, Any]]]:
    """The native rows of a database, each with the names of its columns."""
    return {table: rows(connection, table) for table in tables(connection) if table in native_tables()}


def rows(connection: apsw.Connection, table: str) -> list[dict[str, Any]]:
    names = [name for name, _ in columns(connection, table)]
    found = sorted(connection.execute(f"select {', '.join(names)} from {table}"), key=repr)
    return [dict(zip(names, row, strict=True)) for row in found]


def test_every_native_row_of_0_1_0_is_there_afterwards_and_what_is_derived_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(old(path)) as connection:
        before = native(connection)
    assert len(before) == 19 and all(before.values())
    database = Database(str(path))
    after = native(database.connection)
    assert {table: after[table] for table in before} == before
    assert whole(database)
    assert not any(rows(database.connection, table) for table in tables(database.connection) if table not in before)
    database.close()
    reopened = Database(str(path), readonly=True)
    assert native(reopened.connection) == after
    reopened.close()


def whole(database: Database) -> bool:
    """Whether the database is what a new one would be."""
    assert shapes(database) == shapes(Database(":memory:"))
    assert database.value("pragma user_version") == VERSION
    return not database.problems()


def shapes(database: Database) -> set[tuple[str, str, str]]:
    listed = database.execute("select type, name, coalesce(sql, '') from sqlite_schema")
    return {(kind, name, " ".join(sql.split())) for kind, name, sql in listed}


@contextmanager
def closing(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    try:
        yield connection
    finally:
        connection.close()


ARTIFACT = "memory/2026-03-28T12-00-00.000Z--abcdefghijklmnop--summary.md"
# What stood in `meta` up to schema 6, and which rows it is now.
KEYS = {
    f"accepted:{ARTIFACT}": "2026-03-28T12:00:00.000Z it is right so",
    "gone:" + "0" * 32: "",
    "forgotten:default:m-abcdefghijkl": "due",
    "lines of what was removed": '{"new": true, "lines": ["ab", "cd"]}',
    "live:a.stop": "1774699200000000 2026-03-28T12:00:00.000Z 10 20 30",
    "entities_told:default": "2026-03-27",
    "entities_ledger:default": "0123456789abcdef",
    "entities_day": "2026-03-28",
    "halted": '{"would_remove": 40, "indexed": 52, "message": "40 of 52 indexed files are gone"}',
    "manifests": "due",
    "retention": "due",
    "examined": "2026-03-28T12:00:00.000Z",
    "full text of lines": "worn",
    "restore": "due",
    "backup": "f" * 64,
    "history_dreamt": "20260328T120000000Z",
    "history_at": '["2026-03-28T12:00:00.000Z", ["a", "b"]]',
    # What is made anew.
    "sanitizer": "sanitize_transcript_v2 0123456789abcdef",
    "concepts": "1",
    "history_rules": "x",
    "extracted": "2026-03-28T12:00:00.000Z",
    "rest:facts": "2026-03-28T12:00:00.000Z",
    "graph": "5",
}
OF_KEYS: dict[str, list[tuple[Any, ...]]] = {
    "acceptances": [(ARTIFACT, 0, "2026-03-28T12:00:00.000Z", "it is right so")],
    "forgotten_memories": [("0" * 32,), (forgotten_mark("default", "m-abcdefghijkl"),)],
    "unscrubbed_memories": [("default", "m-abcdefghijkl")],
    "removed_lines": [("ab", 1), ("cd", 1)],
    "live_transcripts": [("a.stop", "10 20 30", "2026-03-28T12:00:00.000Z", 1774699200000000)],
    "garden_days": [("default", "2026-03-27", "0123456789abcdef")],
    "passes": [(1, "40 of 52 indexed files are gone", 1, 1, 0, "2026-03-28T12:00:00.000Z", "2026-03-28")],
    "backups": [(1, 1, None)],
    "history_told": [(1, "20260328T120000000Z", "2026-03-28T12:00:00.000Z", '["a", "b"]')],
}  # fmt: skip


def with_keys(path: Path, version: int, keys: Mapping[str, str]) -> None:
    """A database of an older schema with these keys; all had the native tables of 0.1.0."""
    with closing(old(path)) as connection:
        connection.execute("delete from meta")
        connection.executemany("insert into meta values(?, ?)", keys.items())
        connection.execute(f"pragma user_version = {version}")


def of_keys(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    return {table: sorted(database.execute(f"select * from {table}")) for table in OF_KEYS}


@pytest.mark.parametrize("version", [3, 5, 6])
def test_what_stood_under_a_key_stands_in_a_table_of_its_own(tmp_path: Path, version: int) -> None:
    path = tmp_path / "index.db"
    with_keys(path, version, KEYS)
    database = Database(str(path))
    assert of_keys(database) == OF_KEYS
    assert whole(database) and not database.value("select count(*) from derivers")
    database.close()


def test_what_can_be_read_of_a_damaged_database_of_before_has_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with_keys(path, 5, KEYS)
    fresh = Database(":memory:")
    counts = salvage.salvage(fresh, str(path))
    found = {table: rows if TABLES[table].salvaged else [] for table, rows in OF_KEYS.items()}
    assert {**of_keys(fresh), "backups": []} == found
    assert {table: counts.get(table, 0) for table in found} == {table: len(rows) for table, rows in found.items()}


def test_a_backup_of_before_has_its_keys(tmp_path: Path) -> None:
    path, place = tmp_path / "index.db", tmp_path / "old.backup"
    database = Database(str(path))
    native_backup.write(database, str(place))
    database.close()
    with closing(apsw.Connection(str(place))) as connection:
        for table in TABLES.values():
            if table.row and table.since > FIRST:
                connection.execute(f"drop table {table.name}")
        connection.execute("create table marks(key text, value text)")
        connection.executemany("insert into marks values(?, ?)", KEYS.items())
        connection.execute("update about set value = '6' where key = 'schema'")
    raw = place.read_bytes()
    place.write_bytes(raw[:60] + zlib.crc32(raw[:60] + bytes(4) + raw[64:]).to_bytes(4, "big") + raw[64:])
    fresh = Database(":memory:")
    counts = native_backup.restore(fresh, str(place))
    assert (counts["acceptances"], counts["forgotten_memories"]) == (1, 2)
    assert of_keys(fresh)["acceptances"] == OF_KEYS["acceptances"]
    assert of_keys(fresh)["forgotten_memories"] == OF_KEYS["forgotten_memories"]
    with native_backup.opened(str(place)) as kept:
        assert kept.counts() == counts


def test_no_text_stays_in_a_table_that_nobody_knows_any_more(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    word = f"{CANARY} highlights".encode()
    with closing(old(path)) as connection:
        connection.execute("create table highlights(text); create virtual table glosses using fts5(text)")
        connection.execute("insert into highlights values(?)", (word.decode(),))
    Database(str(path)).close()
    assert not [name for name in tmp_path.iterdir() if word in name.read_bytes()]


def test_a_table_that_came_later_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = "create table later(a integer primary key, b text) without rowid", "create index later_b on later(b)"
    monkeypatch.setitem(TABLES, "later", declared("what came later", *later, since=VERSION))
    path = tmp_path / "index.db"
    old(path).close()
    database = Database(str(path))
    assert whole(database) and database.value("select count(*) from sqlite_schema where tbl_name = 'later'") == 2
    database.close()


def test_native_rows_of_a_database_that_no_release_wrote_go_into_a_new_one(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.reindex()
    assert vault.call("remember", "The lamp of the lantern is lit at dusk.").code == 0
    with vault.database(readonly=False) as database:
        database.execute("pragma user_version = 2")
    vault.reindex()
    assert vault.rows("select content from memories") == [("The lamp of the lantern is lit at dusk.",)]
    assert list(vault.db.parent.glob("*.corrupt-*"))


class Cut(Exception):
    """The process would be gone here."""


def cut_after(count: int) -> Callable[[apsw.Connection], None]:
    """A hook that ends a connection's work at one of the statements that write; the first connection is the one."""
    left = [count]

    def watch(connection: apsw.Connection) -> None:
        if connection.filename:
            connection.exec_trace = trace

    def trace(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        left[0] -= 1
        if not left[0]:
            raise Cut(sql)
        return True

    return watch


def test_cut_off_on_its_way_a_migration_is_done_by_the_next_one_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cut_everywhere(tmp_path, monkeypatch, every=47) >= 2


@pytest.mark.slow
def test_cut_off_at_every_fifth_statement_a_migration_is_done_by_the_next_one_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cut_everywhere(tmp_path, monkeypatch, every=5) > 15


def cut_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, every: int) -> int:
    """Cuts a migration off at every so many statements; gives how many times it was."""
    before = tmp_path / "before.db"
    with closing(old(before)) as connection:
        rows_before = native(connection)
    shutil.copy(before, tmp_path / "wanted.db")
    with closing(Database(str(tmp_path / "wanted.db")).connection) as connection:
        wanted = native(connection)
    number, cuts = 1, 0
    while True:
        path = tmp_path / "cut.db"
        shutil.copy(before, path)
        monkeypatch.setattr(apsw, "connection_hooks", [cut_after(number)])
        try:
            Database(str(path)).connection.close()
            return cuts
        except Cut:
            cuts += 1
        finally:
            monkeypatch.setattr(apsw, "connection_hooks", [])
        leftover = apsw.Connection(str(path))
        assert native(leftover) == rows_before, "all or nothing"
        leftover.close()
        database = Database(str(path))
        assert native(database.connection) == wanted
        assert whole(database)
        database.connection.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        number += every


def test_what_is_derived_of_an_old_database_is_made_anew_and_a_vault_looks_as_before(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    paths = vault.session(1)
    vault.reindex()
    page, dump = vault.page(), vault.dump()
    with vault.database() as database:
        seals = rows(database.connection, "seals")
    to_old(vault)
    answer = vault.call("status", "--json")
    assert answer.code == 0 and "older version" in answer.json["trouble"], "whoever only reads changes nothing"
    vault.reindex()
    assert (vault.page(), vault.dump()) == (page, dump)
    with vault.database() as database:
        assert rows(database.connection, "seals") == seals
    assert len(vault.hits("number1x")) == 2 and paths["summary"] in vault.hits("number1x")
    assert vault.reindex()["counts"]["read"] == 0


def to_old(vault: Vault) -> None:
    """Puts a database of 0.1.0 in the place of the vault's, with its native rows."""
    with vault.database() as database:
        kept = native(database.connection)
    vault.db.unlink()
    with closing(apsw.Connection(str(vault.db))) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute(RELEASED.read_text(encoding="utf-8"))
        for table in set(tables(connection)) & kept.keys():
            names = [name for name, _ in columns(connection, table)]
            for row in kept[table]:
                values = tuple(row[name] for name in names)
                connection.execute(f"insert into {table} values({', '.join('?' * len(values))})", values)


def test_a_database_that_lacks_a_table_of_its_own_version_gives_its_native_rows_to_a_new_one(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    assert vault.call("remember", "The lamp of the lantern is lit at dusk.").code == 0
    with vault.database(readonly=False) as database, database.transaction():
        for table in ("garden_files", "garden_chain", "garden_drift"):
            database.execute(f"drop table {table}")
    for _ in range(3):
        vault.call("reindex", "--now", NOW)
    assert vault.reindex()["counts"]["indexed"] == 3
    assert vault.rows("select content from memories") == [("The lamp of the lantern is lit at dusk.",)]


def test_a_change_of_the_schema_wants_a_new_number() -> None:
    """Who changes a table: raise `VERSION`; of a release, keep the statements in `old_schemas/`."""
    text = " ".join(" ".join(statements(*TABLES)).split())
    assert (VERSION, zlib.crc32(text.encode())) == (10, 4236841987)


# ── state that earlier versions left ──


def test_bytes_of_a_seal_that_nobody_packed_are_none() -> None:
    assert seal.unpack(b"neither") is None


def test_an_ending_that_was_journalled_by_0_1_0_is_finished(tmp_path: Path) -> None:
    """It named no live turns."""
    vault = Vault(tmp_path / "vault")
    vault.reindex()
    given = numbered(2)
    token = made.token_for(session_id=given["session_id"])
    document = {
        "v": 1,
        "kind": "end",
        "agent_id": "default",
        "session_id": given["session_id"],
        "session_key": None,
        "project": "/home/ada/code/lantern",
        "harness": "codex",
        "captured_at": given["captured_at"],
        "started_at": None,
        "ended_at": given["captured_at"],
        "token": token,
        "manifest": made.path_for("manifest", **{key: given[key] for key in ("session_id", "captured_at")}),
        "bodies": {"transcript": "User: Light the lamp.\n\nAssistant: It is lit.", "summary": given["body"].strip()},
        "proposal": None,
        "headline": None,
        "now": NOW,
        "flow_key": "ab" * 16,
        "request": "cd" * 32,
        "redactions": {},
    }
    folder = vault.state / "journal"
    folder.mkdir(exist_ok=True)
    (folder / f"{'ab' * 16}.json").write_text(json.dumps(document))
    assert vault.reindex()["counts"]["indexed"] == 3
    assert len(vault.hits("number2x")) >= 1 and not os.listdir(folder)
