"""Reads one agent's entities for an operation: files on disk, event log, and the state that the events add up to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from signet_sync.entities import scan
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import SIZE_LIMIT, DocumentProblem, EntityDocument, blank, parse, text_of
from signet_sync.entities.documents.patch import apply
from signet_sync.entities.event_log.agent_log import EventLog, new_ulid
from signet_sync.entities.event_log.events import Actor, Event, Operation
from signet_sync.entities.event_log.replay import Replayed, fold
from signet_sync.entities.evidence import token_for
from signet_sync.entities.store import DriftedFile, EntityFile, LogEnd
from signet_sync.errors import UsageError
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
    base_of,
    entity_folder,
    kind_of,
    notes_path,
    parse_path,
    profile_path,
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
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_MARKUP = "#>-*+ \t"
# The list of participants is no description of a relationship.
_MEMBERS = "participants"
_FEW = 20  # below this number entities are queried one by one
_NARROW = 240  # characters of the one line that describes an entity


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as read from disk; `text` is without secrets, and None where there is no readable file.

    `sha256` is the hash of the bytes; `code` and `message` give the reason why it cannot be read (`gone`: it is
    missing).
    """

    path: str
    place: EntityPlace
    raw: bytes | None = None
    text: str | None = None
    sha256: str = ""
    signature: Signature | None = None
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity whose files agree with its events, so that it may be written."""

    id: str
    kind: Kind
    slug: str
    seen: Mapping[File, FileContent]
    documents: Mapping[File, EntityDocument]

    @property
    def profile(self) -> EntityDocument:
        """Returns its profile."""
        return self.documents["profile"]


class EntityRepository:
    """Accesses the entities of an agent. `now_us` is microseconds since 1970 UTC; the workspace's lock is held."""

    def __init__(self, workspace: Workspace, agent_id: str, now_us: int) -> None:
        require_agent(agent_id)
        self.workspace = workspace
        self.agent_id = agent_id
        self.now_us = now_us
        self.log = EventLog(workspace.root, agent_id, workspace.vault)
        self._replays: dict[str, Replayed] = {}

    # ── files ──

    def places(self, ids: Collection[str] | None = None) -> dict[str, list[EntityPlace]]:
        """Returns the profiles that exist or should exist, by id; more than one for an id whose folder was copied.

        With `ids`, only those of these entities.
        """
        found: dict[str, list[EntityPlace]] = {}
        for kind in KINDS:
            folder = f"{agent_folder(self.agent_id)}entities/{FOLDERS[kind]}"
            names = [
                name
                for name in files.listing(self.workspace.vault, folder, "")
                if (ids is None or name.rpartition("--")[2] in ids) and parse_path(f"{folder}/{name}/profile.md")
            ]
            known = self._known_bases(names) if names else {}
            for name, base in scan.bases(self.workspace.vault, folder, names, known).items():
                place = parse_path(f"{folder}/{name}/profile.md")
                if place is not None:
                    given = known.get(f"{folder}/{name}") if base is None else base
                    place = place._replace(base=self.first_base(place.id) if given is None else given)
                    found.setdefault(place.id, []).append(place)
        return {each: places if len(places) == 1 else self._filled(places) for each, places in found.items()}

    def _known_bases(self, names: Sequence[str]) -> dict[str, str]:
        """Returns what the names of files in these folders began with at the last look, by folder."""
        database = self.workspace.database
        if len(names) > _FEW:
            return scan.known_bases(entities_store.signatures(database, self.agent_id))
        ids = {name.rpartition("--")[2] for name in names}
        rows = (row for each in sorted(ids) for row in entities_store.files_of(database, self.agent_id, each))
        return scan.known_bases(row.path for row in rows)

    def first_base(self, entity_id: str) -> str:
        """Returns what the names of an entity's files begin with where none of them exists yet, as its events say."""
        kind = kind_of(entity_id)
        for entry in self.log.of(entity_id):
            if isinstance(entry, Event) and entry.op == "create" and entry.file == "profile" and kind is not None:
                document = document_of(apply(None, entry.payload or {}))
                if document is not None:
                    return base_of(document.title, kind)
        return ""

    def _filled(self, places: list[EntityPlace]) -> list[EntityPlace]:
        """Keeps, of several folders of one entity, those that contain a file: a sync service may leave an empty one."""
        root = self.workspace.vault
        filled = [
            place
            for place in places
            if any(files.status_of(root, path_of(place._replace(file=file))) is not None for file in FILES)
        ]
        return filled or places[:1]

    def read(self, place: EntityPlace) -> FileContent:
        """Reads a file."""
        path = path_of(place)
        read = files.read(self.workspace.vault, path, BYTES)
        if not isinstance(read, Found):
            return FileContent(path, place, code=read.code, message=read.message, signature=read.signature)
        sha = sha256(read.raw).hexdigest()
        try:
            text = redact(read.raw.decode("utf-8"))[0]
        except UnicodeDecodeError:
            return FileContent(
                path, place, read.raw, None, sha, read.signature, code="not-utf8", message="the file is not UTF-8"
            )
        return FileContent(path, place, read.raw, text, sha, read.signature)

    def read_both(self, place: EntityPlace) -> dict[File, FileContent]:
        """Reads profile and notes of an entity."""
        return {file: self.read(place._replace(file=file)) for file in FILES}

    # ── events ──

    def replay(self, entity_id: str) -> Replayed:
        """Returns the state that the events of an entity add up to."""
        if entity_id not in self._replays:
            self._replays[entity_id] = fold(self.log.of(entity_id))
        return self._replays[entity_id]

    def event(self, op: Operation, actor: Actor, **fields: Any) -> Event:
        """Makes an event of this instant; unless a `state` is given, it needs no outcome."""
        ulid = fields.pop("id", None) or new_ulid(self.now_us)
        known = {"at": iso(self.now_us), "agent_id": self.agent_id, "state": "committed", **fields}
        return Event(id=ulid, token=token_for(ulid), actor=actor, op=op, **known)

    def record(self, op: Operation, actor: Actor, payload: Mapping[str, Any], **fields: Any) -> Event:
        """Appends an event that needs no outcome to the event log."""
        event = self.event(op, actor, payload=payload, **fields)
        self.log.add([event], self.now_us)
        self.forget_replay(event.entity_id)
        return event

    def forget_replay(self, entity_id: str | None) -> None:
        """Drops cached replays of an entity (None: of all) after events were added."""
        if entity_id is None:
            self._replays.clear()
        self._replays.pop(entity_id or "", None)

    # ── schema ──

    def rules(self, kind: Kind) -> list[tuple[int, Shape]]:
        """Returns the fields of a kind that became sections, each with the schema version that introduced it."""
        found = []
        for event in self.log.events_holding('"op":"schema"'):
            match event.payload if event.entity_id is None else None:
                case {"kind": str(of), "anchor": str(anchor), "heading": str(heading), "version": int(version)} if (
                    of == kind
                ):
                    found.append((version, Shape(anchor, heading, "narrative", 300)))
        return sorted(found, key=lambda rule: rule[0])

    def version(self, kind: Kind) -> int:
        """Returns the current schema version of a kind."""
        return max((version for version, _ in self.rules(kind)), default=SCHEMA_VERSION)

    def shapes(self, kind: Kind, file: File, version: int) -> tuple[Shape, ...]:
        """Returns the sections of a file at a schema version."""
        known = shapes(kind, file)
        if file == "notes" or version <= SCHEMA_VERSION:
            return known
        own = known[: len(known) - len(COMMON)]
        return (*own, *(shape for since, shape in self.rules(kind) if since <= version), *COMMON)

    def shapes_of(self, kind: Kind, file: File, document: EntityDocument) -> tuple[Shape, ...]:
        """Returns the sections that a file should have at its own schema version."""
        return self.shapes(kind, file, version_of(document))

    def blank(self, kind: Kind, file: File, version: int, **given: Any) -> EntityDocument:
        """Makes a new, empty file at a schema version; `given` as for `documents.document.blank`."""
        sections = self.shapes(kind, file, version)
        made = blank(kind, agent_id=self.agent_id, file=file, sections=sections, **given)
        return edits.with_fields(made, {"schema_version": version})

    # ── rows ──

    def drift(self) -> list[DriftedFile]:
        """Returns the files that wait for a maintainer, oldest first."""
        return entities_store.drift(self.workspace.database, self.agent_id)

    def find(self, ref: str) -> EntityFile | None:
        """Returns the profile that a name refers to, None if none. Raises `UsageError` (`ambiguous-entity`)."""
        name = ref.strip()
        place = parse_path(name)
        found = entities_store.find(self.workspace.database, self.agent_id, place.id if place else name)
        if len(found) > 1:
            raise UsageError(
                f"{name[:60]!r} matches {len(found)} entities",
                hint="name one by its id: " + ", ".join(f"{row.id} ({row.title})" for row in found[:8]),
                code="ambiguous-entity",
            )
        return found[0] if found else None

    def unknown(self, ref: str) -> UsageError:
        """Returns the error for a name that refers to no entity."""
        return UsageError(
            f"agent {self.agent_id} has no entity called {ref.strip()[:60]!r}",
            hint="signet-sync entity list shows them; --agent chooses another agent",
            code="unknown-entity",
        )

    def row(self, seen: FileContent, document: EntityDocument) -> EntityFile:
        """Makes the row of a file; its texts are without secrets."""
        fields = document.fields
        place = seen.place
        core = self._core(place, document) if place.file == "profile" else {}
        return EntityFile(
            path=seen.path,
            agent_id=self.agent_id,
            kind=place.kind,
            id=place.id,
            slug=place.slug,
            file=place.file,
            title=flatten(document.title, 120) or place.id,
            status=flatten(_text(fields.get("status")), 60) or "active",
            type=flatten(_text(fields.get("type")), 120) or None,
            line=_line(text for anchor, text in core.items() if anchor != _MEMBERS),
            participants=words(fields.get("participants")),
            text="\n".join(core.values()),
            sha256=seen.sha256,
            updated_us=parse_instant(_text(fields.get("updated_at"))) or self.now_us,
            signature=seen.signature,
        )

    def _core(self, place: EntityPlace, document: EntityDocument) -> dict[str, str]:
        common = {shape.anchor for shape in COMMON}
        wanted = {shape.anchor for shape in self.shapes_of(place.kind, "profile", document)} - common
        found = {section.anchor or "": text_of(section) for section in document.sections if section.anchor in wanted}
        return {anchor: text for anchor, text in found.items() if text}

    def remember_log_end(self) -> None:
        """Records the current end of the event log in the database. In the caller's transaction."""
        last = self.log.last()
        if last is not None:
            known = entities_store.log_end(self.workspace.database, self.agent_id)
            # Old pages are not read just to count their lines.
            more = self.log.after(known.last_hash) if known is not None else None
            count = known.events + more if known is not None and more is not None else self.log.size()
            entities_store.set_log_end(self.workspace.database, self.agent_id, LogEnd(last.hash, last.id, count))


def path_of(place: EntityPlace) -> str:
    """Returns the path of a file."""
    make = notes_path if place.file == "notes" else profile_path
    return make(place.agent_id, place.kind, place.slug, place.id, place.base)


def folder_of(place: EntityPlace) -> str:
    """Returns the folder of an entity's files."""
    return entity_folder(place.agent_id, place.kind, place.slug, place.id)


def parsed(text: str | None) -> EntityDocument | DocumentProblem:
    """Parses a file, or returns the reason why it is no entity file."""
    if text is None:
        return DocumentProblem("not-readable", "there is no readable file")
    try:
        return parse(text)
    except DocumentProblem as problem:
        return problem


def document_of(text: str | None) -> EntityDocument | None:
    """Parses a file; returns None if there is none, or it is no entity file."""
    found = parsed(text)
    return found if isinstance(found, EntityDocument) else None


def foreign_field(place: EntityPlace, document: EntityDocument) -> str | None:
    """Returns the field of a file that differs from the folder it is in; None if it belongs there."""
    wanted = {"kind": place.kind, "id": place.id, "agent_id": place.agent_id}
    return next((key for key, value in wanted.items() if document.fields.get(key) != value), None)


def version_of(document: EntityDocument) -> int:
    """Returns the schema version stated in a file."""
    text = _text(document.fields.get("schema_version"))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else SCHEMA_VERSION


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
            if any(map(str.isalnum, said)):
                return said
    return ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
