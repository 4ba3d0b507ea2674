"""What distillation finds in one artifact: items, mentions, relations, each with the line where it stands."""

from __future__ import annotations

from typing import Literal, NamedTuple

Aspect = Literal["decision", "constraint", "preference", "person", "blocker", "question", "note", "next"]
EntityKind = Literal["project", "path", "package", "issue", "person", "agent"]

# The section of MEMORY.md's head that an aspect (or a memory of this type) belongs to.
SECTION_OF: dict[str, str] = {
    "decision": "decisions", "constraint": "decisions", "preference": "decisions", "person": "people",
    "blocker": "blockers", "question": "blockers", "note": "blockers", "next": "projects",
}  # fmt: skip


class Item(NamedTuple):
    """What an artifact says under a known heading; `line` counts the body's lines from 1.

    `text` is flattened. `done` says that it is ticked or struck out. `slot` is the casefolded name in front of a value
    (`database` of "Database: SQLite"), None where the item has no such form: a later value under the same slot
    supersedes an earlier one.
    """

    aspect: Aspect
    text: str
    line: int
    done: bool = False
    slot: str | None = None


class Mention(NamedTuple):
    """A thing that an artifact speaks of. `name` is as written first, `norm` tells equal ones."""

    kind: EntityKind
    name: str
    norm: str
    line: int


class Relation(NamedTuple):
    """That one thing has to do with another: `kind` is `uses`, `part-of`, `works-on`, `blocked-by` or `depends-on`.

    Ends are (entity kind, norm); both are among the artifact's mentions.
    """

    kind: str
    from_: tuple[EntityKind, str]
    to: tuple[EntityKind, str]
    line: int


class Distilled(NamedTuple):
    """All that one artifact gives. Total, deterministic, linear; bounded (see `facts.extract`)."""

    items: tuple[Item, ...]
    mentions: tuple[Mention, ...]
    relations: tuple[Relation, ...]
