"""Writes what nobody asks for into entity files: patterns of relationships, and a line for each past day.

Patterns (pairs in conflict, groups) are items at the end of a user's Overview, with links. One that a person pruned or
deleted stays away; one that no relationship shows any more goes by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

from signet_sync.entities import document, observe, replay, sections
from signet_sync.entities import store as entities_store
from signet_sync.entities.agent_text import fit_item
from signet_sync.entities.events import Event
from signet_sync.entities.repository import PATTERN, EntityRepository
from signet_sync.entities.store import EntityFile
from signet_sync.errors import UsageError
from signet_sync.formats.paths import wikilink
from signet_sync.formats.timestamps import DAY, day_of
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import flatten_cell

# Types of relationships that mean conflict, in lower case, with blanks.
POLAR_TYPES = frozenset({"polarized", "polarised", "in conflict", "conflict", "opposed", "tension", "rivals"})
GROUP_MEMBERS = 3  # connected entities that are a group
LIMIT = 10
OVERVIEW = "overview"
_NAMED = 6


def patterns(entities: Iterable[EntityFile]) -> list[str]:
    """Describes the patterns of an agent's active entities in lines with links; equal files give equal lines.

    First pairs in conflict around a third entity, then groups of three or more connected entities, the largest first.
    """
    rows = [row for row in entities if row.status != "deprecated"]
    by_title = sorted(
        (row for row in rows if row.kind != "relationship"), key=lambda row: (row.title.casefold(), row.id)
    )
    named = {row.id: _name(row) for row in by_title}  # in the order of titles
    near: dict[str, set[str]] = {one: set() for one in named}
    polar = set[tuple[str, str]]()
    for edge in (row for row in rows if row.kind == "relationship"):
        kind = " ".join((edge.type or "").casefold().replace("-", " ").replace("_", " ").split())
        for one, other in combinations([one for one in named if one in edge.participants], 2):
            near[one].add(other)
            near[other].add(one)
            polar |= {(one, other)} if kind in POLAR_TYPES else set()

    def names(ids: Iterable[str]) -> str:
        found = [name for one, name in named.items() if one in set(ids)]
        found = [*found[:_NAMED], f"{len(found) - _NAMED} more"] if len(found) > _NAMED else found
        return " and ".join(filter(None, [", ".join(found[:-1]), found[-1]]))

    lines = [
        f"{names(pair)} are polarized around {names(shared)}."
        for pair in combinations(named, 2)
        if pair in polar and (shared := near[pair[0]] & near[pair[1]])
    ]
    groups, seen = list[set[str]](), set[str]()
    for first in (one for one in named if one not in seen):
        group, waiting = {first}, [first]
        while waiting:
            new = near[waiting.pop()] - group
            group |= new
            waiting.extend(new)
        seen |= group
        groups += [group] if len(group) >= GROUP_MEMBERS else []
    lines += [f"{names(group)} hang together." for group in sorted(groups, key=lambda group: -len(group))]
    return lines[:LIMIT]


def _name(row: EntityFile) -> str:
    # A `|` or a bracket would end the label of the link early.
    label = flatten_cell(row.title, 80).replace("|", "¦").replace("[", "(").replace("]", ")")
    return wikilink(row.path, label or row.id)


def update_patterns(repo: EntityRepository) -> bool:
    """Adds new patterns and takes out those that no longer hold, in one edit; returns whether it wrote.

    Does nothing without a user, or if a person has locked or pinned the section. The workspace's lock is held.
    """
    rows = entities_store.entities(repo.workspace.database, repo.agent_id)
    wanted = [fit_item(PATTERN + line) for line in patterns(rows)]
    # The first by title if there are several.
    user = next((row.id for row in rows if row.kind == "user" and row.status != "deprecated"), None)
    entity = observe.load_quietly(repo, user) if user is not None else None
    if entity is None:
        return False
    try:
        where = sections.find_target(entity, OVERVIEW)
        sections.refuse_guarded(entity, where, "observer")
    except UsageError:
        return False
    known = [item for item in document.items(where.section) if item.text.startswith(PATTERN)]
    missing = [text for text in wanted if text not in {item.text for item in known}]
    pruned: set[str] = set()  # the patterns that somebody else than we took out last
    for event in repo.log.events_of(entity.place.id) if missing else ():
        old, new = (
            {line[2:] for line in text.split("\n") if line.startswith(f"- {PATTERN}")}
            for text in replay.section_texts(event).get(OVERVIEW, ("", ""))
        )
        pruned = (pruned | (old - new if event.actor != "observer" else set())) - new
    missing = [text for text in missing if text not in pruned]
    after, kept = where.document, set[str]()
    for item in reversed(known):
        if item.text not in wanted or item.text in kept:
            after, _ = document.prune_item(after, OVERVIEW, str(item.number))
        kept.add(item.text)
    for text in missing:
        after = document.append_item(after, OVERVIEW, text)
    read = {item.text for item in document.items(document.find(after, OVERVIEW))}
    # An item that is read differently because of a person's Markdown would be added without end.
    if after == where.document or not read.issuperset(missing):
        return False
    said = {"reason": "as relationships say"}
    observe.write(repo, sections.plan_edit(repo, where, after, "set", "observer", text=said))
    return True


# ── days ──


def summarize_days(workspace: Workspace, agents: Iterable[str], now_us: int) -> tuple[str, ...]:
    """Writes missing entries of these agents' past days (UTC); returns the profiles that got one.

    An entry follows from the event log alone: equal events give an equal entry. The workspace's lock is held.
    """
    written: list[str] = []
    for agent_id in agents:
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.look(repo)
        last, yesterday = entities_store.read_remembered(workspace.database, agent_id, "told_day"), day_of(now_us - DAY)
        by_entity: dict[tuple[str, str], list[Event]] = {}
        for event in repo.log.events():
            day = event.at[:10]
            if last < day <= yesterday and event.entity_id is not None and event.fact("rollup") is None:
                by_entity.setdefault((day, event.entity_id), []).append(event)
        told = {(event.fact("rollup"), event.entity_id) for event in repo.log.events('"rollup":"')}
        for (day, entity_id), events in sorted(by_entity.items()):
            entity = observe.load_quietly(repo, entity_id) if (day, entity_id) not in told else None
            if entity is None:
                continue
            with suppress(UsageError):  # a person has locked or pinned it, or changed its form
                where = sections.find_target(entity, replay.LOG)
                sections.refuse_guarded(entity, where, "observer")
                item = fit_item(f"{day} — {entry_text(events)}")
                after = sections.finish(repo, document.append_item(where.document, replay.LOG, item), "profile", [])
                named: dict[str, Any] = {"section": replay.LOG, "facts": {"rollup": day}}
                observe.write(repo, observe.plan(repo, entity, "append_item", "observer", "profile", after, **named))
                written.append(entity.place.path)
        if last < yesterday:
            with workspace.database.transaction():
                entities_store.remember(workspace.database, agent_id, "told_day", yesterday)
    return tuple(dict.fromkeys(written))


def entry_text(events: Sequence[Event]) -> str:
    """Summarises the events of a day: `5 events: 3 set, 2 append item; by agent 4, person 1`.

    The two events that create an entity, one for each file, count as one.
    """
    counting = [event for event in events if not (event.op == "create" and event.file == "notes")]
    ops = Counter(event.op.replace("_", " ") for event in counting)
    actors = Counter(event.actor for event in counting)
    what = ", ".join(f"{count} {word}" for word, count in sorted(ops.items(), key=lambda one: (-one[1], one[0])))
    who = ", ".join(f"{actor} {count}" for actor, count in sorted(actors.items()))
    return f"{count_noun(len(counting), 'event')}: {what}; by {who}"
