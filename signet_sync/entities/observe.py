"""Compares entity files with their events: finishes interrupted writes, records people's edits, queues drift."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from signet_sync.entities import replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import (
    DocumentProblem,
    EntityDocument,
    body_sha,
    document_of,
    find,
    render,
)
from signet_sync.entities.events import TRUNCATED, Operation
from signet_sync.entities.finding import Finding
from signet_sync.entities.replay import FileState
from signet_sync.entities.repository import EntityRepository, FileContent, foreign_field
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256, utf8
from signet_sync.formats.entity_paths import FILES, EntityPlace, kind_of, ledger_page, parse_path
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files

# The entity id under which the queue lists problems of the event log itself.
LEDGER = ""


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


def catch_up(repo: EntityRepository) -> Observations:
    """Brings entities up to date if their event log changed; every command on entities starts with it."""
    found, database = Observations(), repo.workspace.database
    repo.log.mend()
    if repo.log.merge_copies():
        repo.forget_states()
    if repo.is_log_end_known():
        return found
    ids = [event.id for event in repo.log.events()]
    _, last_id, _ = entities_store.log_end(database, repo.agent_id) or ("", "", 0)
    since = ids.index(last_id) + 1 if last_id in ids else 0
    doubtful = {event.entity_id for event in repo.log.events()[since:]} if since else None
    examine(repo, None, found, doubtful=doubtful)
    # A slow sync may deliver the missing end later.
    back = [one.path for one in repo.drift() if one.id == LEDGER and one.sha256 in ids]
    with database.transaction(durable=True):
        entities_store.clear_drift(database, back)
        if last_id and last_id not in ids:
            # Now: the next write overwrites the known end, the only record of it.
            at, hint = iso(repo.now_us), "compare the pages with a backup or with the workspace's history"
            page = ledger_page(repo.agent_id, at[:7])
            lost = Finding("truncated", TRUNCATED, hint, page, agent_id=repo.agent_id, found_at=at, sha256=last_id)
            entities_store.put_drift(database, lost)
        repo.remember_log_end()
    return found


def examine(
    repo: EntityRepository,
    ids: Collection[str] | None,
    found: Observations | None = None,
    *,
    doubtful: Collection[str | None] | None = frozenset(),
) -> Observations:
    """Examines some entities (None: all); files with known signatures only if their events are `doubtful`."""
    found, rows = found or Observations(), dict[str, dict[str, Signature | None]]()
    for path, signature in entities_store.signatures(repo.workspace.database, repo.agent_id).items():
        place = parse_path(path)
        if place is not None:
            rows.setdefault(place.id, {})[path] = signature
    queued = {drift.id for drift in repo.drift()} - {LEDGER}
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


class _Look:
    """One look at one entity; `rows` are its files in the index."""

    def __init__(
        self, repo: EntityRepository, entity_id: str, rows: Mapping[str, Signature | None], found: Observations
    ) -> None:
        self.repo, self.id, self.rows, self.found = repo, entity_id, rows, found
        self.put: list[EntityFile] = []
        self.queue: dict[str, Finding] = {}
        self.shown: set[str] = set()

    def run(self, folders: list[EntityPlace]) -> None:
        """Looks at the files of the entity in its folders, and writes the rows that follow."""
        state, kind = self.repo.state(self.id), kind_of(self.id)
        if not folders and state.files and kind is not None:
            # Where it should be: as the index knows it, else as its events name it.
            known = next((place for path in self.rows if (place := parse_path(path)) is not None), None)
            made = EntityPlace(self.repo.agent_id, kind, state.slug or kind, self.id)
            folders = [known._replace(file="profile") if known is not None else made]
        place = next((one for one in folders if one.slug == state.slug), folders[0]) if folders else None
        for file in FILES if place is not None else ():
            assert place is not None
            seen = self.repo.read(place._replace(file=file))
            if not seen.is_gone:
                self.shown.add(seen.path)
            try:
                self._file(seen, state.files.get(file))
            except DocumentProblem as problem:
                self._drifted(seen, problem)
        for twin in (one for one in folders if one != place):
            message = f"the entity also exists in {place.folder if place else ''}"
            self._drifted(FileContent(twin), DocumentProblem("id-twice", message, "a copy needs an id of its own"))
        if place is not None and len(folders) == 1 and self.shown and place.slug != state.slug and state.files:
            self.repo.append(self.repo.event("human_edit", "person", entity_id=self.id, text={"slug": place.slug}))
        self._record()

    def _file(self, seen: FileContent, state: FileState | None) -> None:
        """Compares a file with its events. Raises `DocumentProblem` for drift."""
        repo, want = self.repo, document_of(state.text) if state is not None else None
        if state is None or state.text is None or want is None:
            # No event tells of it: a person's, or from a backup. Or a removal took the text of an event that came later
            # from another machine: the file says what is left.
            if state is None and seen.is_gone:
                return
            name = foreign_field(seen.place, seen.document) if seen.document is not None else None
            if state is not None and (seen.document is None or name is not None):
                hint = "a maintainer decides which counts: the file or its events"
                raise DocumentProblem("events-incomplete", "its events do not contain the whole file", hint)
            if seen.problem is not None:
                raise seen.problem
            if name is not None:
                raise DocumentProblem("identity-changed", f"`{name}` is not that of its folder", "correct the field")
            self._tell(seen, {replay.WHOLE: seen.text, "slug": seen.place.slug}, seen.known_as, edited=state is None)
            self._take(seen)
        elif seen.text == state.text:
            self._take(seen)
        elif seen.known_as in state.known or (
            seen.is_gone and state.is_new and seen.path not in {*self.rows, *(one.path for one in repo.drift())}
        ):
            # A write that was interrupted (its file may never have been there), or a version of ours that another
            # machine or an old editor had.
            self._rewrite(seen, want)
        elif seen.text is None and not seen.is_gone:
            assert seen.problem is not None
            raise seen.problem
        else:
            shapes = repo.shapes(seen.place.kind, seen.place.file, want)
            after, facts = replay.judge(seen.text, want, shapes, repo.log.of(self.id))
            changed = replay.change(want, after)
            if changed != {replay.PARTS: {}}:
                named = [name for name in changed.get(replay.PARTS, ()) if name not in (replay.HEAD, replay.LEAD)]
                section, left = named[0] if len(named) == 1 else None, text_sha256(render(after))
                was, now = section_sha(want, section), section_sha(after, section)
                self._tell(seen, changed, left, section=section, facts=facts or None, before=was, after=now)
            for name, words in (
                ("kept", "a save of an older version would have dropped {}; it was kept"),
                ("over", f"a save replaced newer text of {{}}; signet-sync entity log {self.id} has it"),
            ):
                if name in facts:
                    self.found.notices.append(f"{seen.path}: {words.format(' and '.join(facts[name]))}")
            if render(after) == seen.text:
                self._take(seen)
            else:
                self._rewrite(seen, after)

    def _tell(
        self, seen: FileContent, text: Mapping[str, Any], left: str | None, *, edited: bool = True, **more: Any
    ) -> None:
        """Records what a person made of a file, or (not `edited`) the file as it is."""
        op: Operation = "human_edit" if edited else "restate"
        of = {"entity_id": self.id, "file": seen.place.file, "found": seen.known_as, "left": left}
        self.repo.append(self.repo.event(op, "person" if edited else "observer", text=text, **of, **more))
        if edited:
            self.found.edited.append(seen.path)

    def _rewrite(self, seen: FileContent, document: EntityDocument) -> None:
        with suppress(FileChanged):  # the save that was faster triggers another look
            self._take(put(self.repo, seen, document))

    def _take(self, seen: FileContent) -> None:
        if seen.document is not None:
            self.shown.add(seen.path)
            self.put.append(self.repo.row(seen))

    def _drifted(self, seen: FileContent, problem: DocumentProblem) -> None:
        self.queue[seen.path] = Finding(
            problem.code, problem.message, problem.hint, seen.path, self.id,
            agent_id=self.repo.agent_id, found_at=iso(self.repo.now_us), sha256=seen.sha256,
        )  # fmt: skip

    def _record(self) -> None:
        """Writes the rows; removes files from the queue that are no drift any more, and rows of files that are gone."""
        repo, database = self.repo, self.repo.workspace.database
        queued = {one.path: one for one in repo.drift() if one.id == self.id}
        gone = [path for path in self.rows if path not in self.shown]
        over = [path for path in queued if path not in self.queue]
        fresh = [row for row in self.put if entities_store.file(database, row.path) != row]
        told = {(one.path, one.code, one.sha256) for one in queued.values()}
        new = [one for one in self.queue.values() if (one.path, one.code, one.sha256) not in told]
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


def put(repo: EntityRepository, seen: FileContent, document: EntityDocument) -> FileContent:
    """Replaces the file that was read, or creates it; returns it. Raises `FileChanged` if it has changed since."""
    root, text = repo.workspace.root, render(document)
    if text == seen.text:
        return seen
    data = utf8(text)
    if seen.raw is None:
        try:
            signature: Signature | None = files.create_once(root, seen.path, data)
        except FileExistsError:
            raise FileChanged from None
    else:
        replaced = files.replace(root, seen.path, data, seen.raw)
        if replaced.displaced is not None:
            raise FileChanged
        signature = replaced.signature
    return FileContent(seen.place, data, text, document, None, text_sha256(text), signature)


def section_sha(document: EntityDocument | None, section: str | None) -> str | None:
    """Returns the hash of a section in a file, None if there is no such section."""
    if document is None or section is None:
        return None
    try:
        return body_sha(find(document, section))
    except UsageError:
        return None
