"""Proposes what is said of pinned names as texts of entity files; a person approves or rejects each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signet_sync.entities import operations, proposals, protection
from signet_sync.entities import store as entities_store
from signet_sync.entities.event_log.events import Event, key_of
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.results import Proposal
from signet_sync.errors import UsageError
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace

# By which the proposals are recognised when they are taken back.
WHY = "why: pinned in Signet; until: a person answers; plan: approve or reject it"
UNDONE = "the migration was undone"
MOST_ITEMS = 12


class PinnedEntity(NamedTuple):
    """A pinned name: what is said of it, and what is said under its aspects."""

    agent_id: str
    name: str
    description: str
    items: list[str]


def propose(workspace: Workspace, pinned: PinnedEntity, now_us: int) -> None:
    """Proposes texts for the entity of this name, which is created if there is none; what waits already is left."""
    agent_id = pinned.agent_id
    entity_id = _called(workspace, agent_id, pinned.name) or _create(workspace, agent_id, pinned.name, now_us)
    if entity_id is None:
        return
    wanted = [("identity", pinned.description)] if pinned.description else []
    wanted += [("highlights", item) for item in pinned.items[:MOST_ITEMS]]
    waiting = {(one.section, one.text) for one in _waiting(workspace, agent_id, now_us) if one.entity_id == entity_id}
    for section, text in wanted:
        if (section, text) not in waiting:
            try:
                protection.propose(workspace, agent_id, entity_id, section, text, rationale=WHY, now_us=now_us)
            except UsageError:  # its files wait for a maintainer, or the section is full: the memory is there
                continue


def _called(workspace: Workspace, agent_id: str, name: str) -> str | None:
    for row in entities_store.entities(workspace.database, agent_id):
        if row.title.casefold() == name.casefold() and row.status != operations.DEPRECATED:
            return row.id
    return None


def _create(workspace: Workspace, agent_id: str, name: str, now_us: int) -> str | None:
    for number in range(_TRIES):
        try:
            done = operations.create(workspace, agent_id, "part", name, now_us=now_us, key=_key(name, number))
        except UsageError:
            return None
        if not done.replayed:
            return done.id
    return None


# An entity that was taken back stays in the event log: brought again, it is another one.
_TRIES = 20


def _key(name: str, number: int) -> str:
    return f"migrate signet {number} {name}"


def _waiting(workspace: Workspace, agent_id: str, now_us: int) -> list[Proposal]:
    with state_dir.workspace_lock(workspace.state):
        return proposals.waiting(EntityRepository(workspace, agent_id, now_us))


def brought(workspace: Workspace, agents: Sequence[str], now_us: int) -> Iterator[tuple[str, Proposal]]:
    """Yields the proposals that were brought and still wait, with their agents."""
    for agent_id in agents:
        for one in _waiting(workspace, agent_id, now_us):
            if (one.rationale or "").startswith("why: pinned in Signet;"):
                yield agent_id, one


def take_back(workspace: Workspace, agent_id: str, found: Proposal, now_us: int) -> None:
    """Rejects a proposal; an entity that was created for it and that nobody used is deprecated."""
    protection.reject(workspace, agent_id, found.id, reason=UNDONE, now_us=now_us)
    with state_dir.workspace_lock(workspace.state):
        entries = EntityRepository(workspace, agent_id, now_us).log.of(found.entity_id)
        waits = any(
            one.entity_id == found.entity_id
            for one in proposals.waiting(EntityRepository(workspace, agent_id, now_us), found.entity_id)
        )
    events = [entry for entry in entries if isinstance(entry, Event)]
    created = next((event for event in events if event.op == "create"), None)
    row = next(
        (row for row in entities_store.entities(workspace.database, agent_id) if row.id == found.entity_id), None
    )
    if waits or created is None or row is None:
        return
    ours = {key_of(agent_id, _key(row.title, number)) for number in range(_TRIES)}
    if created.idempotency_key in ours and {event.op for event in events} <= {"create", "propose", "reject"}:
        operations.deprecate(workspace, agent_id, found.entity_id, reason=UNDONE, actor="person", now_us=now_us)
