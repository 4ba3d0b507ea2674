"""Writes entity files: the event that says what changes is durable before the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from signet_sync.entities import observe
from signet_sync.entities import replay as replaying
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.document import EntityDocument, render
from signet_sync.entities.events import Actor, Event, Operation
from signet_sync.entities.observe import FileChanged, section_sha
from signet_sync.entities.repository import Entity, EntityRepository, FileContent
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import FILES, File, parse_path

_TRIES = 3
# What a request does to an entity: the event, and the file that it changes as it will be.
Planned = tuple[Event, EntityDocument | None]
Sign = Callable[[Event], Event]


def locate(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the profile row that a name refers to; if there is none, looks at all files. Raises `UsageError`."""
    if repo.find(ref) is None:
        observe.examine(repo, None)
        if ref.strip() and repo.find(ref) is None:  # the event log itself waits under an empty id
            refuse_drift(repo, ref.strip())
    return repo.require(ref)


def load(repo: EntityRepository, ref: str) -> Entity:
    """Returns the entity that a name refers to, after recording edits of its files. Raises `UsageError`."""
    row = locate(repo, ref)
    for _ in range(_TRIES):
        observe.examine(repo, {row.id}, doubtful={row.id})
        row = repo.find(row.id) or row
        refuse_drift(repo, row.id)
        place, state = parse_path(row.path), repo.state(row.id).files
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


def refuse_drift(repo: EntityRepository, entity_id: str) -> None:
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


def event_of(
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
) -> Event:
    """Makes the event of an operation on a file; `after` is the file as it will be, if it changes."""
    said, seen = dict(text or {}), entity.files[file]
    if after is not None:
        said |= replaying.change(seen.document, after)
        fields |= {"before": section_sha(seen.document, section), "after": section_sha(after, section)}
        fields |= {"found": seen.known_as, "left": text_sha256(render(after))}
    return repo.event(op, actor, entity_id=entity.id, file=file, section=section, text=said, **fields)


def write(repo: EntityRepository, entity: Entity, planned: Planned, sign: Sign = lambda event: event) -> Event:
    """Carries out what was planned; returns the event. If somebody saved the file meanwhile, the two are joined."""
    event, after = sign(planned[0]), planned[1]
    try:
        record(repo, [(event, entity.files[event.file or "profile"], after)])
    except FileChanged:
        observe.examine(repo, {entity.id}, doubtful={entity.id})
    return event


def record(repo: EntityRepository, writes: Sequence[tuple[Event, FileContent, EntityDocument | None]]) -> None:
    """Records events, all or none, then writes their files; after a crash the next look finishes that.

    What the disk refused is taken back. Raises `FileChanged` if somebody was faster: the events stand. Raises
    `WorkspaceError`, `OSError`.
    """
    sealed = repo.append(*(event for event, *_ in writes))
    try:
        written = [observe.put(repo, seen, after) for _, seen, after in writes if after is not None]
    except (OSError, WorkspaceError):
        if all(repo.read(seen.place).known_as == seen.known_as for _, seen, after in writes if after is not None):
            for event in reversed(sealed):
                repo.log.withdraw(event)
            repo.forget_states()
        raise
    with repo.workspace.database.transaction(durable=True):
        entities_store.put_files(repo.workspace.database, [repo.row(seen) for seen in written])
        repo.remember_log_end()
