"""Proposes what is said of pinned names as texts of entity files; a person approves or rejects each."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.entities import operations, proposals, protection
from signet_sync.entities import store as entities_store
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.results import Proposal
from signet_sync.errors import UsageError
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace

WHY = "why: pinned in Signet; until: a person answers; plan: approve or reject it"
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
    try:
        return operations.create(workspace, agent_id, "part", name, now_us=now_us, key=f"migrate signet {name}").id
    except UsageError:
        return None


def _waiting(workspace: Workspace, agent_id: str, now_us: int) -> list[Proposal]:
    with state_dir.workspace_lock(workspace.state):
        return proposals.waiting(EntityRepository(workspace, agent_id, now_us))
