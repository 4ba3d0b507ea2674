"""Compares entity files with their events: finishes interrupted writes, records people's edits, queues drift."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from signet_sync.entities import replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import (
    DocumentProblem,
    EntityDocument,
    body_sha,
    document_of,
    find,
    parse,
    render,
)
from signet_sync.entities.events import Actor, Operation
from signet_sync.entities.replay import FileState
from signet_sync.entities.repository import Entity, EntityRepository, FileContent, foreign_field
from signet_sync.entities.store import DriftedFile, EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256, utf8
from signet_sync.formats.entity_paths import FILES, EntityPlace, kind_of, ledger_page, parse_path
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files

# The entity id under which the queue lists problems of the event log itself.
LEDGER = ""
_KEEP = "a maintainer decides which counts: the file or its events"


class FileChanged(Exception):
    """The file was saved between reading and writing: nothing was written."""


@dataclass(slots=True)
class Observations:
    """The result of a look: paths that people edited, paths that drifted, what a person should know, any change."""

    edited: list[str] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    changed: bool = False


def look(repo: EntityRepository, ids: Collection[str] | None) -> Observations:
    """Brings entities (None: all) up to date with their event log and files."""
    found = catch_up(repo)
    if ids is None or ids:
        examine(repo, ids, found)
    return found


def catch_up(repo: EntityRepository, found: Observations | None = None) -> Observations:
    """Brings entities up to date if their event log changed; every command on entities starts with it."""
    found, database = found or Observations(), repo.workspace.database
    repo.log.mend()
    if repo.log.merge_copies():
        repo.forget_states()
    known = entities_store.log_end(database, repo.agent_id)
    if repo.is_log_end_known():
        return found
    events = repo.log.events()
    ids = [event.id for event in events]
    since = ids.index(known.last_id) + 1 if known is not None and known.last_id in ids else 0
    examine(repo, None, found, doubtful={event.entity_id for event in events[since:]} if since else None)
    # A slow sync may deliver the missing end later.
    back = [one.path for one in repo.drift() if one.entity_id == LEDGER and one.found_sha256 in ids]
    with database.transaction(durable=True):
        entities_store.clear_drift(database, back)
        if known is not None and known.last_id not in ids:
            # Now: the next write overwrites the known end, the only record of it.
            entities_store.put_drift(database, _truncated(repo, known.last_id))
        repo.remember_log_end()
    return found


def _truncated(repo: EntityRepository, last_id: str) -> DriftedFile:
    at, page = iso(repo.now_us), ledger_page(repo.agent_id, iso(repo.now_us)[:7])
    message = "the end of the event log is missing: the index recorded a later line"
    hint = "compare the pages with a backup or with the workspace's history"
    return DriftedFile(page, repo.agent_id, LEDGER, "profile", "truncated", message, hint, at, last_id)


def examine(
    repo: EntityRepository,
    ids: Collection[str] | None,
    found: Observations | None = None,
    *,
    doubtful: Collection[str | None] | None = frozenset(),
) -> Observations:
    """Examines some entities (None: all); files with known signatures only if their events are `doubtful`."""
    found = found or Observations()
    rows = _rows(repo)
    queued = {drift.entity_id for drift in repo.drift()} - {LEDGER}
    places = repo.places(ids)
    if ids is None:
        created = {event.entity_id for event in repo.log.events('"op":"create"')} if doubtful != frozenset() else set()
        ids = places.keys() | rows.keys() | queued | {each for each in created if each is not None}
    paths = [place._replace(file=file).path for each in ids for place in places.get(each, ()) for file in FILES]
    current = files.signatures(repo.workspace.root, paths)
    for each in sorted(ids):
        expected = rows.get(each, {})
        certain = doubtful is not None and each not in doubtful and each not in queued and None not in expected.values()
        if certain and expected and len(places.get(each, ())) == 1:
            mine = (places[each][0]._replace(file=file).path for file in FILES)
            if {path: current[path] for path in mine if path in current} == expected:
                continue
        _Look(repo, each, expected, found).run(places.get(each, []))
    return found


def _rows(repo: EntityRepository) -> dict[str, dict[str, Signature | None]]:
    """Returns path and signature of the known files, by entity."""
    found: dict[str, dict[str, Signature | None]] = {}
    for path, signature in entities_store.signatures(repo.workspace.database, repo.agent_id).items():
        place = parse_path(path)
        if place is not None:
            found.setdefault(place.id, {})[path] = signature
    return found


class _Look:
    """One look at one entity; `rows` are its files in the index."""

    def __init__(
        self, repo: EntityRepository, entity_id: str, rows: Mapping[str, Signature | None], found: Observations
    ) -> None:
        self.repo, self.id, self.rows, self.found = repo, entity_id, rows, found
        self.put: list[EntityFile] = []
        self.queue: dict[str, DriftedFile] = {}
        self.shown: set[str] = set()

    def run(self, folders: list[EntityPlace]) -> None:
        """Looks at the files of the entity in its folders, and writes the rows that follow."""
        state = self.repo.state(self.id)
        if not folders and state.files:
            folders = [self._expected(state.slug)]
        place = next((one for one in folders if one.slug == state.slug), folders[0]) if folders else None
        for file in FILES if place is not None else ():
            assert place is not None
            seen = self.repo.read(place._replace(file=file))
            if seen.code != "gone":
                self.shown.add(seen.path)
            self._file(seen, state.files.get(file))
        for twin in (one for one in folders if one != place):
            message = f"the entity also exists in {place.folder if place else ''}"
            self._drifted(FileContent(twin), "id-twice", message, "a copy needs an id of its own")
        if place is not None and len(folders) == 1 and self.shown and place.slug != state.slug and state.files:
            self.repo.append(self.repo.event("human_edit", "person", entity_id=self.id, text={"slug": place.slug}))
        self._record()

    def _expected(self, slug: str | None) -> EntityPlace:
        """Returns where an entity without a folder should be."""
        known = next((place for path in self.rows if (place := parse_path(path)) is not None), None)
        kind = kind_of(self.id)
        assert kind is not None
        return known._replace(file="profile") if known else EntityPlace(self.repo.agent_id, kind, slug or kind, self.id)

    def _file(self, seen: FileContent, state: FileState | None) -> None:
        """Compares a file with its events."""
        if state is None:
            if seen.code != "gone":
                self._adopt(seen)
            return
        want = document_of(state.text)
        if state.text is None or want is None:
            # A removal took the text of an event that came later from another machine: the file says what is left.
            disk = document_of(seen.text)
            if disk is None or foreign_field(seen.place, disk) is not None:
                self._drifted(seen, "events-incomplete", "its events do not contain the whole file", _KEEP)
            else:
                self._state(seen, disk, "restate", "observer")
        elif seen.text == state.text:
            self._take(seen)
        elif (seen.code == "gone" and self._is_unmade(seen, state)) or seen.known_as in state.known:
            # A write that was interrupted, or a version of ours that another machine or an old editor had.
            self._rewrite(seen, state.text)
        elif seen.text is None and seen.code != "gone":
            self._drifted(seen, seen.code, seen.message, "make it a readable file again")
        else:
            shapes = self.repo.shapes(seen.place.kind, seen.place.file, want)
            verdict = replay.judge(seen.text, want, shapes, self.repo.log.of(self.id))
            if verdict.after is None:
                self._drifted(seen, verdict.code, verdict.message, verdict.hint)
                return
            after = render(verdict.after)
            if after != state.text:
                changed = replay.change(want, verdict.after)
                named = [name for name in changed.get(replay.PARTS, ()) if name not in (replay.HEAD, replay.LEAD)]
                section = named[0] if len(named) == 1 else None
                facts = {"kept": list(verdict.kept), "over": list(verdict.over), "reanchored": verdict.healed}
                event = self.repo.event(
                    "human_edit", "person", entity_id=self.id, file=seen.place.file, section=section, text=changed,
                    before=section_sha(state.text, section), after=section_sha(after, section),
                    found=seen.known_as, left=text_sha256(after), facts={k: v for k, v in facts.items() if v} or None,
                )  # fmt: skip
                self.repo.append(event)
                self.found.edited.append(seen.path)
            self._tell(seen, verdict)
            if after == seen.text:
                self._take(seen)
            else:
                self._rewrite(seen, after)

    def _is_unmade(self, seen: FileContent, state: FileState) -> bool:
        """Checks that a file was never there: its creation was interrupted."""
        missed = any(one.path == seen.path for one in self.repo.drift())
        return state.is_new and seen.path not in self.rows and not missed

    def _tell(self, seen: FileContent, verdict: replay.FileVerdict) -> None:
        """Says what became of sections that were written while an older version was being edited."""
        if verdict.kept:
            kept = " and ".join(verdict.kept)
            self.found.notices.append(f"{seen.path}: a save of an older version would have dropped {kept}; it was kept")
        if verdict.over:
            over = " and ".join(verdict.over)
            text = f"{seen.path}: a save replaced newer text of {over}; signet-sync entity log {self.id} has it"
            self.found.notices.append(text)

    def _adopt(self, seen: FileContent) -> None:
        """Takes over a file without events, a person's or one from a backup, if its frontmatter fits its folder."""
        try:
            document = parse(seen.text or "") if seen.text is not None else None
        except DocumentProblem as problem:
            self._drifted(seen, problem.code, problem.message, problem.hint)
            return
        if document is None:
            self._drifted(seen, seen.code, seen.message, "make it a readable file again")
        elif (name := foreign_field(seen.place, document)) is not None:
            self._drifted(seen, "identity-changed", f"`{name}` is not that of its folder", "correct the field")
        else:
            self._state(seen, document, "human_edit", "person")
            self.found.edited.append(seen.path)

    def _state(self, seen: FileContent, document: EntityDocument, op: Operation, actor: Actor) -> None:
        """Records the whole file as it is."""
        text = {**replay.change(None, document), "slug": seen.place.slug}
        sha, file = seen.known_as, seen.place.file
        self.repo.append(self.repo.event(op, actor, entity_id=self.id, file=file, found=sha, left=sha, text=text))
        self._take(seen)

    def _rewrite(self, seen: FileContent, text: str) -> None:
        with suppress(FileChanged):  # the save that was faster triggers another look
            self._take(put(self.repo, seen, text))

    def _take(self, seen: FileContent) -> None:
        document = document_of(seen.text)
        if document is not None:
            self.shown.add(seen.path)
            self.put.append(self.repo.row(seen, document))

    def _drifted(self, seen: FileContent, code: str, message: str, hint: str) -> None:
        path, at = seen.path, iso(self.repo.now_us)
        found = DriftedFile(path, self.repo.agent_id, self.id, seen.place.file, code, message, hint, at, seen.sha256)
        self.queue[path] = found

    def _record(self) -> None:
        """Writes the rows; removes files from the queue that are no drift any more, and rows of files that are gone."""
        repo, database = self.repo, self.repo.workspace.database
        queued = {one.path: one for one in repo.drift() if one.entity_id == self.id}
        gone = [path for path in self.rows if path not in self.shown]
        over = [path for path in queued if path not in self.queue]
        fresh = [row for row in self.put if entities_store.file(database, row.path) != row]
        new = [one for path, one in self.queue.items() if path not in queued or one.is_news(queued[path])]
        if not (gone or over or fresh or new) and repo.is_log_end_known():
            return
        self.found.changed = True
        self.found.drifted += [one.path for one in new]
        with database.transaction(durable=True):
            entities_store.put_files(database, fresh)
            entities_store.forget_files(database, gone)
            entities_store.clear_drift(database, over)
            for one in new:
                entities_store.put_drift(database, one)
            repo.remember_log_end()


def put(repo: EntityRepository, seen: FileContent, text: str) -> FileContent:
    """Replaces the file that was read, or creates it; returns it. Raises `FileChanged` if it has changed since."""
    root, data = repo.workspace.root, utf8(text)
    if seen.raw is None:
        try:
            signature = files.create_once(root, seen.path, data)
        except FileExistsError:
            raise FileChanged from None
    else:
        replaced = files.replace(root, seen.path, data, seen.raw)
        if replaced.displaced is not None:
            raise FileChanged
        signature = replaced.signature
    return FileContent(seen.place, data, text, text_sha256(text), signature)


def writable(repo: EntityRepository, entity_id: str) -> Entity | None:
    """Returns an entity after a look at its files; None if it is missing, unreadable or waits for a maintainer."""
    examine(repo, {entity_id})
    row = repo.find(entity_id)
    if row is None or any(one.entity_id == entity_id for one in repo.drift()):
        return None
    place = parse_path(row.path)
    return None if place is None else load_at(repo, place)


def load_at(repo: EntityRepository, place: EntityPlace) -> Entity | None:
    """Reads the entity whose folder is there; None if its profile, or existing notes, cannot be read."""
    seen = {file: repo.read(place._replace(file=file)) for file in FILES}
    documents = {file: document_of(each.text) for file, each in seen.items() if each.code != "gone"}
    known = {file: document for file, document in documents.items() if document is not None}
    return Entity(place, seen, known) if "profile" in known and len(known) == len(documents) else None


def section_sha(text: str | None, section: str | None) -> str | None:
    """Returns the hash of a section in a file, None if there is no such section."""
    document = document_of(text)
    if document is None or section is None:
        return None
    try:
        return body_sha(find(document, section))
    except UsageError:
        return None


def refuse_drift(repo: EntityRepository, ids: Iterable[str]) -> None:
    """Raises `UsageError` (`entity-drifted`) if a file of these entities waits for a maintainer."""
    for drift in repo.drift():
        if drift.entity_id in ids:
            raise UsageError(
                f"a maintainer has to resolve the drift of this entity first: {drift.message}",
                path=drift.path,
                hint=f"{drift.hint}; signet-sync entity check {drift.entity_id}",
                code="entity-drifted",
            )


def busy(path: str) -> WorkspaceError:
    """Returns the error for a file that is saved again and again."""
    return WorkspaceError("the file kept changing while it was being written", path=path, hint="try again", code="busy")
