"""Defines what is extracted from one artifact: items and mentions, each with its line."""

from __future__ import annotations

from typing import Literal, NamedTuple

Aspect = Literal["decision", "constraint", "preference", "person", "blocker", "question", "note", "next"]
EntityKind = Literal["project", "path", "issue", "person", "agent"]

# The section of MEMORY.md for a fact of this aspect (or a memory of this type).
SECTION_OF: dict[str, str] = {
    "decision": "decisions", "constraint": "decisions", "preference": "decisions", "person": "people",
    "blocker": "blockers", "question": "blockers", "note": "blockers", "next": "projects",
}  # fmt: skip


class Item(NamedTuple):
    """A statement under a known heading of an artifact; `line` counts the body's lines from 1.

    `text` is flattened. `done`: it is ticked or struck out, or under a heading such as *Done*.
    """

    aspect: Aspect
    text: str
    line: int
    done: bool = False


class Mention(NamedTuple):
    """A topic that an artifact mentions. `name` is as first written; equal topics have the same `norm`."""

    kind: EntityKind
    name: str
    norm: str
    line: int


class Distilled(NamedTuple):
    """All that is extracted from one artifact. Total, deterministic, linear; bounded (see `facts.extract`)."""

    items: tuple[Item, ...]
    mentions: tuple[Mention, ...]
