"""By what a removed session's text is known elsewhere: whole needles in one reading, phrases that are its own."""

from __future__ import annotations

import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import NOW, Vault, numbered

from signet_sync.capture import store as capture_store
from signet_sync.capture.store import TranscriptState
from signet_sync.sessions.live import store as live
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.text.phrase_search import Sieve, phrases

LONG = "The lighthouse keeper of Ushant counted forty-one migrating storks before breakfast"
ID = numbered(1)["session_id"]


@pytest.fixture
def vault(tmp_path):
    found = Vault(tmp_path / "vault")
    common = "- A line that both of these sessions have in common.\n"
    found.session(1, body=f"# One\n\n- {LONG} 1.\n{common}- über vierzig Störche zählte der Wächter\n")
    found.session(2, body=f"# Two\n\n{common}")
    found.reindex()
    return found


def remove(vault, name=ID):
    answer = vault.call("remove", name, "--reason", "asked for", "--yes", "--json", "--now", NOW)
    assert answer.code == 0, answer
    return answer.json["removals"][0]


def bytes_of(vault):
    return b"".join(path.read_bytes() for path in vault.state.rglob("*") if path.is_file())


# ── needles ──


@given(
    st.binary(max_size=400),
    st.lists(st.binary(min_size=1, max_size=60), max_size=5),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 90)), max_size=5),
)
def test_a_sieve_finds_what_stands_there_and_nothing_else(text, needles, cuts):
    wanted = {*needles, *(text[start : start + size] for start, size in cuts if text[start : start + size])}
    assert Sieve(wanted).find(text) == {needle for needle in wanted if needle in text}


@given(st.binary(max_size=3000), st.integers(0, 50))
def test_pieces_overlap_so_that_nothing_falls_between(tmp_path_factory, raw, overlap):
    path = tmp_path_factory.mktemp("pieces") / "file"
    path.write_bytes(raw)
    step, files._PIECE = files._PIECE, 100
    try:
        descriptor = os.open(path, os.O_RDONLY)
        found = list(files.pieces(descriptor, overlap))
        os.close(descriptor)
    finally:
        files._PIECE = step
    for number, piece in enumerate(found[1:]):
        shared = min(overlap, len(found[number]))
        assert piece.startswith(found[number][len(found[number]) - shared :])
        found[number] = found[number][: len(found[number]) - shared]
    assert b"".join(found) == raw


@given(st.text())
def test_a_phrase_stands_in_the_text_and_in_its_json(text):
    for phrase in phrases(text):
        assert phrase in text
        assert phrase in json.dumps(text, ensure_ascii=False)
        assert json.dumps(phrase)[1:-1] in json.dumps(json.loads(json.dumps(text)))


def test_redactions_and_markup_are_no_phrases():
    text = "## The key that I use is [REDACTED:github], keep it secret\n> 12. - too short\n* `x`\n"
    assert list(phrases(text)) == ["The key that I use is", ", keep it secret"]


# ── files that are not ours ──

NOTES = {
    "plain": f"I read: {LONG}!",
    "json": json.dumps({"a": f"x\n- {LONG}"}),
    "json in json": json.dumps({"a": json.dumps({"b": f"\u2028{LONG}"})}),
    "escaped": json.dumps("über vierzig Störche zählte der Wächter"),
    "utf-8": "über vierzig Störche zählte der Wächter",
    "across pieces": "x" * ((1 << 20) - 30) + LONG,
}


def test_files_with_its_words_are_named_and_those_with_words_that_others_have_are_not(vault):
    vault.session(3, body="four small owls\n")
    for name, raw in NOTES.items():
        (vault / f"{name}.txt").write_text(raw)
    (vault / "common.txt").write_text("A line that both of these sessions have in common. Lantern keeps its word.")
    (vault / "few words.txt").write_text("who saw four small owls?")
    assert remove(vault)["foreign"] == sorted(f"{name}.txt" for name in NOTES)
    assert remove(vault, numbered(3)["session_id"])["foreign"] == ["few words.txt"]


def test_links_and_pipes_are_not_followed_and_our_database_is_not_opened(vault):
    outside = vault.root.parent / "outside.txt"
    outside.write_text(LONG)
    (vault / "link.txt").symlink_to(outside)
    os.mkfifo(vault / "pipe")
    (vault / "ours").mkdir()
    place = str(vault / "ours/index.db")
    opened: list[str] = []
    assert vault.call("--db", place, "reindex").code == 0

    def look(event, given):
        if event == "open" and watching and str(given[0]).startswith("index.db"):
            opened.append(str(given[0]))

    watching = True
    sys.addaudithook(look)
    answer = vault.call("--db", place, "remove", ID, "--reason", "x", "--yes", "--json", "--now", NOW)
    watching = False
    assert answer.code == 0 and answer.json["removals"][0]["foreign"] == []
    assert opened == []


# ── transcripts of harnesses ──


def test_transcripts_are_named_while_they_are_there_and_then_forgotten(vault):
    here, gone, other = (vault.root.parent / f"{name}.jsonl" for name in ("here", "gone", "other"))
    inside = vault / "transcripts/inside.jsonl"
    inside.parent.mkdir()
    for path in (here, other, inside):
        path.write_text("{}\n")
    database = Database(str(vault.db))
    for path, session in ((here, ID), (gone, ID), (inside, ID), (other, "another")):
        capture_store.mark(database, "codex", str(path), "", TranscriptState(3, 4, "default", "written", session), NOW)
    database.close()
    assert remove(vault)["foreign"] == sorted([str(here), "transcripts/inside.jsonl"])
    raw = bytes_of(vault)
    assert b"here.jsonl" not in raw and b"gone.jsonl" not in raw and b"other.jsonl" in raw
    with vault.database() as database:
        assert capture_store.mark_of(database, "codex", str(here), "") == TranscriptState(
            3, 4, "", capture_store.REMOVED
        )
        assert capture_store.mark_of(database, "codex", str(other), "") == TranscriptState(
            3, 4, "default", "written", "another"
        )


def test_a_secret_in_a_path_stands_in_no_row(vault):
    """Nor does it keep the transcript from being known again, named on removal, and forgotten."""
    secret = "ghp_7kQ2mX9vB4nR8tW3yZ6cF1hJ5pL0sD2gA8eK"
    path = vault.root.parent / secret / "s.jsonl"
    path.parent.mkdir()
    path.write_text("{}\n")
    seen = TranscriptState(3, 4, "default", "written", ID)
    with vault.database(readonly=False) as database:
        database.execute(  # as an older version kept it
            "insert into captures(harness, path, session_id, size, mtime_ns, agent_id, outcome, conversation, at)"
            " values('codex', ?, ?, 1, 1, 'default', 'x', '', '')",
            (str(path), secret),
        )
        with database.transaction():
            capture_store.redact(database)
        assert capture_store.mark_of(database, "codex", str(path), secret) == TranscriptState(1, 1, "default", "x")
        capture_store.mark(database, "codex", str(path), secret, seen, NOW)
        capture_store.mark(
            database, "codex", str(path.with_name("t.jsonl")), secret, seen._replace(conversation=secret), NOW
        )
        assert capture_store.mark_of(database, "codex", str(path), secret) == seen
        assert database.value("select count(*) from captures") == 2
        with database.transaction():
            rows = list(database.execute("select * from captures"))
            capture_store.redact(database)
            assert list(database.execute("select * from captures")) == rows
    assert secret.encode() not in bytes_of(vault)
    (named,) = remove(vault)["foreign"]
    assert "[REDACTED:" in named and secret not in named
    with vault.database() as database:
        assert capture_store.mark_of(database, "codex", str(path), secret) == TranscriptState(
            3, 4, "", capture_store.REMOVED
        )


# ── what is known by another name ──


def test_turns_under_a_shared_key_go_with_the_removal_and_later_ones_stay(tmp_path):
    vault = Vault(tmp_path / "shared")
    for number in (1, 2):
        vault.session(number, session_key="agent:main:main")
    vault.reindex()

    def buffer(text):
        database = Database(str(vault.db))
        with database.transaction():
            live.buffer(database, "default", "agent:main:main", [live.LiveTurn(1, "user", text, NOW)])
        database.close()

    buffer("perhaps of the first")
    remove(vault)
    assert vault.rows("select count(*) from session_transcripts") == [(0,)]
    buffer("of another")
    vault.session(3, session_key="agent:main:main")
    vault.reindex()
    assert vault.rows("select content from session_transcripts") == [("of another",)]
