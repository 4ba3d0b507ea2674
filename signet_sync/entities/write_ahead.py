"""Writes an entity file in recoverable steps: pending event, file, outcome, rows.

Every step is durable before the next. The pending event contains all that is needed to continue after a crash, so no
text is lost; a later command or pass settles interrupted writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import Document, body_sha, find, render
from signet_sync.entities.documents.patch import change, whole
from signet_sync.entities.event_log.agent_log import outcome
from signet_sync.entities.event_log.events import Actor, Event, Operation
from signet_sync.entities.evidence import token_for
from signet_sync.entities.repository import Entity, Garden, Seen, folder_of, parsed
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256, utf8
from signet_sync.formats.entity_paths import File, Place
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import iso
from signet_sync.storage import files, rename

# For these operations the event contains the whole text of the section.
_STATED = ("set", "approve", "schema")


class Raced(Exception):
    """The file was saved between reading and writing: nothing was written, and the file is to be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What all events of a request share: actor, key and request digest; `ulid` is the id of the first event."""

    ulid: str
    actor: Actor
    key: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an operation will do: `after` is the new file, None if the event changes none.

    `extra` goes into the event's payload beside the change. `stated`: the payload contains the whole file. `slug` is
    the new one of the folder.
    """

    op: Operation
    file: File | None = None
    section: str | None = None
    after: Document | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    rationale: str | None = None
    evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lint: tuple[str, ...] = ()
    slug: str | None = None
    stated: bool = False


def write(garden: Garden, entity: Entity, plan: Plan, stamp: Stamp) -> Event:
    """Carries out a plan. Raises `Raced`, `WorkspaceError`, `OSError`."""
    event = event_of(garden, entity, plan, stamp)
    garden.forget_told(entity.id)
    if plan.file is None or plan.after is None:
        (sealed,) = garden.ledger.add([event], garden.now_us)
        mirror(garden)
        return _as_event(sealed)
    (sealed,) = garden.ledger.add([event], garden.now_us)
    seen = entity.seen[plan.file]
    text = render(plan.after)
    try:
        signature = put(garden, seen, text)
    except (Raced, WorkspaceError, OSError):
        if came_to_nothing(garden, seen.place, event):
            garden.ledger.add([outcome(event, "failed", garden.now_us)], garden.now_us)
        raise
    slug = move(garden, seen.place, plan.slug) if plan.slug is not None else None
    garden.ledger.add([outcome(event, "committed", garden.now_us)], garden.now_us)
    written = Seen(seen.path, seen.place, utf8(text), text, text_sha256(text), signature)
    after = {**entity.documents, plan.file: plan.after}
    mirror(garden, [(written, plan.after)], moved=(entity, slug, after) if slug is not None else None)
    return _as_event(sealed)


def event_of(garden: Garden, entity: Entity, plan: Plan, stamp: Stamp) -> Event:
    """Makes the event of a plan, without its hash; an event that changes no file is committed at once."""
    seen = entity.seen.get(plan.file) if plan.file is not None else None
    document = entity.documents.get(plan.file) if plan.file is not None else None
    payload = dict(plan.extra)
    before = after = None
    if plan.after is not None and document is not None:
        said = (
            whole(render(plan.after))
            if plan.stated
            else change(document, plan.after, stated=plan.section if plan.op in _STATED else None)
        )
        payload = {**payload, **said}
        before, after = _section(document, plan.section), _section(plan.after, plan.section)
    if plan.warnings:
        payload["warnings"] = list(plan.warnings)
    if plan.slug is not None:
        payload["slug"] = plan.slug
    return Event(
        id=stamp.ulid,
        token=token_for(stamp.ulid),
        at=iso(garden.now_us),
        agent_id=garden.agent_id,
        entity_id=entity.id,
        actor=stamp.actor,
        op=plan.op,
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


def put(garden: Garden, seen: Seen, text: str) -> Signature:
    """Replaces the file that was read, or creates it. Raises `Raced` if it has changed since."""
    root = garden.workspace.root
    if seen.raw is None:
        try:
            return files.create_once(root, seen.path, utf8(text))
        except FileExistsError:
            raise Raced from None
    if utf8(text) == seen.raw and seen.signature is not None:
        return seen.signature
    replaced = files.replace(root, seen.path, utf8(text), seen.raw)
    if replaced.displaced is not None:
        raise Raced
    return replaced.signature


def came_to_nothing(garden: Garden, place: Place, event: Event) -> bool:
    """Checks that a failed write has left no file.

    Syncing a folder can fail after the file is in place. In that case, or if the file cannot be read, the event stays
    pending, and the next command settles it.
    """
    found = garden.seen(place)
    return found.code in ("", "gone", "not-utf8") and found.sha256 != event.file_after


def move(garden: Garden, place: Place, slug: str) -> str:
    """Renames an entity's folder to a slug, if that name is free; returns the slug that it has afterwards."""
    if slug != place.slug:
        name = folder_of(place._replace(slug=slug)).rpartition("/")[2]
        try:
            rename.rename_folder(garden.workspace.root, folder_of(place), name)
        except WorkspaceError:
            # The name is taken: the title counts, and the next look records the slug.
            return place.slug
    return slug


def mirror(
    garden: Garden,
    written: Sequence[tuple[Seen, Document]] = (),
    *,
    moved: tuple[Entity, str, Mapping[File, Document]] | None = None,
) -> None:
    """Updates rows after a write, and records the end of the event log, in one transaction."""
    database = garden.workspace.database
    rows = [garden.row(seen, document) for seen, document in written]
    gone: list[str] = []
    if moved is not None:
        entity, slug, documents = moved
        gone = [seen.path for seen in entity.seen.values()]
        rows = []
        for file, document in documents.items():
            place = entity.seen[file].place._replace(slug=slug)
            rows.append(garden.row(garden.seen(place), document))
    with database.transaction(durable=True):
        if gone:
            entities_store.forget_files(database, [path for path in gone if path not in {row.path for row in rows}])
        entities_store.put_files(database, rows)
        garden.remember_chain()


def load(garden: Garden, place: Place) -> Entity | None:
    """Reads an entity from disk; returns None if its profile, or existing notes, cannot be read."""
    seen = garden.both(place)
    documents: dict[File, Document] = {}
    for file, each in seen.items():
        if each.code == "gone" and file == "notes":
            continue
        document = parsed(each.text) if each.text is not None else None
        if not isinstance(document, Document):
            return None
        documents[file] = document
    return Entity(place.id, place.kind, place.slug, seen, documents)


def section_sha(text: str | None, section: str | None) -> str | None:
    """Returns the hash of a section in a file, None if there is no such section."""
    document = parsed(text) if text is not None else None
    return _section(document, section) if isinstance(document, Document) else None


def _section(document: Document, section: str | None) -> str | None:
    if section is None:
        return None
    try:
        return body_sha(find(document, section))
    except UsageError:
        return None


def _as_event(entry: object) -> Event:
    if not isinstance(entry, Event):
        raise TypeError("the ledger gave back another entry")
    return entry
