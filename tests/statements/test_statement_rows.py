"""Rows of what is stated: merged, ended, open again, forgotten; the same however they came to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import graph_rows
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks import index_rows
from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import week_of
from signet_sync.graph.stage import STATEMENT
from signet_sync.recall.stage import FoundStatements
from signet_sync.statements import store as statements_store
from signet_sync.statements.sections import items
from signet_sync.statements.store import StatedItems
from signet_sync.statements.validity import word_hashes
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import SESSION
from signet_sync.storage.database.tables import STATEMENTS, TABLES
from signet_sync.sync.index_records import Source

DAY = 86_400_000_000
PROJECT = "/code/lantern"


def stated(
    body: str,
    number: int = 1,
    *,
    agent: str = "default",
    day: int | None = None,
    project: str = PROJECT,
    part: str = "summary",
) -> StatedItems:
    """What the artifact of a session with this body states, on a day that is the session's number unless given."""
    at_us = (number if day is None else day) * DAY
    path = f"memory/{agent}-{number}--{part}.md"
    return StatedItems(session(number, agent), f"t-{project}", project, path, at_us, items(body, own=True))


def session(number: int, agent: str = "default") -> Session:
    return agent, f"token{number}", f"id{number}"


@pytest.fixture
def database() -> Iterable[Database]:
    made = Database(":memory:")
    yield made
    made.close()


def orphans(database: Database) -> int:
    """Counts statements without an artifact, ids without exactly one newest row, and `recall` lines of what is over."""
    return sum(
        int(database.value(f"select count(*) from {what}"))
        for what in (
            f"{STATEMENTS} where source_path is null",
            "(select 1 from statements group by agent_id, id having sum(newest) <> 1)",
            "texts l where l.tier = 'statement' and not exists (select 1 from statements s"
            " where s.agent_id = l.agent_id and s.id = l.name and s.newest = 1 and s.status = 'open')",
        )
    )


def put(database: Database, *artifacts: StatedItems) -> None:
    """As a pass does: the rows of each session replaced, then what follows from them."""
    follow(database, [one.session for one in artifacts], artifacts)


def drop(database: Database, *sessions: Session) -> None:
    follow(database, sessions, ())


def follow(database: Database, sessions: Iterable[Session], artifacts: Iterable[StatedItems]) -> None:
    artifacts = list(artifacts)
    with database.transaction():
        for one in artifacts:
            _index(database, one)
        moved = statements_store.replace(database, sessions, artifacts)
        settle(database, moved.ids, moved.threads)


def settle(database: Database, ids: set[statements_store.Key], threads: set[statements_store.Key]) -> None:
    settled = ids | statements_store.settle(
        database, statements_store.renew(database, statements_store.Moved(ids, threads, set())).threads
    )
    FoundStatements().update(database, [Source(STATEMENT, *key) for key in settled], lambda: None)


def _index(database: Database, one: StatedItems) -> None:
    """The row of an artifact, as far as statements need it."""
    if database.value("select exists(select 1 from memory_artifacts where source_path = ?)", (one.source_path,)):
        return
    row = dict.fromkeys("source_sha256 source_kind captured_at content".split(), "")
    row |= dict.fromkeys(("captured_us", "membership_us", "noise"), 0)
    row |= dict(zip((*SESSION, "source_path"), (*one.session, one.source_path), strict=True))
    graph_rows.insert(database, "memory_artifacts", **row)


def came_to(database: Database, number: int, sentence: str | None, *, day: int | None = None) -> None:
    """What a session of the project came to; None for nothing any more. The thread is settled."""
    names = dict(zip(SESSION, session(number), strict=True))
    if sentence is None:
        database.execute("delete from thread_sessions where session_id = ?", (f"id{number}",))
    else:
        at_us = (number if day is None else day) * DAY
        graph_rows.insert(
            database, "thread_sessions", **names, thread_id=f"t-{PROJECT}", earliest_us=at_us, latest_us=at_us,
            week=week_of(at_us), node_id="s", source_ref="", sentence=sentence, status="done",
        )  # fmt: skip
        graph_rows.numbered(database, *session(number), f"memory/default-{number}--summary.md", at_us)
    with database.transaction():
        settle(database, set(), {("default", f"t-{PROJECT}")})


def held(database: Database, agent: str = "default") -> dict[str, str]:
    """The status of each statement by its words."""
    found = database.execute("select text, status from statements where agent_id = ? and newest = 1", (agent,))
    return dict(found)


def dump(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    found = {"statements": list(index_rows.sorted_rows(database, TABLES["statements"]))}
    lines = "select agent_id, tier, name, text, at_us, about from texts where artifact is null order by 1, 3"
    found["texts"] = list(database.execute(lines))
    return found


def recalled(database: Database, words: str) -> list[str]:
    found = database.execute("select l.text from said f join texts l on l.first = f.rowid where said match ?", (words,))
    return sorted(row[0] for row in found)


def identity(database: Database, text: str) -> str:
    found: str = database.value("select id from statements where text = ?", (text,))
    return found


# ── what is stated ──


def test_equal_texts_are_one_statement_with_several_rows(database):
    put(database, stated("## Decisions\n- Use **SQLite**\n", 1), stated("\n## Decided\n- use SQLite.\n", 2))
    one = identity(database, "use SQLite.")
    assert statements_store.get(database, "default", one) == statements_store.Statement(
        one, "decision", "use SQLite.", "person", PROJECT, f"t-{PROJECT}", "open", DAY, 2 * DAY,
        "memory/default-2--summary.md", None, ("default", "token2", "id2"),
    )  # fmt: skip
    columns = "source_path, line, text, at_us, session_id, newest"
    assert list(database.execute(f"select {columns} from {STATEMENTS} where id = ? order by at_us", (one,))) == [
        ("memory/default-1--summary.md", 2, "Use **SQLite**", DAY, "id1", 0),
        ("memory/default-2--summary.md", 3, "use SQLite.", 2 * DAY, "id2", 1),
    ]
    assert statements_store.get(database, "other", one) is statements_store.get(database, "default", "f-none") is None


def test_an_artifact_states_each_thing_once(database):
    one = stated("## Next\n- fill the lamp\n", 1)
    put(database, one._replace(items=(*one.items, Item("next", "Fill the lamp!", 9, done=True))))
    assert held(database) == {"fill the lamp": "open"} and len(dump(database)["statements"]) == 1
    put(database, one._replace(items=()))
    assert dump(database) == {"statements": [], "texts": []}


def test_two_agents_and_two_projects_share_nothing(database):
    body = "## Decisions\n- Lamp: burn 5 barrels of oil\n"
    put(database, stated(body, 1), stated(body, 2, agent="scout"), stated(body, 3, project="/code/prism"))
    assert len({row[1] for row in dump(database)["statements"]}) == 3
    newer = "## Decisions\n- Lamp: burn 7 barrels of oil\n"
    put(database, stated(newer, 4, agent="scout"), stated(newer, 5, project="/code/prism"))
    found = database.execute(
        "select agent_id, project, status from statements where text like '%burn 5 barrels%' order by 1, 2"
    )
    assert list(found) == [
        ("default", PROJECT, "open"), ("default", "/code/prism", "replaced"), ("scout", PROJECT, "replaced")
    ]  # fmt: skip
    drop(database, session(1), session(3), session(5))
    assert held(database) == {} and len(held(database, "scout")) == 2
    assert orphans(database) == 0


def test_what_is_ticked_later_is_done_and_open_again_when_the_tick_goes(database):
    put(database, stated("## Next\n- trim the wick\n", 1), stated("## Next\n- [x] Trim the wick\n", 2))
    assert held(database) == {"Trim the wick": "done"} and recalled(database, "wick") == []
    drop(database, session(2))
    assert held(database) == {"trim the wick": "open"}
    assert recalled(database, "next step") == ["trim the wick · next step, left to do"]
    put(database, stated("## Next\n- [x] trim the wick\n", 0))
    assert held(database) == {"trim the wick": "open"}


# ── what ends, and holds again when its end goes ──

OIL, WAX = "The lamp is to burn 5 barrels of oil", "The lamp is to burn 7 barrels of oil"


def test_what_a_removed_session_replaced_holds_again(database):
    put(database, stated(f"## Decisions\n- {OIL}\n", 1), stated(f"## Decisions\n- {WAX}\n", 2))
    one = statements_store.get(database, "default", identity(database, OIL))
    assert one is not None and (one.status, one.replaced_by) == ("replaced", identity(database, WAX))
    assert recalled(database, "oil") == [f"{WAX} · decision, decided"]
    drop(database, session(2))
    assert held(database) == {OIL: "open"} and recalled(database, "oil") == [f"{OIL} · decision, decided"]


def test_a_step_is_done_while_a_later_session_came_to_it(database):
    put(database, stated("## Next\n- Measure the retry loop\n## Blockers\n- No broker answers the queue\n", 1))
    came_to(database, 2, "Measured the retry loop: four milliseconds")
    assert held(database) == {"Measure the retry loop": "done", "No broker answers the queue": "open"}
    assert recalled(database, "retry") == []
    came_to(database, 2, None)
    assert held(database)["Measure the retry loop"] == "open" and recalled(database, "retry")


def test_weeks_that_list_a_statement_or_listed_it_are_named_and_no_others(database):
    said = {number: stated(f"## Decisions\n- {OIL}\n", number, day=8 * number) for number in (1, 2, 3)}
    weeks = {number: ("default", f"t-{PROJECT}", week_of(8 * number * DAY)) for number in said}
    for number in said:
        came_to(database, number, "Told", day=8 * number)

    def moved(number: int, *artifacts: StatedItems) -> set[tuple[str, ...]]:
        with database.transaction():
            found = statements_store.renew(
                database, statements_store.replace(database, [said[number].session], artifacts)
            )
        return statements_store.weeks(database, found.ids, found.sessions)

    put(database, said[1], said[2])
    assert statements_store.weeks(database, {("default", identity(database, OIL))}, ()) == {weeks[2]}
    assert moved(3, said[3]) == {weeks[2], weeks[3]}
    assert moved(1) == {weeks[1], weeks[3]}
    assert moved(3) == {weeks[2], weeks[3]}


# ── marks ──


def say(database: Database, id_: str, kind: str, text: str, status: str, day: int, number: int = 1) -> None:
    hashes = " ".join(sorted(word_hashes(text)))
    row = ("default", id_, kind, hashes, status, day * DAY, *session(number)[1:])
    database.execute("insert or replace into statement_marks values(?, ?, ?, ?, ?, ?, ?, ?)", row)


def mark(database: Database, text: str, status: str, day: int, *, number: int = 1) -> None:
    """What a person did to a statement of a session. The thread is settled."""
    found = database.execute("select id, kind, text from statements where text = ? and newest = 1", (text,))
    (row,) = found
    with database.transaction():
        say(database, *row, status, day, number)
        settle(database, set(), {("default", f"t-{PROJECT}")})


DEED = st.sampled_from(["person", "agent", "withdrawn", "done", "open"])  # who says it, or what is done to it


@given(st.lists(DEED, min_size=3, max_size=8), st.sampled_from(["decision", "next"]))
@example(["withdrawn", "agent"], "decision")
@example(["person", "withdrawn", "person", "agent"], "next")
def test_what_is_said_not_to_be_true_is_open_again_by_the_persons_own_words_only(deeds, kind):
    text, status = "The lamp is to burn oil", "open"
    database, whole = Database(":memory:"), Database(":memory:")
    standing = []
    for day, deed in enumerate(["agent", *deeds], 1):
        if deed in ("person", "agent"):
            item = Item(kind, text, 1, speaker=deed)  # type: ignore[arg-type]
            standing.append(stated("", day)._replace(items=(item,)))
            put(database, standing[-1])
            status = status if deed == "agent" and status == "withdrawn" else "open"
        else:
            mark(database, text, deed, day)
            status = deed
    assert held(database) == {text: status}
    for row in database.execute("select * from statement_marks"):
        whole.execute("insert into statement_marks values(?, ?, ?, ?, ?, ?, ?, ?)", row)
    put(whole, *standing)
    assert dump(whole) == dump(database)
    whole.close()
    database.close()


def test_beyond_the_compared_only_ticks_and_marks_end_a_statement(database, monkeypatch):
    decided = [OIL, WAX, "Pages are kept in files", "Keepers sleep by day", "Boats are counted at dusk"]
    sessions = [stated(f"## Decisions\n- {text}\n", number) for number, text in enumerate(decided)]
    put(database, *sessions)
    assert held(database)[OIL] == "replaced"
    monkeypatch.setattr(statements_store, "COMPARED", 3)
    mark(database, WAX, "withdrawn", 9)
    bit_by_bit = dump(database)
    assert held(database)[OIL] == "open" and held(database)[WAX] == "withdrawn"
    drop(database, *(one.session for one in sessions))
    put(database, *sessions)
    assert dump(database) == bit_by_bit


# ── the same however it came to be ──

WORDS = st.sampled_from(["oil", "**Oil**", "the whale oil", "5 lamps", "7 lamps"])
BEGINNINGS = ["", "The lamp burns ", "The keeper trims "]
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
    st.sampled_from([PROJECT, "/code/prism"]),
    BODY | st.none(),  # None: it is removed
)


@given(st.lists(st.lists(STEP, min_size=1, max_size=3), max_size=8))
def test_bit_by_bit_is_as_all_at_once(rounds):
    database, whole = Database(":memory:"), Database(":memory:")
    standing: dict[Session, StatedItems] = {}
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
    assert statements_store.replace(database, standing, list(standing.values())) == (set(), set(), set())
    assert database.connection.total_changes() == before
    database.close()
    whole.close()
