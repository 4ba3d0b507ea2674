"""Reads the tables of this package when they are first used: `labels.txt`, `grammar.txt`, `marks.txt`, `providers.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256

from signet_sync.formats.lazy_pattern import late

_TABLES = "labels.txt", "grammar.txt", "marks.txt", "providers.txt"


@cache
def _raw(name: str) -> bytes:
    with open(f"{__file__.removesuffix('tables.py')}{name}", "rb") as table:
        return table.read()


def lines(name: str) -> Iterator[str]:
    """Yields the lines of a table that are no comments."""
    return (line for line in _raw(name).decode("utf-8").split("\n") if line and not line.startswith("#"))


@cache
def table_digest() -> str:
    """Returns sixteen hex digits that change with any byte of the tables."""
    return sha256(b"".join(map(_raw, _TABLES))).hexdigest()[:16]


# ── words ──


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in lines("labels.txt"):
        if line.startswith("["):
            title = line.strip("[]")
        else:
            found[title] = (*found.get(title, ()), *(word.replace("_", " ") for word in line.split()))
    return found


def list_section(section: str) -> tuple[str, ...]:
    """Returns the words of a section."""
    return _sections()[section]


@cache
def set_of(section: str) -> frozenset[str]:
    """Returns the words of a section as a set."""
    return frozenset(list_section(section))


# ── patterns ──

_NAMED = late(r"\{\{([a-z_ ]+)\}\}")


@cache
def _patterns() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines("grammar.txt"):
        if not line.startswith(" "):
            name, _, line = line.partition(" ")
        found[name] = found.get(name, "") + line.strip(" ")
    return found


def pattern_text(name: str) -> str:
    """Returns a pattern of `grammar.txt` with what it refers to: other patterns, and sections of words as a choice."""

    def referred(other: re.Match[str]) -> str:
        return "|".join(list_section(other[1])) if other[1] in _sections() else pattern_text(other[1])

    return _NAMED.sub(referred, _patterns()[name])


class _Shapes:
    """The patterns of `grammar.txt` by their names, each compiled when it is first used."""

    def __getattr__(self, name: str) -> re.Pattern[str]:
        vars(self)[name] = pattern = re.compile(pattern_text(name))
        return pattern


SHAPES = _Shapes()
