"""DREAMS.md as text, as a person reads it: the best first, and a number of what was forgotten since."""

from __future__ import annotations

import os
import re
from pathlib import Path

from signet_sync.formats.timestamps import DAY, iso, parse_instant
from signet_sync.memories.score import Dream, Promotion, SweepView
from signet_sync.pages.dreams_page import diary

GOLDEN = Path(__file__).parent / "golden" / "dreams.md"
HOUR = DAY // 24


def us(text) -> int:
    instant = parse_instant(text)
    assert instant is not None
    return instant


START = us("2026-04-01T03:00:00.000Z")


def dream(memory_id="m-aaaa", text="The night train leaves at 22:10", **more) -> Dream:
    told = {
        "score": 0.67, "hits": 5, "frequency": 0.92, "relevance": 0.5, "recency": 0.98, "diversity": 0.6, "days": 3,
        "queries": 3, "last_us": START - 5 * HOUR, **more,
    }  # fmt: skip
    score, *signals, queries, last_us = told.values()
    return Dream(Promotion(memory_id, score, *signals, queries, last_us), text, START)


def sweep(day=0, *dreams, promoted=None, hour=0, candidates=12, skipped=4) -> SweepView:
    at_us = START + day * DAY + hour * HOUR
    promoted = len(dreams) if promoted is None else promoted
    return SweepView(re.sub("[-:.]", "", iso(at_us)), at_us, candidates, skipped, promoted, dreams)


def quiet(*days, hour=0) -> list[SweepView]:
    return [sweep(day, hour=hour) for day in days]


def spring() -> list[SweepView]:
    """Quiet nights, three promotions of which one was forgotten since, one that was."""
    trains = dream(
        "m-k3fq2a7xw5ep", "The night train to Trieste leaves at 22:10 from platform 4.",
        score=0.7275, hits=3, queries=3, days=1, last_us=us("2026-04-02T21:15:00Z"),
        frequency=0.7124, relevance=1.0, recency=0.9776, diversity=0.6,
    )  # fmt: skip
    tea = dream(
        "m-h5d7c2mzq4ra", "Ines drinks her tea without milk\n## and says so",
        score=0.8689, hits=14, queries=6, days=5, last_us=us("2026-04-11T18:40:00Z"),
        frequency=1.0, relevance=0.78, recency=0.9662, diversity=1.0,
    )  # fmt: skip
    return [
        *quiet(0, 1),
        sweep(11, trains, tea, promoted=3, candidates=9, skipped=1),
        sweep(13, promoted=1, candidates=7, skipped=4),
    ]


def test_a_diary_that_a_person_reads():
    text = diary(spring()) + "\n"
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "WRITE_GOLDEN=1 pytest shows the new page"
    empty = diary(quiet(0, 1))
    assert empty.startswith("# DREAMS.md — Dream Diary\n\n") and empty.endswith("\n\nNothing has risen yet.")
