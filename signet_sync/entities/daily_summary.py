"""Summarises a past day of an entity's event log as one entry of its change log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from signet_sync.entities import observe, scan, section_edits, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import fit_item
from signet_sync.entities.event_log.events import Event, states_of
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import day_of
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted

_LOG = "change-log"
# Operations that an entry counts, and their words in it. Daily summaries are not counted.
_WORDS = {
    "create": "created", "set": "set", "append": "appended", "append_item": "item added", "prune_item": "item pruned",
    "deprecate": "deprecated", "status": "status changed", "pin": "pinned", "unpin": "unpinned",
    "lock": "locked", "unlock": "unlocked", "propose": "proposed", "approve": "approved", "reject": "rejected",
    "schema": "schema changed", "human_edit": "edited by hand", "erase": "erased by a removal",
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
        days = [day for day in repo.log.days() if last < day < today]
        for day in days:
            written += _summarize_day(repo, day)
        if days:
            with workspace.database.transaction():
                entities_store.remember(workspace.database, agent_id, "told_day", days[-1])
    return tuple(dict.fromkeys(written))


def _summarize_day(repo: EntityRepository, day: str) -> list[str]:
    entries = repo.log.holding(f'"at":"{day}T')
    states = states_of(entries)
    by_entity: dict[str, list[Event]] = {}
    for entry in entries:
        if not isinstance(entry, Event) or entry.entity_id is None or states[entry.id] == "failed":
            continue
        if entry.at.startswith(day) and not _is_summary(entry):
            by_entity.setdefault(entry.entity_id, []).append(entry)
    summarized = {
        (entry.entity_id, (entry.payload or {}).get("rollup")) for entry in repo.log.events_holding(f'"rollup":"{day}"')
    }
    written = []
    for entity_id, events in sorted(by_entity.items()):
        if (entity_id, day) not in summarized:
            written += _append_entry(repo, entity_id, day, entry_text(events))
    return written


def entry_text(events: Sequence[Event]) -> str:
    """Summarises the events of a day: `5 events: 3 set, 2 item added; by agent 4, person 1`.

    The two events that create an entity, one for each file, count as one.
    """
    counting = [event for event in events if not (event.op == "create" and event.file == "notes")]
    ops = Counter(_WORDS[event.op] for event in counting)
    actors = Counter(event.actor for event in counting)
    number = len(counting)
    what = ", ".join(f"{count} {word}" for word, count in sorted(ops.items(), key=lambda one: (-one[1], one[0])))
    who = ", ".join(f"{actor} {count}" for actor, count in sorted(actors.items()))
    return f"{counted(number, 'event')}: {what}; by {who}"


def _append_entry(repo: EntityRepository, entity_id: str, day: str, text: str) -> list[str]:
    entity = observe.writable(repo, entity_id)
    if entity is None:
        return []
    try:
        where = section_edits.open_target(repo, entity, _LOG, "observer")
        item = fit_item(f"{day} — {text}")
        after = section_edits.finished(repo, edits.append_item(where.document, _LOG, item), "profile", [])
    except UsageError:
        return []  # a person has locked or pinned it, or changed its form
    plan = EditPlan(op="append_item", file="profile", section=_LOG, after=after, extra={"rollup": day})
    done = write_ahead.write_as("observer", repo, entity, plan)
    return [] if done is None else [entity.seen["profile"].path]


def _is_summary(event: Event) -> bool:
    return "rollup" in (event.payload or {})
