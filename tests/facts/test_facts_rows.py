"""Rows of what is distilled: merged, superseded, done, forgotten; the same however they came to be."""

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
from signet_sync.facts.store import facts, statements, supersession
from signet_sync.facts.store.statements import ArtifactStatements, Touched, entity_id
from signet_sync.formats.fact import Distilled, Item
from signet_sync.graph.facts_stage import FACT
from signet_sync.recall.stage import RecallLines
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
    inside: str = "",
) -> ArtifactStatements:
    """What the artifact of a session with this body states, on a day that is the session's number unless given."""
    at_us = (number if day is None else day) * DAY
    path = f"memory/{agent}-{number}--summary.md"
    return ArtifactStatements(
        agent, f"token{number}", f"id{number}", "t-lantern", project, path, at_us,
        distil(body, project=project, sentence=""), inside,
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
        RecallLines().update(database, [Source(FACT, *key) for key in settled], lambda: None)


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
    found["recall_lines"] = sorted(database.execute("select agent_id, tier, id, text, search_text from recall_lines"))
    return found


def recalled(database: Database, words: str) -> list[str]:
    rows = database.execute(
        "select l.text from recall_lines_fts f join recall_lines l on l.rowid = f.rowid where recall_lines_fts match ?",
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


def test_a_later_value_supersedes_whatever_came_in_first(database):
    put(database, stated("## Decisions\n- Database: SQLite\n", 2))
    put(database, stated("## Decisions\n- Database: Postgres\n", 1))
    assert held(database) == {"Database: SQLite": ("active", 1), "Database: Postgres": ("superseded", 1)}
    old = facts.fact(database, "default", identity(database, "Database: Postgres"))
    assert old is not None and old.superseded_by == identity(database, "Database: SQLite")
    assert recalled(database, "decision lantern") == ["Database: SQLite · decision · lantern"]
    drop(database, session(2))
    assert held(database) == {"Database: Postgres": ("active", 1)}
    assert recalled(database, "decision lantern") == ["Database: Postgres · decision · lantern"]
    assert recalled(database, "SQLite") == []


def test_names_are_of_one_agent_and_topic_and_not_of_notes(database):
    put(
        database,
        stated("## Decisions\n- Lamp: oil\n## Notes\n- Lamp: brass\n", 1),
        stated("## Decisions\n- Lamp: gas\n", 2, project="/code/prism"),
        stated("## Decisions\n- Lamp: wax\n", 3, agent="scout"),
        stated("## Decisions\n- Lamp: none of it\n", 4, project=None),
    )
    assert {status for status, _ in (held(database) | held(database, "scout")).values()} == {"active"}


def test_values_of_one_instant_contradict_each_other_in_every_order(database):
    bodies = [f"## Decisions\n- Lamp: {what}\n" for what in ("oil", "gas", "wax")]
    put(database, *(stated(body, number, day=5) for number, body in enumerate(bodies)))
    first = dump(database)
    for number, body in enumerate(bodies):
        drop(database, session(number))
        put(database, stated(body, number, day=5))
    assert dump(database) == first
    assert {status for status, _ in held(database).values()} == {"active"}
    ids = [identity(database, f"Lamp: {what}") for what in ("oil", "gas", "wax")]
    assert supersession.conflicts(database, "default", ids) == {one: sorted(set(ids) - {one}) for one in ids}


def test_what_is_ticked_later_is_done_and_open_again_when_the_tick_goes(database):
    put(database, stated("## Next\n- trim the wick\n", 1), stated("## Next\n- [x] Trim the wick\n", 2))
    assert held(database) == {"Trim the wick": ("done", 2)} and recalled(database, "wick") == []
    drop(database, session(2))
    assert held(database) == {"trim the wick": ("active", 1)}
    assert recalled(database, "next step") == ["trim the wick · next step · lantern"]
    put(database, stated("## Next\n- [x] trim the wick\n", 0))
    assert held(database) == {"trim the wick": ("active", 2)}


def test_what_is_struck_out_supersedes_nothing(database):
    put(database, stated("## Decisions\n- Lamp: oil\n", 1), stated("## Decisions\n- Lamp: gas\n", 2))
    put(database, stated("## Decisions\n- ~~Lamp: oil~~\n", 3))
    assert held(database) == {"Lamp: oil": ("done", 2), "Lamp: gas": ("active", 1)}
    put(database, stated("## Decisions\n- Lamp: oil\n", 4))
    assert held(database) == {"Lamp: oil": ("active", 3), "Lamp: gas": ("superseded", 1)}
    put(database, stated("## Decisions\n- ~~Lamp: oil~~\n", 5))
    assert held(database) == {"Lamp: oil": ("done", 4), "Lamp: gas": ("superseded", 1)}


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
    kinds = [row[0] for row in database.execute("select kind from relations order by kind")]
    assert kinds == ["part-of", "part-of", "works-on"]


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


def test_an_items_second_copy_and_ends_that_nobody_mentions_are_left_out(database):
    one = stated("## Next\n- fill the lamp\n", 1)
    loose = distil("see src/a.py", project=PROJECT).relations
    given = Distilled((*one.distilled.items, Item("next", "Fill the lamp!", 9, done=True)), (), loose)
    put(database, one._replace(distilled=given))
    assert held(database) == {"fill the lamp": ("active", 1)}
    assert orphans(database) == 0 and dump(database)["relations"] == []


# ── facts over time ──


def chain_of(database: Database, text: str) -> list[str]:
    return [one.text for one in supersession.chain(database, "default", identity(database, text))]


def test_a_value_that_changes_thrice_is_a_chain(database):
    texts = ["Retry limit is 5", "The retry limit is now 7", "Retry limit: 9"]
    put(database, stated(f"## Decisions\n- {texts[0]}\n", 1))
    put(database, stated(f"## Decisions\n- {texts[2]}\n", 3))
    put(database, stated(f"## Constraints\n- {texts[1]}\n", 2))
    assert held(database) == {texts[0]: ("superseded", 1), texts[1]: ("superseded", 1), texts[2]: ("active", 1)}
    for text in texts:
        assert chain_of(database, text) == texts[::-1]
    newest = identity(database, texts[2])
    (former,) = supersession.replaced(database, "default", [newest])[newest]
    assert (former.text, former.latest_us, former.path) == (texts[1], 2 * DAY, "memory/default-2--summary.md")
    drop(database, session(2))
    assert chain_of(database, texts[0]) == [texts[2], texts[0]]
    drop(database, session(3))
    assert held(database) == {texts[0]: ("active", 1)} and chain_of(database, texts[0]) == []


def test_what_is_no_longer_used_is_superseded_and_may_come_back(database):
    put(database, stated("## Decisions\n- use blake3 for content hashes\n- Port: 80\n", 1))
    put(database, stated("## Decisions\n- we no longer use blake3; xxhash instead\n", 2))
    assert held(database)["use blake3 for content hashes"] == ("superseded", 1)
    put(database, stated("## Decisions\n- use blake3 again\n", 3))
    assert held(database) == {
        "use blake3 for content hashes": ("superseded", 1), "Port: 80": ("active", 1),
        "we no longer use blake3; xxhash instead": ("superseded", 1), "use blake3 again": ("active", 1),
    }  # fmt: skip


def test_a_clock_that_went_back_counts_by_its_instant(database):
    put(database, stated("## Decisions\n- Lamp: oil\n", 1, day=9), stated("## Decisions\n- Lamp: gas\n", 2, day=3))
    assert held(database) == {"Lamp: oil": ("active", 1), "Lamp: gas": ("superseded", 1)}
    put(database, stated("## Decisions\n- Lamp: gas\n", 3, day=-400))
    assert held(database) == {"Lamp: oil": ("active", 1), "Lamp: gas": ("superseded", 2)}


def test_a_change_of_the_same_instant_comes_after_and_other_values_contradict(database):
    put(database, stated("## Decisions\n- Lamp limit: 5\n", 1, day=4))
    put(database, stated("## Decisions\n- The lamp limit is 7\n", 2, day=4))
    one, other = identity(database, "Lamp limit: 5"), identity(database, "The lamp limit is 7")
    assert supersession.conflicts(database, "default", [one, other, "f-none"]) == {one: [other], other: [one]}
    put(database, stated("## Decisions\n- The lamp limit is now 8\n", 3, day=4))
    assert [status for status, _ in held(database).values()].count("superseded") == 2
    assert supersession.conflicts(database, "default", [one, other]) == {}
    assert len(chain_of(database, "The lamp limit is now 8")) == 3


def test_a_blocker_of_one_day_ends_with_the_next_summary_of_a_later_day(database):
    blocker, other = "The tide tables come from the harbour office this afternoon", "The quay is closed until Friday"
    put(database, stated(f"## Blockers\n- {blocker}\n- {other}\n", 1, day=2))
    put(database, stated("# Lamp\n\nTrimmed the wick of the lamp.\n", 2, day=2))
    put(database, stated("# Lamp\n\nTrimmed the wick of the lamp.\n", 3, day=4, project="/code/prism"))
    assert held(database) == {blocker: ("active", 1), other: ("active", 1)}
    put(database, stated("# Lamp\n\nTrimmed the wick of the lamp.\n", 4, day=4))
    assert held(database) == {blocker: ("done", 1), other: ("active", 1)}
    put(database, stated(f"## Blockers\n- {blocker}\n", 5, day=5))
    assert held(database) == {blocker: ("active", 2), other: ("active", 1)}


def test_a_blocker_and_a_step_end_by_a_later_report(database):
    blocker, step = "The tide tables have not come from the harbour office", "send the lamp order to the yard"
    put(database, stated(f"## Blockers\n- {blocker}\n## Next\n- {step}\n", 1))
    put(database, stated("## Outcome\n- The tide tables arrived from the harbour office.\n", 4))
    put(database, stated("# Order\n\nSent the lamp order to the yard.\n", 5))
    assert held(database) == {blocker: ("done", 1), step: ("done", 1)} and recalled(database, "tide OR lamp") == []
    assert facts.fact(database, "default", identity(database, blocker)).ended_by == "memory/default-4--summary.md"
    put(database, stated("# Order\n\nSent the lamp order to the yard.\n", 3))
    assert facts.fact(database, "default", identity(database, step)).ended_by == "memory/default-3--summary.md"
    drop(database, session(4), session(3))
    assert held(database) == {blocker: ("active", 1), step: ("done", 1)}
    put(database, stated(f"## Next\n- {step}\n", 6))
    assert held(database) == {blocker: ("active", 1), step: ("active", 2)}
    put(database, stated("# Other\n\nThe tide tables arrived.\n", 7, project="/code/prism"))
    put(database, stated("# Other\n\nThe tide tables arrived.\n", 8, project=None))
    put(database, stated("# Other\n\nThe tide tables arrived.\n", 9, agent="scout"))
    put(database, stated("# Other\n\nThe tide tables arrived.\n", 0))
    put(database, stated("# Other\n\nThe tide tables arrived.\n", 47))
    assert held(database)[blocker] == ("active", 1)


@pytest.mark.slow
def test_ten_thousand_values_of_one_subject_cost_what_a_change_touches(database):
    count = 10_000
    whole = [stated(f"## Decisions\n- Retry limit: {n} tries\n## Next\n- ask for {n}\n", n) for n in range(count)]
    started = time.process_time()
    for begin in range(0, count, 500):
        put(database, *whole[begin : begin + 500])
    assert time.process_time() - started < 10  # three seconds, where nobody else works
    newest = f"Retry limit: {count - 1} tries"
    assert list(database.execute("select text from entity_attributes f join attribute_sources using (fact)"
        " where f.status = 'active' and f.aspect = 'decision'")) == [(newest,)]  # fmt: skip
    changes = database.connection.total_changes()
    started = time.process_time()
    put(database, stated("## Decisions\n- The retry limit is now 3\n", count))
    put(database, stated("## Decisions\n- The retry limit is now 4\n", count + 1, day=count // 2))
    drop(database, session(77))
    assert time.process_time() - started < 0.3
    assert database.connection.total_changes() - changes < 200
    assert held(database)[newest] == ("superseded", 1) and held(database)["The retry limit is now 3"] == ("active", 1)
    before = dump(database)
    settled = facts.settle(database, range(1, count), (), ())
    assert len(settled) >= count - 9 and dump(database) == before


def test_one_subject_in_two_folders_of_a_repository_is_two(database):
    put(database, stated("## Decisions\n- Database: Postgres\n- Never use eval.\n", 1, inside="services/api"))
    put(database, stated("## Decisions\n- Database: SQLite\n- Use eval again.\n", 2, inside="services/worker"))
    put(database, stated("## Decisions\n- Database: DuckDB\n", 3))
    assert {status for status, _ in held(database).values()} == {"active"}
    put(database, stated("## Decisions\n- Database: MySQL\n", 4, inside="services/api"))
    put(database, stated("## Decisions\n- Database: MariaDB\n", 5))
    outdated = {text for text, (status, _) in held(database).items() if status == "superseded"}
    assert outdated == {"Database: Postgres", "Database: DuckDB"}


def test_what_is_stated_in_two_folders_is_not_replaced_in_one(database):
    put(database, stated("## Decisions\n- Database: Postgres\n", 1, inside="services/api"))
    put(database, stated("## Decisions\n- Database: Postgres\n", 2, inside="services/worker"))
    put(database, stated("## Decisions\n- Database: SQLite\n", 3, inside="services/worker"))
    assert held(database) == {"Database: Postgres": ("active", 2), "Database: SQLite": ("active", 1)}
    drop(database, session(1))
    assert held(database) == {"Database: Postgres": ("superseded", 1), "Database: SQLite": ("active", 1)}


# ── the same however it came to be ──

WORDS = st.sampled_from(["oil", "gas", "wax", "**Oil**", "src/a.py", "#12"])
BEGINNINGS = [
    "",
    "Lamp: ",
    "Wick: ",
    "use ",
    "we no longer use ",
    "Switched from oil to ",
    "The lamp limit is now 5 for ",
]
ITEM = st.tuples(st.sampled_from(["- ", "- [x] ", "- [ ] "]), st.sampled_from(BEGINNINGS), WORDS)
OPEN = st.sampled_from(["- send the oil order\n", "- the oil order is not approved yet\n", "- [x] the oil order\n"])
DONE = st.sampled_from(["- The oil order was sent.\n", "- The oil order is approved.\n", "- #12 is merged.\n"])
SECTION = st.one_of(
    st.tuples(
        st.sampled_from(["Decisions", "Constraints", "Next steps", "People", "Notes"]), st.lists(ITEM, max_size=3)
    ),
    st.tuples(st.sampled_from(["Next steps", "Blockers"]), st.lists(OPEN, max_size=2)),
    st.tuples(st.just("Outcome"), st.lists(DONE, max_size=2)),
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
    database.execute("insert into recall_lines_fts(recall_lines_fts, rank) values('integrity-check', 1)")
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
        if not sql.lstrip().lower().startswith(("select", "insert", "update", "delete")) or "recall_lines" in sql:
            continue
        for _, _, _, step in database.execute(f"explain query plan {sql}", [None] * sql.count("?")):
            # All that an agent has would be searched by its name alone.
            assert not step.endswith("(agent_id=?)"), (step, sql)
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
            if "recall_lines" not in event["sql"]:
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
