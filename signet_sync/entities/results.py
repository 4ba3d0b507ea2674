"""Defines the results of operations on entities."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from signet_sync.entities.event_log.events import Event
from signet_sync.formats.entity_paths import File, Kind


class EntityResult(NamedTuple):
    """A recorded operation: entity, event, its `ev:…`, and the file it concerns.

    `before` and `after` are hashes of the section (None without one). `replayed`: it was done earlier under the same
    idempotency key. `waiting` is the reason why MEMORY.md does not show it yet, `effect` what approving a
    proposal does.
    """

    id: str
    event_id: str
    section: str | None
    before: str | None
    after: str | None
    warnings: tuple[str, ...]
    path: str
    token: str
    replayed: bool
    redactions: Mapping[str, int]
    waiting: str = ""
    effect: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the result."""
        return {name: value for name, value in self._asdict().items() if name not in ("waiting", "effect")}


class ItemView(NamedTuple):
    """An item of a list section; `prune` accepts `key` or `number`."""

    number: int
    key: str
    text: str


class SectionView(NamedTuple):
    """A section for display; `items` is None unless it is a list. `name` is its name in operations."""

    name: str
    anchor: str | None
    heading: str
    text: str
    items: tuple[ItemView, ...] | None

    def document(self) -> dict[str, Any]:
        """Returns a section's JSON document: a list has `items`, any other section `text`."""
        document = self._asdict()
        if self.items is None:
            del document["items"]
            return document
        del document["text"]
        return document | {"items": [item._asdict() for item in self.items]}


class EntityView(NamedTuple):
    """An entity as its files have it; sections of its notes are named `notes/…` and come last.

    `proposals` are the open ones; `drifted`: a file waits for a maintainer and is shown with its present content.
    """

    id: str
    agent_id: str
    kind: Kind
    title: str
    path: str
    status: str
    type: str | None
    participants: tuple[str, ...]
    sections: tuple[SectionView, ...]
    pins: tuple[str, ...]
    locks: tuple[str, ...]
    proposals: "tuple[Proposal, ...]" = ()
    drifted: bool = False

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of `entity show --json`."""
        return self._asdict() | {
            "sections": [section.document() for section in self.sections],
            "proposals": [proposal._asdict() for proposal in self.proposals],
        }


class EntitySummary(NamedTuple):
    """A row of a list of entities; `line` describes the entity in a sentence, and may be empty."""

    id: str
    kind: Kind
    title: str
    status: str
    type: str | None
    path: str
    line: str


class Proposal(NamedTuple):
    """A text that an agent proposes for a section; `op` is `set` or `append_item`, `at` is ISO 8601 UTC.

    `source` is `PATH#LINE` of the artifact that supports it.
    """

    id: str
    entity_id: str
    section: str
    op: str
    text: str
    at: str
    rationale: str | None
    source: str | None = None


class EntityFinding(NamedTuple):
    """A finding of `lint`, `verify`, `replay` or `drift`; `id` is an entity's or event's, empty for the event log."""

    id: str
    code: str
    message: str
    hint: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """The files of an entity as its events produce them, and where the files on disk differ."""

    id: str
    texts: Mapping[File, str]
    findings: tuple[EntityFinding, ...]


class LoggedEvent(NamedTuple):
    """An event with its `state`: pending, written, committed or failed."""

    event: Event
    state: str


class EventSource(NamedTuple):
    """What an event token refers to: the event, and the artifact (path, line from 1) that supports it, if any."""

    event: Event
    entity_path: str
    path: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class PromotedField:
    """A field that became a section of a kind, the schema version of that change, and the migrated files."""

    event_id: str
    kind: Kind
    anchor: str
    heading: str
    version: int
    migrated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Erasure:
    """What a removal changed: files that lost words, events that lost their texts."""

    files: tuple[str, ...]
    events: tuple[str, ...]
