"""Defines what is extracted from one artifact: items, mentions, relations, each with its line."""

from __future__ import annotations

from typing import Literal, NamedTuple

Aspect = Literal["decision", "constraint", "preference", "person", "blocker", "question", "note", "next"]
EntityKind = Literal["project", "path", "package", "issue", "person", "agent"]

# The section of MEMORY.md for a fact of this aspect (or a memory of this type).
SECTION_OF: dict[str, str] = {
    "decision": "decisions", "constraint": "decisions", "preference": "decisions", "person": "people",
    "blocker": "blockers", "question": "blockers", "note": "blockers", "next": "projects",
}  # fmt: skip


class Claim(NamedTuple):
    """What a statement claims of a subject: its value, or that it is chosen or retired (`facts.subjects`).

    `changed`: the statement says that this is a change, so that it replaces another of the same instant.
    """

    subject: str
    value: str
    changed: bool = False


class Item(NamedTuple):
    """A statement under a known heading of an artifact; `line` counts the body's lines from 1.

    `text` is flattened. `done`: it is ticked or struck out. A later claim on the same subject supersedes an earlier
    one.
    """

    aspect: Aspect
    text: str
    line: int
    done: bool = False
    claims: tuple[Claim, ...] = ()


class Mention(NamedTuple):
    """A topic that an artifact mentions. `name` is as first written; equal topics have the same `norm`."""

    kind: EntityKind
    name: str
    norm: str
    line: int


class Relation(NamedTuple):
    """A relation between two topics: `kind` is `uses`, `part-of`, `works-on`, `blocked-by` or `depends-on`.

    Ends are (kind of topic, norm); both are among the artifact's mentions.
    """

    kind: str
    from_: tuple[EntityKind, str]
    to: tuple[EntityKind, str]
    line: int


class Report(NamedTuple):
    """A statement that something is done, as the words by which it may end a blocker or next step (`facts.reports`).

    `resolves`: it may resolve a blocker; `finished`: it says that something is done whatever its verb.
    """

    words: tuple[str, ...]
    resolves: bool = False
    finished: bool = False


class Distilled(NamedTuple):
    """All that is extracted from one artifact. Total, deterministic, linear; bounded (see `facts.extract`)."""

    items: tuple[Item, ...]
    mentions: tuple[Mention, ...]
    relations: tuple[Relation, ...]
    reports: tuple[Report, ...] = ()
