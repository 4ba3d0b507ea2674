"""Lines of `memory/words/`: what we write is read as it was, what anybody else writes is nothing."""

from __future__ import annotations

import json

import pytest

from signet_sync.formats.statement import Word, decode_word, encode_word, newest_words

AT = "2026-03-28T10:00:00.000Z"
DONE = Word("default", "f-abcdefghijkl", "done", AT, "agent", "next", "abcd efgh", "a" * 16, "5e55\n\u2028é")
PIN = Word("scout", "m-abcdefghijkl", "pinned", AT)


@pytest.mark.parametrize("word", [DONE, PIN, DONE._replace(words="", said="open"), PIN._replace(said="unpinned")])
def test_a_word_is_read_as_it_was_written(word: Word) -> None:
    line = encode_word(word)
    assert decode_word(line) == word and line.count(b"\n") == 1 and line.endswith(b"\n") and line.isascii()


FORGED: dict[str, dict[str, object]] = {
    "another version": {"v": 2},
    "no version": {"v": None},
    "another agent's name": {"agent_id": "../up"},
    "an entity": {"id": "p-abcdefghijkl"},
    "a short id": {"id": "f-abcdef"},
    "a mark of no statement": {"id": "m-abcdefghijkl"},
    "what nobody can say": {"said": "run"},
    "a pin with a session": {"said": "pinned"},
    "no time": {"at": "soon"},
    "a time in another form": {"at": "2026-03-28T10:00:00Z"},
    "the end of time": {"at": "9999-12-31T00:00:00.000Z"},
    "nobody": {"by": "tool"},
    "a kind that is none": {"kind": "order"},
    "words": {"words": "Ask Ada"},
    "no token": {"token": "../../etc/passwd"},
    "no session": {"session_id": ""},
    "half a letter": {"session_id": "\ud800"},
    "a number": {"session_id": 1},
    "a field more": {"command": "rm"},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_line_that_we_never_wrote_says_nothing(name: str) -> None:
    assert decode_word(json.dumps(json.loads(encode_word(DONE)) | FORGED[name]).encode()) is None


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"3", b"<<<<<<< HEAD", b"\xff", b"[" * 100_000, encode_word(DONE)[:-9]]
)
def test_what_is_no_line_says_nothing(line: bytes) -> None:
    assert decode_word(line) is None


def test_the_later_word_counts_in_whatever_order_they_are_read() -> None:
    later = DONE._replace(said="open", at="2026-03-29T10:00:00.000Z")
    pinned = DONE._replace(said="pinned", kind="", words="", token="", session_id="")
    for said in ([DONE, later, pinned], [pinned, later, DONE]):
        assert set(newest_words(said).values()) == {later, pinned}
