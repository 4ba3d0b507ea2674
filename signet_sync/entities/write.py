"""Writes entity files: the event that says what changes is durable before the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from signet_sync.entities import observe, replay
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import EntityDocument, render
from signet_sync.entities.events import Actor, Event, Operation
from signet_sync.entities.observe import FileChanged, section_sha
from signet_sync.entities.repository import Entity, EntityRepository
from signet_sync.entities.store import EntityFile
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import File, parse_path
from signet_sync.storage import rename

_TRIES = 3


class Stamp(NamedTuple):
    """Who makes an event, and digests of the key and the request that it answers."""

    actor: Actor
    key: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """What an operation will do: `after` is the new file, None if the event changes none.

    `text` goes into the event beside the change, `facts` are without words, `slug` is the new one of the folder.
    `stated`: the event holds the whole file. `id` is the event's, if the text names it.
    """

    op: Operation
    file: File | None = None
    section: str | None = None
    after: EntityDocument | None = None
    text: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    slug: str | None = None
    stated: bool = False
    id: str | None = None


def locate(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the profile row that a name refers to; if there is none, looks at all files. Raises `UsageError`."""
    if repo.find(ref) is None:
        observe.examine(repo, None)
        if ref.strip():  # the event log itself waits under an empty id
            observe.refuse_drift(repo, {ref.strip()} if repo.find(ref) is None else ())
    return repo.require(ref)


def load(repo: EntityRepository, ref: str) -> Entity:
    """Returns the entity that a name refers to, after recording edits of its files. Raises `UsageError`."""
    row = locate(repo, ref)
    for _ in range(_TRIES):
        observe.examine(repo, {row.id}, doubtful={row.id})
        row = repo.find(row.id) or row
        observe.refuse_drift(repo, {row.id})
        place = parse_path(row.path)
        entity = None if place is None else observe.load_at(repo, place)
        state = repo.state(row.id)
        if entity is not None and all(
            seen.text == state.files[file].text for file, seen in entity.seen.items() if file in entity.documents
        ):
            return entity
    raise observe.busy(row.path)


def event_of(repo: EntityRepository, entity: Entity, plan: EditPlan, stamp: Stamp) -> Event:
    """Makes the event of a plan, without its hashes."""
    text: dict[str, Any] = {**plan.text, "warnings": list(plan.warnings), "slug": plan.slug}
    hashes: dict[str, Any] = {}
    if plan.after is not None and plan.file is not None:
        old, seen = entity.documents.get(plan.file), entity.seen[plan.file]
        text |= replay.change(None if plan.stated else old, plan.after)
        after = render(plan.after)
        hashes = {"found": seen.known_as, "left": text_sha256(after), "after": section_sha(after, plan.section)}
        hashes["before"] = None if old is None else section_sha(render(old), plan.section)
    return repo.event(
        plan.op, stamp.actor, id=plan.id, entity_id=entity.id, file=plan.file, section=plan.section, facts=plan.facts,
        text=text, key=stamp.key, request=stamp.request, **hashes,
    )  # fmt: skip


def write(repo: EntityRepository, entity: Entity, plan: EditPlan, stamp: Stamp) -> Event:
    """Carries out a plan: the event is durable before the file. Raises `WorkspaceError`, `OSError`.

    After a crash the next look finishes the write. If a person saved the file in the meantime, it joins the two. What
    the disk refused is taken back.
    """
    (event,) = repo.append(event_of(repo, entity, plan, stamp))
    if plan.after is None or plan.file is None:
        with repo.workspace.database.transaction(durable=True):
            repo.remember_log_end()
        return event
    seen = entity.seen[plan.file]
    try:
        written = observe.put(repo, seen, render(plan.after))
    except FileChanged:
        observe.examine(repo, {entity.id}, doubtful={entity.id})
        return event
    except (OSError, WorkspaceError):
        if repo.read(seen.place).known_as == seen.known_as:
            repo.log.withdraw(event)
            repo.forget_states()
        raise
    with repo.workspace.database.transaction(durable=True):
        entities_store.put_files(repo.workspace.database, [repo.row(written, plan.after)])
        repo.remember_log_end()
    if plan.slug is not None and plan.slug != entity.place.slug:
        move(repo, entity, plan.slug)
    return event


def write_own(actor: Actor, repo: EntityRepository, entity: Entity, plan: EditPlan) -> Event | None:
    """Carries out a plan of our own; returns None if a person is editing the file."""
    if repo.read(entity.place._replace(file=plan.file or "profile")).raw != entity.seen[plan.file or "profile"].raw:
        return None
    return write(repo, entity, plan, Stamp(actor))


def create(repo: EntityRepository, entity: Entity, documents: Mapping[File, EntityDocument], stamp: Stamp) -> Event:
    """Writes the files of a new entity, whose events are durable before; the next look finishes after a crash."""
    plans = [
        EditPlan(op="create", file=file, after=document, slug=entity.place.slug, stated=True)
        for file, document in documents.items()
    ]
    events = [event_of(repo, entity, plan, stamp if plan.file == "profile" else Stamp(stamp.actor)) for plan in plans]
    sealed = repo.append(*events)
    try:
        written = [observe.put(repo, entity.seen[file], render(document)) for file, document in documents.items()]
    except (FileChanged, OSError, WorkspaceError) as error:
        if all(repo.read(seen.place).code == "gone" for seen in entity.seen.values()):
            for event in reversed(sealed):
                repo.log.withdraw(event)
            repo.forget_states()
        if isinstance(error, FileChanged):
            raise observe.busy(entity.place.path) from None
        raise
    with repo.workspace.database.transaction(durable=True):
        rows = (repo.row(seen, documents[seen.place.file]) for seen in written)
        entities_store.put_files(repo.workspace.database, rows)
        repo.remember_log_end()
    return sealed[0]


def move(repo: EntityRepository, entity: Entity, slug: str) -> bool:
    """Renames an entity's folder, if that name is free; the rows follow. Returns whether it has the name."""
    place = entity.place._replace(slug=slug)
    try:
        rename.rename_folder(repo.workspace.root, entity.place.folder, place.folder.rpartition("/")[2])
    except WorkspaceError:
        return False
    observe.examine(repo, {entity.id}, doubtful={entity.id})
    return True
