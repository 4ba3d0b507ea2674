"""Pieces of full text are merged when it is quiet, a step at a time, and never in the commit of a change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import artifacts_fixture as made
import pytest

from signet_sync.storage.database import batches
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import full_text
from signet_sync.sync.store import texts
from signet_sync.sync.store.texts import Line

BODY = "## User · {0}\n\nLook.\n\n- `Bash` · {0}\n\n  The lamp is lit.\n".format("2026-03-28T10:00:00.000Z")
TEXT = "select count(distinct segid) from {}_idx"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = Database(str(tmp_path / "index.db"))
    yield found
    found.close()


def pieces(database: Database) -> dict[str, int]:
    return {table: database.value(TEXT.format(table)) for table in full_text()}


def change(database: Database, number: int) -> None:
    """One session more, and a statement's line written anew."""
    made.fill(database, made.judged(dict([made.transcript(session_id=f"s{number}", body=BODY)])))
    with database.transaction():
        texts.put(database, [Line("default", "statement", "t-1", f"tower {number}")])


def test_steps_merge_until_nothing_is_left_and_find_the_same(database: Database) -> None:
    for number in range(40):
        words = " ".join(f"word{number}x{each}" for each in range(300))
        change(database, number)
        with database.transaction():
            texts.put(database, [Line("default", "statement", f"f-{number}", words)])
    before, steps = pieces(database), 0
    while batches.merge_step(database, 2):
        steps += 1
        assert database.problems() == []
    assert steps > 3, "a step is small"
    assert all(count < 8 for count in pieces(database).values()) and min(before.values()) >= 40
    assert not batches.merge_step(database)
    found = "select count(*) from said where said match ?"
    assert [database.value(found, (word,)) for word in ("tower", "word0x7", "word39x299", "word40x0")] == [1, 1, 1, 0]
