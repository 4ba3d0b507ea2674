"""Executes requests on entities: once for a key, under the workspace's lock; then MEMORY.md follows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Required, TypedDict

from signet_sync.entities import observe, own_edits
from signet_sync.entities import store as entities_store
from signet_sync.entities.events import Actor, Event, canonical
from signet_sync.entities.log import key_digest
from signet_sync.entities.repository import Entity, EntityRepository
from signet_sync.entities.write import Planned, Sign, load, write
from signet_sync.errors import UsageError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import File, kind_of
from signet_sync.formats.paths import head_page
from signet_sync.storage import state_dir
from signet_sync.sync import deriving, engine
from signet_sync.sync.workspace import Request, Workspace


class Caller(TypedDict, total=False):
    """Who asks, and when (microseconds since 1970 UTC); an idempotency `key` makes a repeated request harmless."""

    actor: Actor
    now_us: Required[int]
    key: str | None


@dataclass(frozen=True, slots=True)
class EntityRequest:
    """A request: who asks, and in `fields` everything that makes two requests equal."""

    actor: Actor
    now_us: int
    key: str | None
    fields: Mapping[str, Any]
    redactions: Mapping[str, int] = field(default_factory=dict)

    def digest(self) -> str:
        """Returns the digest of the request."""
        return text_sha256(canonical({"actor": self.actor, **self.fields}))


class EntityResult(NamedTuple):
    """A recorded operation: entity, event, its `ev:…`, and the file it concerns.

    `before` and `after` are hashes of the section (None without one): `after` is what the next edit may `expect`.
    `replayed`: it was done earlier under the same idempotency key. `waiting` is the reason why MEMORY.md does not show
    it yet, `effect` what approving a proposal does.
    """

    id: str
    event_id: str
    section: str | None
    before: str | None
    after: str | None
    warnings: tuple[str, ...]
    path: str
    token: str
    replayed: bool = False
    redactions: Mapping[str, int] = {}
    waiting: str = ""
    effect: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the result."""
        return {name: value for name, value in self._asdict().items() if name not in ("waiting", "effect")}


# ── a request ──


def require(actor: Actor, who: str, what: str) -> None:
    """Raises `UsageError` (`actor-refused`) unless a maintainer, or at least a person, asks for it."""
    if actor not in (("maintainer",) if who == "maintainer" else ("person", "maintainer")):
        raise UsageError(f"only a {who} can {what}", hint=f"--actor {who}", code="actor-refused")


def edit_entity(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    request: EntityRequest,
    plan: Callable[[EntityRepository, Entity], Planned],
) -> EntityResult:
    """Carries out an operation on the entity that `ref` names."""

    def act(repo: EntityRepository, sign: Sign) -> Event:
        entity = load(repo, ref)
        return write(repo, entity, plan(repo, entity), sign)

    return run(workspace, agent_id, request, act)


def run(
    workspace: Workspace,
    agent_id: str,
    request: EntityRequest,
    act: Callable[[EntityRepository, Sign], Event],
) -> EntityResult:
    """Runs `act` under the workspace's lock, once for an idempotency key; then updates patterns and MEMORY.md.

    `act` returns the event that it recorded; its second argument signs it with the key.
    """
    digest = None if request.key is None else key_digest(agent_id, request.key)
    with state_dir.workspace_lock(workspace.state):
        before = entities_store.page_inputs(workspace.database, agent_id)
        if deriving.is_stale(workspace.database, workspace.pipeline):
            # The vault was not scanned yet, but evidence refers to its files, and the page shows them.
            engine.run_locked(workspace, Request(now_us=request.now_us))
        repo = EntityRepository(workspace, agent_id, request.now_us)
        observe.catch_up(repo)
        known = repo.log.events(f'"key":"{digest}"') if digest is not None else []
        for event in (one for one in known if one.key == digest):
            if event.request != request.digest():
                message, hint = "this idempotency key was used for another request", "use a different key for each"
                raise UsageError(message, hint=f"{hint} request", code="idempotency-conflict")
            return result_of(repo, event)._replace(replayed=True)
        signed = None if digest is None else request.digest()
        event = act(repo, lambda one: replace(one, key=digest, request=signed))
        if kind_of(event.entity_id or "") != "part" or event.op in ("deprecate", "status", "undo"):
            own_edits.update_patterns(repo)
        done = result_of(repo, event)
        return done._replace(redactions=dict(request.redactions), waiting=update_page(repo, before))


def update_page(repo: EntityRepository, before: frozenset[tuple[object, ...]]) -> str:
    """Updates MEMORY.md if its lines about entities changed; returns why it has to wait, or an empty string."""
    workspace, page = repo.workspace, head_page(repo.agent_id)
    if entities_store.page_inputs(workspace.database, repo.agent_id) == before:
        return ""
    outcome = engine.run_locked(workspace, Request(now_us=repo.now_us, paths=frozenset({page}), resume=False))
    if outcome.held:
        return f"{page} was not updated: {outcome.held}"
    return f"{page} will be updated by the next pass: {outcome.trouble[0]}" if outcome.trouble else ""


def result_of(repo: EntityRepository, event: Event) -> EntityResult:
    """Makes the answer for an event."""
    file: File = event.file or "profile"
    rows = entities_store.files_of(repo.workspace.database, repo.agent_id, event.entity_id or "")
    section = f"notes/{event.section}" if event.section is not None and file == "notes" else event.section
    return EntityResult(
        event.entity_id or "",
        event.id,
        section,
        event.before,
        event.after,
        tuple(event.said("warnings") or ()),
        next((row.path for row in rows if row.file == file), ""),
        event.token,
        effect=event.said("effect") or "",
    )
