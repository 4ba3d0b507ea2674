"""Shows, lists, checks and replays an agent's entities and their event log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.entities import execute, observe, queries
from signet_sync.entities import proposals as entities_proposals
from signet_sync.entities import store as entities_store
from signet_sync.entities.event_log import chain
from signet_sync.entities.evidence import read_token
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.results import (
    EntityFinding,
    EntitySummary,
    EntityView,
    EventSource,
    LoggedEvent,
    Proposal,
    Replay,
)
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import FILES, Kind, kind_of, parse_path
from signet_sync.storage import clock, state_dir
from signet_sync.sync.workspace import Workspace


@contextmanager
def _opened(workspace: Workspace, agent_id: str, now_us: int | None = None) -> Iterator[EntityRepository]:
    """Opens an agent's entities under the workspace's lock."""
    with state_dir.workspace_lock(workspace.state):
        yield EntityRepository(workspace, agent_id, now_us or clock.now_us())


def show(workspace: Workspace, agent_id: str, ref: str, *, now_us: int) -> EntityView:
    """Returns an entity with its sections. Raises `UsageError` (`unknown-entity`, `ambiguous-entity`)."""
    with _opened(workspace, agent_id, now_us) as repo:
        return queries.view(repo, _examined(repo, ref))


def listing(workspace: Workspace, agent_id: str, *, kind: Kind | None = None, now_us: int) -> list[EntitySummary]:
    """Lists the entities of an agent by kind and title."""
    with _opened(workspace, agent_id, now_us) as repo:
        observe.examine_all(repo)
        return queries.list_entities(repo, kind)


def lint(workspace: Workspace, agent_id: str, ref: str | None = None, *, now_us: int) -> list[EntityFinding]:
    """Lists deviations of an entity's files (None: of all) from the schema. Raises as `show`."""
    with _opened(workspace, agent_id, now_us) as repo:
        if ref is None:
            observe.examine_all(repo)
            rows = entities_store.entities(workspace.database, agent_id)
        else:
            rows = [_examined(repo, ref)]
        found = [remark for row in rows for remark in queries.lint_files(repo, row)]
        wanted = {row.id for row in rows}
        return found + [remark for remark in queries.list_drift(repo) if remark.id in wanted or ref is None]


def verify(workspace: Workspace, agent_id: str) -> list[EntityFinding]:
    """Checks an agent's event log for edits, gaps and a lost end; returns an empty list if it is intact."""
    with _opened(workspace, agent_id) as repo:
        known = entities_store.log_end(workspace.database, agent_id)
        founded = {str((event.payload or {}).get("tombstone")) for event in repo.log.events_holding('"op":"erase"')}
        found = chain.verify(
            repo.log.lines(), known_last=known.last_hash if known else None, agent_id=agent_id, tombstones=founded
        )
        pages = repo.log.pages()
        queued = [one for one in repo.drift() if one.entity_id == observe.LEDGER]
    remarks = [EntityFinding(one.id, one.code, one.text, one.hint, pages.get(one.month, "")) for one in found]
    said = {remark.code for remark in remarks}
    return remarks + [
        EntityFinding("", one.code, one.message, one.hint, one.path) for one in queued if one.code not in said
    ]


def replay(workspace: Workspace, agent_id: str, ref: str) -> Replay:
    """Replays an entity's events and compares the result with its files. Raises as `show`."""
    with _opened(workspace, agent_id) as repo:
        entity_id, _ = _identify(repo, ref)
        observe.examine(repo, {entity_id})
        row = repo.find(entity_id)
        replayed = repo.replay(entity_id)
        place = parse_path(row.path) if row is not None else None
        found = [
            EntityFinding(
                one.event_id, f"events-{one.code}", one.message, "signet-sync entity log", row.path if row else ""
            )
            for one in replayed.trouble
        ]
        troubled = {one.file for one in replayed.trouble}
        for file in FILES:
            seen = repo.read(place._replace(file=file)) if place is not None else None
            text = seen.text if seen is not None else None
            if file not in troubled and text != replayed.texts.get(file):
                where = seen.path if seen is not None else ""
                found.append(EntityFinding(entity_id, *_difference(text, replayed.texts.get(file)), where))
        for event in replayed.unsettled:
            found.append(
                EntityFinding(
                    event.id, "unsettled", "a write was interrupted", "the next command completes or discards it"
                )
            )
    return Replay(entity_id, replayed.texts, tuple(found))


def drift(workspace: Workspace, agent_id: str) -> list[EntityFinding]:
    """Looks at all files and returns the maintainer's queue."""
    with _opened(workspace, agent_id) as repo:
        observe.examine_all(repo)
        return queries.list_drift(repo)


def log(workspace: Workspace, agent_id: str, ref: str | None = None, *, limit: int = 0) -> list[LoggedEvent]:
    """Lists the events of an entity (None: of all), newest first; `limit` 0: all of them. Raises as `show`."""
    with _opened(workspace, agent_id) as repo:
        found = queries.list_events(repo, None if ref is None else _identify(repo, ref)[0])
    return found[:limit] if limit else found


def proposals(workspace: Workspace, agent_id: str, ref: str | None = None) -> list[Proposal]:
    """Lists open proposals, oldest first. Raises as `show`."""
    with _opened(workspace, agent_id) as repo:
        return entities_proposals.waiting(repo, None if ref is None else _identify(repo, ref)[0])


def source(workspace: Workspace, agent_id: str, token: str) -> EventSource:
    """Returns what an `ev:…` refers to. Raises `UsageError` (`token-invalid`, `unknown-event`)."""
    read = read_token(token.strip())
    if read is None:
        raise UsageError(
            f"{token.strip()[:60]!r} is not the name of an event", hint="ev:20260328T223406Z-…", code="token-invalid"
        )
    with _opened(workspace, agent_id) as repo:
        event = repo.log.event(read.ulid)
        row = repo.find(event.entity_id) if event is not None and event.entity_id is not None else None
    if event is None:
        raise UsageError(
            f"agent {agent_id} has no event {read.text}", hint="--agent chooses another agent", code="unknown-event"
        )
    path, _, line = (event.evidence[0] if event.evidence else "").rpartition("#")
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
    return EventSource(event, row.path if row is not None else "", path or None, number)


def _examined(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the row of an entity after a look at its files. Raises `UsageError`."""
    observe.catch_up(repo)
    row = execute.locate(repo, ref)
    observe.examine(repo, {row.id})
    return repo.find(row.id) or row


def _identify(repo: EntityRepository, ref: str) -> tuple[str, EntityFile | None]:
    """Returns the id that a name refers to, and its row; a missing entity needs its full id. Raises `UsageError`."""
    row = repo.find(ref)
    if row is None and kind_of(ref.strip()) is not None and repo.log.of(ref.strip()):
        return ref.strip(), None
    row = row or execute.locate(repo, ref)
    return row.id, row


def _difference(text: str | None, expected: str | None) -> tuple[str, str, str]:
    if text is None:
        return "file-missing", "the file is gone; its events contain it", "signet-sync entity check"
    if expected is None:
        return "not-told", "no events contain this file", "signet-sync reindex records it"
    return "differs", "the file differs from its events", "signet-sync reindex records a person's edit"
