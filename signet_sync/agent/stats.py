"""What an agent remembers and recalls, in numbers."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.contracts.timestamps import DAY, iso
from signet_sync.index import events, overview, promotions
from signet_sync.index.database import Database

DAYS = 7
TAGS = 10


class Stats(NamedTuple):
    """Counts of one agent; `last_dream` is ISO 8601 UTC or None, tags come with their hits, most first."""

    memories: int
    promotions: int
    last_dream: str | None
    recall_events_7d: int
    top_concept_tags_7d: list[tuple[str, int]]
    sessions: int
    artifacts: int


def stats(database: Database, agent_id: str, now_us: int) -> Stats:
    """The numbers at `now_us`. Raises what reading the database raises."""
    since = now_us - DAYS * DAY
    memories, promoted = promotions.counts(database, agent_id)
    last = promotions.last_sweep(database, agent_id)
    sessions, artifacts = overview.counts_of(database, agent_id)
    return Stats(
        memories,
        promoted,
        iso(last) if last is not None else None,
        events.count_since(database, agent_id, since),
        events.top_concepts_since(database, agent_id, since, TAGS),
        sessions,
        artifacts,
    )
