"""The story that MEMORY.md and DREAMS.md tell of a simulated month is what happened in it."""

from __future__ import annotations

import math
import re
from collections import defaultdict

import pytest
from month_simulation import START, Simulation, simulate

from signet_sync.app.workspace import opened
from signet_sync.formats.paths import dream_page, head_page
from signet_sync.formats.timestamps import DAY
from signet_sync.settings.model import Settings


@pytest.fixture
def lived(tmp_path, request):
    """A vault, and what happened in it."""
    root = tmp_path / "vault"
    (root / "memory").mkdir(parents=True)
    with opened(str(root), Settings()) as workspace:
        return root, simulate(workspace, **request.param)


def recounted(told: Simulation, agent: str, memory: str, until: int) -> tuple[int, int, int, float] | None:
    """Hits, days, queries and the score of a memory at a sweep, by the formulas of the specification, naively."""
    hits = [
        (answer.query, 1 / rank, answer.at_us)
        for answer in told.answers
        if answer.agent_id == agent and answer.at_us <= until
        for found, rank in answer.hits
        if found == memory
    ]
    if not hits:
        return None
    days, queries = {at // DAY for *_, at in hits}, {query for query, *_ in hits}
    score = (
        0.24 * min(1, math.log(1 + len(hits)) / math.log(7))
        + 0.30 * sum(score for _, score, _ in hits) / len(hits)
        + 0.15 * 0.5 ** ((until - max(at for *_, at in hits)) / DAY / 7)
        + 0.15 * min(1, len(queries) / 5)
        + 0.10 * min(1, len(days) / 5)
    )
    return len(hits), len(days), len(queries), score


@pytest.mark.parametrize(
    "lived",
    [
        pytest.param({"agents": 1, "days": 8, "recalls": 200}, id="a week"),
        pytest.param({"agents": 3, "days": 30, "recalls": 5_000}, id="a month", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_what_rises_is_what_was_asked_for_often_and_in_different_words(lived):
    _, told = lived
    for agent, sweeps in told.sweeps.items():
        rose = {one.memory_id: (night, one) for night, swept in sweeps for one in swept.promoted}
        assert len(rose) == sum(len(swept.promoted) for _, swept in sweeps), "each memory rises once"
        for memory, (night, one) in rose.items():
            hits, days, queries, score = recounted(told, agent, memory, night) or (0, 0, 0, 0.0)
            assert (one.signals.recall_count, one.signals.unique_days, one.queries) == (hits, days, queries)
            assert one.score == pytest.approx(score)
            assert hits >= 3 and queries >= 2
        for night, swept in sweeps:  # what was left lying did not meet the gates, or there were twenty better ones
            left = [
                memory for (who, memory) in told.roles if who == agent and rose.get(memory, (night + 1,))[0] > night
            ]
            for memory in left:
                at = recounted(told, agent, memory, night)
                if at is not None and (agent, memory) not in told.forgotten:
                    assert at[0] < 3 or at[2] < 2 or at[3] < 0.35 or len(swept.promoted) == 20
        by_role = defaultdict(set)
        for (who, memory), role in told.roles.items():
            if who == agent and memory in rose:
                by_role[role].add(memory)
        assert len(by_role["staple"]) == 8 and not by_role["obsession"] | by_role["glimpse"] | by_role["rest"]
        assert len(by_role["season"]) == len(by_role["late"]) == 4
        last_days = sweeps[-1][0] // DAY - START // DAY - 4
        assert all(rose[memory][0] >= START + last_days * DAY for memory in by_role["late"])


@pytest.mark.parametrize("lived", [{"agents": 2, "days": 6, "recalls": 240}], indirect=True)
def test_the_pages_tell_what_happened(lived):
    root, told = lived
    for agent, sweeps in told.sweeps.items():
        page, diary = ((root / place(agent)).read_text(encoding="utf-8") for place in (head_page, dream_page))
        dreamed = page.split("## Dreamed\n")[1].split("\n## ")[0]
        gone = {memory for who, memory in told.forgotten if who == agent}
        assert len(gone) == 1
        rose = {one.memory_id: one for _, swept in sweeps for one in swept.promoted}
        assert set(re.findall(r"\^(m-\w+)", dreamed)) == set(rose) - gone
        assert set(re.findall(r"\^(m-\w+)", diary)) == set(rose) - gone
        for memory, one in rose.items():
            text = told.texts[agent, memory]
            assert page.count(text) == diary.count(text) == (memory not in gone)
            if memory not in gone:
                assert f"(score={one.score:.2f}, hits={one.signals.recall_count}, days=" in dreamed
        headings = re.findall(r"^### (.*) UTC$", dreamed, re.M)
        assert headings == sorted(headings, reverse=True) and all(heading.endswith("03:00") for heading in headings)
        others = {text for (who, _), text in told.texts.items() if who != agent}
        assert not any(text in page + diary for text in others)
