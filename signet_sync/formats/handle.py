"""Makes ids of everything that can be expanded: a letter for its kind, and 60 bits of a hash of what it is made from.

The same content has the same id on every machine and after every rebuild; no two agents share an id.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Literal

from signet_sync.formats.lazy_pattern import late

Letter = Literal["s", "k", "c", "a", "e", "t", "f", "m"]
# The kind of each letter: a summary, a place in a transcript, a compaction, an arc over sessions, an epoch over arcs, a
# thread, a statement, a memory; the last three are entity files, whose ids are no hash of
# their content (`formats.entity_paths`).
LETTERS: dict[str, str] = {
    "s": "summary", "k": "chunk", "c": "compaction", "a": "arc", "e": "epoch", "t": "thread", "f": "statement",
    "m": "memory", "u": "user", "p": "part", "r": "relationship",
}  # fmt: skip
# What people call them, and what is called the same.
_WORDS = {"arc": "week", "epoch": "quarter", "thread": "project", "chunk": "transcript"}
HANDLE = late(r"\^?([skcaetfmupr]-[a-z2-7]{4,12})", re.ASCII)
STATEMENT = late(r"(?<![\w-])\^?(f-[a-z2-7]{6,12})\b")  # the handle of one in what somebody writes
ID_LENGTH = 14
# Characters of an id on a page of many lines: 30 bits of the hash, of which an agent's things rarely share all.
SHORT_LENGTH = 8
# Five bits as one of `a` to `z` and `2` to `7`; the same for each byte.
_FIVE_BITS = "abcdefghijklmnopqrstuvwxyz234567"
_LETTERS = _FIVE_BITS.encode("ascii") * 8
# An id of a transcript ends in three characters for a place in it, in steps of so many characters or, in one of more
# than two million, as many as needed.
_WITHOUT_PLACE, _STEP = ID_LENGTH - 3, 64


def id_of(letter: Letter, agent_id: str, *parts: str | int) -> str:
    """Returns `s-` and twelve characters from `[a-z2-7]`: a hash of the agent and the parts."""
    # Written as a Python tuple: unlike joined texts, no two of them are the same. Not `repr`, whose output for new
    # letters depends on the Unicode tables of the Python version.
    digest = sha256(ascii((letter, agent_id, *parts)).encode("ascii")).digest()
    return f"{letter}-{digest[:12].translate(_LETTERS).decode('ascii')}"


def make_place_id(node_id: str, place: int, length: int) -> str:
    """Returns the id of a place in a transcript of so many characters, made from that of any other place in it."""
    steps = -(-place // place_step(length))
    return node_id[:_WITHOUT_PLACE] + "".join(_FIVE_BITS[steps >> bits & 31] for bits in (10, 5, 0))


def place_step(length: int) -> int:
    """Returns how many characters of a transcript share the id of a place."""
    return max(_STEP, (length >> 15) + 1)


def place_of(node_id: str, length: int) -> int:
    """Returns the place in a transcript that an id names: that which `make_place_id` got, or a little after it."""
    steps = sum(_FIVE_BITS.index(one) << bits for one, bits in zip(node_id[_WITHOUT_PLACE:], (10, 5, 0), strict=True))
    return max(min(steps * place_step(length), length - 1), 0)


def row_id_of(node_id: str) -> str:
    """Returns the id under which a node has its row: for a place in a transcript that of its beginning."""
    return make_place_id(node_id, 0, 0) if node_id.startswith("k-") else node_id


def name_kind(kind: str) -> str:
    """Returns what people call a kind: `week` for an arc, `project` for a thread."""
    return _WORDS.get(kind, kind)


def handle(node_id: str) -> str:
    """Returns `^` and the id: an Obsidian block id, and an argument of `expand`."""
    return f"^{node_id}"


def short_handle(node_id: str) -> str:
    """Returns `^` and the beginning of an id, which `expand` accepts as well.

    A memory's stays whole: a page on which it was forgotten elsewhere is recognised by it.
    """
    return handle(node_id if node_id.startswith("m-") else node_id[:SHORT_LENGTH])
