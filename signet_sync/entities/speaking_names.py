"""Gives the files of existing entities the names that those of new ones have, and takes that back."""

from __future__ import annotations

from collections.abc import Collection

from signet_sync.entities import execute, observe, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.rename import moves, relink
from signet_sync.entities.repository import EntityRepository
from signet_sync.formats.entity_paths import base_of, parse_path
from signet_sync.sync.workspace import Workspace


def look(workspace: Workspace, agent_id: str, now_us: int) -> None:
    """Brings the rows up to date with the files: a call that was ended may have renamed some. The lock is held."""
    observe.examine_all(EntityRepository(workspace, agent_id, now_us))


def plain_named(workspace: Workspace, agent_id: str) -> dict[str, dict[str, str]]:
    """Returns by id the entities whose files are called `profile.md` and `notes.md`: what `name_files` would rename."""
    found = {}
    for row in entities_store.entities(workspace.database, agent_id):
        place = parse_path(row.path)
        if place is not None and not place.base:
            found[row.id] = dict(moves(place, place._replace(base=base_of(row.title, row.kind))))
    return found


def speaking_named(workspace: Workspace, agent_id: str, ids: Collection[str]) -> dict[str, dict[str, str]]:
    """Returns those of some entities whose files are called otherwise, and what calling them so again would rename."""
    found = {}
    for row in entities_store.entities(workspace.database, agent_id):
        place = parse_path(row.path)
        if row.id in ids and place is not None and place.base:
            found[row.id] = dict(moves(place, place._replace(base="")))
    return found


def name_files(
    workspace: Workspace, agent_id: str, ids: Collection[str], now_us: int, *, plain: bool
) -> dict[str, str]:
    """Calls the files of some entities as their title or (`plain`) `profile.md` and `notes.md`; their links follow.

    Returns former and present paths without `.md`. Entities that wait for a maintainer, and names that are taken, are
    left as they are. The workspace's lock is held.
    """
    repo, done = EntityRepository(workspace, agent_id, now_us), dict[str, str]()
    before = entities_store.page_inputs(workspace.database, agent_id)
    observe.catch_up(repo)
    for entity_id in sorted(ids):
        entity = observe.writable(repo, entity_id)
        if entity is None:
            continue
        place = entity.seen["profile"].place
        base = "" if plain else place.base or base_of(entity.profile.title, entity.kind)
        after = write_ahead.name_files(repo, place, base) if base != place.base else None
        if after is not None:
            observe.examine(repo, {entity_id})
            relink(repo, entity)
            done |= moves(place, after)
    if done:
        execute.update_page(workspace, agent_id, before, now_us)
    return done
