"""Backups of native rows come back whole or not at all; `tests/storage/test_tables.py` tells what they hold."""

from __future__ import annotations

import random

import pytest
from artifacts_fixture import fill, judged, session, stone
from native_rows import BACKED_UP

from signet_sync.errors import DatabaseError
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts
from signet_sync.sync.store import tombstones as tombstones_store

AT = "2026-03-28T10:00:00.000Z"
MEMORY = Memory("default", "m-abcdefghijkl", "note", "Ada trims\nthe wick.", ("lamp",), True, AT)


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "index.db"))
    for number in range(6):
        fill(made, judged(session(session_id=f"s-{number}")))
    with made.transaction():
        tombstones_store.mirror(made, [stone(session_id=f"gone-{n}") for n in range(3)])
        for origin in (memories.OWN_WORD, ("token", "s-1")):
            memories.store(made, MEMORY, origin)
    counts.count_ids(made, "default", [MEMORY.id, "t-abcdefghijkl"], "2026-03-02")
    yield made
    made.close()


def native(database):
    return {
        table: sorted(database.execute(f"select {', '.join(columns)} from {table}"))
        for table, columns in BACKED_UP.items()
    }


def test_a_damaged_backup_is_an_error_or_gives_every_row_as_it_was(database, tmp_path):
    target = tmp_path / "backup.db"
    native_backup.write(database, str(target))
    raw, expected = target.read_bytes(), native(database)
    outcomes = {"refused": 0, "whole": 0}
    for seed in range(45):
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
    assert outcomes["refused"] > 27
