"""What is kept for a time only: bytes of seals and hits of recall go when they are due, and nothing else does."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
from workbench import SIGNS, cast, tree

from signet_sync.app.workspace import opened
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.integrity import stage as integrity_stage
from signet_sync.settings.model import load

MONTHS_LATER = "2026-06-20T12:00:00.000Z"


def settings(text):
    """The person's own settings."""
    path = Path(os.environ["SIGNET_CONFIG"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def of_two_sessions(vault):
    for number in (1, 2):
        vault.session(number)
    vault.reindex()


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("mould"), of_two_sessions)


@pytest.fixture
def vault(mould, tmp_path):
    """Two sessions, indexed."""
    return mould(tmp_path)


def kept(vault):
    """Paths of the seals whose bytes are kept."""
    return {path for (path,) in vault.rows("select path from seals where length(packed) > 0")}


def fates(vault):
    return dict(vault.rows("select path, length(packed) from seals"))


def test_without_a_limit_everything_is_kept_for_ever(vault):
    before = fates(vault)
    vault.reindex(now=MONTHS_LATER)
    assert fates(vault) == before and all(before.values())


def test_bytes_of_files_that_stand_go_when_their_days_are_over_and_never_the_last_copy(vault):
    changed, gone, *_ = sorted(kept(vault))
    settings("[seals]\nkeep_days = 30\n")
    vault.reindex()
    assert len(kept(vault)) == 4
    (vault / changed).write_bytes((vault / changed).read_bytes() + b"\nsomething else\n")
    (vault / gone).unlink()
    vault.reindex(now=MONTHS_LATER)
    assert kept(vault) == {changed, gone}
    assert vault.call("violations", "restore", "--all", "--yes", "--now", MONTHS_LATER).code == 0
    assert kept(vault) == set() and vault.reindex(now=MONTHS_LATER)["problems"] == []


def test_bytes_of_a_file_that_was_saved_since_the_look_stay(vault):
    path, *others = sorted(kept(vault))
    vault.reindex()
    with (vault / path).open("a") as file:
        file.write("and more\n")
    settings("[seals]\nkeep_days = 30\n")
    with opened(str(vault.root), load(vault.root)[0]) as workspace:
        integrity_stage.enforce(workspace, parse_instant(MONTHS_LATER))
    assert kept(vault) == {path} and others


def test_what_was_let_go_is_not_taken_again_and_a_change_is_still_noticed(vault):
    settings("[seals]\nkeep_days = 30\n")
    vault.reindex(now=MONTHS_LATER)
    before = tree(vault.state, but=SIGNS)
    vault.reindex(now=MONTHS_LATER)
    assert tree(vault.state, but=SIGNS) == before, "a second pass writes nothing"
    vault.reindex("--full", now=MONTHS_LATER)
    assert kept(vault) == set()
    path = sorted(fates(vault))[0]
    good = (vault / path).read_bytes()
    (vault / path).write_bytes(good + b"\nsomething else\n")
    assert vault.problems(vault.reindex(now=MONTHS_LATER))[path] == ("violation", "mutated")
    [entry] = vault.call("violations", "list", "--json").json["violations"]
    assert not entry["restorable"]
    answer = vault.call("violations", "restore", path)
    assert answer.code == 2 and "seals.keep_days" in answer.err and "accept" in answer.err
    (vault / path).write_bytes(good)
    assert vault.reindex(now=MONTHS_LATER)["problems"] == []


WORD = re.compile(rb"quill\d{4}z")


def test_hits_of_recall_go_to_the_last_byte(vault):
    """In an order and of sizes that have SQLite move rows from page to page."""
    assert vault.call("remember", "In lantern the kestrel stays.", "--json").code == 0
    chance, late = random.Random(7), parse_instant(MONTHS_LATER)
    with vault.database(readonly=False) as database, database.transaction():
        for number in chance.sample(range(1000, 1600), 600):
            old = number % 7 != 0
            query = f"quill{number}z {'x' * chance.randint(0, 900)}"
            database.execute(
                "insert into recall_events select ?, agent_id, id, ?, 1.0, ? from memories",
                (number, query, late - DAY * (90 if old else 1)),
            )
    vault.reindex()
    assert len(words_in(vault)) == 600
    settings("[recall]\nretention_days = 30\n")
    vault.reindex(now=MONTHS_LATER)
    left = {query.split()[0].encode() for (query,) in vault.rows("select query from recall_events")}
    assert len(left) == 86 and words_in(vault) == left
    assert vault.rows("select coalesce(max(wipe_due), 0) from passes") == [(0,)]


def words_in(vault):
    """The words that stand in some byte of the database, or of its log."""
    return {word for path in vault.state.glob("signet-sync.db*") for word in WORD.findall(path.read_bytes())}
