"""Threads: which sessions go on from each other, what each brings, the rolling head, and what condenses them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_nodes import HOUR, WORDS, T, source

from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import DAY, parse_instant, quarter_of, week_of, week_span
from signet_sync.graph.nodes import best_of, make_nodes
from signet_sync.graph.stage import derive_session
from signet_sync.graph.threads import (
    ARCS,
    SESSIONS,
    ThreadSession,
    arc,
    epoch,
    lineage_of,
    roll_up_id,
    session_of,
    summarize,
    thread_of,
)

SUMMARY = source()
LANTERN = thread_of([SUMMARY])


def session(day, **more):
    fields = {
        "agent_id": "default", "session_token": "aaaabbbbccccdddd", "session_id": f"5e55-{day}",
        "thread_id": LANTERN.id, "earliest_us": T + day * DAY - HOUR, "latest_us": T + day * DAY, "week": "2026-W13",
        "node_id": f"s-{day}", "source_ref": f"memory/{day}--summary.md",
        "sentence": f"Lit the lantern on day {day}.", "status": None, "harness": "codex",
    }  # fmt: skip
    return ThreadSession(**(fields | more))


# --- which thread ---


@pytest.mark.parametrize(("key", "shared"), [
    *((key, True) for key in (
        "agent:main:main", " agent:main:main ", "telegram:family", "agent:main:o8GtRG", "main", "灯", "defaced:facade",
        "a-very-long-but-readable-key-of-many-words", "internationalization", "g" * 1_000_000,
    )),
    *((key, False) for key in (
        None, "", " \t", "5e55", " 5e55 ", "session-end:anonymous:19d777138e333d43",
        "0f8c8f0e-1111-4222-8333-abcdefabcdef", "agent:0F8C8F0E-1111-4222-8333-ABCDEFABCDEF", "cron:2026-03-28",
        "run-20260328", "ses_5d4bc6f6affeQtbRhYcmS1Hnzq", "chat:1774692000",
    )),
])  # fmt: skip
def test_a_key_that_sessions_share_is_a_lineage(key, shared):
    assert lineage_of(key, "5e55") == (key.strip() if shared else None)


def test_what_makes_a_thread():
    assert tuple(LANTERN) == (
        "default", LANTERN.id, "lantern", "/home/ada/code/lantern", None,
    )  # fmt: skip
    assert LANTERN.id.startswith("t-")
    same = ({"project": "/home/ada/code/lantern/"}, {"project": " /home/ada/code/lantern//"}, {"harness": None},
            {"harness": "claude-code"}, {"session_key": "agent:main:main"}, {"session_id": "other"})  # fmt: skip
    assert {thread_of([source(**one)]) for one in same} == {LANTERN}
    others = ({"agent_id": "scout"}, {"project": "/home/eve/code/lantern"}, {"project": None},
              {"project": None, "session_id": "other"}, {"project": None, "session_token": "aaaabbbbccccdddx"},
              {"project": None, "session_key": "agent:main:main"}, {"project": "agent:main:main"},
              {"project": "/home/ada/code/lantern#harness:codex", "harness": None})  # fmt: skip
    assert len({LANTERN.id, *(thread_of([source(**one)]).id for one in others)}) == len(others) + 1
    assert thread_of([source(project=None)]) == thread_of([source(project=None, harness="gemini")])
    lineage = source(project=None, session_key="agent:main:main")
    assert thread_of([lineage]) == thread_of([lineage._replace(session_id="other", harness="openclaw")])
    origin = thread_of([source(project="/mnt/lantern-2/docs", identity="example.org/ada/lantern")])
    assert origin == thread_of([source(identity="example.org/ada/lantern")])
    assert origin[2:4] == ("lantern", "example.org/ada/lantern")


@pytest.mark.parametrize(("project", "key", "label"), [
    ("/x/lantern/", "agent:main:main", "lantern"), (None, "agent:main:main", "agent:main:main"),
    (None, None, "no project"), (" ", "", "no project"), ("/", None, "/"),
    ("/x/[[a]] | `b`\n# c", None, "[ [a] ] ¦ 'b' # c"), ("/" + "p" * 999, None, "p" * 59 + "…"),
    (None, "k " * 400, "k " * 29 + "k…"),
])  # fmt: skip
def test_labels(project, key, label):
    assert thread_of([source(project=project, session_key=key)]).label == label


def test_the_best_artifact_tells_the_thread():
    noise = source(noise=1)
    assert thread_of([]) is thread_of([noise, source("transcript", at=T + HOUR)]) is None
    assert thread_of([noise, source(at=T + HOUR)]) == LANTERN
    moved = source("transcript", at=T + HOUR, project="/elsewhere")
    assert thread_of([moved, SUMMARY]) == thread_of([SUMMARY, moved]) == LANTERN


# --- what a session brings ---


def told(sources, items):
    thread = thread_of(sources)
    return session_of(sources, thread, make_nodes(sources, thread.id), items, None, None, None)


def test_a_session_as_its_thread_needs_it():
    late = source("transcript", at=T + HOUR, content=WORDS, membership_us=T + 2 * HOUR)
    late = late._replace(branch="wick", tree="/wt/wick")
    items = {SUMMARY.source_path: [Item("decision", "Database: SQLite", 3), Item("next", "Old step", 50, done=True)]}
    best = make_nodes([SUMMARY], None).best
    assert told([late, SUMMARY._replace(branch="main")], items) == (
        "default", "aaaabbbbccccdddd", "5e55", LANTERN.id, T, T + 2 * HOUR, "2026-W13", best,
        SUMMARY.source_path, SUMMARY.sentence, None, "codex", "wick", "/wt/wick",
    )  # fmt: skip
    found = told([source("transcript", content=WORDS * 200, sentence="Lit `it`.")], {})
    assert (found.node_id[0], found.sentence) == ("k", "Lit 'it'.")


@pytest.mark.parametrize(("kinds", "status"), [
    ([], None), (["decision", "note"], None), (["question"], "open"), (["next"], "open"),
    (["next", "blocker"], "blocked"),
])  # fmt: skip
def test_what_a_session_lists_as_open_is_its_status(kinds, status):
    items = {SUMMARY.source_path: [Item(kind, "x", n) for n, kind in enumerate(kinds)]}
    items["other"] = [Item("blocker", "No key", 9, done=True)]
    assert told([SUMMARY], items).status == status


# --- a session that was resumed: its newest summary tells it, unless that is a form ---

DONE = "In lantern the importer of src/importer.py skips empty files now, and a test of it passes on all machines."
KIND = "The user of lantern said thanks, and the assistant answered that nothing else was left to do there today."
FORM = 'In lantern the summary of 2026-03-28 opens with "thanks" and keeps 3 lines and 5 words behind its link.'


@pytest.mark.parametrize(("sentences", "told"), [
    ([DONE, FORM], DONE), ([KIND, DONE, FORM, FORM], DONE), ([DONE, KIND], KIND), ([FORM, FORM], FORM),
])  # fmt: skip
def test_the_newest_sentence_that_is_no_form_speaks_for_the_session(sentences, told):
    sources = [source(at=T + n * HOUR, sentence=one, content="# Importer") for n, one in enumerate(sentences)]
    session = sources[0].agent_id, sources[0].session_token, sources[0].session_id
    found = derive_session(session, sources).place
    assert derive_session(session, sources[::-1]).place == found
    assert (found.sentence, found.source_ref) == (told, best_of(sources).source_path), "its link leads to the newest"


# --- the head ---


def test_a_thread_is_told_by_its_newest_session():
    assert summarize(LANTERN, session(3), 3, T - 100 * DAY) == (
        "default", LANTERN.id, "lantern", LANTERN.project, None, "codex", "settled", 3,
        T - 100 * DAY, T + 3 * DAY, "s-3", "memory/3--summary.md", "Lit the lantern on day 3.",
    )  # fmt: skip
    assert summarize(LANTERN, session(2, status="blocked"), 1, T).status == "blocked"


# --- weeks and quarters ---


@pytest.mark.parametrize(("at", "week", "quarter"), [
    ("2026-03-23T00:00:00Z", "2026-W13", "2026-Q1"), ("2026-03-29T23:59:59.999999Z", "2026-W13", "2026-Q1"),
    ("2026-03-30T00:00:00Z", "2026-W14", "2026-Q1"), ("2026-01-01T00:00:00Z", "2026-W01", "2025-Q4"),
    ("2024-12-30T00:00:00Z", "2025-W01", "2024-Q4"), ("2021-01-03T00:00:00Z", "2020-W53", "2020-Q4"),
    ("1969-12-31T23:59:59Z", "1970-W01", "1969-Q4"), ("0001-01-01T00:00:00Z", "0001-W01", "0001-Q1"),
    ("9999-12-31T00:00:00Z", "9999-W52", "9999-Q4"),
])  # fmt: skip
def test_weeks_and_quarters(at, week, quarter):
    instant = parse_instant(at)
    assert (week_of(instant), quarter_of(week)) == (week, quarter)
    first, last = week_span(week)
    assert first <= instant <= last and last - first == 7 * DAY - 1
    assert week_of(-(10**18)) == "0001-W01" and week_of(10**18) == "9999-W52", "beyond the calendar, too"


# --- arcs and epochs ---

WIDE = "Measured the queue " + "with ten thousand jobs and one writer " * 9 + "and wrote it down."


def days(*numbers, **more):
    return [session(day, **more) for day in numbers]


def arcs(count, **more):
    return [arc(LANTERN, week_of(T - 7 * n * DAY), days(-7 * n, -7 * n - 1, **more), []) for n in range(count)]


def test_an_arc():
    sessions = [
        session(-5), session(-3), session(0, sentence="Measured the queue with 10,000 jobs, see src/drain.py."),
    ]  # fmt: skip
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
    assert (node.id, node.depth, node.label) == (
        roll_up_id(LANTERN, "2026-W13"), 1,
        "3 sessions of 2026-W13: Measured the queue with 10,000 jobs, see src/drain.py.",
    )  # fmt: skip
    assert (node.earliest_us, node.latest_us) == (sessions[0].earliest_us, sessions[2].latest_us)


def test_an_epoch():
    newer, older = arcs(2)
    node = epoch(LANTERN, "2026-Q1", [older, newer])
    assert node.content == (
        "lantern, 2026-Q1, 2026-03-20 to 2026-03-28: 2 weeks\n\n"
        f"- 2 sessions of 2026-W13: Lit the lantern on day 0. ({newer.id})\n"
        f"- 2 sessions of 2026-W12: Lit the lantern on day -7. ({older.id})"
    )
    assert (node.id, node.label) == (roll_up_id(LANTERN, "2026-Q1"), "2 weeks of 2026-Q1: Lit the lantern on day 0.")
    assert (node.earliest_us, node.latest_us) == (older.earliest_us, newer.latest_us)


def test_ids_are_of_thread_and_period_and_below_two_there_is_none():
    assert arc(LANTERN, "2026-W13", [], []) is arc(LANTERN, "2026-W13", days(1), []) is None
    assert epoch(LANTERN, "2026-Q1", []) is epoch(LANTERN, "2026-Q1", arcs(1)) is None
    others = LANTERN._replace(id="t-other"), LANTERN._replace(agent_id="scout")
    periods = ("2026-W13", "2026-W14", "2026-Q1", "2026-Q2")
    made = {roll_up_id(thread, one) for thread in (LANTERN, *others) for one in periods}
    assert len(made) == 12 and [roll_up_id(LANTERN, one)[0] for one in periods] == ["a", "a", "e", "e"]


def test_of_many_the_newest_are_told():
    lines = arc(LANTERN, "2026-W13", days(*range(19)), []).content.split("\n")
    assert lines[0].endswith(": 19 sessions") and lines[2].startswith("- 2026-04-15") and len(lines) == 2 + SESSIONS
    wide = arc(LANTERN, "2026-W13", days(*range(12), sentence=WIDE), [("decision", WIDE)] * 9).content
    assert wide.count("… (s-") == SESSIONS and wide.partition("Decisions:")[2].count("- ") == 8
    quarter = epoch(LANTERN, "2026-Q1", arcs(19, sentence=WIDE)).content
    assert sum(line.endswith(")") for line in quarter.split("\n")) == ARCS


TEXTS = st.sampled_from(
    ["Short one.", "Measured the queue. " * 40, "灯火管制" * 200, "🚀" * 300, "a" * 900, "x_y-z/" * 150, "- " * 400]
) | st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=40)
STATED = st.lists(st.tuples(st.sampled_from(["decision", "blocker", "next", "question", "note"]), TEXTS), max_size=20)
MANY = st.lists(
    st.builds(
        session, st.integers(0, 6), session_id=st.uuids().map(str), sentence=TEXTS,
        node_id=st.integers(0, 99).map(lambda n: f"s-abcdefgh{n:04}"),
    ),
    min_size=2,
    max_size=16,
)  # fmt: skip


@given(MANY, STATED, st.data())
def test_any_order_condenses_to_the_same_and_is_bounded(sessions, stated, data):
    thread = LANTERN._replace(label=data.draw(st.sampled_from(["lantern (codex)", "灯" * 150, "a-b_" * 40])))
    node = arc(thread, "2026-W13", sessions, stated)
    assert arc(thread, "2026-W13", data.draw(st.permutations(sessions)), stated) == node
    other = arc(thread, "2026-W12", sessions, stated)
    above = epoch(thread, "2026-Q1", [node, other])
    assert epoch(thread, "2026-Q1", [other, node]) == above
    for one in (node, above):
        assert len(one.content) <= 6_000 and len(one.label) <= 160 and "\n" not in one.label
