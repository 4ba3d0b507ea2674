"""Defines what a session states, and the lines of `memory/words/`: what was said of it later, and what is pinned.

A line there has no text: ids, and of a statement's words hashes of twenty bits, by which it is found when it is worded
otherwise. Of two lines about the same the later one counts, on every machine.
"""

import json
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from signet_sync.formats.paths import AGENT_ID
from signet_sync.formats.timestamps import iso, parse_instant

Kind = Literal["decision", "constraint", "preference", "person", "blocker", "question", "note", "next", "tried"]
# Who says it: a person, the agent, or a foreign file whose author is not known.
Speaker = Literal["person", "agent", "file"]
# Whether it still holds (`statements.validity`).
Status = Literal["open", "done", "replaced", "withdrawn"]

# The section of MEMORY.md for a statement of this kind (or a memory of this type).
SECTION_OF: dict[str, str] = {
    "decision": "decisions", "constraint": "decisions", "preference": "decisions", "person": "people",
    "blocker": "blockers", "question": "blockers", "note": "blockers", "next": "projects",
}  # fmt: skip


class Item(NamedTuple):
    """A statement of an artifact; `line` counts the body's lines from 1.

    `text` is flattened. `done`: it is ticked or struck out, or under a heading such as *Done*.
    """

    kind: Kind
    text: str
    line: int
    done: bool = False
    speaker: Speaker = "file"


# ── what was said of it later ──

Said = Literal["done", "withdrawn", "open", "pinned", "unpinned"]

WORDS_LIMIT = 16 << 20  # bytes of a file
_MARKS = ("done", "withdrawn", "open")
_LAST = "9999-12-31"
_ID = re.compile(r"[skcaetfm]-[a-z2-7]{12}", re.ASCII)
_TOKEN = re.compile(r"[a-z2-7]{16}", re.ASCII)
_WORDS = re.compile(r"(?:[a-z2-7]{4}(?: |$))*", re.ASCII)
_VERSION = 1


class Word(NamedTuple):
    """A line. What is said of a statement has its kind, the hashes of its words, token and id of a session of it."""

    agent_id: str
    id: str
    said: Said
    at: str
    by: Literal["person", "agent"] = "person"
    kind: str = ""
    words: str = ""
    token: str = ""
    session_id: str = ""

    @property
    def is_pin(self) -> bool:
        """Returns whether it pins or unpins; else it says whether a statement holds."""
        return self.said in ("pinned", "unpinned")


def encode_word(word: Word) -> bytes:
    """Returns a word as its line, with the newline; fields that are empty are left out."""
    fields = {"v": _VERSION} | {name: value for name, value in word._asdict().items() if value}
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def decode_word(line: bytes) -> Word | None:
    """Returns the word of a line; None for a line that we never wrote, or another version did."""
    try:
        given = json.loads(line)
        if given.pop("v") != _VERSION or not all(isinstance(value, str) for value in given.values()):
            return None
        word = Word(**given)
        word.session_id.encode()  # no lone surrogates
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None
    instant = parse_instant(word.at)
    if instant is None or iso(instant) != word.at or word.at > _LAST or word.by not in ("person", "agent"):
        return None
    if not (AGENT_ID.fullmatch(word.agent_id) and _ID.fullmatch(word.id)):
        return None
    if word.is_pin:
        return None if word.token or word.session_id else word
    of_session = _TOKEN.fullmatch(word.token) and word.session_id and "\0" not in word.session_id
    is_mark = word.id[0] == "f" and word.said in _MARKS and word.kind in get_args(Kind) and _WORDS.fullmatch(word.words)
    return word if of_session and is_mark else None


def newest_words(words: Iterable[Word]) -> dict[tuple[str, str, bool], Word]:
    """Returns what was said last of each id: whether it holds, and whether it is pinned."""
    return {(one.agent_id, one.id, one.is_pin): one for one in sorted(words, key=lambda one: (one.at, one))}
