"""Settles drift as the maintainer decides: keeps the file as it is, or rewrites it from its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from signet_sync.entities import execute, observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents.patch import whole
from signet_sync.entities.event_log.events import Actor, Event
from signet_sync.entities.repository import EntityRepository, FileContent, document_of, foreign_field
from signet_sync.entities.results import EntityResult
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import EntityPlace, File, kind_of
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import redact

# The name by which a maintainer refers to the event log itself if its end was lost.
LEDGER = "ledger"


def resolve(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    keep: Literal["file", "events"],
    *,
    file: File = "profile",
    actor: Actor,
    now_us: int,
) -> EntityResult:
    """Ends the drift of a file; the discarded text stays in the event log.

    Raises `UsageError`: `actor-refused` for any actor but a maintainer, `not-drifted`, `file-unreadable` (the file is
    no entity file of this id and cannot be kept), `events-incomplete` (the events do not contain the whole file).
    """
    if actor != "maintainer":
        raise UsageError("only a maintainer can resolve drift", hint="--actor maintainer", code="actor-refused")
    with state_dir.workspace_lock(workspace.state):
        before = entities_store.page_inputs(workspace.database, agent_id)
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.examine_all(repo)
        entity_id = _entity_id(repo, ref)
        queue = [one for one in repo.drift() if one.entity_id == entity_id]
        if not any(one.file == file for one in queue):
            raise UsageError("the file has not drifted", hint="signet-sync entity check", code="not-drifted")
        if entity_id == observe.LEDGER:
            event = _record(repo, None, None, {"accepted": [one.found_sha256 for one in queue]})
            with workspace.database.transaction(durable=True):
                entities_store.clear_drift(workspace.database, [one.path for one in queue])
        elif keep == "file":
            event = _keep_file(repo, _read(repo, entity_id, file))
        else:
            event = _keep_events(repo, _read(repo, entity_id, file))
        if entity_id != observe.LEDGER:
            observe.examine(repo, {entity_id})
        waiting = execute.update_page(workspace, agent_id, before, now_us)
        return execute.result_of(repo, event)._replace(waiting=waiting)


def _entity_id(repo: EntityRepository, ref: str) -> str:
    """Returns the id that a name refers to; a missing entity needs its full id. Raises `UsageError`."""
    if ref.strip() == LEDGER:
        return observe.LEDGER
    if kind_of(ref.strip()) is not None:
        return ref.strip()
    return execute.locate(repo, ref).id


def _read(repo: EntityRepository, entity_id: str, file: File) -> FileContent:
    """Reads the file from where it is, or should be by its events. Raises `UsageError`."""
    places = repo.places([entity_id]).get(entity_id, [])
    if len(places) > 1:
        raise UsageError("the entity exists in two folders", hint="remove one of them", code="file-unreadable")
    kind, slug = kind_of(entity_id), repo.replay(entity_id).slug
    if places:
        return repo.read(places[0]._replace(file=file))
    if kind is None or slug is None:
        raise UsageError("its events do not contain it", hint="signet-sync entity log", code="events-incomplete")
    return repo.read(EntityPlace(repo.agent_id, kind, slug, entity_id, file, repo.first_base(entity_id)))


def _keep_file(repo: EntityRepository, seen: FileContent) -> Event:
    document, place = document_of(seen.text), seen.place
    if document is None or foreign_field(place, document):
        raise UsageError(
            "the file cannot be kept: it is not an entity file with this id",
            path=seen.path,
            hint="correct it first, or keep the events",
            code="file-unreadable",
        )
    text = seen.text or ""
    return _record(repo, place, text_sha256(text), {**whole(text), "slug": place.slug})


def _keep_events(repo: EntityRepository, seen: FileContent) -> Event:
    text = repo.replay(seen.place.id).texts.get(seen.place.file)
    if text is None:
        raise UsageError(
            "its events do not contain the whole file",
            path=seen.path,
            hint="keep the file, or restore the event log from a copy",
            code="events-incomplete",
        )
    if seen.code not in ("", "gone", "not-utf8"):
        raise WorkspaceError(seen.message, path=seen.path, hint="move it away", code=seen.code)
    displaced = None if seen.raw is None else redact(seen.raw.decode("utf-8", "replace"))[0]
    event = _record(repo, seen.place, None, {"displaced": displaced})
    try:
        write_ahead.put(repo, seen, text)
    except write_ahead.FileChanged:
        raise WorkspaceError(
            "the file changed while it was being written", path=seen.path, hint="try again", code="busy"
        ) from None
    return event


def _record(
    repo: EntityRepository, place: EntityPlace | None, file_after: str | None, payload: Mapping[str, Any]
) -> Event:
    """Records the decision. It needs no outcome: the file exists already, or its events describe it already."""
    where = {} if place is None else {"entity_id": place.id, "file": place.file}
    event = repo.record("human_edit", "maintainer", payload, **where, file_after=file_after)
    write_ahead.update_rows(repo)
    return event
