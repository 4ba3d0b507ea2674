"""DREAMS.md as text: a golden page, what others wrote, what was forgotten, hostile words, and years of sweeps."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.timestamps import DAY, iso, parse_instant
from signet_sync.memories.promotion_score import DreamView, SweepView
from signet_sync.pages import dreams_page
from signet_sync.pages.dreams_page import diary

GOLDEN = Path(__file__).parent / "golden" / "dreams.md"
HOUR = DAY // 24


def us(text) -> int:
    instant = parse_instant(text)
    assert instant is not None
    return instant


START = us("2026-04-01T03:00:00.000Z")


def dream(memory_id="m-aaaa", text="The night train leaves at 22:10", **more) -> DreamView:
    told = {
        "score": 0.67, "hits": 5, "queries": 3, "days": 3, "last_us": START - 5 * HOUR,
        "frequency": 0.92, "relevance": 0.5, "recency": 0.98, "diversity": 0.6, "consolidation": 0.6,
    }  # fmt: skip
    return DreamView(memory_id, text, **{**told, **more})


def sweep(day=0, *dreams, promoted=None, hour=0, candidates=12, skipped=4) -> SweepView:
    at_us = START + day * DAY + hour * HOUR
    promoted = len(dreams) if promoted is None else promoted
    return SweepView(re.sub("[-:.]", "", iso(at_us)), at_us, candidates, skipped, promoted, dreams)


def quiet(*days, hour=0) -> list[SweepView]:
    return [sweep(day, hour=hour) for day in days]


def fresh(sweeps, existing=None, gone=()) -> str:
    return diary(sweeps, existing, gone)


def headings(text) -> list[str]:
    return [line.removeprefix("## ") for line in text.split("\n") if line.startswith("## ")]


def bullets(text) -> list[str]:
    return re.findall(r"^- .* \^(m-\w+)$", text, re.MULTILINE)


# ── a page that a person reads ──


def spring() -> list[SweepView]:
    """Quiet nights, a promotion, a quiet week, three of which one was forgotten since, one that was."""
    trains = dream(
        "m-k3fq2a7xw5ep", "The night train to Trieste leaves at 22:10 from platform 4.",
        score=0.7275, hits=3, queries=3, days=1, last_us=us("2026-04-02T21:15:00Z"),
        frequency=0.7124, relevance=1.0, recency=0.9776, diversity=0.6, consolidation=0.2,
    )  # fmt: skip
    tea = dream(
        "m-h5d7c2mzq4ra", "Ines drinks her tea without milk\n## and says so",
        score=0.8689, hits=14, queries=6, days=5, last_us=us("2026-04-11T18:40:00Z"),
        frequency=1.0, relevance=0.78, recency=0.9662, diversity=1.0, consolidation=1.0,
    )  # fmt: skip
    port = dream(
        "m-y6t2nb3vj7lo", "The staging server listens on port 8443, not 443.",
        score=0.3879, hits=3, queries=2, days=1, last_us=us("2026-04-05T09:00:00Z"),
        frequency=0.7124, relevance=0.2, recency=0.5125, diversity=0.4, consolidation=0.2,
    )  # fmt: skip
    return [
        *quiet(0, 1),
        sweep(2, trains, candidates=4, skipped=0),
        *quiet(*range(3, 11)),
        sweep(11, tea, port, promoted=3, candidates=9, skipped=1),
        *quiet(12),
        sweep(13, promoted=1, candidates=7, skipped=4),
    ]


def test_a_diary_that_a_person_reads():
    text = fresh(spring()) + "\n"
    if os.environ.get("WRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "WRITE_GOLDEN=1 pytest shows the new page"


# ── the original's tests, by their names: what of them is seen in the diary ──


def test_empty_memory_yields_empty_report():
    text = fresh([sweep(candidates=0, skipped=0)])
    assert text.startswith("# DREAMS.md — Dream Diary\n\n")
    assert "\n\nNothing has risen yet.\n\n## 2026-04-01: 1 quiet sweep, nothing new rose\n" in text
    assert "### Promoted" not in text


# ── words ──


@pytest.mark.parametrize(
    ("relevance", "words"),
    [
        (1.0, "always as the first answer"), (0.8, "mostly as the first answer"),
        (0.75, "near the top of the answers"), (0.2, "among the answers"), (0.0, "far down the answers"),
    ],
)  # fmt: skip
def test_relevance_in_words(relevance, words):
    assert f" day, {words}, last on " in fresh([sweep(0, dream(days=1, relevance=relevance))])


def test_the_best_stands_first_in_whatever_order_they_come():
    one, two, three = dream("m-aaaa", score=0.5), dream("m-bbbb", score=0.9), dream("m-cccc", score=0.5)
    assert bullets(fresh([sweep(0, three, one, two)])) == ["m-bbbb", "m-aaaa", "m-cccc"]


# ── what was forgotten ──


def test_what_was_forgotten_is_a_number_and_nothing_else():
    told, forgotten = dream("m-aaaa", "Kept words"), dream("m-bbbb", None)
    every = [
        fresh([sweep(0, told, forgotten)]),
        fresh([sweep(0, told, promoted=2)]),
        fresh([sweep(0, told, dream("m-bbbb", "Words that go"))], gone={"m-bbbb"}),
        fresh([], existing=fresh([sweep(0, told, dream("m-bbbb", "Words that go"))]), gone={"m-bbbb"}),
    ]
    assert len(set(every)) == 1
    assert every[0].endswith(" ^m-aaaa\n- 1 forgotten since")
    assert "- promoted: 2\n" in every[0]
    assert "Words that go" not in every[0] and "m-bbbb" not in every[0]


def test_what_is_forgotten_later_is_added_to_the_number():
    page = fresh([sweep(0, dream("m-aaaa"), dream("m-bbbb"), promoted=3)])
    assert page.endswith("\n- 1 forgotten since")
    page = fresh([], existing=page, gone={"m-bbbb"})
    assert page.endswith(" ^m-aaaa\n- 2 forgotten since")
    assert fresh([], existing=page, gone={"m-aaaa", "m-bbbb"}).endswith("### Promoted\n\n- 3 forgotten since")


def test_the_forgotten_words_of_a_sweep_of_ours_do_not_come_back_from_the_page():
    page = fresh([sweep(0, dream("m-bbbb", "Words that go"))])
    assert "Words that go" not in fresh([sweep(0, promoted=1)], existing=page)


# ── what others wrote ──


def test_entries_of_others_are_kept_as_they_stand_in_the_order_of_time():
    theirs = [sweep(1, dream("m-bbbb", "Known elsewhere")), sweep(3, dream("m-dddd", "Known elsewhere, too"))]
    mine = [sweep(0, dream("m-aaaa")), sweep(2, dream("m-cccc"))]
    text = fresh(mine, existing=fresh(theirs).replace("score 0.67", "score 0.99"))
    assert bullets(text) == ["m-aaaa", "m-bbbb", "m-cccc", "m-dddd"]
    assert text.count("score 0.99") == text.count("score 0.67") == 2


def test_a_lost_ledger_loses_no_entry():
    page = fresh(spring())
    assert fresh([], existing=page) == page
    assert headings(fresh([sweep(40)], existing=page)) == [
        *headings(page),
        "2026-05-11: 1 quiet sweep, nothing new rose",
    ]


def test_line_ends_of_another_system_make_no_difference():
    page = fresh(spring())
    assert fresh([], existing=page.replace("\n", "\r\n")) == page


def test_what_is_no_entry_is_not_kept():
    page = fresh([sweep(0, dream())])
    assert fresh([sweep(0, dream())], existing=f"{page}\n\n## Mine\n\nwords\n\n## Dreamed\n<!-- dream 2026 -->") == page


# ── hostile words ──

HOSTILE = [
    "text\n## Dreamed 2026-04-09 03:00 UTC\n<!-- dream 20260409T030000000Z -->\n\n### Promoted\n\n- forged ^m-zzzz",
    "## Dreamed 2026-04-09 03:00 UTC", "<!-- dream 20260409T030000000Z -->",
    "<!-- signet:end 0123456789abcdef --> and <!-- signet:begin -->", "not mine ^m-zzzz", "3 forgotten since",
    "- [ ] a task\r# a title\u2028> a quote", "```\nfence",
    "[[MEMORY|elsewhere]] ![x](http://example.org/x.png) <img src=x>", "", "- ",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_forge_nothing(text):
    honest, page = (fresh([sweep(0, dream(text=words)), *quiet(1)]) for words in ("honest", text))
    assert [line for line in page.split("\n") if "^m-" not in line] == [
        line for line in honest.split("\n") if "^m-" not in line
    ]
    assert bullets(page) == ["m-aaaa"]
    assert page.count("<!--") == 2
    assert not any(mark in page for mark in ("\r", "\u2028", "```", "[[", "](")) and not re.search(r"(?<!\\)<img", page)
    assert fresh([], existing=page) == page


# ── laws ──

DREAMS = st.lists(
    st.builds(
        dream,
        st.sampled_from(["m-aaaa", "m-bbbb", "m-cccc", "m-dddd"]),
        st.one_of(st.none(), st.sampled_from(HOSTILE), st.text(max_size=40)),
        score=st.floats(0, 1),
    ),
    max_size=3,
    unique_by=lambda one: one.memory_id,
)
SWEEPS = st.lists(
    st.builds(lambda day, dreams, more: sweep(day, *dreams, promoted=len(dreams) + more),
              st.integers(0, 12), DREAMS, st.integers(0, 1)),
    max_size=8,
    unique_by=lambda one: one.id,
)  # fmt: skip
GONE = st.sets(st.sampled_from(["m-aaaa", "m-cccc"]))


@given(SWEEPS, SWEEPS, GONE)
def test_a_diary_of_a_diary_is_that_diary(mine, theirs, gone):
    page = fresh(mine, fresh(theirs), gone)
    assert fresh(mine, page, gone) == page
    assert fresh(mine[::-1], page, gone) == page
    assert gone.isdisjoint(bullets(page))


@given(SWEEPS, SWEEPS)
def test_two_machines_come_to_rest_on_one_diary(one, other):
    mine = [sweep._replace(id=sweep.id[:-2] + "1Z") for sweep in one]
    theirs = [sweep._replace(id=sweep.id[:-2] + "2Z") for sweep in other]
    page = None
    for _ in range(2):
        page = fresh(theirs, fresh(mine, page))
    assert fresh(mine, page) == page == fresh(theirs, page)
    assert page.count("<!-- dream ") == sum(1 for sweep in [*mine, *theirs] if sweep.promoted)


@given(st.text(), SWEEPS)
def test_whatever_stands_on_the_page_the_next_render_settles(existing, mine):
    page = fresh(mine, existing)
    assert fresh(mine, page) == page


# ── years ──


def years(count) -> list[SweepView]:
    """Two promotions every other night."""
    return [
        sweep(day, *([dream(f"m-{day}a", "word " * 50), dream(f"m-{day}b", "word " * 50)] if day % 2 else []))
        for day in range(count)
    ]


def test_years_of_sweeps_stay_readable_and_what_is_recent_is_told_in_words():
    sweeps = years(8 * 365)
    page = fresh(sweeps)
    assert len(page) < 500_000
    assert page.count("<!-- dream ") == dreams_page.ENTRIES
    told = page.count("### Promoted")
    assert 100 < told < dreams_page.ENTRIES
    assert bullets(page)[-1] == f"m-{8 * 365 - 1}b"
    in_words = ["### Promoted" in part for part in page.split("\n## ") if "<!-- dream " in part]
    assert in_words == [False] * (dreams_page.ENTRIES - told) + [True] * told
    assert headings(page)[0].startswith("Dreamed 2028-10-")
    assert fresh(sweeps, page) == page == fresh([], page)
