"""Compares entity files with their events: records people's edits, settles interrupted writes, queues drift."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.entities import write_ahead
from signet_sync.entities.documents.document import EntityDocument, render
from signet_sync.entities.documents.drift import DriftVerdict, judge_against_events
from signet_sync.entities.documents.patch import apply, whole
from signet_sync.entities.event_log.agent_log import new_ulid, outcome
from signet_sync.entities.event_log.events import Event, Operation, State, WriteOutcome
from signet_sync.entities.event_log.replay import settle
from signet_sync.entities.evidence import ENTROPY, ulid_at
from signet_sync.entities.repository import (
    Entity,
    EntityRepository,
    FileContent,
    document_of,
    folder_of,
    foreign_field,
    parsed,
    path_of,
    version_of,
)
from signet_sync.entities.store import DriftedFile, EntityFile
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import FILES, EntityPlace, File, kind_of, ledger_page, parse_path
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import files
from signet_sync.sync.workspace import Workspace

# The entity id under which the queue lists problems of the event log itself.
LEDGER = ""
# Below this number entities are queried one by one.
_FEW = 20


@dataclass(slots=True)
class Observations:
    """The result of a look at entity files: edited, healed and drifted paths, and settled writes.

    `changed` are agents whose entities changed, so that MEMORY.md may need an update.
    """

    edited: list[str] = field(default_factory=list)
    healed: list[str] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    settled: list[WriteOutcome] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)


def observe(workspace: Workspace, agent_id: str, paths: Iterable[str] | None, now_us: int) -> Observations:
    """Settles interrupted writes, then examines an agent's entity files (None: all). The workspace's lock is held.

    A file whose signature is known is not read again.
    """
    repo, found = EntityRepository(workspace, agent_id, now_us), Observations()
    catch_up(repo, found)
    ids = None if paths is None else {place.id for path in paths if (place := parse_path(path)) is not None}
    if ids is None or ids:
        examine(repo, ids, found)
    return found


def examine_all(repo: EntityRepository) -> None:
    """Brings all entities of an agent up to date with log and files."""
    catch_up(repo)
    examine(repo, None)


def catch_up(repo: EntityRepository, found: Observations | None = None) -> None:
    """Brings entities up to date if their event log changed; every command on entities starts with it."""
    known = entities_store.log_end(repo.workspace.database, repo.agent_id)
    if repo.log.is_torn():
        repo.log.add([], repo.now_us)  # repairs the torn line
    if repo.log.merge_copies():
        repo.forget_replay(None)
    last = repo.log.last()
    if (known.last_hash if known else None) == (last.hash if last else None):
        return
    found = found if found is not None else Observations()
    doubtful = _since(repo, known) if known is not None else None
    found.settled += _settle_open(repo, known.last_id if known is not None and doubtful is None else None)
    examine(repo, None, found, doubtful=doubtful, joined=True)


def _since(repo: EntityRepository, known: entities_store.LogEnd) -> set[str] | None:
    """Returns the entities with events after the known end of the log; None (all) if the log lacks that end.

    Compares ids: where the logs of two machines were merged, a line keeps its id but gets another hash.
    """
    entries = repo.log.entries()
    place = next((at for at, entry in enumerate(entries) if known.last_id == entry.id), None)
    if place is None:
        return None
    owners = {entry.id: entry.entity_id for entry in entries if isinstance(entry, Event)}
    later = (owners.get(entry.id if isinstance(entry, Event) else entry.of) for entry in entries[place + 1 :])
    return {entity_id for entity_id in later if entity_id is not None}


# ── interrupted writes ──


def _settle_open(repo: EntityRepository, lost: str | None) -> list[WriteOutcome]:
    """Settles open writes and records the end of the log; `lost` is the id of its former last line if missing."""
    database = repo.workspace.database
    _found_again(repo)
    _state_notes(repo)
    ended = [_settled(repo, event) for event in repo.log.unsettled()]
    with database.transaction(durable=True):
        if lost is not None:
            entities_store.put_drift(database, _truncated(repo, lost))
        repo.remember_log_end()
    return ended


def _state_notes(repo: EntityRepository) -> None:
    """Adds the event of an entity's notes if a crash cut it off behind that of the profile."""
    for event in repo.log.unsettled():
        entity_id, stated = event.entity_id or "", apply(None, event.payload or {})
        place, profile = _place_of(repo, event), document_of(stated)
        if event.op != "create" or event.file != "profile" or place is None or profile is None:
            continue
        if any(isinstance(one, Event) and one.file == "notes" for one in repo.log.of(entity_id)):
            continue
        given = {"title": profile.title, "entity_id": entity_id, "created_at": event.at}
        notes = repo.blank(place.kind, "notes", version_of(profile), **given)
        plan = write_ahead.EditPlan(op="create", file="notes", after=notes, slug=place.slug, stated=True)
        stamp = write_ahead.EventStamp(ulid=new_ulid(repo.now_us), actor=event.actor)
        entity = Entity(entity_id, place.kind, place.slug, {}, {})
        repo.log.add([write_ahead.event_of(repo, entity, plan, stamp)], repo.now_us)


def _found_again(repo: EntityRepository) -> None:
    """Clears reports of a missing end of the log once a slow sync has delivered it."""
    database = repo.workspace.database
    waiting = [one for one in repo.drift() if one.entity_id == LEDGER]
    back = [one.path for one in waiting if repo.log.holds(f'"id":"{one.found_sha256}"')]
    if back:
        with database.transaction(durable=True):
            entities_store.clear_drift(database, back)


def _truncated(repo: EntityRepository, last_id: str) -> DriftedFile:
    """Reports the missing end to the maintainer now: the next write overwrites the known end, the only record of it."""
    return DriftedFile(
        ledger_page(repo.agent_id, iso(repo.now_us)[:7]),
        repo.agent_id,
        LEDGER,
        "profile",
        "truncated",
        "the end of the event log is missing: the index recorded a later line",
        "compare the pages with a backup or with the workspace's history",
        iso(repo.now_us),
        last_id,
    )


def _settled(repo: EntityRepository, event: Event) -> WriteOutcome:
    """Finishes an interrupted write if its file is unchanged or already written; otherwise marks it as failed."""
    done = event.file_after is None or _carried_out(repo, event)
    ends: list[State] = ["failed"]
    if done:
        ends = ["committed"] if repo.log.state_of(event) == "written" else ["written", "committed"]
    sealed = repo.log.add([outcome(event, end, repo.now_us) for end in ends], repo.now_us)
    repo.forget_replay(event.entity_id)
    return sealed[-1]


def _carried_out(repo: EntityRepository, event: Event) -> bool:
    place = _place_of(repo, event)
    if place is None:
        return False
    if event.op == "create" and event.file == "notes" and repo.read(place._replace(file="profile")).code == "gone":
        return False  # the profile could not be made: notes alone are no entity
    seen = repo.read(place)
    ended = settle(event, seen.text, write_ahead.section_sha(seen.text, event.section))
    if ended == "failed" and seen.code in ("", "gone"):
        text = apply(seen.text, event.payload or {})
        if text is None or text_sha256(text) != event.file_after:
            return False
        try:
            write_ahead.put(repo, seen, text)
        except (write_ahead.FileChanged, WorkspaceError):
            return False
    elif ended != "written":
        return False
    slug = (event.payload or {}).get("slug")
    if isinstance(slug, str):
        write_ahead.move(repo, place, slug)
    return True


def _place_of(repo: EntityRepository, event: Event) -> EntityPlace | None:
    """Returns where the file of an event is, or should be."""
    if event.entity_id is None or event.file is None:
        return None
    for place in repo.places([event.entity_id]).get(event.entity_id, []):
        return place._replace(file=event.file)
    kind, slug = kind_of(event.entity_id), (event.payload or {}).get("slug")
    if kind is None or not isinstance(slug, str):
        return None
    return EntityPlace(repo.agent_id, kind, slug, event.entity_id, event.file, repo.first_base(event.entity_id))


# ── files on disk ──


def writable(repo: EntityRepository, entity_id: str) -> Entity | None:
    """Returns an entity after a look at its files; None if it is missing, unreadable or waits for a maintainer."""
    examine(repo, {entity_id})
    row = repo.find(entity_id)
    if row is None or any(one.entity_id == entity_id for one in repo.drift()):
        return None
    return write_ahead.load(repo, row)


def examine(
    repo: EntityRepository,
    ids: Collection[str] | None,
    found: Observations | None = None,
    *,
    doubtful: Collection[str] | None = frozenset(),
    joined: bool = False,
) -> None:
    """Examines some entities (None: all), and records what changed in their files.

    Files with known signatures are read only if their events are `doubtful` (None: all are). `joined`: the event log
    got lines from another machine since the last look.
    """
    found = found if found is not None else Observations()
    rows = _rows(repo, ids)
    queued = {drift.entity_id for drift in repo.drift()} - {LEDGER}
    places = repo.places(ids)
    if ids is None:
        ids = places.keys() | rows.keys() | queued | _created(repo, rows)
    current = files.signatures(
        repo.workspace.root,
        (path_of(place._replace(file=file)) for each in ids for place in places.get(each, ()) for file in FILES),
    )
    for each in sorted(ids):
        folders = places.get(each, [])
        expected = rows.get(each, {})
        certain = doubtful is not None and each not in doubtful and each not in queued
        if certain and len(folders) == 1 and expected and None not in expected.values():
            paths = [path_of(folders[0]._replace(file=file)) for file in FILES]
            now = {path: current[path] for path in paths if path in current}
            if now == expected:
                continue
        _Examination(repo, each, folders, expected.keys(), found, joined=joined).run()


def _rows(repo: EntityRepository, ids: Collection[str] | None) -> dict[str, dict[str, Signature | None]]:
    """Returns path and signature of the known files, by entity."""
    database, agent_id = repo.workspace.database, repo.agent_id
    if ids is not None and len(ids) < _FEW:
        known = {each: entities_store.files_of(database, agent_id, each) for each in ids}
        return {each: {row.path: row.signature for row in rows} for each, rows in known.items() if rows}
    found: dict[str, dict[str, Signature | None]] = {}
    for path, signature in entities_store.signatures(database, agent_id).items():
        place = parse_path(path)
        if place is not None:
            found.setdefault(place.id, {})[path] = signature
    return found


def _created(repo: EntityRepository, rows: Mapping[str, object]) -> set[str]:
    """Returns entities that the event log created, if the index has no rows: it is then new, or was lost."""
    if rows:
        return set()
    return {event.entity_id for event in repo.log.events_holding('"op":"create"') if event.entity_id is not None}


class _Examination:
    """One look at one entity; `rows` are its paths in the index."""

    def __init__(
        self,
        repo: EntityRepository,
        entity_id: str,
        folders: list[EntityPlace],
        rows: Collection[str],
        found: Observations,
        *,
        joined: bool = False,
    ) -> None:
        self.repo = repo
        self.id = entity_id
        self.folders = folders
        self.rows = rows
        self.found = found
        self.joined = joined
        self.database = repo.workspace.database
        self.events: list[Event] = []
        self.put: list[EntityFile] = []
        self.queue: dict[str, DriftedFile] = {}
        self.shown: set[str] = set()

    def run(self) -> None:
        if not self.folders:
            self._missing()
        else:
            self._present()
        self._record()
        self._close()

    def _missing(self) -> None:
        """Queues an entity whose folder is gone; its events can write it again."""
        replayed = self.repo.replay(self.id)
        if replayed.texts or replayed.trouble:
            self._queue(self._profile(), "file-missing", "the files of the entity are gone", _PUT_BACK, "")

    def _present(self) -> None:
        replayed = self.repo.replay(self.id)
        place = next((place for place in self.folders if place.slug == replayed.slug), self.folders[0])
        twins = [other for other in self.folders if other != place]
        troubles = {each.file: each.code for each in replayed.trouble}
        changed = False
        if replayed.texts.get("notes") is not None:
            write_ahead.name_notes(self.repo, place)
        for file in FILES:
            seen = self.repo.read(place._replace(file=file))
            self.shown.add(seen.path)
            changed |= self._file(seen, replayed.texts.get(file), troubles.get(file))
        for twin in twins:
            hint = "remove one of the folders; a copy needs an id of its own"
            self._queue(twin, "id-twice", f"the entity also exists in {folder_of(place)}", hint, "")
        if not twins and replayed.slug is not None and place.slug != replayed.slug:
            self._add("human_edit", None, {"slug": place.slug})
            changed = True
        if changed:
            self.found.changed.add(self.repo.agent_id)

    def _file(self, seen: FileContent, expected: str | None, trouble: str | None) -> bool:
        """Compares a file with its events; returns whether its row changed."""
        file = seen.place.file
        if expected is None and trouble is None:
            return seen.code != "gone" and self._adopt(seen)
        if seen.code not in ("", "gone"):
            self._queue(seen.place, seen.code, seen.message, "make it a readable file again", seen.sha256)
            return False
        replayed = document_of(expected)
        if replayed is None:
            message = "its events do not contain the whole file"
            self._queue(seen.place, f"events-{trouble or 'unreadable'}", message, _KEEP, seen.sha256)
            return self._take_row(seen)
        shapes = self.repo.shapes_of(seen.place.kind, file, replayed)
        judgement = judge_against_events(seen.text, replayed, shapes)
        if judgement.verdict == "drift":
            self._queue(seen.place, judgement.code, judgement.message, judgement.hint, seen.sha256)
            return False
        if judgement.verdict == "same":
            return self._take_row(seen)
        return self._edited(seen, replayed, judgement)

    def _edited(self, seen: FileContent, replayed: EntityDocument, judgement: DriftVerdict) -> bool:
        """Records a person's edit as an event; a second event restores an anchor that the edit removed."""
        file = seen.place.file
        text = seen.text or ""
        if text != render(replayed):
            payload = dict(judgement.payload or {})
            sections = payload.get("sections") or []
            section = sections[0] if len(sections) == 1 and not payload.get("fields") else None
            before, after = write_ahead.section_sha(render(replayed), section), write_ahead.section_sha(text, section)
            self._add(
                "human_edit", file, payload, section=section, before=before, after=after,
                file_before=text_sha256(render(replayed)), file_after=text_sha256(text),
            )  # fmt: skip
            self.found.edited.append(seen.path)
        if judgement.healed is None:
            return self._take_row(seen)
        self._record()
        return self._heal(seen, judgement.healed)

    def _heal(self, seen: FileContent, healed: EntityDocument) -> bool:
        """Restores a removed anchor, once."""
        document = document_of(seen.text)
        if document is None:
            return False
        place, file = seen.place, seen.place.file
        entity = Entity(place.id, place.kind, place.slug, {file: seen}, {file: document})
        plan = write_ahead.EditPlan(op="set", file=file, after=healed, reason="re-anchored")
        if write_ahead.write_as("observer", self.repo, entity, plan) is None:
            return False  # the next save triggers another look
        self.found.healed.append(seen.path)
        return True

    def _adopt(self, seen: FileContent) -> bool:
        """Takes over a file without events, a person's or one from a backup, if its frontmatter matches its folder."""
        place = seen.place
        document = parsed(seen.text)
        if not isinstance(document, EntityDocument):
            message, hint = seen.message or document.message, "make it an entity file, or move it away"
        elif field := foreign_field(place, document):
            message, hint = f"`{field}` differs from the folder's name", "correct the frontmatter, or move it away"
        else:
            text = seen.text or ""
            self._add("create", place.file, {**whole(text), "slug": place.slug}, file_after=text_sha256(text))
            self.found.edited.append(seen.path)
            return self._take_row(seen)
        self._queue(place, "not-adopted", message, hint, seen.sha256)
        return False

    def _take_row(self, seen: FileContent) -> bool:
        """Updates the row of a file; returns whether anything but its signature changed."""
        document = document_of(seen.text)
        if document is None:
            return False
        row = self.repo.row(seen, document)
        known = entities_store.file(self.database, seen.path)
        if known == row:
            return False
        self.put.append(row)
        return known is None or known._replace(signature=None) != row._replace(signature=None)

    def _add(self, op: Operation, file: File | None, payload: Mapping[str, Any], **hashes: Any) -> None:
        """Adds an event of a person about the file's present content; it needs no outcome."""
        again = self._recorded_before(file, hashes.get("file_before"), hashes.get("file_after"))
        fields = {"entity_id": self.id, "file": file, "payload": payload, **hashes, **again}
        self.events.append(self.repo.event(op, "person", **fields))

    def _recorded_before(self, file: File | None, before: str | None, after: str | None) -> dict[str, str]:
        """Returns time and id for an event whose text the log already contains; None for a new text.

        Merging another machine's lines can order the events otherwise than the file changed. Nothing was edited then,
        so every machine must derive the same event; otherwise each would add a line that the others lack, without end.
        """
        if not self.joined or after is None:
            return {}
        of = self.repo.log.of(self.id)
        earlier = [e.at for e in of if isinstance(e, Event) and e.file == file and e.file_after == after]
        if not earlier:
            return {}
        first, known = min(earlier), {entry.id for entry in of}
        seed, instant = f"{self.repo.agent_id} {self.id} {file} {before} {after}", parse_instant(first) or 0
        ids = (ulid_at(instant, sha256(f"{seed} {number}".encode()).digest()[:ENTROPY]) for number in count())
        return {"at": first, "id": next(ulid for ulid in ids if ulid not in known)}

    def _queue(self, place: EntityPlace, code: str, message: str, hint: str, sha256: str) -> None:
        path = path_of(place)
        at = iso(self.repo.now_us)
        self.queue[path] = DriftedFile(path, self.repo.agent_id, self.id, place.file, code, message, hint, at, sha256)

    def _record(self) -> None:
        """Writes the events, then the rows that follow from them."""
        repo = self.repo
        if self.events:
            repo.log.add(self.events, repo.now_us)
            repo.forget_replay(self.id)
        with self.database.transaction(durable=True):
            entities_store.put_files(self.database, self.put)
            if self.events:
                repo.remember_log_end()
        self.events, self.put = [], []

    def _close(self) -> None:
        """Removes files from the queue that are no drift any more, and rows of files that are gone."""
        gone = [path for path in self.rows if path not in self.shown]
        if gone:
            self.found.changed.add(self.repo.agent_id)
        known = self.repo.drift()
        over = [each.path for each in known if each.entity_id == self.id and each.path not in self.queue]
        if not (gone or over or self.queue):
            return
        with self.database.transaction(durable=True):
            entities_store.forget_files(self.database, gone)
            entities_store.clear_drift(self.database, over)
            for path, drift in self.queue.items():
                if entities_store.put_drift(self.database, drift):
                    self.found.drifted.append(path)

    def _profile(self) -> EntityPlace:
        """Returns where the profile of a missing entity should be."""
        for path in self.rows:
            place = parse_path(path)
            if place is not None:
                return place._replace(file="profile")
        kind, slug = kind_of(self.id), self.repo.replay(self.id).slug
        if kind is None:
            raise ValueError(self.id)
        return EntityPlace(
            self.repo.agent_id, kind, slug or "unnamed", self.id, "profile", self.repo.first_base(self.id)
        )


_PUT_BACK = "put the folder back, or have it rewritten from its events"
_KEEP = "a maintainer decides which counts: the file or its events"
