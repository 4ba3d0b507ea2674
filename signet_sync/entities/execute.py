"""Carries out operations on entities: settles open writes, records edits, plans, writes, updates MEMORY.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Required, TypedDict

from signet_sync.entities import observe, relation_items, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.event_log.agent_log import new_ulid
from signet_sync.entities.event_log.events import Actor, Event, key_of, replayed, request_sha256
from signet_sync.entities.repository import Entity, EntityRepository
from signet_sync.entities.results import EntityResult
from signet_sync.entities.store import EntityFile
from signet_sync.entities.write_ahead import EditPlan, EventStamp, FileChanged
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.entity_paths import File
from signet_sync.formats.paths import head_page
from signet_sync.storage import state_dir
from signet_sync.sync import deriving, engine
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace

_TRIES = 3
# Operations on a part that change the items about patterns of relationships.
_SHOWN = ("deprecate", "status")


class Caller(TypedDict, total=False):
    """Who asks, and when (microseconds since 1970 UTC); an idempotency `key` makes a repeated request harmless."""

    actor: Actor
    now_us: Required[int]
    key: str | None


class Writer(Caller, total=False):
    """Who asks for a text, and what it rests on: a rationale, `PATH#LINE` of an artifact."""

    rationale: str | None
    evidence: str | None


@dataclass(frozen=True, slots=True)
class EntityRequest:
    """A request: operation, actor, time. `fields` holds everything that makes two requests equal."""

    op: str
    actor: Actor
    now_us: int
    key: str | None
    fields: Mapping[str, Any]
    redactions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        op: str,
        caller: Caller,
        fields: Mapping[str, Any],
        redactions: Mapping[str, int] | None = None,
        *,
        actor: Actor = "agent",
    ) -> EntityRequest:
        """Makes the request of a call; `actor` is the one that most often makes such a request."""
        return cls(op, caller.get("actor", actor), caller["now_us"], caller.get("key"), fields, redactions or {})

    def stamp(self, agent_id: str) -> EventStamp:
        """Makes the stamp of the request's events."""
        keyed = None if self.key is None else key_of(agent_id, self.key)
        digest = None if self.key is None else self.digest()
        return EventStamp(ulid=new_ulid(self.now_us), actor=self.actor, key=keyed, request=digest)

    def digest(self) -> str:
        """Returns the digest of the request."""
        return request_sha256({"op": self.op, "actor": self.actor, **self.fields})


Planner = Callable[[EntityRepository, Entity, str], EditPlan]


def edit_entity(workspace: Workspace, agent_id: str, ref: str, request: EntityRequest, plan: Planner) -> EntityResult:
    """Carries out an operation on the entity `ref`; calls `plan` again if the file was saved in the meantime."""

    def act(repo: EntityRepository) -> tuple[Event, Entity]:
        entity = load(repo, ref)
        stamp = request.stamp(agent_id)
        return write_ahead.write(repo, entity, plan(repo, entity, stamp.ulid), stamp), entity

    return run_request(workspace, agent_id, request, act)


def run_request(
    workspace: Workspace, agent_id: str, request: EntityRequest, act: Callable[[EntityRepository], tuple[Event, Entity]]
) -> EntityResult:
    """Runs `act` under the workspace's lock, once for an idempotency key."""
    with state_dir.workspace_lock(workspace.state):
        for _ in range(_TRIES):
            before = entities_store.page_inputs(workspace.database, agent_id)
            if deriving.is_stale(workspace.database, workspace.pipeline):
                # The vault was not scanned yet, but evidence refers to its files, and the page shows them.
                engine.run_locked(workspace, Request(now_us=request.now_us))
            repo = EntityRepository(workspace, agent_id, request.now_us)
            observe.catch_up(repo)
            known = _earlier_result(repo, request)
            if known is not None:
                return known
            try:
                event, entity = act(repo)
            except FileChanged:
                continue
            if entity.kind != "part" or event.op in _SHOWN:
                relation_items.update_patterns_in(repo)
            return _finish(repo, request, event, before)
    raise WorkspaceError("the file kept changing while it was being written", hint="try again later", code="busy")


def load(repo: EntityRepository, ref: str) -> Entity:
    """Returns the entity that a name refers to, after recording edits of its files. Raises `UsageError`."""
    row = locate(repo, ref)
    for _ in range(_TRIES):
        observe.examine(repo, {row.id})
        row = repo.find(row.id) or row
        refuse_drift(repo, row.id)
        entity = write_ahead.load(repo, row)
        if entity is not None and _is_current(repo, entity):
            return entity
    raise WorkspaceError("the file changed while it was being read", path=row.path, hint="try again", code="busy")


def locate(repo: EntityRepository, ref: str) -> EntityFile:
    """Returns the profile row that a name refers to; if there is none, looks at all files. Raises `UsageError`."""
    row = repo.find(ref)
    if row is None:
        observe.examine(repo, None)
        row = repo.find(ref)
    if row is None:
        if ref.strip():  # the event log itself waits under an empty id
            refuse_drift(repo, ref.strip())
        raise repo.unknown(ref)
    return row


def refuse_drift(repo: EntityRepository, entity_id: str) -> None:
    """Raises `UsageError` (`entity-drifted`) if a file of the entity waits for a maintainer."""
    for drift in repo.drift():
        if drift.entity_id == entity_id:
            raise UsageError(
                f"a maintainer has to resolve the drift of this entity first: {drift.message}",
                path=drift.path,
                hint=f"{drift.hint}; signet-sync entity check",
                code="entity-drifted",
            )


def _is_current(repo: EntityRepository, entity: Entity) -> bool:
    """Checks that the files are unchanged since the last look."""
    known = {row.path: row.sha256 for row in entities_store.files_of(repo.workspace.database, repo.agent_id, entity.id)}
    return all(known.get(seen.path) == seen.sha256 for seen in entity.seen.values() if seen.raw is not None)


def update_page(workspace: Workspace, agent_id: str, before: frozenset[tuple[object, ...]], now_us: int) -> str:
    """Updates MEMORY.md if its lines about entities changed; returns why it has to wait, or an empty string."""
    if entities_store.page_inputs(workspace.database, agent_id) == before:
        return ""
    page = head_page(agent_id)
    outcome = engine.run_locked(workspace, Request(now_us=now_us, paths=frozenset({page}), resume=False))
    if outcome.held:
        return f"{page} was not updated: {outcome.held}"
    return f"{page} will be updated by the next pass: {outcome.trouble[0]}" if outcome.trouble else ""


def _earlier_result(repo: EntityRepository, request: EntityRequest) -> EntityResult | None:
    """Returns the earlier answer to the same key. Raises `UsageError` (`idempotency-conflict`)."""
    if request.key is None:
        return None
    found = replayed(repo.log.under(request.key), key_of(repo.agent_id, request.key), request.digest())
    if found == "conflict":
        raise UsageError(
            "this idempotency key was used for another request",
            hint="use a different key for each request",
            code="idempotency-conflict",
        )
    return None if found is None else result_of(repo, found, replayed=True)


def result_of(repo: EntityRepository, event: Event, *, replayed: bool = False) -> EntityResult:
    """Makes the answer for an event."""
    file: File = event.file or "profile"
    rows = entities_store.files_of(repo.workspace.database, repo.agent_id, event.entity_id or "")
    said = (event.payload or {}).get("warnings")
    return EntityResult(
        id=event.entity_id or "",
        event_id=event.id,
        section=_named(event.section, file),
        before=event.before,
        after=event.after,
        warnings=tuple(said) if isinstance(said, list) else (),
        path=next((row.path for row in rows if row.file == file), ""),
        token=event.token,
        replayed=replayed,
        redactions={},
    )


def _finish(
    repo: EntityRepository, request: EntityRequest, event: Event, before: frozenset[tuple[object, ...]]
) -> EntityResult:
    waiting = update_page(repo.workspace, repo.agent_id, before, request.now_us)
    return result_of(repo, event)._replace(redactions=dict(request.redactions), waiting=waiting)


def _named(section: str | None, file: File) -> str | None:
    return f"notes/{section}" if section is not None and file == "notes" else section
