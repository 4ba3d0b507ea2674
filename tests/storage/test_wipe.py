"""No byte of a deleted row stays in the pages of a database, wherever SQLite had moved it before."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from signet_sync.storage.database import batches as database_wipe
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.artifacts import set_sanitizer_of_rows

WORD = re.compile(rb"quill\d{6}z")


class Life:
    """Rows that come and go, of very different sizes, in tables of every kind."""

    def __init__(self, place: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.place = place
        self.database = Database(str(place))
        self.database.execute("create table near(k text primary key, a text) without rowid")
        self.database.execute("create table far(id integer primary key, b text)")
        self.database.execute("create index far_b on far(b)")
        self.database.execute("create virtual table words using fts5(b)")
        self.database.execute("insert into words(words, rank) values('secure-delete', 1)")
        self.living: dict[int, str] = {}
        self.gone: set[bytes] = set()
        self.number = 0

    def step(self, largest: int) -> None:
        with self.database.transaction():
            for _ in range(self.random.randint(1, 20)):
                self.number += 1
                word = f"quill{self.number:06d}z"
                text = f"{word} {'x' * self.random.randint(0, largest)}"
                key = f"{self.random.random()}-{word}"
                self.database.execute("insert into near values(?, ?)", (key, text))
                self.database.execute("insert into far values(?, ?)", (self.number, text[: largest // 2]))
                self.database.execute("insert into words(rowid, b) values(?, ?)", (self.number, word))
                self.living[self.number] = key
        if self.random.random() < 0.5:
            self.database.checkpoint(truncate=True)

    def delete(self, most: int) -> None:
        with self.database.transaction():
            for number in self.random.sample(sorted(self.living), min(len(self.living), most)):
                self.database.execute("delete from near where k = ?", (self.living.pop(number),))
                self.database.execute("delete from far where id = ?", (number,))
                self.database.execute("delete from words where rowid = ?", (number,))
                self.gone.add(f"quill{number:06d}z".encode())

    def left(self) -> set[bytes]:
        self.database.checkpoint(truncate=True)
        return set(WORD.findall(self.place.read_bytes())) & self.gone

    def wipe(self) -> bool:
        self.database.checkpoint(truncate=True)
        with self.database.transaction():
            wiped = database_wipe.wipe(self.database)
            set_sanitizer_of_rows(self.database, str(self.number))
        return wiped


@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10))])
def test_what_was_deleted_is_in_no_byte_and_does_not_come_back(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path / "index.db", seed)
    residue: set[bytes] = set()
    for largest in (900, 200, 9_000):
        for _ in range(25):
            life.step(largest)
            life.delete(life.random.randint(0, 8))
        residue |= life.left()
        assert life.wipe() and life.left() == set()
        # What pages held before the wipe is not written back by what comes after it.
        wiped = set(life.gone)
        for _ in range(5):
            life.step(largest)
        assert life.left() & wiped == set()
    assert residue or seed != 7, "SQLite leaves nothing behind any more: this module can go"
    assert life.database.problems() == []
    assert [row[0] for row in life.database.execute("pragma integrity_check")] == ["ok"]
    assert life.database.value("select count(*) from near") == len(life.living)
    life.database.close()


def test_another_connection_does_not_bring_it_back(tmp_path: Path) -> None:
    """It holds pages of before the wipe: the commit tells it that they are old."""
    life = Life(tmp_path / "index.db", 3)
    for _ in range(40):
        life.step(900)
        life.delete(8)
    other = Database(str(life.place))
    assert other.value("select count(*) from near where a like '%x%'") > 10
    assert life.wipe()
    with other.transaction():
        other.execute("update near set a = a || 'y'")
    other.close()
    assert life.left() == set()
    life.database.close()


def test_newer_pages_in_the_log_are_waited_for(tmp_path: Path) -> None:
    life = Life(tmp_path / "index.db", 1)
    life.step(100)
    with life.database.transaction():
        set_sanitizer_of_rows(life.database, "b")
    with life.database.transaction():
        assert not database_wipe.wipe(life.database)
    assert life.wipe()
    life.database.close()


def test_a_damaged_page_is_left_to_whoever_salvages_it(tmp_path: Path) -> None:
    """Where the cells are said to begin further on than they do, those before must not be lost for that."""
    life = Life(tmp_path / "index.db", 2)
    life.step(200)
    life.left()
    raw = bytearray(life.place.read_bytes())
    page = next(page for page in range(4096, len(raw), 4096) if raw[page] in (10, 13) and raw[page + 4] > 9)
    raw[page + 5] += 1  # 256 bytes further on
    life.place.write_bytes(raw)
    life.wipe()
    life.database.checkpoint(truncate=True)
    assert life.place.read_bytes()[page : page + 4096] == raw[page : page + 4096]
    life.database.connection.close()
