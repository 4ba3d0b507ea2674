"""Deletes accesses of what only removed sessions stood behind, and tells which pins go."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from signet_sync.formats.artifact import Tombstone
from signet_sync.storage.database.batches import Scope, drop_ids, drop_session, within
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import TABLES, list_by_ids, list_distilled
from signet_sync.sync.store import tombstones as tombstones_store

_VANISHED = "not exists(select 1 from memory_artifacts a where a.source_path = seals.path)"
# Nodes, and all that they were condensed into.
_ABOVE = """
    with recursive above(id) as (select value from json_each(?2) union select c.parent_id from above
    join session_summary_children c on c.agent_id = ?1 and c.child_id = above.id) select id from above"""


class Orphans(NamedTuple):
    """What removals may have orphaned: ids (agent, id), and agents whose vanished sessions were removed.

    `scopes` are sessions of removals that were not followed by their scrub yet.
    """

    ids: set[tuple[str, str]]
    agents: set[str]
    scopes: Sequence[Scope] = ()


def find_orphans(database: Database, tombstones: "Sequence[Tombstone]") -> Orphans:
    """Returns what removals may orphan, before the rows that tell it are deleted."""
    fresh = tombstones_store.pending(database) if tombstones else ()
    orphans = Orphans(
        set(),
        set(),
        [one.scope for one in tombstones if one.key in fresh],
    )
    for tombstone in tombstones:
        agent_id, (scope, bindings) = tombstone.agent_id, within(tombstone.scope)
        of_rows = " union ".join(f"select {table.handle} from {table.rows} where {scope}" for table in list_distilled())
        ids = [one for (one,) in database.execute(of_rows, [*bindings] * len(list_distilled()))]
        orphans.ids.update((agent_id, one) for (one,) in database.execute(_ABOVE, (agent_id, json.dumps(ids))))
        if database.value(f"select exists(select 1 from seals where {scope} and {_VANISHED})", bindings):
            orphans.agents.add(agent_id)
    return orphans


def forget_orphaned_marks(database: Database, orphans: Orphans) -> list[tuple[str, str]]:
    """Deletes accesses of ids that no row has any more, once the graph is updated; returns these, agent and id.

    The ids of what vanished sessions were are in no row before either. While another vanished session of the agent may
    come back, they may be its own. Also deletes derived rows of removed sessions that are left.
    """
    for scope in orphans.scopes:
        drop_session(database, scope, "derived")
    ids = set(orphans.ids)
    made = " union ".join(f"select {TABLES[name].handle} from {name} where agent_id = ?1" for name in list_by_ids())
    made += " union select id from pins where agent_id = ?1"
    for agent_id in orphans.agents:
        if not database.value(f"select exists(select 1 from seals where agent_id = ? and {_VANISHED})", (agent_id,)):
            ids.update((agent_id, one) for (one,) in database.execute(made, (agent_id,)))
    behind = [one for one in TABLES.values() if one.handle and (one.kind == "derived" or one.name == "memories")]
    there = " union all ".join(f"select 1 from {one.rows} where agent_id = ?1 and {one.handle} = ?2" for one in behind)
    gone = [one for one in sorted(ids) if not database.value(f"select exists({there})", one)]
    drop_ids(database, gone, *list_by_ids())
    return gone
