"""Threads: which sessions go on from each other, what each brings, and the rolling head."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_nodes import HOUR, WORDS, T, source

from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import DAY
from signet_sync.graph.nodes import make_nodes
from signet_sync.graph.threads import (
    SUMMARY_SESSIONS,
    ThreadSession,
    lineage_of,
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
        "node_id": f"s-{day}",
        "source_ref": f"memory/{day}--summary.md",
        "sentence": f"Lit the lantern on day {day}.",
        "status": None, "harness": "codex",
    }  # fmt: skip
    return ThreadSession(**(fields | more))


def head_of(*sessions):
    return summarize(LANTERN, sessions, len(sessions), T - 100 * DAY)


# --- lineage ---


@pytest.mark.parametrize(
    "key",
    ["agent:main:main", " agent:main:main ", "telegram:family", "agent:main:o8GtRG", "main", "灯", "defaced:facade",
     "a-very-long-but-readable-key-of-many-words", "internationalization"],
)  # fmt: skip
def test_a_key_that_sessions_share_is_a_lineage(key):
    assert lineage_of(key, "5e55") == key.strip()


@pytest.mark.parametrize(
    "key",
    [None, "", " \t", "5e55", " 5e55 ", "session-end:anonymous:19d777138e333d43",
     "0f8c8f0e-1111-4222-8333-abcdefabcdef",
     "agent:0F8C8F0E-1111-4222-8333-ABCDEFABCDEF", "cron:2026-03-28", "run-20260328", "ses_5d4bc6f6affeQtbRhYcmS1Hnzq",
     "chat:1774692000", "Zx81qWertYuiOp99"],
)  # fmt: skip
def test_a_key_of_one_session_is_none(key):
    assert lineage_of(key, "5e55") is None


def test_a_hostile_key_takes_no_time():
    assert lineage_of("g" * 1_000_000, "") == "g" * 1_000_000
    assert lineage_of("g" * 1_000_000 + "1", "") is None


# --- threads ---


def test_what_makes_a_thread():
    assert tuple(LANTERN) == (
        "default", LANTERN.id, "project:/home/ada/code/lantern", "lantern", "/home/ada/code/lantern", None,
    )  # fmt: skip
    assert LANTERN.id.startswith("t-")
    same = [
        source(project="/home/ada/code/lantern/"),
        source(project=" /home/ada/code/lantern//"),
        source(harness="claude-code"),
        source(harness=None),
        source(session_key="agent:main:main"),
        source(session_id="other"),
    ]
    assert {thread_of([one]) for one in same} == {LANTERN}
    alone = source(project=None)
    others = [
        source(agent_id="scout"),
        source(project="/home/eve/code/lantern"),
        alone,
        source(project=None, session_id="other"),
        source(project=None, session_token="aaaabbbbccccdddx"),
        source(project=None, session_key="agent:main:main"),
        source(project="agent:main:main"),
        source(project="/home/ada/code/lantern#harness:codex", harness=None),
    ]
    assert len({LANTERN.id, *(thread_of([one]).id for one in others)}) == len(others) + 1
    assert thread_of([alone]) == thread_of([source(project=None, harness="gemini")])
    lineage = source(project=None, session_key="agent:main:main")
    assert thread_of([lineage]) == thread_of([lineage._replace(session_id="other", harness="openclaw")])


def test_the_origin_makes_the_thread_whatever_the_folder():
    one = source(identity="example.org/ada/lantern")
    other = source(project="/mnt/lantern-2/docs", identity="example.org/ada/lantern")
    assert thread_of([one]) == thread_of([other])
    assert thread_of([one])[2:5] == ("project:example.org/ada/lantern", "lantern", "example.org/ada/lantern")


@pytest.mark.parametrize(("project", "key", "label"), [
    ("/x/lantern/", "agent:main:main", "lantern"),
    (None, "agent:main:main", "agent:main:main"),
    (None, None, "no project"), (" ", "", "no project"), ("/", None, "/"),
    ("/x/[[a]] | `b`\n# c", None, "[ [a] ] ¦ 'b' # c"),
])  # fmt: skip
def test_labels(project, key, label):
    assert thread_of([source(project=project, session_key=key)]).label == label


def test_labels_are_short():
    for project, key in (("/" + "p" * 999, None), (None, "k " * 400)):
        assert len(thread_of([source(project=project, session_key=key)]).label) <= 60


def test_the_best_artifact_tells_the_thread():
    noise = source(noise=1)
    assert thread_of([]) is None
    assert thread_of([noise, source("transcript", at=T + HOUR)]) is None
    assert thread_of([noise, source(at=T + HOUR)]) == LANTERN
    moved = source("transcript", at=T + HOUR, project="/elsewhere")
    assert thread_of([moved, SUMMARY]) == thread_of([SUMMARY, moved]) == LANTERN


# --- what a session brings ---


def told(sources, items):
    thread = thread_of(sources)
    return session_of(sources, thread, make_nodes(sources, thread.id), items)


def test_a_session_as_its_thread_needs_it():
    late = source("transcript", at=T + HOUR, content=WORDS, membership_us=T + 2 * HOUR)
    late = late._replace(branch="wick", tree="/wt/wick")
    items = {SUMMARY.source_path: [Item("decision", "Database: SQLite", 3), Item("next", "Old step", 50, done=True)]}
    best = make_nodes([SUMMARY], None).best
    assert told([late, SUMMARY._replace(branch="main")], items) == (
        "default", "aaaabbbbccccdddd", "5e55", LANTERN.id, T, T + 2 * HOUR, "2026-W13", best,
        SUMMARY.source_path, SUMMARY.sentence, None, "codex", "wick", "/wt/wick",
    )  # fmt: skip


@pytest.mark.parametrize(("kinds", "status"), [
    ([], None), (["decision", "note"], None), (["question"], "open"), (["next"], "open"),
    (["next", "blocker"], "blocked"),
])  # fmt: skip
def test_what_a_session_lists_as_open_is_its_status(kinds, status):
    items = {SUMMARY.source_path: [Item(kind, "x", n) for n, kind in enumerate(kinds)]}
    items["other"] = [Item("blocker", "No key", 9, done=True)]
    assert told([SUMMARY], items).status == status


def test_a_head_lists_the_harnesses_the_latest_first():
    sessions = [session(1, harness="codex"), session(2, harness="gemini"), session(3, harness="codex"), session(4)]
    assert head_of(*sessions[:3], sessions[3]._replace(harness=None)).harness == "codex, gemini"
    assert head_of(session(1, harness=None)).harness is None


def test_a_session_that_nobody_summed_up():
    found = told([source("transcript", content=WORDS * 200, sentence="Lit `it`.")], {})
    assert (found.node_id[0], found.sentence) == ("k", "Lit 'it'.")


@given(st.data())
def test_any_order_brings_the_same(data):
    sources = [source(), source("compaction", at=T), source("transcript", at=T), source(at=T + HOUR)]
    assert told(data.draw(st.permutations(sources)), {}) == told(sources, {})


# --- the head ---


def test_a_rolling_head():
    sessions = [session(1), session(2, status="blocked"), session(3)]
    found = head_of(*sessions)
    assert found == (
        "default", LANTERN.id, LANTERN.key, "lantern", LANTERN.project, None, "codex", "settled", 3,
        T - 100 * DAY, T + 3 * DAY, "s-3", "memory/3--summary.md", "Lit the lantern on day 3.",
    )  # fmt: skip
    assert head_of(*sessions[:2]).status == "blocked"


def test_of_older_sessions_than_the_newest_twelve_only_the_number_counts():
    sessions = [session(day, harness=f"h{min(day, 1)}") for day in range(SUMMARY_SESSIONS + 1)]
    assert head_of(*sessions) == head_of(*sessions[1:])._replace(sessions=len(sessions))


SESSIONS = st.lists(
    st.builds(
        session, st.integers(0, 5), session_id=st.uuids().map(str), status=st.sampled_from([None, "done", "open"])
    ),
    min_size=1,
    max_size=15,
)  # fmt: skip


@given(SESSIONS, st.data())
def test_any_order_has_the_same_head(sessions, data):
    found = head_of(*sessions)
    assert head_of(*data.draw(st.permutations(sessions))) == found
