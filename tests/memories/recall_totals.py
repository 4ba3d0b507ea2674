"""Computes the totals of recall events in Python, to compare the SQL of the index with."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchmarks.remembered import RecallEvent
from signet_sync.formats.timestamps import DAY
from signet_sync.memories.promotion_score import Totals


def totals(events: Iterable[RecallEvent]) -> Totals:
    """Computes the totals of events in any order. Without events, all are zero.

    Queries are distinct as texts, days as UTC days.
    """
    seen = list(events)
    return Totals(
        hits=len(seen),
        score_sum=math.fsum(event.score for event in seen),
        last_us=max((event.at_us for event in seen), default=0),
        queries=len({event.query for event in seen}),
        days=len({event.at_us // DAY for event in seen}),
    )
