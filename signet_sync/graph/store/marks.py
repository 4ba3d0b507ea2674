"""Deletes accesses and pins of what only removed sessions stood behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.graph.store import nodes
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.removal import Scope, drop_session, within
from signet_sync.sync.tombstones import store as tombstones_store

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone

_VANISHED = "not exists(select 1 from memory_artifacts a where a.source_path = seals.path)"


class Orphans(NamedTuple):
    """What removals may have orphaned: condensations (agent, id), and agents whose vanished sessions were removed.

    `scopes` are sessions of removals that were not followed by their scrub yet.
    """

    above: set[tuple[str, str]]
    agents: set[str]
    scopes: Sequence[Scope] = ()


def forget_marks(database: Database, tombstones: Sequence[Tombstone]) -> Orphans:
    """Deletes accesses and pins of what the tombstones cover, before the rows that identify it are deleted.

    Call `forget_orphaned_marks` once the graph is updated.
    """
    fresh = tombstones_store.pending(database) if tombstones else ()
    orphans = Orphans(
        set(),
        set(),
        [tombstones_store.scope_of(one) for one in tombstones if (one.agent_id, one.session_token) in fresh],
    )
    for tombstone in tombstones:
        orphans.above.update(
            nodes.forget_accesses(database, tombstone.agent_id, tombstone.session_token, tombstone.session_ids)
        )
        scope, bindings = within(tombstones_store.scope_of(tombstone))
        if database.value(f"select exists(select 1 from seals where {scope} and {_VANISHED})", bindings):
            orphans.agents.add(tombstone.agent_id)
    return orphans


def forget_orphaned_marks(database: Database, orphans: Orphans) -> None:
    """Deletes accesses and pins of condensations that no longer exist, and of what vanished sessions were.

    The ids of these are in no row. While another vanished session of the agent may come back, they may be its own.
    Also deletes derived rows of removed sessions that are left.
    """
    for scope in orphans.scopes:
        drop_session(database, scope, "derived")
    nodes.forget_accesses_of_gone(database, orphans.above)
    for agent_id in orphans.agents:
        waiting = f"select exists(select 1 from seals where agent_id = ? and {_VANISHED})"
        if not database.value(waiting, (agent_id,)):
            nodes.forget_orphaned_accesses(database, agent_id)
