"""Arcs and epochs: which sessions they hold, how they read, that they stay within their budget."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_nodes import T
from test_threads import LANTERN, session

from signet_sync.formats.timestamps import DAY, parse_instant, quarter_of, quarter_span, week_of, week_span
from signet_sync.graph.rollups import (
    BUDGET_TOKENS,
    arc,
    arc_id,
    epoch,
    epoch_id,
    shorten,
)
from signet_sync.text.token_estimate import rough_tokens

# --- weeks ---


@pytest.mark.parametrize(("at", "week", "quarter"), [
    ("2026-03-23T00:00:00Z", "2026-W13", "2026-Q1"),
    ("2026-03-29T23:59:59.999999Z", "2026-W13", "2026-Q1"),
    ("2026-03-30T00:00:00Z", "2026-W14", "2026-Q1"),
    ("2026-01-01T00:00:00Z", "2026-W01", "2025-Q4"),
    ("2024-12-30T00:00:00Z", "2025-W01", "2024-Q4"),
    ("2021-01-03T00:00:00Z", "2020-W53", "2020-Q4"),
    ("1969-12-31T23:59:59Z", "1970-W01", "1969-Q4"),
    ("0001-01-01T00:00:00Z", "0001-W01", "0001-Q1"),
    ("9999-12-31T00:00:00Z", "9999-W52", "9999-Q4"),
])  # fmt: skip
def test_weeks_and_quarters(at, week, quarter):
    instant = parse_instant(at)
    assert week_of(instant) == week
    assert quarter_of(week) == quarter
    first, last = week_span(week)
    assert first <= instant <= last and last - first == 7 * DAY - 1


def test_instants_beyond_the_calendar_have_a_week():
    assert week_of(-(10**18)) == "0001-W01" and week_of(10**18) == "9999-W52"


def test_a_quarter_spans_the_weeks_whose_monday_lies_in_it():
    spans = {}
    day = date(2019, 12, 2)
    while day < date(2031, 1, 1):
        week = week_of(T // DAY * DAY + (day - date(2026, 3, 28)).days * DAY)
        spans.setdefault(quarter_of(week), []).append(week_span(week))
        day += timedelta(days=7)
    for quarter in list(spans)[1:-1]:
        weeks = spans[quarter]
        assert quarter_span(quarter) == (weeks[0][0], weeks[-1][1])
        assert len(weeks) in (12, 13, 14)


# --- an arc ---


def days(*numbers, **more):
    return [session(day, **more) for day in numbers]


def test_an_arc():
    sessions = [
        session(-5),
        session(-3),
        session(0, sentence="Measured the queue with 10,000 jobs, see src/drain.py."),
    ]
    stated = [
        ("question", "Whose key is it?"), ("decision", "Drain five"), ("note", "The queue is a file"),
        ("next", "Ship 0.4"), ("next", "Tell Mira"), ("blocker", "CI has no zstd"), ("decision", "Database: SQLite"),
    ]  # fmt: skip
    node = arc(LANTERN, "2026-W13", sessions, stated)
    assert node.content == (
        "lantern, 2026-03-23 to 2026-03-29: 3 sessions\n\n"
        "- 2026-03-28 Measured the queue with 10,000 jobs, see src/drain.py. (s-0)\n"
        "- 2026-03-25 Lit the lantern on day -3. (s--3)\n"
        "- 2026-03-23 Lit the lantern on day -5. (s--5)\n\n"
        "Decisions:\n- Drain five\n- Database: SQLite\n\n"
        "Open:\n- blocker: CI has no zstd\n- next: Ship 0.4\n- next: Tell Mira\n- question: Whose key is it?"
    )
    assert node._replace(content=None) == (
        "default", arc_id(LANTERN, "2026-W13"), "arc", "condensation", 1, None, LANTERN.id, None, None,
        sessions[0].earliest_us, sessions[2].latest_us, 0, len(node.content),
        "3 sessions of 2026-W13: Measured the queue with 10,000 jobs, see src/drain.py.", None,
    )  # fmt: skip
    assert node.id.startswith("a-")


def test_below_two_there_is_none():
    assert arc(LANTERN, "2026-W13", []) is None
    assert arc(LANTERN, "2026-W13", days(1)) is None
    one = arc(LANTERN, "2026-W13", days(1, 2))
    assert epoch(LANTERN, "2026-Q1", []) is None
    assert epoch(LANTERN, "2026-Q1", [one]) is None


def test_of_many_sessions_the_newest_are_told():
    node = arc(LANTERN, "2026-W13", days(*range(19)))
    lines = node.content.split("\n")
    assert lines[0].endswith(": 19 sessions")
    assert next(line for line in lines if line.startswith("- ")).startswith("- 2026-04-15")
    assert lines[-1] == "- … 7 more …" and len(lines) == 15


def test_the_more_sessions_the_shorter_their_lines():
    sentence = "Measured the queue " + "with ten thousand jobs and one writer " * 9 + "and wrote it down."
    few = arc(LANTERN, "2026-W13", days(0, 1, sentence=sentence)).content.split("\n")
    many = arc(LANTERN, "2026-W13", days(*range(12), sentence=sentence)).content.split("\n")
    assert len(few) == 4 and len(many) == 14
    assert 300 < len(few[2]) < 360 and 60 < len(many[2]) < 250
    assert "… (s-" in few[2] and "… (s-" in many[2]


def test_ids_are_of_thread_and_week():
    other = LANTERN._replace(id="t-other")
    scout = LANTERN._replace(agent_id="scout")
    ids = {f(t, w) for f in (arc_id, epoch_id) for t in (LANTERN, other, scout) for w in ("2026-W13", "2026-W14")}
    assert len(ids) == 12
    assert arc(LANTERN, "2026-W13", days(0, 1)).id == arc(LANTERN, "2026-W13", days(2, 3, 4)).id


# --- an epoch ---


def arcs(count, *decisions, **more):
    stated = [("decision", text) for text in decisions]
    return [arc(LANTERN, week_of(T - 7 * n * DAY), days(-7 * n, -7 * n - 1, **more), stated) for n in range(count)]


def test_an_epoch():
    newer, older = arcs(2, "Drain five", "Database: SQLite")
    node = epoch(LANTERN, "2026-Q1", [older, newer])
    assert node.content == (
        "lantern, 2026-Q1, 2026-03-20 to 2026-03-28: 2 weeks\n\n"
        f"- 2 sessions of 2026-W13: Lit the lantern on day 0. ({newer.id})\n"
        f"- 2 sessions of 2026-W12: Lit the lantern on day -7. ({older.id})\n\n"
        "Decisions:\n- Drain five\n- Database: SQLite"
    )
    assert node._replace(content=None) == (
        "default", epoch_id(LANTERN, "2026-Q1"), "epoch", "condensation", 2, None, LANTERN.id, None, None,
        older.earliest_us, newer.latest_us, 0, len(node.content),
        "2 weeks of 2026-Q1: Lit the lantern on day 0.", None,
    )  # fmt: skip
    assert node.id.startswith("e-")


def test_a_full_quarter_fits():
    sentence = "Measured the queue " + "with ten thousand jobs and one writer " * 9 + "and wrote it down."
    node = epoch(LANTERN, "2026-Q1", arcs(13, "Drain five", sentence=sentence))
    assert sum(line.endswith(")") for line in node.content.split("\n")) == 13
    assert node.content.endswith("Decisions:\n- Drain five") and rough_tokens(node.content) <= BUDGET_TOKENS


# --- bounds ---

TEXTS = st.sampled_from(
    ["Short one.", "Measured the queue. " * 40, "灯火管制" * 200, "🚀" * 300, "a" * 900, "x_y-z/" * 150, "- " * 400]
) | st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=40)
STATED = st.lists(st.tuples(st.sampled_from(["decision", "blocker", "next", "question", "note"]), TEXTS), max_size=20)
SESSIONS = st.lists(
    st.builds(
        session, st.integers(0, 6), session_id=st.uuids().map(str),
        node_id=st.integers(0, 99).map(lambda n: f"s-abcdefgh{n:04}"),
        sentence=TEXTS,
    ),
    min_size=2,
    max_size=16,
)  # fmt: skip


@given(SESSIONS, STATED, st.data())
def test_any_order_gives_the_same_within_the_budget(sessions, stated, data):
    thread = LANTERN._replace(label=data.draw(st.sampled_from(["lantern (codex)", "灯" * 150, "a-b_" * 40])))
    node = arc(thread, "2026-W13", sessions, stated)
    assert arc(thread, "2026-W13", data.draw(st.permutations(sessions)), stated) == node
    assert rough_tokens(node.content) <= BUDGET_TOKENS
    assert len(node.label) <= 160 and "\n" not in node.label
    other = arc(thread, "2026-W12", sessions, stated)
    above = epoch(thread, "2026-Q1", [node, other])
    assert epoch(thread, "2026-Q1", [other, node]) == above
    assert rough_tokens(above.content) <= BUDGET_TOKENS
    assert len(above.label) <= 160


@given(TEXTS, st.integers(4, 200))
def test_shortened(text, width):
    short = shorten(text, width)
    assert len(short) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
    assert shorten("Measured the queue with ten jobs", 20) == "Measured the queue…"
    assert shorten("Measured it with 'jobs --ten -x', again", 30) == "Measured it with…"
    assert shorten("The users' jobs of it's queue, again", 30) == "The users' jobs of it's…"
