"""One write: a line that says what will be, the file, a line that it is, the rows; a crash between is settled later.

Every step is durable before the next. The pending line holds all that is needed to go on, so that no text is lost.
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

# Of these the ledger holds what was set as a whole.
_STATED = ("set", "approve", "schema")


class Raced(Exception):
    """Somebody saved the file between our look and our write: nothing was written, and it is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What is the same for every event of a request: who, when, under which key; `ulid` names the first event."""

    ulid: str
    actor: Actor
    key: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an operation would do: `after` is the file as it will be, None where the event changes none.

    `extra` goes into the event's payload beside the change. `stated` says the file as a whole. `slug` is the folder's
    new one.
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
    """Does what is planned for an entity. Raises `Raced`, `WorkspaceError`, `OSError`."""
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
    """The event of a plan, not yet sealed; one that changes no file is committed as it is written."""
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
    """The file of an event, in place of what was seen there. Raises `Raced` where that is not there any more."""
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
    """Whether a write that an error ended surely left no file of its own.

    A folder may fail to be synced once the file is in place: then, or where nobody can tell, the event stays pending,
    and the next command looks what came of it.
    """
    found = garden.seen(place)
    return found.code in ("", "gone", "not-utf8") and found.sha256 != event.file_after


def move(garden: Garden, place: Place, slug: str) -> str:
    """Gives the folder of an entity another slug, where nothing else is called so; gives the one that it has then."""
    if slug != place.slug:
        name = folder_of(place._replace(slug=slug)).rpartition("/")[2]
        try:
            rename.rename_folder(garden.workspace.root, folder_of(place), name)
        except WorkspaceError:
            # A name that somebody has taken: the title is what counts, and the next look records the slug.
            return place.slug
    return slug


def mirror(
    garden: Garden,
    written: Sequence[tuple[Seen, Document]] = (),
    *,
    moved: tuple[Entity, str, Mapping[File, Document]] | None = None,
) -> None:
    """Brings rows in line with what was written, and remembers the end of the ledger, in one transaction."""
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
    """An entity as it stands on disk; None where its profile, or a file that stands there, cannot be read."""
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
    """The hash of a section in a file, None where there is no such section."""
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
