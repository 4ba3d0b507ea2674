"""Threads: which sessions go on from each other, what each brings, and the rolling head."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signet_sync.formats.fact import Item
from test_nodes import HOUR, WORDS, T, source

from signet_sync.formats.timestamps import DAY
from signet_sync.graph import threads
from signet_sync.graph.nodes import of_session
from signet_sync.graph.projects import Project
from signet_sync.graph.threads import (
    BLOCKERS,
    DECISIONS,
    LOOPS,
    NEXT_STEPS,
    SUMMARY_SESSIONS,
    ThreadSession,
    ThreadSummary,
    columns_of,
    lineage_of,
    row_of,
    session_of,
    stated,
    summarize,
    thread_of,
)

SUMMARY = source()
LANTERN = thread_of([SUMMARY])


def session(day, **more):
    fields = {
        "agent_id": "default", "session_token": "aaaabbbbccccdddd", "session_id": f"5e55-{day}",
        "thread_id": LANTERN.id, "earliest_us": T + day * DAY - HOUR, "latest_us": T + day * DAY, "week": "2026-W13",
        "node_id": f"s-{day}", "source_type": "summary",
        "source_ref": f"memory/{day}--summary.md",
        "sentence": f"Lit the lantern on day {day}.",
        "status": None, "harness": "codex", "decisions": (), "next_steps": (), "loops": (), "blockers": (),
        "closed": (),
    }  # fmt: skip
    return ThreadSession(**(fields | more))


def head_of(*sessions, arc=None):
    return summarize(LANTERN, sessions, len(sessions), T - 100 * DAY, arc)


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
    one = source(found=Project("example.org/ada/lantern", "/home/ada/code/lantern"))
    other = source(project="/mnt/lantern-2/docs", found=Project("example.org/ada/lantern", "/mnt/lantern-2"))
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
    return session_of(sources, thread, of_session(sources, thread.id), items)


def test_a_session_as_its_thread_needs_it():
    late = source("transcript", at=T + HOUR, content=WORDS, membership_us=T + 2 * HOUR)
    items = {
        SUMMARY.source_path: [Item("decision", "Database: SQLite", 3), Item("constraint", "No network", 4),
         *(Item("next", f"Step {n}", 10 + n) for n in range(7)), Item("question", "Does it survive a suspend?", 30),
         Item("question", "Whose key is it?", 31, done=True), Item("blocker", "CI has no zstd", 40),
         Item("next", "Old step", 50, done=True)],
    }  # fmt: skip
    found = told([late, SUMMARY], items)
    best = of_session([SUMMARY], None).best
    assert found[:11] == (
        "default", "aaaabbbbccccdddd", "5e55", LANTERN.id, T, T + 2 * HOUR, "2026-W13", best, "summary",
        SUMMARY.source_path, SUMMARY.sentence,
    )  # fmt: skip
    assert found.decisions == ("Database: SQLite",)
    assert found.next_steps == tuple(f"Step {n}" for n in range(5))
    assert found.loops == ("Does it survive a suspend?", "Step 5", "Step 6")
    assert found.blockers == ("CI has no zstd",)
    assert found.closed == ("whose key is it?", "old step")


def test_items_are_those_of_all_segments():
    one, other = source(), source(at=T + HOUR)
    items = {
        one.source_path: [
            Item("decision", "Skip them", 3), Item("next", "Ship it", 4), Item("blocker", "No key", 5)
        ],
        other.source_path: [Item("next", "Ship it", 3, done=True)],
    }  # fmt: skip
    found = told([one, other], items)
    assert (found.decisions, found.next_steps, found.blockers) == (("Skip them",), (), ("No key",))
    assert found.closed == ("ship it",)


def test_a_head_lists_the_harnesses_the_latest_first():
    sessions = [session(1, harness="codex"), session(2, harness="gemini"), session(3, harness="codex"), session(4)]
    assert head_of(*sessions[:3], sessions[3]._replace(harness=None)).harness == "codex, gemini"
    assert head_of(session(1, harness=None)).harness is None


def test_a_session_that_nobody_summed_up():
    found = told([source("transcript", content=WORDS * 200, sentence="Lit `it`.")], {})
    assert (found.source_type, found.node_id[0], found.sentence) == ("chunk", "k", "Lit 'it'.")


def test_the_newest_artifact_has_the_last_word():
    early, late = source(at=T), source(at=T + HOUR)
    items = {
        early.source_path: [Item("next", "Ship it", 1), Item("next", "Tell Mira", 2, done=True)],
        late.source_path: [Item("next", "ship it.", 1, done=True), Item("next", "Tell Mira", 2)],
    }
    found = told([early, late], items)
    assert found.next_steps == ("Tell Mira",) and found.closed == ("ship it",)
    both = {early.source_path: [Item("next", "Ship it", 1), Item("next", "Ship it", 2, done=True)]}
    assert told([early], both).next_steps == () and told([early], both).closed == ("ship it",)


ITEMS = st.lists(
    st.builds(
        Item,
        st.sampled_from(["decision", "next", "question", "blocker", "note"]),
        st.sampled_from(["Ship it", "ship it.", "None", "A", "B", "C", "D", "E", "F"]) | st.text(max_size=5),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=40,
)


@given(ITEMS, ITEMS, st.data())
def test_any_order_brings_the_same_and_bounded(one, two, data):
    sources = [source(), source("compaction", at=T), source("transcript", at=T)]
    items = {sources[0].source_path: one, sources[1].source_path: two}
    found = told(sources, items)
    shuffled = {path: data.draw(st.permutations(said)) for path, said in items.items()}
    assert told(data.draw(st.permutations(sources)), shuffled) == found
    assert len(found.decisions) <= DECISIONS and len(found.next_steps) <= NEXT_STEPS
    assert len(found.loops) <= LOOPS and len(found.blockers) <= BLOCKERS
    assert row_of(ThreadSession, columns_of(found)) == found


# --- the head ---


def test_a_rolling_head():
    sessions = [
        session(1, decisions=("Database: Postgres", "Drain five"), loops=("Whose key?", "Which port?")),
        session(2, decisions=("Database: SQLite",), next_steps=("Measure it", "Tell Mira"), blockers=("No zstd",)),
        session(3, decisions=("database: sqlite.",), closed=("which port?", "measure it")),
    ]
    found = head_of(*sessions, arc="a-1")
    assert found == (
        "default", LANTERN.id, LANTERN.key, "lantern", LANTERN.project, None, "codex", "open", 3,
        T - 100 * DAY, T + 3 * DAY, "s-3", "summary", "memory/3--summary.md", "Lit the lantern on day 3.", "Tell Mira",
        ("database: sqlite.", "Database: Postgres", "Drain five"), ("Whose key?",), ("No zstd",),
        ("s-3", "s-2", "s-1", "a-1"), ("s-2", "s-2"),
    )  # fmt: skip


def test_status():
    assert head_of(session(1)).status == "settled"
    assert head_of(session(1, loops=("Why?",))).status == "open"
    assert head_of(session(1, next_steps=("Go",))).status == "open"
    assert head_of(session(1, next_steps=("Go",), blockers=("No oil",))).status == "blocked"
    assert head_of(session(2), session(1, blockers=("No oil",))).status == "settled"
    assert head_of(session(2), session(1, blockers=("No oil",))).blockers == ("No oil",)
    assert head_of(session(2, closed=("no oil",)), session(1, blockers=("No oil.",))).blockers == ()


def test_blockers_are_those_of_the_newest_session_with_any():
    old = session(1, blockers=("No oil",))
    assert head_of(old, session(2), session(3), session(4)).blockers == ("No oil",)
    assert head_of(old, session(2, blockers=("No wick",)), session(3)).blockers == ("No wick",)


def test_next_action():
    plan = session(2, next_steps=("Measure", "Ship"))
    assert head_of(session(1, next_steps=("Begin",)), plan).next_action == "Measure"
    assert head_of(session(1, next_steps=("Begin",)), plan).loops == ("Ship",)
    closing = session(3, closed=("measure",))
    assert head_of(plan, closing).next_action == "Ship" and head_of(plan, closing).loops == ()
    assert head_of(plan, session(3, closed=("measure", "ship"))).status == "settled"
    # What was closed and is said again is open again.
    assert head_of(session(1, closed=("measure",)), plan).next_action == "Measure"


def test_older_sessions_than_the_newest_twelve_do_not_count():
    sessions = [session(day, decisions=(f"D{day}",), loops=(f"L{day}",)) for day in range(SUMMARY_SESSIONS + 1)]
    sessions[0] = sessions[0]._replace(blockers=("old",), next_steps=("old",))
    assert head_of(*sessions) == head_of(*sessions[1:])._replace(sessions=len(sessions))


WORD = st.sampled_from(["Ship it", "ship it.", "Measure", "Tell Mira", "Why?", "Who?", "No oil"])
SOME = st.lists(WORD, max_size=4).map(tuple)
SESSIONS = st.lists(
    st.builds(
        session, st.integers(0, 5), session_id=st.uuids().map(str), decisions=SOME, next_steps=SOME, loops=SOME,
        blockers=SOME,
        closed=SOME.map(lambda texts: tuple(threads.item_key(text) for text in texts)),
    ),
    min_size=1,
    max_size=15,
)  # fmt: skip


@given(SESSIONS, st.data())
def test_any_order_has_the_same_head(sessions, data):
    found = head_of(*sessions)
    assert head_of(*data.draw(st.permutations(sessions))) == found
    assert row_of(ThreadSummary, columns_of(found)) == found
    assert all(row_of(ThreadSession, columns_of(one)) == one for one in sessions)
    for texts in (found.decisions, found.loops, found.blockers):
        assert len({threads.item_key(text) for text in texts}) == len(texts) <= 5
    assert found.next_action not in found.loops
    assert (found.status == "settled") <= (not found.loops and found.next_action is None)


# --- rows ---


def test_columns_are_those_of_the_tables():
    one = session(1, decisions=("Größe: 灯",), closed=("b", "a"))
    row = columns_of(one)
    assert len(row) == 14 and row[:13] == one[:13]
    assert row[13] == '{"blockers":[],"closed":["b","a"],"decisions":["Größe: 灯"],"loops":[],"next_steps":[]}'
    assert row_of(ThreadSession, list(row)) == one
    found = head_of(one, arc="a-1")
    row = columns_of(found)
    assert len(row) == 17 and row[:16] == found[:16]
    assert json.loads(columns_of(found)[-1]) == {
        "blockers": [], "decisions": ["Größe: 灯"], "loops": [], "refs": ["s-1", "a-1"], "said_by": ["", ""]
    }  # fmt: skip
    assert row_of(ThreadSummary, list(row)) == found


def test_what_is_past_is_in_no_summary():
    sessions = [
        session(1, next_steps=("oil it", "trim it"), blockers=("no oil",), decisions=("Lamp: gas", "Night watch"))
    ]
    made = summarize(LANTERN, sessions, 1, T, None, {"oil it", "no oil"})
    assert (made.next_action, made.blockers, made.decisions) == ("trim it", (), ("Lamp: gas", "Night watch"))
    assert {("next", "oil it"), ("blocker", "no oil")} <= set(stated(sessions))
