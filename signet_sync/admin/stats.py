"""Counts what an agent remembers and recalls."""

from typing import NamedTuple

from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.store import promotions, recall_events
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts

DAYS = 7
TAGS = 10


class Remembered(NamedTuple):
    """What an agent remembers: counts of its rows; `last_dream` is ISO 8601 UTC or None."""

    memories: int
    recall_events: int
    promotions: int
    last_dream: str | None


class Stats(NamedTuple):
    """Counts of one agent; `last_dream` is ISO 8601 UTC or None, tags come with their hits, most first."""

    memories: int
    promotions: int
    last_dream: str | None
    recall_events_7d: int
    top_concept_tags_7d: list[tuple[str, int]]
    sessions: int
    artifacts: int


def remembered(database: Database, agent_id: str) -> Remembered:
    """Returns the counts of an agent. Raises what reading the database raises."""
    memories, promoted = promotions.counts(database, agent_id)
    last = promotions.last_sweep(database, agent_id)
    hits = recall_events.count_since(database, agent_id, 0)
    return Remembered(memories, hits, promoted, None if last is None else iso(last))


def stats(database: Database, agent_id: str, now_us: int) -> Stats:
    """Returns the counts at `now_us`. Raises what reading the database raises."""
    since = now_us - DAYS * DAY
    now = remembered(database, agent_id)
    sessions, artifacts = counts.counts_of(database, agent_id)
    return Stats(
        now.memories,
        now.promotions,
        now.last_dream,
        recall_events.count_since(database, agent_id, since),
        recall_events.top_concepts_since(database, agent_id, since, TAGS),
        sessions,
        artifacts,
    )
