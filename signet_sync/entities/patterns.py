"""Keeps patterns of relationships (pairs in conflict, groups) as items at the end of a user's Overview, with links.

A pattern that a person pruned or deleted stays away; one that no relationship shows any more goes by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from signet_sync.entities import replay, sections, write
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import SafeText, fit_item
from signet_sync.entities.repository import PATTERN, Entity, EntityRepository
from signet_sync.entities.store import EntityFile
from signet_sync.entities.write import Planned
from signet_sync.errors import UsageError
from signet_sync.formats.wikilinks import wikilink
from signet_sync.text.sentences import flatten_cell

# Types of relationships that mean conflict, in lower case, with blanks.
POLAR_TYPES = frozenset(
    {"polarized", "polarised", "polarity", "polarization", "polarisation", "conflict", "conflicts", "in conflict",
     "conflicted", "opposed", "opposes", "opposition", "tension", "rivalry", "rivals"}
)  # fmt: skip
GROUP_MEMBERS = 3  # connected entities that are a group
LIMIT = 10
OVERVIEW = "overview"
_NAMED = 6
_MOST = 40


def patterns(entities: Iterable[EntityFile]) -> list[str]:
    """Describes the patterns of an agent's active entities in lines with links, the most significant first.

    Pairs in conflict around a third entity, other pairs in conflict, groups of three or more connected entities. What
    takes part in a relationship and is not among the entities does not count. Equal files give equal lines.
    """
    rows = [row for row in entities if row.status != "deprecated"]
    by_title = sorted(
        (row for row in rows if row.kind != "relationship"), key=lambda row: (row.title.casefold(), row.id)
    )
    named = {row.id: _name(row) for row in by_title}  # in the order of titles
    near: dict[str, set[str]] = {}
    polar: set[tuple[str, str]] = set()
    for edge in (row for row in rows if row.kind == "relationship"):
        of_edge = [one for one in named if one in edge.participants]
        kind = " ".join((edge.type or "").casefold().replace("-", " ").replace("_", " ").split())
        for one, other in combinations(of_edge, 2):
            near.setdefault(one, set()).add(other)
            near.setdefault(other, set()).add(one)
            polar |= {(one, other)} if kind in POLAR_TYPES else set()

    def names(ids: Iterable[str]) -> str:
        found = [name for one, name in named.items() if one in set(ids)]
        if len(found) > _NAMED + 1:
            found = [*found[:_NAMED], f"{len(found) - _NAMED} more"]
        return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"

    around, alone, groups, seen = [], [], [], set[str]()
    order = list(named)
    for pair in sorted(polar, key=lambda pair: (order.index(pair[0]), order.index(pair[1]))):
        shared = near[pair[0]] & near[pair[1]]
        if shared:
            around.append(f"{names(pair)} are polarized around {names(shared)}.")
        else:
            alone.append(f"{names(pair)} are polarized.")
    for first in (one for one in order if one in near):
        if first not in seen:
            group, edge_of = {first}, [first]
            while edge_of:
                new = near[edge_of.pop()] - group
                group |= new
                edge_of.extend(new)
            seen |= group
            groups.append(group)
    groups.sort(key=lambda group: -len(group))
    hanging = [f"{names(group)} hang together." for group in groups if len(group) >= GROUP_MEMBERS]
    return [*around, *alone, *hanging][:LIMIT]


def _name(row: EntityFile) -> str:
    # A `|` or a bracket would end the label of the link early.
    label = flatten_cell(row.title, 80).replace("|", "¦").replace("[", "(").replace("]", ")")
    return wikilink(row.path, label or row.id)


def update(repo: EntityRepository) -> bool:
    """Adds new patterns and prunes those that no longer hold; returns whether it wrote.

    Does nothing without a user, or if a person has locked or pinned the section. The workspace's lock is held.
    """
    rows = entities_store.entities(repo.workspace.database, repo.agent_id)
    wanted = [fit_item(PATTERN + line) for line in patterns(rows)]
    # The first by title if there are several.
    user = next((row.id for row in rows if row.kind == "user" and row.status != "deprecated"), None)
    wrote = False
    # Bounded: an item that is read differently because of a person's Markdown must not be added without end.
    for _ in range(_MOST if user is not None else 0):
        entity = write.load_quietly(repo, user or "")
        planned = _next(repo, entity, wanted) if entity is not None else None
        if entity is None or planned is None:
            break
        write.write(repo, entity, planned)
        wrote = True
    return wrote


def _next(repo: EntityRepository, entity: Entity, wanted: list[SafeText]) -> Planned | None:
    """Plans one item to prune or to add; returns None if nothing is left to do."""
    try:
        where = sections.find_target(repo, entity, OVERVIEW)
        sections.refuse_guarded(entity, where, "observer")
    except UsageError:
        return None
    known = [item for item in edits.items(where.section) if item.text.startswith(PATTERN)]
    texts = [item.text for item in known]
    for item in known:
        if item.text not in wanted or texts.index(item.text) != known.index(item):
            after, gone = edits.prune_item(where.document, where.name, str(item.number))
            said = {"reason": "no relationships say so any more", "gone": gone}
            return sections.plan_edit(repo, entity, where, after, op="prune_item", actor="observer", text=said)
    missing = [text for text in wanted if text not in texts]
    pruned: set[str] = set()  # the patterns that somebody else than we took out last
    for event in repo.log.of(entity.id) if missing else ():
        before, after_it = replay.section_texts(event).get(OVERVIEW, ("", ""))
        old, new = (
            {line[2:] for line in text.split("\n") if line.startswith(f"- {PATTERN}")} for text in (before, after_it)
        )
        pruned = (pruned | (old - new if event.actor != "observer" else set())) - new
    for text in missing:
        if text not in pruned:
            after = edits.append_item(where.document, where.name, text)
            return sections.plan_edit(repo, entity, where, after, op="append_item", actor="observer")
    return None
