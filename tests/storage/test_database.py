"""The database's door: opened safely, refused politely, found damaged, never seen half-built."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest
from artifacts_fixture import compaction, fill, judged, manifest, summary, transcript

from signet_sync.errors import DatabaseCorrupt, DatabaseError
from signet_sync.recall.store.rows import Within
from signet_sync.recall.store.session_list import files_with
from signet_sync.storage.database import tables
from signet_sync.storage.database.connection import BUSY_MS, Database, set_aside
from signet_sync.sync.store.artifacts import sanitizer_of_rows, set_sanitizer_of_rows

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "state" / "index.db")


@pytest.fixture
def filled(place):
    """A closed database with a few sessions."""
    database = Database(place)
    fill(database, judged(dict(made for number in range(12) for made in session(number))))
    database.close()
    return place


def session(number, agent_id="default"):
    who = {"agent_id": agent_id, "session_id": f"session-{number}"}
    body = f"# Lantern {number}\n\nThe lighthouse keeper wrote line {number}.\n" + "Oil and wick. " * 40 + "\n"
    return [manifest(**who), summary(body=body, **who), transcript(body=body, **who), compaction(body=body, **who)]


def files_of(place):
    folder = Path(place).parent
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ── pragmas and permissions ──

ALWAYS = {"trusted_schema": 0, "mmap_size": 0, "busy_timeout": BUSY_MS, "foreign_keys": 1, "cell_size_check": 1}
WRITING = {**ALWAYS, "secure_delete": 1, "wal_autocheckpoint": 0, "synchronous": 1, "recursive_triggers": 1}


@pytest.mark.parametrize(("how", "expected"), [("new", WRITING), ("readonly", ALWAYS), ("memory", WRITING)])
def test_every_connection_is_careful(place, how, expected):
    if how == "readonly":
        Database(place).close()
    database = Database(":memory:" if how == "memory" else place, readonly=how == "readonly")
    for pragma, value in {**expected, "journal_mode": "memory" if how == "memory" else "wal"}.items():
        found = database.value(f"pragma {pragma}")
        # A build without mmap and a database in memory answer with no row at all.
        assert found == value or (pragma == "mmap_size" and found is None), pragma
    assert database.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    for option in (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER):
        assert database.connection.config(option, -1) == 0
    database.close()


# ── what is refused, and that nothing is touched ──


@pytest.mark.parametrize("user_version", [0, tables.VERSION, 6])
@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_of_another_program_is_refused_untouched(tmp_path, user_version, readonly):
    place = str(tmp_path / "foreign.db")
    connection = apsw.Connection(place)
    connection.execute("create table contacts(name); insert into contacts values('Ada')")
    connection.execute(f"pragma user_version = {user_version}")
    connection.close()
    before = files_of(place)
    with pytest.raises(DatabaseError, match="another program") as caught:
        Database(place, readonly=readonly)
    assert caught.value.path == place and not isinstance(caught.value, DatabaseCorrupt)
    assert files_of(place) == before


def test_a_place_that_cannot_be_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="cannot be created") as caught:
        Database(str(tmp_path / "file" / "index.db"))
    assert caught.value.hint
    with pytest.raises(DatabaseError, match="is not a file"):
        Database(str(tmp_path))


# ── damage ──


def test_set_aside_takes_the_companions_along_and_never_overwrites(filled):
    for _ in range(3):
        Path(filled + "-wal").write_bytes(b"old log")
        Path(filled).write_bytes(b"not a database at all" * 100)
        moved = set_aside(filled)
        assert Path(moved).read_bytes().startswith(b"not a database")
        assert Path(moved + "-wal").read_bytes() == b"old log"
    database = Database(filled)
    assert database.problems() == []
    database.close()
    assert sum(path.name.endswith("-wal") for path in Path(filled).parent.iterdir()) == 3
    set_aside(filled + "-there-is-none")


def test_a_file_deleted_or_exchanged_under_us_is_noticed(filled):
    database = Database(filled)
    assert not database.is_replaced()
    os.rename(filled, filled + ".away")
    assert database.is_replaced()
    Path(filled).touch()
    assert database.is_replaced()
    os.rename(filled + ".away", filled)
    assert not database.is_replaced()
    database.close()


# ── tables ──


def test_a_rebuild_that_fails_leaves_the_old_index(filled):
    database = Database(filled)
    with pytest.raises(ZeroDivisionError), database.transaction():
        database.reset_derived()
        raise ZeroDivisionError
    assert len(files_with(database, "lighthouse", Within("default"), limit=100)) == 36
    assert database.problems() == []
    database.close()


# ── transactions ──


def test_a_failure_rolls_back_and_sqlites_errors_become_ours(place):
    database = Database(place)
    with pytest.raises(DatabaseError, match="no such table") as caught, database.transaction():
        set_sanitizer_of_rows(database, "value")
        database.execute("insert into lost values(1)")
    assert caught.value.path == place
    assert sanitizer_of_rows(database) is None and not database.connection.in_transaction
    with database.transaction(durable=True):
        assert database.value("pragma synchronous") == 2
        set_sanitizer_of_rows(database, "value")
    assert database.value("pragma synchronous") == 1 and sanitizer_of_rows(database) == "value"
    database.close()


def test_a_lock_is_waited_for_and_then_told(place):
    first, second = Database(place), Database(place, wait_ms=60)
    with first.transaction(), pytest.raises(DatabaseError, match="locked"), second.transaction():
        pass
    with second.transaction():
        set_sanitizer_of_rows(second, "value")
    second.close()
    assert not Path(place + "-wal").stat().st_size, "the log is emptied although another one stays open"
    first.close()
