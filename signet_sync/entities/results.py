"""What the operations on entities answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from signet_sync.entities.event_log.events import Event, Outcome
from signet_sync.formats.entity_paths import File, Kind


@dataclass(frozen=True, slots=True)
class Done:
    """An operation that is recorded: entity, event, its `ev:…`, and the file that it is about.

    `before` and `after` are hashes of the section (None where it is about none). With `replayed` it had been done
    before under the same idempotency key. `waiting` says why MEMORY.md does not show it yet.
    """

    id: str
    event_id: str
    token: str
    path: str
    section: str | None = None
    before: str | None = None
    after: str | None = None
    warnings: tuple[str, ...] = ()
    replayed: bool = False
    redactions: Mapping[str, int] = field(default_factory=dict)
    waiting: str = ""


class ShownItem(NamedTuple):
    """An item of a list section: `key` names it for `prune`, as its number does."""

    number: int
    key: str
    text: str


class ShownSection(NamedTuple):
    """A section as a reader sees it; `items` where it is a list, else None. `name` is what operations call it."""

    name: str
    anchor: str | None
    heading: str
    text: str
    items: tuple[ShownItem, ...] | None


@dataclass(frozen=True, slots=True)
class Shown:
    """An entity as it stands in its files; sections of its notes are called `notes/…` and come last.

    `proposals` are open ones; `drifted` says that a file waits for a maintainer: it is shown as it stands.
    """

    id: str
    agent_id: str
    kind: Kind
    title: str
    path: str
    status: str
    type: str | None
    participants: tuple[str, ...]
    sections: tuple[ShownSection, ...]
    pins: tuple[str, ...]
    locks: tuple[str, ...]
    proposals: tuple[Proposal, ...] = ()
    drifted: bool = False


class Listed(NamedTuple):
    """One line of a list of entities; `line` says in a sentence who it is, empty where nothing is said yet."""

    id: str
    kind: Kind
    title: str
    status: str
    type: str | None
    path: str
    line: str


class Proposal(NamedTuple):
    """A text that an agent would like a section to have; `op` is `set` or `append_item`, `at` ISO 8601 UTC.

    `source` is `PATH#LINE` of the artifact that it rests on.
    """

    id: str
    entity_id: str
    section: str
    op: str
    text: str
    at: str
    rationale: str | None
    source: str | None = None


class Remark(NamedTuple):
    """A finding of `lint`, `verify`, `replay` or `drift`: `id` is an entity's, an event's, or empty (the ledger)."""

    id: str
    code: str
    message: str
    hint: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """The files of an entity as their events tell them, and in what the files on disk differ from that."""

    id: str
    texts: Mapping[File, str]
    findings: tuple[Remark, ...]


class Logged(NamedTuple):
    """An event and how it stands: `state` is pending, written, committed or failed."""

    event: Event
    state: str


class Source(NamedTuple):
    """What an event token leads to: the event, and the artifact (path, line from 1) that it rests on, if any."""

    event: Event
    entity_path: str
    path: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Observed:
    """What a look at entity files found: paths by what they turned out to be, drift and remarks of the ledger.

    `changed` are agents whose entities moved, so that their pages may have to follow.
    """

    edited: tuple[str, ...] = ()
    healed: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()
    settled: tuple[Outcome, ...] = ()
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Promoted:
    """A field that became a section of a kind, from a schema version on, and the files that were given it."""

    event_id: str
    kind: Kind
    anchor: str
    heading: str
    version: int
    migrated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Erased:
    """What a removal took out of an agent's entities: files that lost words, events that lost their texts."""

    files: tuple[str, ...]
    events: tuple[str, ...]


# ── as documents ──


def done_document(done: Done) -> dict[str, Any]:
    """What an operation answers with where a program asks."""
    return {
        "id": done.id,
        "event_id": done.event_id,
        "section": done.section,
        "before": done.before,
        "after": done.after,
        "warnings": list(done.warnings),
        "path": done.path,
        "token": done.token,
        "replayed": done.replayed,
        "redactions": dict(done.redactions),
    }


def shown_document(shown: Shown) -> dict[str, Any]:
    """The document of `entity show --json`."""
    return {
        "id": shown.id,
        "agent_id": shown.agent_id,
        "kind": shown.kind,
        "title": shown.title,
        "path": shown.path,
        "status": shown.status,
        "type": shown.type,
        "participants": list(shown.participants),
        "sections": [_section_document(section) for section in shown.sections],
        "pins": list(shown.pins),
        "locks": list(shown.locks),
        "proposals": [proposal._asdict() for proposal in shown.proposals],
        "drifted": shown.drifted,
    }


def _section_document(section: ShownSection) -> dict[str, Any]:
    """A list has `items`, anything else `text`."""
    named = {"name": section.name, "anchor": section.anchor, "heading": section.heading}
    if section.items is None:
        return {**named, "text": section.text}
    return {**named, "items": [item._asdict() for item in section.items]}
