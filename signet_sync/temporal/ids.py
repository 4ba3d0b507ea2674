"""Ids of all that can be drilled into: a letter for what it is, and 60 bits of what it is made from.

The same content has the same id on every machine and after every rebuild; no id is of two agents.
"""

from __future__ import annotations

import json
import re
from base64 import b32encode
from hashlib import sha256
from typing import Literal

from signet_sync.contracts.bodies import utf8

Letter = Literal["s", "k", "c", "a", "e", "t", "f", "m", "x"]
# What each letter stands for: a summary, a chunk of a transcript, a compaction, an arc over sessions, an epoch over
# arcs, a thread, a fact, a memory, an entity.
LETTERS: dict[str, str] = {
    "s": "summary", "k": "chunk", "c": "compaction", "a": "arc", "e": "epoch", "t": "thread", "f": "fact",
    "m": "memory", "x": "entity",
}  # fmt: skip
HANDLE = re.compile(r"\^?([skcaetfmx]-[a-z2-7]{4,12})", re.ASCII)
ID_LENGTH = 14


def id_of(letter: Letter, agent_id: str, *parts: str | int) -> str:
    """`s-` and twelve letters or digits from `[a-z2-7]`: a hash of the agent and what the thing is made of."""
    told = json.dumps([letter, agent_id, *parts], ensure_ascii=False)
    return f"{letter}-{b32encode(sha256(utf8(told)).digest()[:8]).decode('ascii').lower()[:12]}"


def handle(node_id: str) -> str:
    """`^` and the id: an Obsidian block id, and what `expand` takes."""
    return f"^{node_id}"
