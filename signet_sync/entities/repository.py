"""Reads one agent's entities for an operation: event log, files on disk, and the state that the events add up to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from ulid import ULID

from signet_sync.entities import replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.document import SIZE_LIMIT, DocumentProblem, EntityDocument, parse, text_of
from signet_sync.entities.events import (
    GENESIS,
    Actor,
    Event,
    LogLine,
    Operation,
    decode,
    encode,
    lines_of,
    news_of,
    seal,
)
from signet_sync.entities.replay import FileState
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import (
    CORE,
    FILES,
    FOLDERS,
    KINDS,
    EntityPlace,
    File,
    Finding,
    ledger_page,
    original_of,
    parse_ledger_page,
    parse_path,
)
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import agent_folder
from signet_sync.formats.snapshot import Found, Signature, Trouble
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import files, writing
from signet_sync.storage.files import folder, split_path
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import redact
from signet_sync.text.sentences import flatten, unescape

PATTERN = "pattern: "  # begins the items about patterns of relationships in a user's Overview
_PAGE_BYTES = 64 << 20
_FILE_BYTES = SIZE_LIMIT * 4
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_MARKUP = "#>-*+ \t"
_MEMBERS = "participants"  # the list of participants is no description of a relationship
_NARROW = 240  # characters of the one line that describes an entity


class EventLog:
    """The pages of an agent's event log: month pages of JSON lines. Writers hold the workspace's lock."""

    def __init__(self, root: str, agent_id: str) -> None:
        self.root, self.agent_id = root, agent_id
        self._folder, _ = split_path(ledger_page(agent_id, "2000-01"))
        self._pages = dict[str, str]()  # the path of each month's page
        self._raw = dict[str, bytes]()
        self._lines: list[LogLine] | None = None
        self._decoded = dict[str, Event | Finding]()
        # An unreadable log must not be taken for an empty one.
        try:
            with folder(self.root, self._folder) as descriptor:
                names = os.listdir(descriptor)
        except FileNotFoundError:
            # An unmounted vault has no event log either, but none may be started there.
            with folder(self.root, ""):
                names = []
        for name in sorted(names):
            page = parse_ledger_page(f"{self._folder}/{name}")
            if page is not None:
                self._pages[page[1]] = f"{self._folder}/{name}"

    # ── reading ──

    def lines(self) -> list[LogLine]:
        """Returns its lines in the order of the pages."""
        if self._lines is None:
            self._lines = [line for month in self._pages for line in lines_of(month, self._page(month))]
        return self._lines

    def events(self, holding: str = "") -> list[Event]:
        """Returns the readable events, in order; with `holding` only those whose line contains that text."""
        found = (self._event(line.text) for line in self.lines() if not holding or holding in line.text)
        return [event for event in found if isinstance(event, Event)]

    def events_of(self, entity_id: str) -> list[Event]:
        """Returns the events of an entity."""
        return [event for event in self.events(f'"entity_id":"{entity_id}"') if event.entity_id == entity_id]

    def list_unreadable(self) -> list[LogLine]:
        """Returns the lines that are no events."""
        return [line for line in self.lines() if not isinstance(self._event(line.text), Event)]

    def event(self, event_id: str) -> Event | None:
        """Returns the event with this id."""
        return next((event for event in self.events(f'"id":"{event_id}"') if event.id == event_id), None)

    def last(self) -> Event | None:
        """Returns the last readable event."""
        found = (self._event(line.text) for line in reversed(self.lines()))
        return next((event for event in found if isinstance(event, Event)), None)

    # ── writing ──

    def mend(self) -> None:
        """Drops a last line without an end, which was never acknowledged, or ends it where only that is missing."""
        last = self.lines()[-1:]
        if last and not last[0].whole:
            raw = self._page(last[0].month)
            is_event = isinstance(self._event(last[0].text), Event)
            self._put(last[0].month, raw + b"\n" if is_event else raw[: raw.rfind(b"\n") + 1])

    def append(self, events: Sequence[Event], now_us: int) -> list[Event]:
        """Appends events durably, all or none; returns them with their hashes. Raises `WorkspaceError`, `OSError`."""
        self.mend()
        end = self._event(self.lines()[-1].text) if self.lines() else None
        if isinstance(end, Finding) and end.code == "version-unknown":
            message = "the event log of entities was written by another version"
            raise WorkspaceError(message, hint="use that version, or a later one", code="ledger-newer")
        last, sealed = self.last(), list[Event]()
        prev = GENESIS if last is None else last.hash
        for event in events:
            sealed.append(seal(event, prev))
            prev = sealed[-1].hash
        # Pages in the order of their months contain the lines in order, even if a clock was set back.
        at = max([iso(now_us)[:7], *self._pages])
        raw = self._page(at) if at in self._pages else b""
        self._put(at, raw + "".join(f"{encode(event)}\n" for event in sealed).encode())
        return sealed

    def withdraw(self, event: Event) -> None:
        """Takes the last event back, whose file could not be written; nobody was told of it."""
        month = list(self._pages)[-1]
        raw, line = self._page(month), f"{encode(event)}\n".encode()
        if raw.endswith(line):
            self._put(month, raw[: -len(line)])

    def merge_copies(self) -> bool:
        """Appends what other machines' conflict copies add, and deletes the copies; a damaged one is left to a person.

        A page equal to its copy may be what was copied, about to be replaced: that copy is kept. Returns whether
        events were added. The result depends only on log and copy: machines that merge the same copy write the same
        bytes.
        """
        added = False
        for name in sorted(files.list_names(self.root, self._folder, "")):
            path = f"{self._folder}/{name}"
            page = parse_ledger_page(original_of(path) or "")
            if page is None:
                continue
            raw, month = self._read(path), page[1]
            news = news_of((event.id for event in self.events()), lines_of(month, raw))
            if news is None:
                continue
            if news:
                self.append(news, parse_instant(f"{month}-01T00:00:00.000Z") or 0)
                added = True
            own = self._pages.get(month)
            if own is None or raw != self._page(month) or files.is_later(self.root, own, path):
                writing.retract(self.root, path, raw)
        return added

    def erase(self, gone: Callable[[Event | str], bool], tombstone: str) -> None:
        """Takes the text from events for a removal; their hashes stay, and they name its tombstone.

        `gone` decides for each event, and for each unreadable line by its text; such a line is dropped.
        """
        pages: dict[str, list[str]] = {month: [] for month in self._pages}
        for line in self.lines():
            event = self._event(line.text)
            if isinstance(event, Event) and event.text is not None and gone(event):
                pages[line.month].append(encode(replace(event, text=None, erased=tombstone)))
            elif isinstance(event, Event) or not gone(line.text):
                pages[line.month].append(line.text)
        for month, kept in pages.items():
            data = "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogateescape")
            if data != self._page(month):
                self._put(month, data)

    def _put(self, month: str, data: bytes) -> None:
        """Replaces a page, whole or not at all. Raises `WorkspaceError` (`ledger-changed`) if it is another by now."""
        path, before = self._pages.get(month) or ledger_page(self.agent_id, month), self._raw.get(month)
        self._lines = None
        if before is None:
            writing.create_once(self.root, path, data)
        elif writing.replace(self.root, path, data, before).displaced is not None:
            self._raw.clear()
            message, hint = "the page changed since it was read", "it will be retried"
            raise WorkspaceError(message, path=path, hint=hint, code="ledger-changed")
        self._pages[month], self._raw[month] = path, data

    def _page(self, month: str) -> bytes:
        if month not in self._raw:
            self._raw[month] = self._read(self._pages[month])
        return self._raw[month]

    def _read(self, path: str) -> bytes:
        found = files.read(self.root, path, _PAGE_BYTES)
        if isinstance(found, Trouble):
            message, hint = f"the page cannot be read: {found.message}", "move it away; the event log belongs there"
            raise WorkspaceError(message, path=path, hint=hint, code=found.code)
        return found.raw

    def _event(self, text: str) -> Event | Finding:
        if text not in self._decoded:
            self._decoded[text] = decode(text)
        return self._decoded[text]


# ── files ──


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as read from disk; `text` is without secrets.

    `document` is None where it is no entity file, and `problem` says why (`gone`: it is missing). `sha256` is the hash
    of the bytes, `text_hash` that of the text, by which events know this content.
    """

    place: EntityPlace
    raw: bytes | None = None
    text: str | None = None
    document: EntityDocument | None = None
    problem: DocumentProblem | None = None
    sha256: str = ""
    signature: Signature | None = None

    @property
    def text_hash(self) -> str | None:
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
    def profile(self) -> EntityDocument:
        """Returns its profile."""
        document = self.files["profile"].document
        assert document is not None
        return document


class EntityRepository:
    """Accesses the entities of an agent. `now_us` is microseconds since 1970 UTC; the workspace's lock is held."""

    def __init__(self, workspace: Workspace, agent_id: str, now_us: int) -> None:
        require_agent(agent_id)
        self.workspace, self.agent_id, self.now_us = workspace, agent_id, now_us
        self.log = EventLog(workspace.root, agent_id)
        self._states: dict[str, dict[File, FileState]] = {}

    # ── files ──

    def places(self, ids: Collection[str] | None = None) -> dict[str, list[EntityPlace]]:
        """Returns the profiles that exist or should exist, by id; more than one for an id whose folder was copied."""
        found: dict[str, list[EntityPlace]] = {}
        for kind in KINDS:
            folder = f"{agent_folder(self.agent_id)}entities/{FOLDERS[kind]}"
            for name in files.list_names(self.workspace.root, folder, ""):
                place = parse_path(f"{folder}/{name}/profile.md")
                if place is not None and (ids is None or place.id in ids):
                    found.setdefault(place.id, []).append(place)
        for each, places in found.items():
            if len(places) > 1:  # those count that have a file: a sync service may leave an empty folder
                filled = [
                    place
                    for place in places
                    if any(files.status_of(self.workspace.root, place._replace(file=file).path) for file in FILES)
                ]
                found[each] = filled or places[:1]
        return found

    def read(self, place: EntityPlace) -> FileContent:
        """Reads a file."""
        read, hint = files.read(self.workspace.root, place.path, _FILE_BYTES), "make it a readable file again"
        if not isinstance(read, Found):
            return FileContent(place, problem=DocumentProblem(read.code, read.message, hint), signature=read.signature)
        seen = FileContent(place, read.raw, sha256=sha256(read.raw).hexdigest(), signature=read.signature)
        try:
            seen = replace(seen, text=redact(read.raw.decode("utf-8"))[0])
            return replace(seen, document=parse(seen.text or ""))
        except UnicodeDecodeError:
            return replace(seen, problem=DocumentProblem("not-utf8", "the file is not UTF-8", hint))
        except DocumentProblem as problem:
            return replace(seen, problem=problem)

    # ── events ──

    def state(self, entity_id: str) -> dict[File, FileState]:
        """Returns the files that the events of an entity add up to."""
        if entity_id not in self._states:
            self._states[entity_id] = replay.fold(self.log.events_of(entity_id))
        return self._states[entity_id]

    def event(self, op: Operation, actor: Actor, **fields: Any) -> Event:
        """Makes an event of this instant; empty parts of its text are left out."""
        text = {name: value for name, value in (fields.pop("text", None) or {}).items() if value not in (None, (), [])}
        given = {"id": new_ulid(self.now_us), "at": iso(self.now_us), "agent_id": self.agent_id, **fields}
        return Event(actor=actor, op=op, text=text or None, **given)

    def append(self, *events: Event) -> list[Event]:
        """Appends events to the event log."""
        self.forget_states()
        return self.log.append(events, self.now_us)

    def forget_states(self) -> None:
        """Drops what was read of the events."""
        self._states.clear()

    def is_log_end_known(self) -> bool:
        """Checks whether the database has the current end of the event log."""
        known, _ = entities_store.log_end(self.workspace.database, self.agent_id)
        last = self.log.last()
        return known == (last.hash if last else "")

    def remember_log_end(self) -> None:
        """Records the current end of the event log in the database. In the caller's transaction."""
        last = self.log.last()
        if last is not None and not self.is_log_end_known():
            entities_store.set_log_end(self.workspace.database, self.agent_id, last.hash, last.id)

    # ── rows ──

    def drift(self) -> list[Finding]:
        """Returns the files that wait for a maintainer, oldest first."""
        return entities_store.drift(self.workspace.database, self.agent_id)

    def find(self, ref: str) -> EntityFile | None:
        """Returns the profile that a name refers to, None if none. Raises `UsageError` (`ambiguous-entity`)."""
        name = ref.strip()
        place = parse_path(name)
        found = entities_store.find(self.workspace.database, self.agent_id, place.id if place else name)
        if len(found) > 1:
            hint = "name one by its id: " + ", ".join(f"{row.id} ({row.title})" for row in found[:8])
            raise UsageError(f"{name[:60]!r} matches {len(found)} entities", hint=hint, code="ambiguous-entity")
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
        document, place, core = seen.document, seen.place, dict[str, str]()
        assert document is not None
        if place.file == "profile":
            wanted = {shape.anchor for shape in CORE[place.kind]}
            texts = {one.anchor: text_of(one) for one in document.sections if one.anchor in wanted}
            core = {anchor: text for anchor, text in texts.items() if anchor and text}
        # One line that describes it: the first words of its first section that has any.
        lines = (line for anchor, text in core.items() if anchor != _MEMBERS for line in text.split("\n"))
        told = (flatten(_LINK.sub(r"\1", unescape(line)).lstrip(_MARKUP), _NARROW) for line in lines)
        line = next((one for one in told if any(map(str.isalnum, one)) and not one.startswith(PATTERN)), "")
        status, of_edge, updated = (_text(document.fields.get(key)) for key in ("status", "type", "updated_at"))
        return EntityFile(
            path=seen.place.path,
            agent_id=self.agent_id,
            kind=place.kind,
            id=place.id,
            slug=place.slug,
            file=place.file,
            title=flatten(document.title, 120) or place.id,
            status=flatten(status, 60) or "active",
            type=flatten(of_edge, 120) or None,
            line=line,
            participants=words(document.fields.get("participants")),
            text="\n".join(core.values()),
            sha256=seen.sha256,
            updated_us=parse_instant(updated) or self.now_us,
            signature=seen.signature,
        )


def new_ulid(now_us: int) -> str:
    """Makes a new, unique ULID for this instant: 26 characters that sort by time."""
    return str(ULID.from_bytes((now_us // 1000).to_bytes(6, "big") + os.urandom(10)))


def words(value: object) -> tuple[str, ...]:
    """Returns the strings of a list in the frontmatter."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, Sequence) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
