"""Writes an entity file in recoverable steps: pending event, file, outcome, rows.

Every step is durable before the next. The pending event contains all that is needed to continue after a crash, so no
text is lost; a later command or pass settles interrupted writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from signet_sync.entities import scan
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import EntityDocument, body_sha, find, render
from signet_sync.entities.documents.patch import change, whole
from signet_sync.entities.event_log.agent_log import new_ulid, outcome
from signet_sync.entities.event_log.events import Actor, Event, Operation
from signet_sync.entities.repository import Entity, EntityRepository, FileContent, document_of, folder_of, path_of
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256, utf8
from signet_sync.formats.entity_paths import FILES, EntityPlace, File, file_name, parse_path
from signet_sync.formats.snapshot import Signature
from signet_sync.storage import files, rename

# For these operations the event contains the whole text of the section.
_STATED = ("set", "approve", "schema")


class FileChanged(Exception):
    """The file was saved between reading and writing: nothing was written, and the file is to be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStamp:
    """What all events of a request share: actor, key and request digest; `ulid` is the id of the first event."""

    ulid: str
    actor: Actor
    key: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """What an operation will do: `after` is the new file, None if the event changes none.

    `extra` goes into the event's payload beside the change. `stated`: the payload contains the whole file. `slug` is
    the new one of the folder.
    """

    op: Operation
    file: File | None = None
    section: str | None = None
    after: EntityDocument | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    rationale: str | None = None
    evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lint: tuple[str, ...] = ()
    slug: str | None = None
    stated: bool = False


def write(repo: EntityRepository, entity: Entity, plan: EditPlan, stamp: EventStamp) -> Event:
    """Carries out a plan. Raises `FileChanged`, `WorkspaceError`, `OSError`."""
    event = event_of(repo, entity, plan, stamp)
    repo.forget_replay(entity.id)
    (sealed,) = repo.log.add([event], repo.now_us)
    if plan.file is None or plan.after is None:
        update_rows(repo)
        return sealed
    seen = entity.seen[plan.file]
    written = _put_all(repo, [(event, seen, plan.after)])
    slug = move(repo, seen.place, plan.slug) if plan.slug is not None else None
    repo.log.add([outcome(event, "committed", repo.now_us)], repo.now_us)
    after = {**entity.documents, plan.file: plan.after}
    update_rows(repo, written, moved=(entity, slug, after) if slug is not None else None)
    return sealed


def write_as(actor: Actor, repo: EntityRepository, entity: Entity, plan: EditPlan) -> Event | None:
    """Carries out a plan of our own; returns None if a person is editing the file."""
    try:
        return write(repo, entity, plan, EventStamp(ulid=new_ulid(repo.now_us), actor=actor))
    except FileChanged:
        return None


def create(
    repo: EntityRepository, entity: Entity, documents: Mapping[File, EntityDocument], stamp: EventStamp
) -> Event:
    """Writes the files of a new entity: pending events, the files, outcomes, the rows. Raises as `write`."""
    writes = []
    for file, document in documents.items():
        plan = EditPlan(op="create", file=file, after=document, slug=entity.slug, stated=True)
        mine = stamp if file == "profile" else replace(stamp, ulid=new_ulid(repo.now_us), key=None, request=None)
        writes.append((event_of(repo, entity, plan, mine), entity.seen[file], document))
    events = [event for event, _, _ in writes]
    repo.log.add(events, repo.now_us)
    repo.forget_replay(entity.id)
    written = _put_all(repo, writes)
    repo.log.add([outcome(event, "committed", repo.now_us) for event in events], repo.now_us)
    update_rows(repo, written)
    return events[0]


def _put_all(
    repo: EntityRepository, writes: Sequence[tuple[Event, FileContent, EntityDocument]]
) -> list[tuple[FileContent, EntityDocument]]:
    """Writes files whose events are pending; after an error, marks the events as failed if none left a file.

    If one did, the next command writes the others, too: a new entity has all of its files or none.
    """
    written = []
    try:
        for _, seen, document in writes:
            text = render(document)
            signature = put(repo, seen, text)
            written.append(
                (FileContent(seen.path, seen.place, utf8(text), text, text_sha256(text), signature), document)
            )
    except (FileChanged, WorkspaceError, OSError):
        failed = [event for event, seen, _ in writes if _left_no_file(repo, seen.place, event)]
        if len(failed) == len(writes):
            repo.log.add([outcome(event, "failed", repo.now_us) for event in failed], repo.now_us)
        raise
    return written


def event_of(repo: EntityRepository, entity: Entity, plan: EditPlan, stamp: EventStamp) -> Event:
    """Makes the event of a plan, without its hash; an event that changes no file is committed at once."""
    seen = entity.seen.get(plan.file) if plan.file is not None else None
    document = entity.documents.get(plan.file) if plan.file is not None else None
    payload = dict(plan.extra)
    before = after = None
    if plan.after is not None:
        if plan.stated or document is None:
            payload |= whole(render(plan.after))
        else:
            payload |= change(document, plan.after, stated=plan.section if plan.op in _STATED else None)
        before = None if document is None else _section(document, plan.section)
        after = _section(plan.after, plan.section)
    if plan.warnings:
        payload["warnings"] = list(plan.warnings)
    if plan.slug is not None:
        payload["slug"] = plan.slug
    return repo.event(
        plan.op,
        stamp.actor,
        id=stamp.ulid,
        entity_id=entity.id,
        file=plan.file,
        section=plan.section,
        payload=payload or None,
        reason=plan.reason,
        rationale=plan.rationale,
        evidence=plan.evidence,
        before=before,
        after=after,
        file_before=None if seen is None or seen.text is None or plan.after is None else text_sha256(seen.text),
        file_after=None if plan.after is None else text_sha256(render(plan.after)),
        idempotency_key=stamp.key,
        request_sha256=stamp.request,
        lint=plan.lint,
        state="committed" if plan.after is None else "pending",
    )


def put(repo: EntityRepository, seen: FileContent, text: str) -> Signature:
    """Replaces the file that was read, or creates it. Raises `FileChanged` if it has changed since."""
    root = repo.workspace.root
    if seen.raw is None:
        try:
            return files.create_once(root, seen.path, utf8(text))
        except FileExistsError:
            raise FileChanged from None
    if utf8(text) == seen.raw and seen.signature is not None:
        return seen.signature
    replaced = files.replace(root, seen.path, utf8(text), seen.raw)
    if replaced.displaced is not None:
        raise FileChanged
    return replaced.signature


def _left_no_file(repo: EntityRepository, place: EntityPlace, event: Event) -> bool:
    """Checks that a failed write has left no file.

    Syncing a folder can fail after the file is in place. In that case, or if the file cannot be read, the event stays
    pending, and the next command completes or discards it.
    """
    found = repo.read(place)
    return found.code in ("", "gone", "not-utf8") and found.sha256 != event.file_after


def move(repo: EntityRepository, place: EntityPlace, slug: str) -> str:
    """Renames an entity's folder to a slug, if that name is free; returns the slug that it has afterwards."""
    if slug != place.slug:
        name = folder_of(place._replace(slug=slug)).rpartition("/")[2]
        try:
            rename.rename_folder(repo.workspace.root, folder_of(place), name)
        except WorkspaceError:
            # The name is taken: the title counts, and the next look records the slug.
            return place.slug
    return slug


def name_notes(repo: EntityRepository, place: EntityPlace) -> None:
    """Lets the name of an entity's notes follow that of its profile, which a person may have renamed."""
    name = scan.other_notes(repo.workspace.root, folder_of(place), place.id, place.base)
    if name is not None:
        rename.move_away(repo.workspace.root, f"{folder_of(place)}/{name}", file_name("notes", place.base))


def name_files(repo: EntityRepository, place: EntityPlace, base: str) -> EntityPlace | None:
    """Renames an entity's files; returns where they are then, None if a name is taken. A kill leaves no half of it.

    The notes follow with the next look if only the profile was renamed.
    """
    root, after = repo.workspace.root, place._replace(base=base)
    names = {file_name(file, base).casefold() for file in FILES}
    others = {file_name(file, place.base) for file in FILES}
    if any(name.casefold() in names and name not in others for name in files.listing(root, folder_of(place), "")):
        return None
    for file in FILES:
        with suppress(FileNotFoundError):
            if not rename.move_away(root, path_of(place._replace(file=file)), file_name(file, base)):
                return None
    return after


def update_rows(
    repo: EntityRepository,
    written: Sequence[tuple[FileContent, EntityDocument]] = (),
    *,
    moved: tuple[Entity, str, Mapping[File, EntityDocument]] | None = None,
) -> None:
    """Updates rows after a write, and records the end of the event log, in one transaction."""
    database = repo.workspace.database
    rows = [repo.row(seen, document) for seen, document in written]
    gone: list[str] = []
    if moved is not None:
        entity, slug, documents = moved
        gone = [seen.path for seen in entity.seen.values()]
        rows = []
        for file, document in documents.items():
            place = entity.seen[file].place._replace(slug=slug)
            rows.append(repo.row(repo.read(place), document))
    with database.transaction(durable=True):
        if gone:
            entities_store.forget_files(database, [path for path in gone if path not in {row.path for row in rows}])
        entities_store.put_files(database, rows)
        repo.remember_log_end()


def load(repo: EntityRepository, row: EntityFile) -> Entity | None:
    """Reads an entity from disk; returns None if its profile, or existing notes, cannot be read."""
    place = parse_path(row.path)
    if place is None:
        return None
    return load_at(repo, place)


def load_at(repo: EntityRepository, place: EntityPlace) -> Entity | None:
    """Reads the entity whose folder is there; returns None as `load`."""
    seen = repo.read_both(place)
    documents: dict[File, EntityDocument] = {}
    for file, each in seen.items():
        if each.code == "gone" and file == "notes":
            continue
        document = document_of(each.text)
        if document is None:
            return None
        documents[file] = document
    return Entity(place.id, place.kind, place.slug, seen, documents)


def section_sha(text: str | None, section: str | None) -> str | None:
    """Returns the hash of a section in a file, None if there is no such section."""
    document = document_of(text)
    return None if document is None else _section(document, section)


def _section(document: EntityDocument, section: str | None) -> str | None:
    if section is None:
        return None
    try:
        return body_sha(find(document, section))
    except UsageError:
        return None
