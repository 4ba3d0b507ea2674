"""Reads one agent's entities for an operation: files on disk, event log, and the state that the events add up to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from signet_sync.entities import replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import (
    SIZE_LIMIT,
    DocumentProblem,
    EntityDocument,
    parse,
    text_of,
)
from signet_sync.entities.events import Actor, Event, Operation
from signet_sync.entities.finding import Finding
from signet_sync.entities.log import EventLog, new_ulid
from signet_sync.entities.replay import EntityState
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import (
    COMMON,
    FILES,
    FOLDERS,
    KINDS,
    SCHEMA_VERSION,
    EntityPlace,
    File,
    Kind,
    Shape,
    parse_path,
    shapes,
)
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import agent_folder
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import files
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import redact
from signet_sync.text.sentences import flatten, unescape

BYTES = SIZE_LIMIT * 4  # of a file
PATTERN = "pattern: "  # begins the items about patterns of relationships in a user's Overview
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_MARKUP = "#>-*+ \t"
_MEMBERS = "participants"  # the list of participants is no description of a relationship
_NARROW = 240  # characters of the one line that describes an entity


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as read from disk; `text` is without secrets.

    `document` is None where it is no entity file, and `problem` says why (`gone`: it is missing). `sha256` is the hash
    of the bytes, `known_as` that of the text, by which events know this content.
    """

    place: EntityPlace
    raw: bytes | None = None
    text: str | None = None
    document: EntityDocument | None = None
    problem: DocumentProblem | None = None
    sha256: str = ""
    signature: Signature | None = None

    @property
    def path(self) -> str:
        """Returns the path of the file."""
        return self.place.path

    @property
    def known_as(self) -> str | None:
        """Returns the hash by which events know this content; None if there is none."""
        return None if self.text is None else text_sha256(self.text)

    @property
    def is_gone(self) -> bool:
        """Checks whether there is no file."""
        return self.problem is not None and self.problem.code == "gone"


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity whose files agree with its events, so that it may be written."""

    place: EntityPlace
    files: Mapping[File, FileContent]

    @property
    def id(self) -> str:
        """Returns its id."""
        return self.place.id

    @property
    def profile(self) -> EntityDocument:
        """Returns its profile."""
        document = self.files["profile"].document
        assert document is not None
        return document


class EntityRepository:
    """Accesses the entities of an agent. `now_us` is microseconds since 1970 UTC; the workspace's lock is held."""

    def __init__(self, workspace: Workspace, agent_id: str, now_us: int) -> None:
        require_agent(agent_id)
        self.workspace = workspace
        self.agent_id = agent_id
        self.now_us = now_us
        self.log = EventLog(workspace.root, agent_id, workspace.vault)
        self._states: dict[str, EntityState] = {}

    # ── files ──

    def places(self, ids: Collection[str] | None = None) -> dict[str, list[EntityPlace]]:
        """Returns the profiles that exist or should exist, by id; more than one for an id whose folder was copied."""
        found: dict[str, list[EntityPlace]] = {}
        for kind in KINDS:
            folder = f"{agent_folder(self.agent_id)}entities/{FOLDERS[kind]}"
            for name in files.listing(self.workspace.vault, folder, ""):
                place = parse_path(f"{folder}/{name}/profile.md")
                if place is not None and (ids is None or place.id in ids):
                    found.setdefault(place.id, []).append(place)
        for each, places in found.items():
            if len(places) > 1:  # those count that have a file: a sync service may leave an empty folder
                paths = [place._replace(file=file).path for place in places for file in FILES]
                filled = {parse_path(path) for path in paths if files.status_of(self.workspace.vault, path) is not None}
                folders = {place.folder for place in filled if place is not None}
                found[each] = [place for place in places if place.folder in folders] or places[:1]
        return found

    def read(self, place: EntityPlace) -> FileContent:
        """Reads a file."""
        read, hint = files.read(self.workspace.vault, place.path, BYTES), "make it a readable file again"
        if not isinstance(read, Found):
            return FileContent(place, problem=DocumentProblem(read.code, read.message, hint), signature=read.signature)
        text: str | None = None
        document: EntityDocument | None = None
        problem: DocumentProblem | None = None
        try:
            text = redact(read.raw.decode("utf-8"))[0]
            document = parse(text)
        except UnicodeDecodeError:
            problem = DocumentProblem("not-utf8", "the file is not UTF-8", hint)
        except DocumentProblem as error:
            problem = error
        return FileContent(place, read.raw, text, document, problem, sha256(read.raw).hexdigest(), read.signature)

    # ── events ──

    def state(self, entity_id: str) -> EntityState:
        """Returns the state that the events of an entity add up to."""
        if entity_id not in self._states:
            self._states[entity_id] = replay.fold(self.log.of(entity_id))
        return self._states[entity_id]

    def event(self, op: Operation, actor: Actor, **fields: Any) -> Event:
        """Makes an event of this instant; empty parts of its text are left out."""
        text = {name: value for name, value in (fields.pop("text", None) or {}).items() if value not in (None, (), [])}
        ulid = fields.pop("id", None) or new_ulid(self.now_us)
        given = {"at": iso(self.now_us), "agent_id": self.agent_id, **fields}
        return Event(id=ulid, actor=actor, op=op, text=text or None, **given)

    def append(self, *events: Event) -> list[Event]:
        """Appends events to the event log."""
        self.forget_states()
        return self.log.append(events, self.now_us)

    def forget_states(self) -> None:
        """Drops what was read of the events."""
        self._states.clear()

    # ── schema ──

    def rules(self, kind: Kind) -> list[tuple[int, Shape]]:
        """Returns the fields of a kind that became sections, each with the schema version that introduced it."""
        found = []
        for event in self.log.events('"op":"schema"'):
            match event.text if event.entity_id is None else None:
                case {"kind": of, "anchor": str(anchor), "heading": str(heading), "version": int(since)} if of == kind:
                    found.append((since, Shape(anchor, heading, "narrative", 300)))
        return sorted(found, key=lambda rule: rule[0])

    def version(self, kind: Kind) -> int:
        """Returns the current schema version of a kind."""
        return max((version for version, _ in self.rules(kind)), default=SCHEMA_VERSION)

    def shapes(self, kind: Kind, file: File, document: EntityDocument | int) -> tuple[Shape, ...]:
        """Returns the sections that a file should have at a schema version, or at its own."""
        version = document if isinstance(document, int) else version_of(document)
        known = shapes(kind, file)
        if file == "notes" or version <= SCHEMA_VERSION:
            return known
        own = known[: len(known) - len(COMMON)]
        return (*own, *(shape for since, shape in self.rules(kind) if since <= version), *COMMON)

    # ── rows ──

    def drift(self) -> list[Finding]:
        """Returns the files that wait for a maintainer, oldest first."""
        return entities_store.drift(self.workspace.database, self.agent_id)

    def find(self, ref: str) -> EntityFile | None:
        """Returns the profile that a name refers to, None if none. Raises `UsageError` (`ambiguous-entity`)."""
        place = parse_path(ref.strip())
        found = entities_store.find(self.workspace.database, self.agent_id, place.id if place else ref.strip())
        if len(found) > 1:
            hint = "name one by its id: " + ", ".join(f"{row.id} ({row.title})" for row in found[:8])
            message = f"{ref.strip()[:60]!r} matches {len(found)} entities"
            raise UsageError(message, hint=hint, code="ambiguous-entity")
        return found[0] if found else None

    def require(self, ref: str) -> EntityFile:
        """Returns the profile that a name refers to. Raises `UsageError` (`unknown-entity`, `ambiguous-entity`)."""
        row = self.find(ref)
        if row is None:
            message = f"agent {self.agent_id} has no entity called {ref.strip()[:60]!r}"
            hint = "signet-sync entity show lists them; --agent chooses another agent"
            raise UsageError(message, hint=hint, code="unknown-entity")
        return row

    def row(self, seen: FileContent) -> EntityFile:
        """Makes the row of a file; its texts are without secrets."""
        document, place = seen.document, seen.place
        assert document is not None
        common, core = {shape.anchor for shape in COMMON}, dict[str, str]()
        if place.file == "profile":
            wanted = {shape.anchor for shape in self.shapes(place.kind, "profile", document)} - common
            texts = {one.anchor or "": text_of(one) for one in document.sections if one.anchor in wanted}
            core = {anchor: text for anchor, text in texts.items() if text}
        status, of_edge, updated = (_text(document.fields.get(key)) for key in ("status", "type", "updated_at"))
        return EntityFile(
            path=seen.path,
            agent_id=self.agent_id,
            kind=place.kind,
            id=place.id,
            slug=place.slug,
            file=place.file,
            title=flatten(document.title, 120) or place.id,
            status=flatten(status, 60) or "active",
            type=flatten(of_edge, 120) or None,
            line=_line(text for anchor, text in core.items() if anchor != _MEMBERS),
            participants=words(document.fields.get("participants")),
            text="\n".join(core.values()),
            sha256=seen.sha256,
            updated_us=parse_instant(updated) or self.now_us,
            signature=seen.signature,
        )

    def is_log_end_known(self) -> bool:
        """Checks whether the database has the current end of the event log."""
        known, last = entities_store.log_end(self.workspace.database, self.agent_id), self.log.last()
        return (known[0] if known else None) == (last.hash if last else None)

    def remember_log_end(self) -> None:
        """Records the current end of the event log in the database. In the caller's transaction."""
        last = self.log.last()
        if last is not None and not self.is_log_end_known():
            lines = len(self.log.lines())
            entities_store.set_log_end(self.workspace.database, self.agent_id, last.hash, last.id, lines)


def version_of(document: EntityDocument) -> int:
    """Returns the schema version stated in a file."""
    text = _text(document.fields.get("schema_version"))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else SCHEMA_VERSION


def foreign_field(place: EntityPlace, document: EntityDocument) -> str | None:
    """Returns the field of a file that differs from the folder it is in; None if it belongs there."""
    wanted = {"kind": place.kind, "id": place.id, "agent_id": place.agent_id}
    return next((key for key, value in wanted.items() if document.fields.get(key) != value), None)


def words(value: object) -> tuple[str, ...]:
    """Returns the strings of a list in the frontmatter."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, Sequence) else ()


def _line(core: Iterable[str]) -> str:
    """Describes an entity in one line: the first words of its first section that has any."""
    for text in core:
        for line in text.split("\n"):
            said = flatten(_LINK.sub(r"\1", unescape(line)).lstrip(_MARKUP), _NARROW)
            if any(map(str.isalnum, said)) and not said.startswith(PATTERN):
                return said
    return ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
