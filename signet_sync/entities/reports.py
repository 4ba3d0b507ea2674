"""Shows, lists, checks and replays an agent's entities and their event log."""

from __future__ import annotations

from signet_sync.entities import execute, observe, queries
from signet_sync.entities import proposals as entities_proposals
from signet_sync.entities import store as entities_store
from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log.events import Event
from signet_sync.entities.evidence import read_token
from signet_sync.entities.repository import Garden
from signet_sync.entities.results import Listed, Logged, Proposal, Remark, Replay, Shown, Source
from signet_sync.entities.store import GardenFile
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import FILES, Kind, kind_of, parse_path
from signet_sync.storage import state_dir
from signet_sync.storage.clock import now_us
from signet_sync.sync.workspace import Workspace


def show(workspace: Workspace, agent_id: str, ref: str, *, now_us: int) -> Shown:
    """Returns an entity with its sections. Raises `UsageError` (`unknown-entity`, `ambiguous-entity`)."""
    with state_dir.workspace_lock(workspace.state):
        garden, row = _looked_at(workspace, agent_id, ref, now_us)
        return queries.shown(garden, row)


def listing(workspace: Workspace, agent_id: str, *, kind: Kind | None = None, now_us: int) -> list[Listed]:
    """Lists the entities of an agent by kind and title."""
    with state_dir.workspace_lock(workspace.state):
        garden = Garden(workspace, agent_id, now_us)
        observe.tend(garden)
        observe.look(garden, None)
        return queries.listed(garden, kind)


def lint(workspace: Workspace, agent_id: str, ref: str | None = None, *, now_us: int) -> list[Remark]:
    """Lists deviations of an entity's files (None: of all) from the schema. Raises as `show`."""
    with state_dir.workspace_lock(workspace.state):
        if ref is None:
            garden = Garden(workspace, agent_id, now_us)
            observe.tend(garden)
            observe.look(garden, None)
            rows = entities_store.entities(workspace.database, agent_id)
        else:
            garden, row = _looked_at(workspace, agent_id, ref, now_us)
            rows = [row]
        found = [remark for row in rows for remark in queries.untidy(garden, row)]
        wanted = {row.id for row in rows}
        return found + [remark for remark in queries.queued(garden) if remark.id in wanted or ref is None]


def verify(workspace: Workspace, agent_id: str) -> list[Remark]:
    """Checks an agent's event log for edits, gaps and a lost end; returns an empty list if it is intact."""
    with state_dir.workspace_lock(workspace.state):
        garden = _open(workspace, agent_id)
        lines = garden.ledger.lines()
        known = entities_store.chain(workspace.database, agent_id)
        founded = {
            str((entry.payload or {}).get("tombstone"))
            for entry in garden.ledger.holding('"op":"erase"')
            if isinstance(entry, Event)
        }
        found = chain.verify(
            lines, known_last=known.last_hash if known else None, agent_id=agent_id, tombstones=founded
        )
        pages = garden.ledger.pages()
        queued = [one for one in entities_store.drift(workspace.database, agent_id) if one.entity_id == observe.LEDGER]
    remarks = [
        Remark(
            one.id,
            one.code,
            f"line {one.number}: {one.message}" if one.number else one.message,
            one.hint,
            pages.get(one.month, ""),
        )
        for one in found
    ]
    said = {remark.code for remark in remarks}
    return remarks + [Remark("", one.code, one.message, one.hint, one.path) for one in queued if one.code not in said]


def replay(workspace: Workspace, agent_id: str, ref: str) -> Replay:
    """Replays an entity's events and compares the result with its files. Raises as `show`."""
    with state_dir.workspace_lock(workspace.state):
        garden = _open(workspace, agent_id)
        entity_id, _ = _named(garden, ref)
        observe.look(garden, {entity_id})
        row = garden.find(entity_id)
        told = garden.told(entity_id)
        place = parse_path(row.path) if row is not None else None
        found = [
            Remark(one.event_id, f"events-{one.code}", one.message, "signet-sync entity log", row.path if row else "")
            for one in told.trouble
        ]
        troubled = {one.file for one in told.trouble}
        for file in FILES:
            seen = garden.seen(place._replace(file=file)) if place is not None else None
            text = seen.text if seen is not None else None
            if file not in troubled and text != told.texts.get(file):
                where = seen.path if seen is not None else ""
                found.append(Remark(entity_id, *_difference(text, told.texts.get(file)), where))
        for event in told.unsettled:
            found.append(Remark(event.id, "unsettled", "a write was cut off", "the next command settles it"))
    return Replay(entity_id, told.texts, tuple(found))


def drift(workspace: Workspace, agent_id: str) -> list[Remark]:
    """Looks at all files and returns the maintainer's queue."""
    with state_dir.workspace_lock(workspace.state):
        garden = _open(workspace, agent_id)
        observe.tend(garden)
        observe.look(garden, None)
        return queries.queued(garden)


def log(workspace: Workspace, agent_id: str, ref: str | None = None, *, limit: int = 0) -> list[Logged]:
    """Lists the events of an entity (None: of all), newest first; `limit` 0: all of them. Raises as `show`."""
    with state_dir.workspace_lock(workspace.state):
        garden = _open(workspace, agent_id)
        found = queries.logged(garden, None if ref is None else _named(garden, ref)[0])
    return found[:limit] if limit else found


def proposals(workspace: Workspace, agent_id: str, ref: str | None = None) -> list[Proposal]:
    """Lists open proposals, oldest first. Raises as `show`."""
    with state_dir.workspace_lock(workspace.state):
        garden = _open(workspace, agent_id)
        return entities_proposals.waiting(garden, None if ref is None else _named(garden, ref)[0])


def source(workspace: Workspace, agent_id: str, token: str) -> Source:
    """Returns what an `ev:…` refers to. Raises `UsageError` (`token-invalid`, `unknown-event`)."""
    read = read_token(token.strip())
    if read is None:
        raise UsageError(
            f"{token.strip()[:60]!r} is no event token", hint="ev:20260328T223406Z-…", code="token-invalid"
        )
    with state_dir.workspace_lock(workspace.state):
        garden = _open(workspace, agent_id)
        event = garden.ledger.event(read.ulid)
        row = garden.find(event.entity_id) if event is not None and event.entity_id is not None else None
    if event is None:
        raise UsageError(
            f"agent {agent_id} has no event {read.text}", hint="--agent chooses another agent", code="unknown-event"
        )
    path, _, line = (event.evidence[0] if event.evidence else "").rpartition("#")
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None
    return Source(event, row.path if row is not None else "", path or None, number)


def _open(workspace: Workspace, agent_id: str) -> Garden:
    return Garden(workspace, agent_id, now_us())


def _looked_at(workspace: Workspace, agent_id: str, ref: str, now_us: int) -> tuple[Garden, GardenFile]:
    """Returns the row of an entity after a look at its files. The workspace's lock is held. Raises `UsageError`."""
    garden = Garden(workspace, agent_id, now_us)
    observe.tend(garden)
    row = execute.located(garden, ref)
    observe.look(garden, {row.id})
    return garden, garden.find(row.id) or row


def _named(garden: Garden, ref: str) -> tuple[str, GardenFile | None]:
    """Returns the id that a name refers to, and its row; a missing entity needs its full id. Raises `UsageError`."""
    row = garden.find(ref)
    if row is None and kind_of(ref.strip()) is not None and garden.ledger.of(ref.strip()):
        return ref.strip(), None
    row = row or execute.located(garden, ref)
    return row.id, row


def _difference(text: str | None, told: str | None) -> tuple[str, str, str]:
    if text is None:
        return "file-missing", "the file is gone; its events tell it", "signet-sync entity drift"
    if told is None:
        return "not-told", "no events tell this file", "signet-sync reindex takes it up"
    return "differs", "the file is not what its events tell", "signet-sync reindex records a person's edit"
