"""Ids of all that can be drilled into: a letter for what it is, and 60 bits of what it is made from.

The same content has the same id on every machine and after every rebuild; no id is of two agents.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Literal

from signet_sync.formats.lazy_pattern import late

Letter = Literal["s", "k", "c", "a", "e", "t", "f", "m", "x"]
# What each letter stands for: a summary, a chunk of a transcript, a compaction, an arc over sessions, an epoch over
# arcs, a thread, a fact, a memory, an entity that artifacts speak of; the last three are entity files, whose ids are no
# hash of what stands in them (`formats.entity_paths`).
LETTERS: dict[str, str] = {
    "s": "summary", "k": "chunk", "c": "compaction", "a": "arc", "e": "epoch", "t": "thread", "f": "fact",
    "m": "memory", "x": "entity", "u": "user", "p": "part", "r": "relationship",
}  # fmt: skip
HANDLE = late(r"\^?([skcaetfmxupr]-[a-z2-7]{4,12})", re.ASCII)
ID_LENGTH = 14
# Five bits of each byte as one of `a` to `z` and `2` to `7`.
_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8


def id_of(letter: Letter, agent_id: str, *parts: str | int) -> str:
    """`s-` and twelve letters or digits from `[a-z2-7]`: a hash of the agent and what the thing is made of."""
    # As Python writes a tuple: unlike joined texts, no two of them are written alike. Not `repr`, which writes a letter
    # that is newer than Python's tables in another way than a later Python does.
    digest = sha256(ascii((letter, agent_id, *parts)).encode("ascii")).digest()
    return f"{letter}-{digest[:12].translate(_LETTERS).decode('ascii')}"


def handle(node_id: str) -> str:
    """`^` and the id: an Obsidian block id, and what `expand` takes."""
    return f"^{node_id}"
