"""Keeps entity files and their events in step: finishes interrupted writes, records people's edits, writes our own.

The event that says what changes is durable before the file. What fits no rule is drift, which waits for a maintainer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from signet_sync.entities import replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.document import DocumentProblem, EntityDocument, body_sha, document_of, find, render
from signet_sync.entities.events import TRUNCATED, Actor, Event, Operation
from signet_sync.entities.replay import FileState
from signet_sync.entities.repository import Entity, EntityRepository, FileContent
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256, utf8
from signet_sync.formats.entity_paths import (
    FILES,
    EntityPlace,
    File,
    Finding,
    kind_of,
    ledger_page,
    parse_path,
    shapes,
    slug_of,
)
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files, writing

# The entity id under which the queue lists problems of the event log itself.
LEDGER = ""
_TRIES = 3
# What an operation does: its event, the file that this concerns, and what the file becomes (None: it stays).
Write = tuple[Event, FileContent, EntityDocument | None]


class FileChanged(Exception):
    """The file was saved between reading and writing: nothing was written."""


@dataclass(slots=True)
class Observations:
    """The result of a look: paths that people edited, paths that drifted, what a person should know, any change."""

    edited: list[str] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    changed: bool = False


# ── what is on disk ──


def look(repo: EntityRepository, ids: Collection[str] | None = ()) -> Observations:
    """Brings all entities up to date if their event log changed, and some (None: all) with their files in any case.

    Every command on entities starts with it.
    """
    found, database = Observations(), repo.workspace.database
    repo.log.mend()
    if repo.log.merge_copies():
        repo.forget_states()
    if not repo.is_log_end_known():
        known = {event.id for event in repo.log.events()}
        _, last_id = entities_store.log_end(database, repo.agent_id)
        examine(repo, None, found, thorough=True)
        # A slow sync may deliver the missing end later.
        back = [one.path for one in repo.drift() if one.id == LEDGER and one.sha256 in known]
        with database.transaction(durable=True):
            entities_store.clear_drift(database, back)
            if last_id and last_id not in known:
                # Now: the next write overwrites the known end, the only record of it.
                at, hint = iso(repo.now_us), "compare the pages with a backup or with the workspace's history"
                page = ledger_page(repo.agent_id, at[:7])
                lost = Finding("truncated", TRUNCATED, hint, page, agent_id=repo.agent_id, found_at=at, sha256=last_id)
                entities_store.put_drift(database, lost)
            repo.remember_log_end()
    if ids is None or ids:
        examine(repo, ids, found)
    return found


def examine(
    repo: EntityRepository,
    ids: Collection[str] | None,
    found: Observations | None = None,
    *,
    thorough: bool = False,
) -> None:
    """Examines some entities (None: all); files with known signatures only if it is `thorough`."""
    found, rows = found or Observations(), dict[str, dict[str, Signature | None]]()
    database = repo.workspace.database
    for path, signature in entities_store.signatures(database, repo.agent_id).items():
        place = parse_path(path)
        if place is not None:
            rows.setdefault(place.id, {})[path] = signature
    queued = {drift.id for drift in repo.drift()} - {LEDGER}
    places = repo.places(ids)
    if ids is None:
        created = {event.entity_id for event in repo.log.events('"op":"create"')} if thorough else set()
        ids = places.keys() | rows.keys() | queued | {each for each in created if each is not None}
    paths = [place._replace(file=file).path for each in ids for place in places.get(each, ()) for file in FILES]
    current = files.signatures(repo.workspace.root, paths)
    for each in sorted(ids):
        folders, expected = places.get(each, []), rows.get(each, {})
        certain = not thorough and each not in queued and None not in expected.values()
        if certain and expected and len(folders) == 1:
            mine = (folders[0]._replace(file=file).path for file in FILES)
            if {path: current[path] for path in mine if path in current} == expected:
                continue
        fresh, gone, over, new = _examine_entity(repo, each, folders, expected, found)
        if not (fresh or gone or over or new) and repo.is_log_end_known():
            continue
        found.changed = True
        found.drifted += [one.path for one in new]
        with database.transaction(durable=True):
            entities_store.put_files(database, fresh, gone)
            entities_store.clear_drift(database, over)
            for one in new:
                entities_store.put_drift(database, one)
            repo.remember_log_end()


def _examine_entity(
    repo: EntityRepository,
    entity_id: str,
    folders: list[EntityPlace],
    rows: Mapping[str, Signature | None],
    found: Observations,
) -> tuple[list[EntityFile], list[str], list[str], list[Finding]]:
    """Makes the files of one entity and its events agree, of which `rows` are in the index.

    Returns what the index has to learn: rows, paths without a file, paths that are no drift any more, new drift.
    """
    state, kind = repo.state(entity_id), kind_of(entity_id)
    if not folders and state and kind is not None:
        # Where it should be: as the index knows it, else by its title.
        known = next((place for path in rows if (place := parse_path(path)) is not None), None)
        said = document_of(state["profile"].text) if "profile" in state else None
        made = EntityPlace(repo.agent_id, kind, slug_of(said.title) if said is not None else kind, entity_id)
        folders = [known._replace(file="profile") if known is not None else made]
    place = next((one for one in folders if one.path in rows), folders[0]) if folders else None
    problems, settled, shown = dict[str, tuple[DocumentProblem, str]](), list[EntityFile](), set[str]()
    for path in [place._replace(file=file) for file in FILES] if place is not None else []:
        seen = repo.read(path)
        try:
            after = _settle_file(repo, seen, state.get(path.file), rows, found)
        except DocumentProblem as problem:
            problems[seen.place.path], after = (problem, seen.sha256), None
        if after is not None:
            settled.append(repo.row(after))
        if after is not None or not seen.is_gone:
            shown.add(seen.place.path)
    for twin in (one for one in folders if one != place):
        message = f"the entity also exists in {place.folder if place else ''}"
        problems[twin.path] = DocumentProblem("id-twice", message, "a copy needs an id of its own"), ""
    queued = {one.path: one for one in repo.drift() if one.id == entity_id}
    gone, over = [path for path in rows if path not in shown], [path for path in queued if path not in problems]
    indexed = entities_store.files_of(repo.workspace.database, repo.agent_id, entity_id)
    fresh = [row for row in settled if row not in indexed]
    at, told = iso(repo.now_us), {(one.path, one.code, one.sha256) for one in queued.values()}
    new = [
        Finding(why.code, why.message, why.hint, path, entity_id, agent_id=repo.agent_id, found_at=at, sha256=sha256)
        for path, (why, sha256) in problems.items()
        if (path, why.code, sha256) not in told
    ]
    return fresh, gone, over, new


def _settle_file(
    repo: EntityRepository,
    seen: FileContent,
    state: FileState | None,
    rows: Mapping[str, Signature | None],
    found: Observations,
) -> FileContent | None:
    """Makes a file and its events agree; returns the file as it is then, None where there is none.

    Raises `DocumentProblem` for drift.
    """
    place, want = seen.place, document_of(state.text) if state is not None else None
    of: dict[str, Any] = {"entity_id": place.id, "file": place.file, "found": seen.text_hash}
    if state is None or state.text is None or want is None:
        return _take_whole(repo, seen, state, found, of)
    if seen.text == state.text:
        return seen
    waits = {*rows, *(one.path for one in repo.drift())}
    if seen.text_hash in state.known or (seen.is_gone and state.is_new and seen.place.path not in waits):
        # A write that was interrupted (its file may never have been there), or a version of ours that another machine
        # or an old editor had.
        return _rewrite(repo, seen, want)
    if seen.text is None and not seen.is_gone:
        assert seen.problem is not None
        raise seen.problem
    after, facts = replay.judge(seen.text, want, shapes(place.kind, place.file), repo.log.events_of(place.id))
    changed = replay.change(want, after)
    if changed != {replay.PARTS: {}}:
        named = [name for name in changed.get(replay.PARTS, ()) if name not in (replay.HEAD, replay.LEAD)]
        section = named[0] if len(named) == 1 else None
        of |= {"left": text_sha256(render(after)), "section": section, "facts": facts or None}
        of |= {"before": _section_sha(want, section), "after": _section_sha(after, section)}
        repo.append(repo.event("human_edit", "person", text=changed, **of))
        found.edited.append(seen.place.path)
    for name, words in (
        ("kept", "a save of an older version would have dropped {}; it was kept"),
        ("over", f"a save replaced newer text of {{}}; signet-sync entity log {place.id} has it"),
    ):
        if name in facts:
            found.notices.append(f"{seen.place.path}: {words.format(' and '.join(facts[name]))}")
    return seen if render(after) == seen.text else _rewrite(repo, seen, after)


def _take_whole(
    repo: EntityRepository, seen: FileContent, state: FileState | None, found: Observations, of: Mapping[str, Any]
) -> FileContent | None:
    """Records a file whose text no event holds; returns it, None where there is none. Raises `DocumentProblem`."""
    place = seen.place
    # No event tells of it: a person's, or from a backup. Or a removal took the text of an event that came later
    # from another machine: the file says what is left.
    if state is None and seen.is_gone:
        return None
    wanted = {"kind": place.kind, "id": place.id, "agent_id": place.agent_id}
    fields = seen.document.fields if seen.document is not None else wanted
    foreign = next((key for key, value in wanted.items() if fields.get(key) != value), None)
    if state is not None and (seen.document is None or foreign is not None):
        hint = "a maintainer decides which counts: the file or its events"
        raise DocumentProblem("events-incomplete", "its events do not contain the whole file", hint)
    if seen.problem is not None:
        raise seen.problem
    if foreign is not None:
        raise DocumentProblem("identity-changed", f"`{foreign}` is not that of its folder", "correct the field")
    text = {replay.WHOLE: seen.text}
    if state is None:
        repo.append(repo.event("human_edit", "person", text=text, left=seen.text_hash, **of))
        found.edited.append(seen.place.path)
    else:
        repo.append(repo.event("restate", "observer", text=text, left=seen.text_hash, **of))
    return seen


def _rewrite(repo: EntityRepository, seen: FileContent, document: EntityDocument) -> FileContent | None:
    with suppress(FileChanged):  # the save that was faster triggers another look
        return _put(repo, seen, document)
    return None


# ── an entity, to be written ──


def locate(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the profile row that a name refers to; if there is none, looks at all files. Raises `UsageError`."""
    if repo.find(ref) is None:
        examine(repo, None)
        if ref.strip() and repo.find(ref) is None:  # the event log itself waits under an empty id
            _refuse_drift(repo, ref.strip())
    return repo.require(ref)


def load(repo: EntityRepository, ref: str) -> Entity:
    """Returns the entity that a name refers to, after recording edits of its files. Raises `UsageError`."""
    row = locate(repo, ref)
    for _ in range(_TRIES):
        examine(repo, {row.id}, thorough=True)
        row = repo.find(row.id) or row
        _refuse_drift(repo, row.id)
        place, state = parse_path(row.path), repo.state(row.id)
        seen = {} if place is None else {file: repo.read(place._replace(file=file)) for file in FILES}
        present = {file: one for file, one in seen.items() if not one.is_gone}
        told = (one.document and file in state and one.text == state[file].text for file, one in present.items())
        if place is not None and "profile" in present and all(told):
            return Entity(place, seen)
    raise busy(row.path)


def load_quietly(repo: EntityRepository, entity_id: str) -> Entity | None:
    """Returns an entity for a change of our own; None if it is missing, or waits for a person or a maintainer."""
    with suppress(UsageError, WorkspaceError):
        return load(repo, entity_id)
    return None


def _refuse_drift(repo: EntityRepository, entity_id: str) -> None:
    """Raises `UsageError` (`entity-drifted`) if a file of the entity waits for a maintainer."""
    for drift in repo.drift():
        if drift.id == entity_id:
            message = f"a maintainer has to resolve the drift of this entity first: {drift.message}"
            settle = f"signet-sync entity check {drift.id} --keep"
            hint = f"{drift.hint}; {settle} events writes it as recorded, --keep file records it as it is"
            raise UsageError(message, path=drift.path, hint=hint, code="entity-drifted")


def busy(path: str) -> WorkspaceError:
    """Returns the error for a file that is saved again and again."""
    return WorkspaceError("the file kept changing while it was being written", path=path, hint="try again", code="busy")


# ── writing ──


def plan(
    repo: EntityRepository,
    entity: Entity,
    op: Operation,
    actor: Actor,
    file: File,
    after: EntityDocument | None = None,
    *,
    section: str | None = None,
    text: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Write:
    """Plans an operation on a file; `after` is the file as it will be, if it changes."""
    said, seen, owner = dict(text or {}), entity.files[file], entity.place.id
    if after is not None:
        said |= replay.change(seen.document, after)
        fields |= {"before": _section_sha(seen.document, section), "after": _section_sha(after, section)}
        fields |= {"found": seen.text_hash, "left": text_sha256(render(after))}
    return (
        repo.event(op, actor, entity_id=owner, file=file, section=section, text=said, **fields),
        seen,
        after,
    )


def write(repo: EntityRepository, *writes: Write) -> None:
    """Carries out what was planned. If somebody saved a file meanwhile, the two are joined. Raises as `record`."""
    try:
        record(repo, writes)
    except FileChanged:
        ids = {event.entity_id for event, *_ in writes if event.entity_id is not None}
        examine(repo, ids, thorough=True)


def record(repo: EntityRepository, writes: Sequence[Write]) -> None:
    """Records events, all or none, then writes their files; after a crash the next look finishes that.

    What the disk refused is taken back. Raises `FileChanged` if somebody was faster: the events stand. Raises
    `WorkspaceError`, `OSError`.
    """
    sealed = repo.append(*(event for event, *_ in writes))
    try:
        written = [_put(repo, seen, after) for _, seen, after in writes if after is not None]
    except (OSError, WorkspaceError):
        if all(repo.read(seen.place).text_hash == seen.text_hash for _, seen, after in writes if after is not None):
            for event in reversed(sealed):
                repo.log.withdraw(event)
            repo.forget_states()
        raise
    with repo.workspace.database.transaction(durable=True):
        entities_store.put_files(repo.workspace.database, [repo.row(seen) for seen in written])
        repo.remember_log_end()


def _put(repo: EntityRepository, seen: FileContent, document: EntityDocument) -> FileContent:
    """Replaces the file that was read, or creates it; returns it. Raises `FileChanged` if it has changed since."""
    root, text = repo.workspace.root, render(document)
    if text == seen.text:
        return seen
    data = utf8(text)
    if seen.raw is None:
        try:
            signature: Signature | None = writing.create_once(root, seen.place.path, data)
        except FileExistsError:
            raise FileChanged from None
    else:
        replaced = writing.replace(root, seen.place.path, data, seen.raw)
        if replaced.displaced is not None:
            raise FileChanged
        signature = replaced.signature
    return FileContent(seen.place, data, text, document, None, text_sha256(text), signature)


def _section_sha(document: EntityDocument | None, section: str | None) -> str | None:
    if document is None or section is None:
        return None
    try:
        return body_sha(find(document, section))
    except UsageError:
        return None
