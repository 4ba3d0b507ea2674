"""Backups of native rows: they come back whole or not at all, and hold no text of any artifact."""

from __future__ import annotations

import os
import random
import stat

import apsw
import pytest
from artifacts_fixture import fill, judged, session, stone
from native_rows import BACKED_UP

from signet_sync.app.pipeline import PIPELINE
from signet_sync.entities import store as entities_store
from signet_sync.errors import DatabaseError
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import artifacts, counts
from signet_sync.sync.store.passes import set_version, version_of
from signet_sync.sync.tombstones import store as tombstones_store

CANARY = "heliotropicwickkeeper"
AT = "2026-03-28T10:00:00.000Z"
MEMORY = Memory("default", "m-abcdefghijkl", "note", "Ada trims\nthe wick.", ("lamp",), True, AT)


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "index.db"))
    for number in range(6):
        body = f"# {CANARY}\n\n## Decisions\n\n- Buy {CANARY} oil {number}\n"
        fill(made, judged(session(session_id=f"s-{number}", body=body, memory_sentence=f"In it the {CANARY} sang.")))
    with made.transaction():
        tombstones_store.mirror(made, [stone(session_id=f"gone-{n}") for n in range(3)])
        tombstones_store.mirror(made, [stone(agent_id="scout", session_ids=("s-1", "s-2"))])
    counts.count_accesses(made, [("default", "memory/a.md"), ("scout", "memory/b.md")], "2026-03-01")
    with made.transaction():
        for origin in (memories.OWN_WORD, ("token", "s-1"), ("token", "s-2")):
            memories.store(made, MEMORY, origin)
        memories.store(made, MEMORY._replace(agent_id="scout"), memories.OWN_WORD)
    for day in ("2026-03-01", "2026-03-02"):
        counts.count_ids(made, "default", [MEMORY.id, "t-abcdefghijkl"], day)
    set_version(made, "key", "value")
    yield made
    made.close()


def native(database):
    return {
        table: sorted(database.execute(f"select {', '.join(columns)} from {table}"))
        for table, columns in BACKED_UP.items()
    }


def test_native_rows_come_back_as_they_were(database, tmp_path):
    target = str(tmp_path / "backup.db")
    native_backup.write(database, target)
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("backup")) == ["backup.db"]
    fresh = Database(str(tmp_path / "fresh.db"))
    assert native_backup.restore(fresh, target) == {table: len(rows) for table, rows in native(database).items()}
    assert native(fresh) == native(database)
    assert tombstones_store.list_mirrored(fresh) == tombstones_store.list_mirrored(database)
    assert native_backup.fingerprint(fresh) == native_backup.fingerprint(database)
    # The sealed bytes are not in a backup: the next look at the file puts them back.
    path = native(database)["seals"][0][0]
    assert artifacts.seal_of(fresh, path) == artifacts.seal_of(database, path)._replace(packed=None)
    assert fresh.problems() == [] and version_of(fresh, "key") is None
    assert "kept" not in {row[1] for row in fresh.execute("pragma database_list")}
    fresh.close()


def test_rows_that_are_there_win(database, tmp_path):
    target = str(tmp_path / "backup.db")
    native_backup.write(database, target)
    counts.count_accesses(database, [("default", "memory/a.md")], "2026-03-09")
    with database.transaction():
        database.execute("delete from seals where path in (select path from seals limit 2)")
    assert native_backup.restore(database, target) == dict.fromkeys(BACKED_UP, 0) | {"seals": 2}
    kept = database.execute("select accesses, last_accessed_at from artifact_telemetry where agent_id = 'default'")
    assert list(kept) == [(2, "2026-03-09")]
    assert native_backup.restore(database, target) == dict.fromkeys(BACKED_UP, 0)


def test_no_text_of_an_artifact_is_in_a_backup(database, tmp_path):
    target = tmp_path / "backup.db"
    native_backup.write(database, str(target))
    raw = target.read_bytes()
    assert b"memory/" in raw
    for word in (CANARY.encode(), b"Decisions", b"lantern"):
        assert word not in raw


def test_a_newer_backup_takes_the_place_of_an_older_one(database, tmp_path):
    target = str(tmp_path / "backup.db")
    native_backup.write(database, target)
    with database.transaction():
        tombstones_store.remove_covered(database, [stone(session_id="s-1")], PIPELINE.erasers)
    native_backup.write(database, target)
    with apsw.Connection(target) as connection:
        assert connection.execute("select count(*) from seals where session_id = 's-1'").get == 0
        assert connection.execute("select count(*) from seals").get == 10


def test_the_fingerprint_follows_what_a_backup_holds(database):
    seen = [native_backup.fingerprint(database)]
    set_version(database, "other", "value")
    assert native_backup.fingerprint(database) == seen[0]
    later = {"removed_at": "2026-03-30T08:00:00.000Z"}
    for change in (
        lambda: counts.count_accesses(database, [("default", "memory/a.md")], "2026-03-02"),
        lambda: tombstones_store.mirror(database, [stone(session_id="gone-9", **later)]),
        lambda: tombstones_store.lift(database, "default", stone(session_id="gone-1").session_token),
        lambda: fill(database, judged(session(session_id="s-new"))),
        lambda: memories.store(database, MEMORY._replace(tags=("lamb",)), memories.OWN_WORD),
        lambda: database.execute("update memories set tags = replace(tags, 'lamb', 'lama')"),
        lambda: memories.store(database, MEMORY, ("token", "s-3")),
        lambda: memories.forget_session(database, "default", "token", ["s-3"]),
        lambda: counts.count_ids(database, "default", ["t-abcdefghijkl"], "2026-03-02"),
        lambda: entities_store.set_log_end(database, "default", "hash", "id", 1),
        lambda: database.execute("delete from node_telemetry"),
        lambda: memories.forget(database, "default", [MEMORY.id]),
    ):
        change()
        seen.append(native_backup.fingerprint(database))
    assert seen.pop(8) == seen[6], "the third session came and went"
    assert len(set(seen)) == len(seen)


def test_lines_are_not_kept_and_can_be_made_of_what_is(database, tmp_path):
    target = str(tmp_path / "backup.db")
    native_backup.write(database, target)
    fresh = Database(":memory:")
    native_backup.restore(fresh, target)
    assert [line[:4] for line in memories.lines(fresh)] == [
        (agent, "memory", MEMORY.id, f"{MEMORY.content}\nlamp") for agent in ("default", "scout")
    ] == sorted(database.execute("select agent_id, tier, name, text from texts where artifact is null"))  # fmt: skip
    assert memories.get(fresh, "default", MEMORY.id) == MEMORY


def test_a_backup_with_a_foreign_schema_is_an_error(database, tmp_path):
    source = str(tmp_path / "backup.db")
    connection = apsw.Connection(source)
    connection.execute("create table seals(path); create view artifact_telemetry as select 1")
    connection.close()
    with pytest.raises(DatabaseError) as caught:
        native_backup.restore(database, source)
    assert caught.value.path == source


def test_a_damaged_backup_is_an_error_or_gives_every_row_as_it_was(database, tmp_path):
    target = tmp_path / "backup.db"
    native_backup.write(database, str(target))
    raw, expected = target.read_bytes(), native(database)
    outcomes = {"refused": 0, "whole": 0}
    for seed in range(150):
        luck = random.Random(seed)
        changed = bytearray(raw)
        if seed % 3 == 0:
            changed = changed[: luck.randrange(len(raw))]
        else:
            for _ in range(luck.choice([1, 4, 60])):
                changed[luck.randrange(len(raw))] ^= 1 << luck.randrange(8)
        target.write_bytes(changed)
        fresh = Database(":memory:")
        try:
            native_backup.restore(fresh, str(target))
        except DatabaseError as error:
            assert error.path == str(target) and error.hint
            assert not any(native(fresh).values())
            outcomes["refused"] += 1
        else:
            assert native(fresh) == expected
            outcomes["whole"] += 1
        assert not fresh.connection.in_transaction
        assert "kept" not in {row[1] for row in fresh.execute("pragma database_list")}
        fresh.close()
    assert outcomes["refused"] > 90


def test_a_backup_that_cannot_be_written_leaves_the_old_one(database, tmp_path):
    target = tmp_path / "backup.db"
    native_backup.write(database, str(target))
    before = target.read_bytes()
    database.execute("drop table artifact_telemetry")
    with pytest.raises(DatabaseError):
        native_backup.write(database, str(target))
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("backup")] == ["backup.db"]
    assert "kept" not in {row[1] for row in database.execute("pragma database_list")}
