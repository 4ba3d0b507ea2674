"""Defines what another program remembers, in its own words: text, type, tags, time, agent."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.text.memory import TYPES


class Item(NamedTuple):
    """A thing that another program remembers; it is sanitized, for good, when it is brought.

    `account` is its table or file in the report, `id` what it is in the other program. `left` says why it is not
    brought, `name` what the report calls it then.
    """

    account: str
    id: str
    text: str
    at_us: int
    kind: str = "note"
    tags: tuple[str, ...] = ()
    agent_id: str = DEFAULT_AGENT
    private: bool = False
    left: str = ""
    name: str = ""


class LeftFile(NamedTuple):
    """A file of a folder that is not read, and why."""

    path: str
    why: str


def kind_of(given: str) -> str:
    """Returns the type of a memory that has the name of another program's type, else `note`."""
    name = given.strip().lower()
    return name if name in TYPES else "note"


def marks_in(text: str) -> Counter[str]:
    """Counts the secrets, by rule, that were redacted before a text was cut out of its file."""
    return Counter(_MARK.findall(text))


_MARK = re.compile(r"\[REDACTED:([^\]\s]{1,64})\]")
