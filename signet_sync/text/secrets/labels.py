"""Reads the words of `labels.txt`: labels of secrets in all languages, what may be around them, vendors."""

from __future__ import annotations

from functools import cache
from pkgutil import get_data


def raw_table(name: str) -> bytes:
    """Returns the bytes of a table of this package."""
    raw = get_data(__package__, name)
    assert raw is not None, "the loader of every ordinary installation gives data"
    return raw


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for section in raw_table("labels.txt").decode("utf-8").split("\n[")[1:]:
        title, _, body = section.partition("]\n")
        lines = (line for line in body.split("\n") if not line.startswith("#"))
        found[title] = tuple(word.replace("_", " ") for line in lines for word in line.split())
    return found


def listed(section: str) -> tuple[str, ...]:
    """Returns the words of a section."""
    return _sections()[section]


@cache
def vendors() -> frozenset[str]:
    """Returns the vendors whose name before `key`, `token` or `=` marks a secret of their service."""
    return frozenset(listed("vendors"))
