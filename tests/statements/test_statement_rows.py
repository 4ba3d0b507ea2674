"""Rows of what is distilled: merged, done, of an older list, forgotten; the same however they came to be."""

from __future__ import annotations

import time
from collections.abc import Iterable
from random import Random
from typing import Any

import graph_rows
import pytest
from facts_rows import orphans
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import index_rows
from signet_sync.facts.extract import distil
from signet_sync.facts.store import facts, statements
from signet_sync.facts.store.statements import ArtifactStatements, Touched, entity_id
from signet_sync.formats.fact import Distilled, Item
from signet_sync.graph.facts_stage import FACT
from signet_sync.recall.stage import FoundStatements
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import FACTS, SOURCES
from signet_sync.storage.database.table import SESSION
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync.stages import Source

DAY = 86_400_000_000
PROJECT = "/code/lantern"


def stated(
    body: str,
    number: int = 1,
    *,
    agent: str = "default",
    day: int | None = None,
    project: str | None = PROJECT,
) -> ArtifactStatements:
    """What the artifact of a session with this body states, on a day that is the session's number unless given."""
    at_us = (number if day is None else day) * DAY
    path = f"memory/{agent}-{number}--summary.md"
    return ArtifactStatements(
        agent, f"token{number}", f"id{number}", "t-lantern", project, path, at_us,
        distil(body, project=project),
    )  # fmt: skip


def session(number: int, agent: str = "default") -> statements.Session:
    return agent, f"token{number}", f"id{number}"


@pytest.fixture
def database() -> Iterable[Database]:
    made = Database(":memory:")
    yield made
    made.close()


def put(database: Database, *artifacts: ArtifactStatements) -> None:
    """As a pass does: the rows of each session replaced, then what follows from them."""
    follow(database, [one[:3] for one in artifacts], artifacts)


def drop(database: Database, *sessions: statements.Session) -> None:
    follow(database, sessions, ())


def follow(database: Database, sessions: Iterable[statements.Session], artifacts: Iterable[ArtifactStatements]) -> None:
    with database.transaction():
        for one in artifacts:
            _index(database, one)
        settled = facts.settle(database, *statements.replace(database, sessions, artifacts))
        FoundStatements().update(database, [Source(FACT, *key) for key in settled], lambda: None)


def _index(database: Database, one: ArtifactStatements) -> None:
    """The row of an artifact, as far as facts need it."""
    if database.value("select exists(select 1 from memory_artifacts where source_path = ?)", (one.source_path,)):
        return
    row = dict.fromkeys("source_sha256 source_kind captured_at content updated_at".split(), "")
    row |= dict.fromkeys(("captured_us", "membership_us", "noise"), 0)
    row |= dict(zip((*SESSION, "source_path"), (*one.session, one.source_path), strict=True))
    graph_rows.insert(database, "memory_artifacts", **row)


def held(database: Database, agent: str = "default") -> dict[str, tuple[str, int]]:
    """Status and number of sources of each fact by its words."""
    rows = database.execute(f"select text, status, sources from {FACTS} where agent_id = ?", (agent,))
    return {text: (status, sources) for text, status, sources in rows}


def dump(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    found = {name: list(index_rows.sorted_rows(database, TABLES[name])) for name in statements.TABLES}
    lines = "select agent_id, tier, name, text, at_us, about from texts where artifact is null order by 1, 3"
    found["texts"] = list(database.execute(lines))
    return found


def recalled(database: Database, words: str) -> list[str]:
    rows = database.execute(
        "select l.text from said f join texts l on l.first = f.rowid where said match ?",
        (words,),
    )
    return sorted(row[0] for row in rows)


def identity(database: Database, text: str) -> str:
    found: str = database.value(f"select id from {FACTS} where text = ?", (text,))
    return found


# ── what stands ──


def test_equal_texts_are_one_fact_with_several_sources(database):
    put(database, stated("## Decisions\n- Use **SQLite**\n", 1), stated("\n## Decided\n- use SQLite.\n", 2))
    fact_id = identity(database, "use SQLite.")
    fact = facts.fact(database, "default", fact_id)
    assert fact is not None and (fact.text, fact.aspect, fact.status) == ("use SQLite.", "decision", "active")
    assert (fact.topic_id, fact.topic) == (entity_id("default", "project", PROJECT), "lantern")
    assert (fact.earliest_us, fact.latest_us) == (DAY, 2 * DAY)
    assert held(database) == {"use SQLite.": ("active", 2)}
    assert list(
        database.execute(
            f"select source_path, line, text, at_us from {SOURCES} where attribute_id = ? order by at_us desc",
            (fact_id,),
        )
    ) == [
        ("memory/default-2--summary.md", 3, "use SQLite.", 2 * DAY),
        ("memory/default-1--summary.md", 2, "Use **SQLite**", DAY),
    ]
    assert facts.fact(database, "other", fact_id) is facts.fact(database, "default", "f-none") is None
    assert facts.topic(database, "default", fact.topic_id) == ("project", "lantern", 2, 2 * DAY)
    assert facts.topic(database, "other", fact.topic_id) is None


def test_decisions_stay_whatever_is_decided_later(database):
    put(database, stated("## Decisions\n- Database: SQLite\n", 2), stated("## Decisions\n- Database: Postgres\n", 1))
    put(database, stated("## Decisions\n- we no longer use SQLite\n", 3), stated("## Questions\n- which lamp?\n", 1))
    put(database, stated("## Questions\n- which wick?\n", 4))
    assert {status for status, _ in held(database).values()} == {"active"}
    drop(database, session(2))
    assert recalled(database, "decision lantern SQLite") == ["we no longer use SQLite · decision"]


NEXT, BLOCKERS = "## Next steps\n", "## Blockers\n"
LISTS: dict[str, tuple[list[str], set[str]]] = {
    # Bodies of sessions, oldest first, and what is active in the end.
    "a newer list": ([NEXT + "- fill lamps\n- trim wicks\n", NEXT + "- ring bells\n"], {"ring bells"}),
    "what is repeated": ([NEXT + "- fill lamps\n- trim wicks\n", NEXT + "- trim wicks\n"], {"trim wicks"}),
    "no newer list": ([NEXT + "- fill lamps\n", "## Outcome\n- Filled lamps.\n"], {"fill lamps"}),
    "only a tick": ([NEXT + "- fill lamps\n- trim wicks\n", NEXT + "- [x] fill lamps\n"], {"trim wicks"}),
    "a heading of what is done": (
        [
            NEXT + "- fill lamps\n- trim wicks\n" + BLOCKERS + "- no oil\n",
            "## Done\n- Fill lamps.\n## Resolved\n- no oil\n",
        ],
        {"trim wicks"},
    ),
    "a tick in a newer list": (
        [NEXT + "- fill lamps\n- trim wicks\n", NEXT + "- [x] fill lamps\n- ring bells\n"],
        {"ring bells"},
    ),
    "the newest list is done": (
        [NEXT + "- fill lamps\n", NEXT + "- trim wicks\n", NEXT + "- [x] trim wicks\n"],
        set(),
    ),
    "listed again": (
        [NEXT + "- fill lamps\n", NEXT + "- trim wicks\n", NEXT + "- fill lamps\n"],
        {"fill lamps"},
    ),
    "two kinds": (
        [NEXT + "- fill lamps\n" + BLOCKERS + "- no oil\n", BLOCKERS + "- no wicks\n"],
        {"fill lamps", "no wicks"},
    ),
    "a decision": (["## Decisions\n- burn oil\n", "## Decisions\n- burn wax\n"], {"burn oil", "burn wax"}),
}


@pytest.mark.parametrize(("bodies", "active"), LISTS.values(), ids=LISTS)
def test_the_newest_list_of_a_project_is_current(database, bodies, active):
    sessions = [stated(body, number) for number, body in enumerate(bodies, 1)]
    for one in reversed(sessions):
        put(database, one)
    assert {text for text, (status, _) in held(database).items() if status == "active"} == active
    first = dump(database)
    for one in sessions:
        drop(database, one.session)
        put(database, one)
    assert dump(database) == first


def test_lists_are_of_one_agent_project_and_session(database):
    put(
        database,
        stated(NEXT + "- fill lamps\n", 1),
        stated(NEXT + "- trim wicks\n", 2, project="/code/prism"),
        stated(NEXT + "- ring bells\n", 3, agent="scout"),
        stated(NEXT + "- light fires\n", 4, project=None),
        stated(NEXT + "- sweep quays\n", 5, project=None),
    )
    assert {status for status, _ in (held(database) | held(database, "scout")).values()} == {"active"}
    put(database, stated(NEXT + "- open doors\n", 6, day=9), stated(NEXT + "- lock doors\n", 7, day=9))
    assert held(database)["fill lamps"] == ("past", 1)
    # Of one instant the greatest path counts.
    assert (held(database)["open doors"], held(database)["lock doors"]) == (("past", 1), ("active", 1))
    assert recalled(database, "doors") == ["lock doors · next step"]
    drop(database, session(6), session(7))
    assert held(database)["fill lamps"] == ("active", 1) and recalled(database, "doors") == []


def test_what_is_ticked_later_is_done_and_open_again_when_the_tick_goes(database):
    put(database, stated("## Next\n- trim the wick\n", 1), stated("## Next\n- [x] Trim the wick\n", 2))
    assert held(database) == {"Trim the wick": ("done", 2)} and recalled(database, "wick") == []
    drop(database, session(2))
    assert held(database) == {"trim the wick": ("active", 1)}
    assert recalled(database, "next step") == ["trim the wick · next step"]
    put(database, stated("## Next\n- [x] trim the wick\n", 0))
    assert held(database) == {"trim the wick": ("active", 2)}


def test_what_is_struck_out_is_done_until_it_is_said_again(database):
    put(database, stated("## Decisions\n- Lamp: oil\n", 1), stated("## Decisions\n- ~~Lamp: oil~~\n", 3))
    assert held(database) == {"Lamp: oil": ("done", 2)}
    put(database, stated("## Decisions\n- Lamp: oil\n", 4))
    assert held(database) == {"Lamp: oil": ("active", 3)}


def test_without_a_project_facts_are_about_the_agent(database):
    put(database, stated("## Preferences\n- short answers\n", 1, project=None))
    fact = facts.fact(database, "default", identity(database, "short answers"))
    assert fact is not None and fact.topic_id == entity_id("default", "agent", "default")
    assert recalled(database, "preference") == ["short answers · preference"]
    assert list(database.execute("select kind, norm, name, mentions from entities")) == [
        ("agent", "default", "default", 1)
    ]
    put(database, stated("no items here", 1, project=None))
    assert all(rows == [] for rows in dump(database).values())


def test_entities_are_named_as_the_newest_mention_names_them(database):
    body = "## People\n- **Ada Lovelace** – keeper\n"
    put(database, stated("see src/a.py and #12\n" + body, 1), stated("see /code/lantern/src/a.py\n", 2))
    rows = database.execute("select kind, name, mentions, latest_us / ? from entities order by kind", (DAY,))
    assert list(rows) == [
        ("issue", "#12", 1, 1), ("path", "src/a.py", 2, 2), ("person", "Ada Lovelace", 1, 1),
        ("project", "lantern", 2, 2)]  # fmt: skip


def test_two_agents_share_nothing(database):
    body = "see src/a.py\n## Decisions\n- Lamp: oil\n"
    put(database, stated(body, 1), stated(body, 1, agent="scout"))
    found = dump(database)
    ids = [
        {row[1] for row in found["entity_attributes"] + found["entities"] if row[0] == a} for a in ("default", "scout")
    ]
    assert ids[0] and len(ids[0]) == len(ids[1]) and not ids[0] & ids[1]
    drop(database, session(1))
    assert held(database) == {} and held(database, "scout") == {"Lamp: oil": ("active", 1)}
    assert orphans(database) == 0


def test_an_items_second_copy_is_left_out(database):
    one = stated("## Next\n- fill the lamp\n", 1)
    given = Distilled((*one.distilled.items, Item("next", "Fill the lamp!", 9, done=True)), ())
    put(database, one._replace(distilled=given))
    assert held(database) == {"fill the lamp": ("active", 1)}
    assert orphans(database) == 0


# ── the same however it came to be ──

WORDS = st.sampled_from(["oil", "gas", "wax", "**Oil**", "src/a.py", "#12"])
BEGINNINGS = ["", "Lamp: ", "use "]
ITEM = st.tuples(st.sampled_from(["- ", "- [x] ", "- [ ] "]), st.sampled_from(BEGINNINGS), WORDS)
OPEN = st.sampled_from(["- send the oil order\n", "- the oil order is not approved yet\n", "- [x] the oil order\n"])
SECTION = st.one_of(
    st.tuples(
        st.sampled_from(["Decisions", "Constraints", "Next steps", "People", "Notes"]), st.lists(ITEM, max_size=3)
    ),
    st.tuples(st.sampled_from(["Next steps", "Blockers"]), st.lists(OPEN, max_size=2)),
    st.tuples(st.sampled_from(["Done", "Resolved"]), st.lists(OPEN, max_size=2)),
)
BODY = st.lists(SECTION, max_size=3).map(
    lambda sections: "\n".join(
        [line for title, listed in sections for line in (f"## {title}", *("".join(item) for item in listed))]
    )
)
STEP = st.tuples(
    st.integers(0, 5),  # which session
    st.sampled_from(["default", "scout"]),
    st.integers(1, 3),  # when
    st.sampled_from([PROJECT, "/code/prism", None]),
    BODY | st.none(),  # None: it is removed
)


@given(st.lists(st.lists(STEP, min_size=1, max_size=3), max_size=8))
def test_bit_by_bit_is_as_all_at_once(rounds):
    database, whole = Database(":memory:"), Database(":memory:")
    standing: dict[statements.Session, ArtifactStatements] = {}
    for steps in rounds:
        moved = {}
        for number, agent, day, project, body in steps:
            key = session(number, agent)
            moved[key] = None if body is None else stated(body, number, agent=agent, day=day, project=project)
        artifacts = [one for one in moved.values() if one is not None]
        follow(database, moved, artifacts)
        standing = {key: one for key, one in (standing | moved).items() if one is not None}
    put(whole, *standing.values())
    assert dump(database) == dump(whole)
    assert orphans(database) == orphans(whole) == 0
    database.execute("insert into said(said) values('integrity-check')")
    before = database.connection.total_changes()
    follow(database, standing, standing.values())
    assert statements.replace(database, standing, standing.values()) == Touched()
    assert database.connection.total_changes() == before
    database.close()
    whole.close()


# ── what it costs ──


def many(sessions: int, seed: int = 1) -> list[ArtifactStatements]:
    """Sessions of twelve items each in some projects; slots and paths meet."""
    random = Random(seed)
    words = ["queue", "lease", "ledger", "broker", "retry", "loop", "budget", "socket", "planner", "shard", "window"]
    made = []
    for number in range(sessions):
        lines = []
        for title, count in (("Decisions", 4), ("Blockers", 2), ("Next steps", 4), ("Notes", 2)):
            lines += ["", f"## {title}", ""]
            for place in range(count):
                slot = f"{random.choice(words)}: " if random.random() < 0.2 else ""
                lines.append(f"- {slot}{' '.join(random.choices(words, k=9))} of run {number}, item {place}")
        body = "\n".join([f"# Work on src/{random.choice(words)}.py", *lines])
        made.append(stated(body, number, project=f"/code/{words[number % 11]}"))
    return made


def test_settling_what_was_touched_never_walks_a_table(database):
    vault = many(60)
    put(database, *vault)
    seen: list[str] = []
    database.connection.exec_trace = lambda cursor, sql, bindings: seen.append(sql) or True
    put(database, stated("## Decisions\n- queue: bounded\n- lease: long\nsee src/queue.py\n", 7, project="/code/queue"))
    drop(database, session(3))
    database.connection.exec_trace = None
    explained = 0
    for sql in dict.fromkeys(seen):
        if not sql.lstrip().lower().startswith(("select", "insert", "update", "delete")) or "said" in sql:
            continue
        for _, _, _, step in database.execute(f"explain query plan {sql}", [None] * sql.count("?")):
            # All that an agent has would be searched by its name alone.
            assert not step.endswith("(agent_id=?)") or "text_owners" in step, (step, sql)
            assert not any(step.startswith(f"SCAN {name}") for name in (*TABLES, "s", "t", "m", "a", "e")), (step, sql)
            explained += 1
    assert explained > 30


@pytest.mark.slow
def test_the_cost_of_a_session_does_not_grow_with_the_vault():
    steps = []
    for size in (60, 600):
        database = Database(":memory:")
        put(database, *many(size))
        count = 0

        def take(event: dict[str, Any]) -> None:
            nonlocal count
            # Full text's own statements count on from run to run.
            if "said" not in event["sql"] and "'main'." not in event["sql"]:
                count += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

        database.connection.trace_v2(2, take)  # SQLITE_TRACE_PROFILE
        put(
            database,
            stated(
                "## Next\n- trim the wick\n## Decisions\n- Lamp: oil\nsee src/queue.py\n",
                size + 1,
                project="/code/queue",
            ),
        )
        drop(database, session(size + 1))
        database.connection.trace_v2(0, None)
        steps.append(count)
        database.close()
    assert steps[1] < 1.2 * steps[0]


@pytest.mark.slow
def test_a_thousand_summaries_are_settled_soon():
    vault = many(1_000)
    database = Database(":memory:")
    started = time.process_time()
    put(database, *vault)
    assert database.value("select count(*) from attribute_sources") == 12_000
    assert time.process_time() - started < 3  # a second, where nobody else works
    database.close()
