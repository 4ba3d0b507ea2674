"""What every table gets by its declaration, those of the product and three that are made up here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import apsw
import native_rows
import pytest
from workbench import NOW, Vault

from benchmarks.index_rows import canonical_dump, dumped
from signet_sync.backup import row_form
from signet_sync.formats.ids import token_of
from signet_sync.storage.database import batches, native_backup
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import (
    SESSION,
    Agent,
    Count,
    FileBytes,
    Hash,
    Id,
    SanitizedLine,
    Table,
    Text,
    Token,
    When,
    bare,
    columns,
    declare_derived,
    is_json,
    native,
)
from signet_sync.storage.database.tables import TABLES, list_backed_up, list_of_memories

REAL = tuple(TABLES.values())
FIRST, SECOND = (("default", token_of("default", one), one) for one in (native_rows.FIRST, native_rows.SECOND))
WORD = "qxinvented"


# fmt: off
INVENTED = (
    native(
        "what nobody needs",
        """create table inventions(
        agent_id text not null, session_token text not null, session_id text not null, number integer not null,
        said text not null, parts text not null, more text, weight real not null, is_new integer not null,
        mood text not null, digest text not null, raw blob, copied blob, at text not null,
        primary key(agent_id, session_token, session_id, number)) without rowid""",
        "create index inventions_at on inventions(at)",
        row=columns(
            agent_id=Agent, session_token=Token, session_id=Text, number=Count, said=SanitizedLine,
            parts=list[SanitizedLine], more=dict[str, Any] | None, weight=float, is_new=bool,
            mood=Literal["glad", "sad"], digest=Hash, raw=bytes | None, copied=FileBytes | None, at=When
        ),
        session=SESSION,
    ),
    native(
        "words of anybody",
        "create table sayings(agent_id text not null, id text not null, path text not null, said text not null)",
        row=columns(agent_id=Agent, id=Id, path=Text, said=SanitizedLine),
        artifact=("agent_id", "path"),
        handle="id",
    ),
    declare_derived(
        "what follows from sessions",
        """create table ripples(
        id integer primary key, agent_id text not null, session_token text not null, session_id text not null,
        text text not null)""",
        session=SESSION,
        key=SESSION,
        local=("id",),
    ),
)
# fmt: on


# ── what a declaration says ──


@pytest.fixture(scope="module")
def empty() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    for table in (*REAL, *INVENTED):
        for statement in table.ddl:
            connection.execute(statement)
    yield connection
    connection.close()


def named(table: Table) -> str:
    return table.name


@pytest.mark.parametrize("table", [*REAL, *INVENTED], ids=named)
def test_a_declaration_says_what_is_there(empty: apsw.Connection, table: Table) -> None:
    columns = {row[1]: row for row in empty.execute(f"pragma table_info({table.name})")}
    assert all(table.name in statement.split("(")[0] for statement in table.ddl)
    groups = (table.session, table.artifact, table.key, table.local, table.types)
    told = {*columns, *(table.joined.names if table.joined else ())}
    assert {column for group in groups if group for column in group} <= told
    assert table.handle is None or {table.handle, "agent_id"} <= told
    if table.joined:
        empty.execute(f"select {', '.join(table.joined.names)} from {table.rows}")
    assert table.holds
    # What names a session goes with it; a tombstone is what stays of it, with hashes of handles.
    named = {"session_token", "session"} & columns.keys()
    assert table.session or not named or table.name in ("memory_artifact_tombstones", "removed_handles")
    if table.kind == "derived":
        assert table.row is None and table.mark is None
    else:
        assert not table.key and not table.local


@pytest.mark.parametrize("table", REAL, ids=named)
def test_a_row_that_refers_to_another_goes_with_it(empty: apsw.Connection, table: Table) -> None:
    """In the same statement, and without a look at every row."""
    references = list(empty.execute(f"pragma foreign_key_list({table.name})"))
    indexed = {
        next(empty.execute(f"select name from pragma_index_info('{row[1]}') limit 1"))[0]
        for row in empty.execute(f"pragma index_list({table.name})")
    }
    for _, _, of, column, _, _, on_delete, _ in references:
        assert on_delete == "CASCADE" and column in indexed and TABLES[of].kind == table.kind == "derived"


@pytest.mark.parametrize("table", [table for table in (*REAL, *INVENTED) if table.row], ids=named)
def test_columns_are_of_the_types_that_are_declared(empty: apsw.Connection, table: Table) -> None:
    for _, name, kind, not_null, default, key in empty.execute(f"pragma table_info({table.name})"):
        if name not in table.types:
            assert default is not None or (key and kind.lower() == "integer"), f"{name} is lost by a backup"
            continue
        declared = table.types[name]
        assert (NoneType in get_args(declared)) != bool(not_null or key), name
        assert sqlite_type(bare(declared)) == kind.lower(), name
    assert set(row_form.model(table).model_fields) == set(table.types)


def sqlite_type(kind: Any) -> str:
    if is_json(kind) or get_origin(kind) is not None:  # a choice, of texts
        return "text"
    kind = getattr(kind, "__supertype__", kind)
    return {str: "text", int: "integer", bool: "integer", float: "real", bytes: "blob"}[kind]


# ── what follows from it ──


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """Two sessions, rows of every kind, and some of the tables that are made up."""
    for table in INVENTED:
        monkeypatch.setitem(TABLES, table.name, table)
    made = Vault(tmp_path / "vault")
    made.session(3)
    made.reindex()
    native_rows.done(
        made.call("remove", native_rows.numbered(3)["session_id"], "--reason", "asked for", "--yes", "--now", NOW)
    )
    native_rows.fill(made)
    with made.database(readonly=False) as database, database.transaction():
        for session in (FIRST, SECOND):
            put(database, "inventions", *session, 1, f"{WORD} of {session[2]}", '["ä", "b"]', '{"c": [1, "ö"]}',
                0.5, 1, "sad", "a" * 64, b"\x00\xff",
                b"\xff", NOW)  # fmt: skip
            put(database, "inventions", *session, 2, "x", "[]", None, 1.0, 0, "glad", "b" * 64, None, None, NOW)
            put(database, "ripples", None, *session, f"{WORD} of {session[2]}")
            for table in TABLES.values():
                if table.session and table.kind == "derived" and not of_session(database, table, session):
                    put(database, table.name, *made_up(database, table, session))
        lamp, path = native_rows.memory(native_rows.LAMP, kind="preference").id, native_rows.vault_path("summary", 1)
        node = "t-abcdefghijkl"
        sayings = [(node, "", "quiet"), (lamp, "", "quiet"), (node, path, "quiet"), (node, "", "lantern")]
        for number, (handle, where, said) in enumerate(sayings):
            put(database, "sayings", "default", handle, where or f"of nobody {number}", said)
    return made


def put(database: Database, table: str, *values: Any) -> None:
    database.execute(f"insert into {table} values({', '.join('?' * len(values))})", values)


def made_up(database: Database, table: Table, session: tuple[str, str, str]) -> list[Any]:
    of: dict[str, Any] = dict(zip(SESSION, session, strict=True))
    batches.number(database, [session])
    of["session"] = batches.numbers(database, [session])[session]
    listed = database.execute("select name, type from pragma_table_info(?)", (table.name,))
    return [of.get(name, 1 if kind.lower() == "integer" else f"{WORD} {name} {session[1]}") for name, kind in listed]


def of_session(database: Database, table: Table, session: tuple[str, str, str]) -> list[tuple[Any, ...]]:
    agent_id, token, session_id = session
    where, bindings = batches.make_condition((agent_id, token, (session_id,)), table.session or SESSION)
    return list(database.execute(f"select * from {table.name} where {where}", bindings))


def rows(database: Database, *, every: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that are worth keeping with all their columns; with `every` those of each native table."""
    found = {}
    for table in TABLES.values():
        if table.kind == "native" and table.salvaged and (every or table.row):
            columns = ", ".join(table.types) or "*"
            source = table.name if every else table.rows
            found[table.name] = sorted(database.execute(f"select {columns} from {source}"), key=repr)
    return found


def test_a_backup_brings_every_row_and_column_back(vault: Vault, tmp_path: Path) -> None:
    with vault.database() as database:
        before = rows(database)
    assert all(before.values()) and before.keys() == {table.name for table in list_backed_up()}
    file = str(tmp_path / "file.backup")
    native_rows.done(vault.call("backup", "create", file, "--now", NOW))
    fresh = Database(":memory:")
    assert native_backup.restore(fresh, file) == {name: len(found) for name, found in before.items()}
    assert {**rows(fresh), "captures": []} == {**before, "captures": []}, "of captures the home is another one"
    fresh.close()
    forget_index(vault)
    native_rows.done(vault.call("backup", "restore", file, "--now", NOW))
    with vault.database() as database:
        assert rows(database) == before


def test_the_backup_beside_the_database_lacks_bytes_and_what_is_in_files(vault: Vault, tmp_path: Path) -> None:
    with vault.database(readonly=False) as database:
        before = rows(database)
        native_backup.write(database, str(tmp_path / "daily.db"))
    fresh = Database(":memory:")
    native_backup.restore(fresh, str(tmp_path / "daily.db"))
    for table in list_backed_up():
        bytes_at = [place for place, kind in enumerate(table.types.values()) if bare(kind) is FileBytes]
        wanted = [
            tuple(None if place in bytes_at else value for place, value in enumerate(row)) for row in before[table.name]
        ]
        assert sorted(rows(fresh)[table.name], key=repr) == sorted(wanted if table.kept == "always" else [], key=repr)
    fresh.close()


def test_with_every_row_that_comes_or_goes_a_backup_is_due(vault: Vault) -> None:
    with vault.database(readonly=False) as database:
        mark = native_backup.fingerprint(database)
        for table in list_backed_up():
            columns = ", ".join(table.columns)
            row = next(database.execute(f"select {columns} from {table.rows}"))
            where = " and ".join(f"{column} is ?" for column in table.columns)
            database.execute("begin")
            database.execute(f"delete from {table.name} where {where}", row)
            assert (native_backup.fingerprint(database) == mark) == (table.kept == "elsewhere"), table.name
            database.execute("rollback")
        assert native_backup.fingerprint(database) == mark


def test_what_can_be_read_of_a_damaged_database_is_every_native_row(vault: Vault) -> None:
    with vault.database(readonly=False) as database, database.transaction():
        for table in TABLES.values():
            if table.kind == "native" and not table.row and table.salvaged:
                values = made_up(database, table, FIRST)
                database.execute(f"delete from {table.name}")
                put(database, table.name, *values)
        put(database, "inventions", *SECOND, 3, "x", "no JSON", None, 1.0, 0, "glad", "b" * 64, None, None, NOW)
        before = rows(database, every=True)
        before["inventions"] = [row for row in before["inventions"] if "no JSON" not in row]
    assert all(before.values())
    fresh = Database(":memory:")
    count = native_backup.salvage(fresh, str(vault.db))
    assert rows(fresh, every=True) == before
    assert count == sum(map(len, before.values()))
    fresh.close()


def test_a_removal_leaves_no_row_and_no_word(vault: Vault, tmp_path: Path) -> None:
    of_sessions = [table for table in TABLES.values() if table.session]
    with vault.database() as database:
        assert [table.name for table in of_sessions if not of_session(database, table, FIRST)] == []
        others = {table.name: of_session(database, table, SECOND) for table in of_sessions if table in INVENTED}
    native_rows.done(vault.call("remove", native_rows.FIRST, "--reason", "asked for", "--yes", "--now", NOW))
    with vault.database() as database:
        assert [table.name for table in of_sessions if of_session(database, table, FIRST)] == []
        assert {table.name: of_session(database, table, SECOND) for table in of_sessions if table in INVENTED} == others
        said = [row[3] for row in database.execute("select * from sayings order by rowid")]
        assert said == ["quiet", "quiet", "lantern"], "that of the artifact is gone"
        path = native_rows.vault_path("summary", 1)
        for table in TABLES.values():
            if table.artifact:
                sql = f"select count(*) from {table.name} where {table.artifact[-1]} = ?"
                assert database.value(sql, (path,)) == 0, table.name
    for word in ("number1x", "zqxcanary", f"{WORD} of {native_rows.FIRST}"):
        assert native_rows.holding(tmp_path, word) == [], word


def test_what_is_forgotten_leaves_no_row_of_its_id(vault: Vault) -> None:
    lamp = native_rows.memory(native_rows.LAMP, kind="preference").id
    native_rows.done(vault.call("forget", lamp, "--now", NOW))
    with vault.database() as database:
        for name in list_of_memories():
            assert database.value(f"select count(*) from {name} where {TABLES[name].handle} = ?", (lamp,)) == 0
        assert database.value("select count(*) from sayings") == 3


def test_a_rebuild_drops_what_is_derived_and_the_dump_follows_from_files(vault: Vault) -> None:
    with vault.database() as database:
        before = rows(database)
        dump = [row for row in canonical_dump(database) if row[0] == "ripples"]
    assert dump == [("ripples", *session, f"{WORD} of {session[2]}") for session in sorted([FIRST, SECOND])]
    vault.reindex("--full")
    with vault.database() as database:
        assert rows(database) == before and not list(database.execute("select * from ripples"))
        names = {row[0] for row in canonical_dump(database)}
    assert names <= {table.name for table in dumped()} and len(names) > 10


def forget_index(vault: Vault) -> None:
    """Takes the database and its backups away, as on a machine that has only the files."""
    for path in [*vault.state.glob("signet-sync.db*"), *vault.state.glob("backups/*"), *vault.state.glob("live/*")]:
        path.unlink()
