"""Summarises a past day of an entity's event log as one entry of its change log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from signet_sync.entities import observe, scan, sections, write
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import fit_item
from signet_sync.entities.events import Event
from signet_sync.entities.repository import EntityRepository
from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import day_of
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted

LOG = "change-log"
# Operations that an entry counts, and their words in it. Daily summaries are not counted.
_WORDS = {
    "create": "created", "set": "set", "clear": "emptied", "append": "appended", "append_item": "item added",
    "prune_item": "item pruned", "deprecate": "deprecated", "status": "status changed", "pin": "pinned",
    "unpin": "unpinned", "lock": "locked", "unlock": "unlocked", "propose": "proposed", "approve": "approved",
    "reject": "rejected", "undo": "taken back", "schema": "schema changed", "human_edit": "edited by hand",
    "resolve": "drift settled", "restate": "text removed", "erase": "text removed",
}  # fmt: skip


def summarize_days(workspace: Workspace, now_us: int) -> tuple[str, ...]:
    """Writes missing entries of every agent and past day (UTC); returns the profiles that got one.

    An entry follows from the event log alone: equal events give an equal entry. The workspace's lock is held.
    """
    today = day_of(now_us)
    written: list[str] = []
    for agent_id in scan.agents(workspace.root):
        repo = EntityRepository(workspace, agent_id, now_us)
        observe.catch_up(repo)
        last = entities_store.remembered(workspace.database, agent_id, "told_day")
        events = [event for event in repo.log.events() if last < event.at[:10] < today]
        for day in sorted({event.at[:10] for event in events}):
            written += _summarize_day(repo, day, [event for event in events if event.at.startswith(day)])
        if events:
            with workspace.database.transaction():
                entities_store.remember(workspace.database, agent_id, "told_day", max(e.at[:10] for e in events))
    return tuple(dict.fromkeys(written))


def _summarize_day(repo: EntityRepository, day: str, events: Sequence[Event]) -> list[str]:
    by_entity: dict[str, list[Event]] = {}
    for event in events:
        if event.entity_id is not None and event.fact("rollup") is None:
            by_entity.setdefault(event.entity_id, []).append(event)
    told = {event.entity_id for event in repo.log.events(f'"rollup":"{day}"')}
    written = []
    for entity_id, of_day in sorted(by_entity.items()):
        entity = write.load_quietly(repo, entity_id) if entity_id not in told else None
        if entity is None:
            continue
        with suppress(UsageError):  # a person has locked or pinned it, or changed its form
            where = sections.find_target(repo, entity, LOG)
            sections.refuse_guarded(entity, where, "observer")
            item = fit_item(f"{day} — {entry_text(of_day)}")
            after = sections.finished(repo, edits.append_item(where.document, LOG, item), "profile", [])
            facts = {"rollup": day}
            event = write.event_of(repo, entity, "append_item", "observer", "profile", after, section=LOG, facts=facts)
            write.write(repo, entity, (event, after))
            written.append(entity.place.path)
    return written


def entry_text(events: Sequence[Event]) -> str:
    """Summarises the events of a day: `5 events: 3 set, 2 item added; by agent 4, person 1`.

    The two events that create an entity, one for each file, count as one.
    """
    counting = [event for event in events if not (event.op == "create" and event.file == "notes")]
    ops = Counter(_WORDS[event.op] for event in counting)
    actors = Counter(event.actor for event in counting)
    what = ", ".join(f"{count} {word}" for word, count in sorted(ops.items(), key=lambda one: (-one[1], one[0])))
    who = ", ".join(f"{actor} {count}" for actor, count in sorted(actors.items()))
    return f"{counted(len(counting), 'event')}: {what}; by {who}"
