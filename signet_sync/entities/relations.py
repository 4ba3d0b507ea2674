"""Finds patterns in relationships: pairs in conflict, what their conflict is about, hubs, groups."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Literal, NamedTuple

from signet_sync.formats.wikilinks import wikilink
from signet_sync.text.sentences import flatten_cell

# Types of relationships that mean conflict, as `_type` normalises them.
POLAR_TYPES = frozenset(
    {"polarized", "polarised", "polarity", "polarization", "polarisation", "conflict", "conflicts", "in conflict",
     "conflicted", "opposed", "opposes", "opposition", "tension", "rivalry", "rivals"}
)  # fmt: skip
# The number of relationships that makes an entity a hub, and of entities that makes a group.
HUB_EDGES = 3
GROUP_MEMBERS = 3
LIMIT = 10
_NAMED = 6


class Member(NamedTuple):
    """An entity in relationships: its id, its title, its profile's path relative to the workspace."""

    id: str
    title: str
    path: str


class Relationship(NamedTuple):
    """A relationship: its id, its type as written, its participants' ids."""

    id: str
    type: str | None
    participants: tuple[str, ...]


class Pattern(NamedTuple):
    """A pattern: its entities, its relationships, and the line that describes it (flattened, with links)."""

    code: Literal["polarized-around", "polarized", "hub", "group"]
    members: tuple[str, ...]
    edges: tuple[str, ...]
    line: str


def patterns(edges: Iterable[Relationship], members: Mapping[str, Member], limit: int = LIMIT) -> list[Pattern]:
    """Finds patterns in relationships (active ones only), the most significant first; deterministic.

    Pairs in conflict around a third entity, other pairs in conflict, entities in three or more relationships, and
    groups of three or more connected entities. Participants that are not among `members` do not count.
    """
    links = _links(edges, members)
    found = [*_polar(links, members), *_hubs(links, members), *_groups(links, members)]
    return found[:limit]


class _Link(NamedTuple):
    """Two entities with a relationship between them."""

    pair: tuple[str, str]
    edge: str
    type: str


def _links(edges: Iterable[Relationship], members: Mapping[str, Member]) -> list[_Link]:
    links: set[_Link] = set()
    for edge in edges:
        known = _ordered(members.keys() & edge.participants, members)
        links.update(_Link(pair, edge.id, _type(edge.type)) for pair in combinations(known, 2))
    place = {name: number for number, name in enumerate(_ordered(members, members))}
    return sorted(links, key=lambda link: (place[link.pair[0]], place[link.pair[1]], link.edge, link.type))


def _ordered(ids: Iterable[str], members: Mapping[str, Member]) -> list[str]:
    """Sorts ids by title."""
    return sorted(ids, key=lambda each: (members[each].title.casefold(), each))


def _type(text: str | None) -> str:
    return " ".join((text or "").casefold().replace("-", " ").replace("_", " ").split())


def _polar(links: list[_Link], members: Mapping[str, Member]) -> list[Pattern]:
    """Finds each pair in conflict once; those around something come first."""
    around, alone = [], []
    neighbours = _neighbours(links)
    for pair in dict.fromkeys(link.pair for link in links if link.type in POLAR_TYPES):
        polar = [link.edge for link in links if link.pair == pair and link.type in POLAR_TYPES]
        one, other = pair
        shared = _ordered(neighbours[one] & neighbours[other], members)
        if shared:
            both = [link.edge for link in links if set(link.pair) & set(pair) and set(link.pair) & set(shared)]
            line = f"{_names(pair, members)} are polarized around {_names(shared, members)}."
            around.append(Pattern("polarized-around", (*pair, *shared), _distinct([*polar, *both]), line))
        else:
            line = f"{_names(pair, members)} are polarized."
            alone.append(Pattern("polarized", pair, _distinct(polar), line))
    return around + alone


def _hubs(links: list[_Link], members: Mapping[str, Member]) -> list[Pattern]:
    found = []
    for hub in _ordered(members, members):
        own = [link for link in links if hub in link.pair]
        edges = _distinct(link.edge for link in own)
        if len(edges) < HUB_EDGES:
            continue
        others = _distinct(other for link in own for other in link.pair if other != hub)
        line = f"{_name(members[hub])} stands in {len(edges)} relationships: with {_names(others, members)}."
        found.append(Pattern("hub", (hub, *others), edges, line))
    return sorted(found, key=lambda pattern: -len(pattern.edges))


def _groups(links: list[_Link], members: Mapping[str, Member]) -> list[Pattern]:
    """Finds groups of connected entities, except those around a hub, which is a pattern of its own."""
    neighbours = _neighbours(links)
    hubs = {pattern.members[0] for pattern in _hubs(links, members)}
    found = []
    seen: set[str] = set()
    for first in _ordered(neighbours, members):
        if first in seen:
            continue
        group = _reached(first, neighbours)
        seen |= group
        if len(group) < GROUP_MEMBERS or group & hubs:
            continue
        names = _ordered(group, members)
        edges = _distinct(link.edge for link in links if link.pair[0] in group)
        found.append(Pattern("group", tuple(names), edges, f"{_names(names, members)} hang together."))
    return sorted(found, key=lambda pattern: -len(pattern.members))


def _neighbours(links: Iterable[_Link]) -> dict[str, set[str]]:
    neighbours: dict[str, set[str]] = {}
    for one, other in (link.pair for link in links):
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    return neighbours


def _reached(start: str, neighbours: Mapping[str, set[str]]) -> set[str]:
    reached, edge = {start}, [start]
    while edge:
        new = neighbours[edge.pop()] - reached
        reached |= new
        edge.extend(new)
    return reached


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _names(ids: Iterable[str], members: Mapping[str, Member]) -> str:
    """Formats titles: `A`, `A and B`, `A, B and C`; of many the first six and the number of others."""
    names = [_name(members[each]) for each in ids]
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _name(member: Member) -> str:
    # A `|` or a bracket would end the label of the link early.
    label = flatten_cell(member.title, 80).replace("|", "¦").replace("[", "(").replace("]", ")")
    return wikilink(member.path, label or member.id)
