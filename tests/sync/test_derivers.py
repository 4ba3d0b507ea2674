"""What holds for every registered deriver, and for one that is registered here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import artifacts_fixture as made
import pytest

from benchmarks import index_rows
from signet_sync.app.workspace import DERIVERS
from signet_sync.formats.paths import RUNNING
from signet_sync.graph import stage as graph_stage
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import OWN_WORD, Memory
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import LivePlace, LiveTurn
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import Table
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync import deriving
from signet_sync.sync.index_records import SESSION, Change, Source
from signet_sync.sync.store import artifacts, passes, texts
from signet_sync.sync.store.texts import text_of
from signet_sync.sync.workspace import Alive, Deriver, Pipeline

CANARY = "zanzibar"


class Lengths(Deriver):
    """Derives how much a session says: a deriver that this file alone knows."""

    name = "lengths"
    tables = ("lengths",)
    kinds = frozenset({SESSION})
    after = ("graph",)

    def sources(self, database: Database) -> Iterable[Source]:
        return graph_stage.sessions(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        for one in prepared:
            row = (*one.session, *next(database.execute(SAID, one.session)))
            if row[-1] is None:
                database.execute(
                    "delete from lengths where agent_id = ? and session_token = ? and session_id = ?", one.session
                )
            elif [row] != list(database.execute(f"select * from lengths where {OF_SESSION}", one.session)):
                database.execute("insert or replace into lengths values(?, ?, ?, ?)", row)
        return Change()


OF_SESSION = "agent_id = ? and session_token = ? and session_id = ?"
SAID = (
    f"select group_concat(text) from (select {text_of()} as text from memory_artifacts"
    f" where {OF_SESSION} order by source_path)"
)
PROJECTS = ("/home/ada/code/lantern", "/home/ada/code/lantern/docs", "/home/ada/code/prism", None)
NAMES = [*(place.partition(":")[2] for place in DERIVERS), "Lengths"]


def pipeline(batch: int = 3) -> Pipeline:
    """Everything that is registered and one more, a few sources at a time."""
    found = Pipeline((*DERIVERS, Lengths()))
    for deriver in found.derivers:
        deriver.batch = batch
    return found


def opened() -> Database:
    database = Database(":memory:")
    database.execute(
        "create table lengths(agent_id text, session_token text, session_id text, said text,"
        " primary key(agent_id, session_token, session_id)) without rowid"
    )
    with database.transaction():
        memories.store(
            database, Memory("default", "m-one", "fact", "Lamps need oil.", (), False, "2026-03-01"), OWN_WORD
        )
    return database


def body(random: Random) -> str:
    """Headings and items out of few words, so that items of sessions meet, supersede and close each other."""
    words = ["queue", "lease", "ledger", "SQLite", "Postgres", "src/queue.py", "#12"]
    lines = ["# " + " ".join(random.choices(words, k=3))]
    for heading in random.sample(["Decisions", "Next steps", "Open questions", "Blockers", "People"], k=3):
        lines += ["", f"## {heading}", ""]
        for _ in range(random.randint(1, 3)):
            tick = random.choice(["", "", "[x] "])
            start = random.choice(["Database: ", "", "Use ", "The queue limit is now 5 for ", "No longer use "])
            if heading == "Blockers":
                start = random.choice(["", "Waits for the queue lease of "])
            lines.append(f"- {tick}{start}{' '.join(random.choices(words, k=2))}")
    if random.random() < 0.5:
        done = random.choice(["The queue lease was merged.", "Use of the ledger queue is done.", "#12 is merged."])
        lines += ["", "## Outcome", "", f"- {done}"]
    return "\n".join(lines) + "\n"


WORDS = ["why", "queue", "drains", "lease", "five"]


def talk(random: Random) -> str:
    turns = [
        f"## {'Assistant' if number % 2 else 'User'} · 2026-03-01T10:{number:02d}:00.000Z\n\n"
        + " ".join(random.choices(WORDS, k=random.choice([5, 40, 900])))
        for number in range(random.randint(1, 5))
    ]
    # One that changed something is counted as working. What is a dead end in one session works in another.
    ran = "- `Bash` · 2026-03-01T10:00:40.000Z · `oil run wick`"
    how = " · failed\n  ```\n  error: unrecognized subcommand\n  ```" if len(turns) % 2 else ""
    turns[1:1] = [f"- `Edit` · 2026-03-01T10:00:30.000Z · `src/{random.choice(WORDS)}.py`", ran + how]
    return "\n\n".join(turns) + "\n"


ORIGINS = ["example.org/ada/lantern", "example.org/ada/wick"]


def files_of(random: Random, number: int) -> dict[str, bytes]:
    """Some artifacts of one session of one of two agents, some of them under a constant key."""
    who: dict[str, Any] = {
        "agent_id": random.choice(["default", "scout"]),
        "session_id": f"5e5510{number % 7:02d}-0000-4000-8000-000000000000",
        "session_key": random.choice([None, "agent:main:main"]),
        "captured_at": f"2026-{random.randint(9, 11):02d}-{random.randint(1, 28):02d}T10:{number:02d}:00.000Z",
    }
    more = {"project": random.choice(PROJECTS), "harness": random.choice(["codex", "claude-code"])}
    if random.random() < 0.4:
        root, origin = random.choice([*filter(None, PROJECTS), "/home/ada/code"]), random.choice([None, *ORIGINS])
        more |= {"repository_root": root, "repository_origin": origin, "repository_path": ""}
    makers = [("summary", body), ("compaction", body), ("transcript", talk)]
    chosen = random.sample(makers, k=random.randint(1, 3))
    return dict(made.content(kind, **who, **more, body=make(random)) for kind, make in chosen)


def put(database: Database, files: dict[str, bytes]) -> set[Source]:
    """Artifacts as the first transaction of a pass leaves them; gives the sessions that moved."""
    judgements = made.judged(files)
    made.fill(database, judgements, log=False)
    rows = [one.row for one in judgements if one.row is not None]
    return {Source(SESSION, row.agent_id, row.session_token, row.session_id) for row in rows}


def drop(database: Database, moved: Iterable[Source]) -> None:
    paths = [
        path
        for one in moved
        for (path,) in database.execute(f"select source_path from memory_artifacts where {OF_SESSION}", one.session)
    ]
    with database.transaction():
        artifacts.delete_rows(database, paths)


def speak(database: Database, number: int, store: str) -> None:
    """Live turns of a session that decides something, as `transcript append` leaves them."""
    said = (
        "The queue loses jobs when the broker restarts. Please look into src/queue.py.",
        f"The jobs are only in memory. I can keep them in Redis or in {store}. Which one should the queue use?",
        f"From now on use {store} for the queue of lantern instead of Redis.",
        f"I am at it.\n\nDecided: From now on use {store} for the queue of lantern instead of Redis",
    )
    names = "default", f"live-{number}", ""
    with database.transaction():
        turns = [
            LiveTurn(turn, ("user", "assistant")[turn % 2], text, f"2026-10-05T10:{turn:02d}:00.000Z")
            for turn, text in enumerate(said)
        ]
        live.buffer(database, *names[:2], turns)
        live.describe(database, *names, LivePlace(f"/code/live{number % 2}", "codex"), noise=False)


def follow(database: Database, stages: Pipeline, moved: Iterable[Source]) -> None:
    with database.transaction():
        deriving.queue(database, stages, set(moved))
    deriving.drain(database, stages)


def rows(database: Database, stages: Pipeline) -> dict[str, list[tuple[Any, ...]]]:
    """All that derivers keep, without what differs from one rebuild to the next: numbers."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for deriver in stages.derivers:
        for table in deriver.tables:
            declared = TABLES.get(table, Table(table, (), "derived", ""))
            found[table] = list(index_rows.sorted_rows(database, declared))
    lines = "select agent_id, tier, name, text, at_us, about from texts where artifact is null order by 1, 3"
    found["found statements"] = list(database.execute(lines))
    found["live statements"] = [row for row in found["statements"] if str(row[8]).startswith(RUNNING)]
    return found


def filled(database: Database, stages: Pipeline, number: int = 24) -> list[Source]:
    random = Random(7)
    files = {name: raw for each in range(number) for name, raw in files_of(random, each).items()}
    moved = put(database, files)
    for each in range(3):
        speak(database, each, f"Store{each}")
    with database.transaction():
        deriving.rebuild(database, stages, deriving.stale(database, stages))
        deriving.queue(database, stages, moved)
    return sorted(moved)


def rebuilt(database: Database, stages: Pipeline) -> dict[str, list[tuple[Any, ...]]]:
    with database.transaction():
        deriving.rebuild(database, stages, stages.derivers)
    deriving.drain(database, stages)
    return rows(database, stages)


@pytest.fixture
def database() -> Iterable[Database]:
    found = opened()
    yield found
    found.close()


def test_an_update_is_as_a_rebuild(database: Database) -> None:
    stages, random = pipeline(), Random(3)
    moved = filled(database, stages, 6)
    deriving.drain(database, stages)
    for number in range(6, 24, 3):
        more = {name: raw for each in range(number, number + 3) for name, raw in files_of(random, each).items()}
        gone = random.sample(moved, 1)
        drop(database, gone)
        moved = sorted({*moved, *put(database, more)})
        follow(database, stages, {*put(database, more), *gone})
    before = rows(database, stages)
    assert not [table for table, found in before.items() if not found], "`body` and `talk` give these tables no rows"
    statuses = {status for (status,) in database.execute("select distinct status from statements where newest = 1")}
    assert statuses == {"open", "done", "replaced"}
    assert database.value("select count(*) from statements where kind = 'tried' and status = 'done'")
    assert rebuilt(database, stages) == before
    database.execute("insert into said(said) values('integrity-check')")
    assert texts.is_in_step(database) and not passes.has_waiting(database) and not deriving.stale(database, stages)


def test_a_removal_leaves_no_row_and_no_word(database: Database) -> None:
    stages = pipeline()
    filled(database, stages)
    deriving.drain(database, stages)
    before = rows(database, stages)
    body = f"# {CANARY}\n\nThe {CANARY} lamp was sent to {CANARY}.\n\n## Decisions\n\n"
    body += f"- {CANARY}: {CANARY} of src/{CANARY}.py\n"
    body += f"- Call @{CANARY} about {CANARY}#7\n- We no longer use {CANARY}, but {CANARY}-9\n"
    who = {"session_id": CANARY, "project": f"/code/{CANARY}"}
    dates = ("2026-03-02T10:00:00.000Z", "2026-03-03T10:00:00.000Z")
    moved: set[Source] = set()
    for key, date in zip(("one", "two"), dates, strict=True):
        who |= {"session_id": f"{CANARY}-{key}", "captured_at": date}
        moved |= put(
            database, dict([made.summary(body=body, **who), made.transcript(body=f"## User\n\n{CANARY}", **who)])
        )
    speak(database, 9, CANARY)
    with database.transaction():
        live.describe(database, "default", "live-9", "", LivePlace(f"/code/{CANARY}"), noise=False)
    follow(database, stages, moved)
    held = rows(database, stages)
    for deriver in stages.derivers:
        told = any(CANARY in str(row) for table in (*deriver.tables, deriver.name) for row in held.get(table, []))
        assert told, f"{deriver.name}: no row has {CANARY}; put what it reads into `body` above"
    drop(database, moved)
    with database.transaction():
        live.forget(database, "default", "live-9", "")
    follow(database, stages, moved)
    assert rows(database, stages) == before
    assert not list(database.execute("select rowid from said where said match ?", (CANARY,)))
    assert not passes.has_waiting(database)


class Killed(BaseException):
    """Ends the work in the middle, as a death of the process would: nothing of it is caught."""


def dies_after(stages: Pipeline, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    left = steps

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    for deriver in stages.derivers:
        update, prepare = deriver.update, deriver.prepare

        def updates(*given: Any, update: Any = update) -> Any:
            step()
            found = update(*given)
            step()
            return found

        def prepares(*given: Any, prepare: Any = prepare) -> Any:
            step()
            return prepare(*given)

        monkeypatch.setattr(deriver, "update", updates)
        monkeypatch.setattr(deriver, "prepare", prepares)


def test_killed_at_any_step_it_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = pipeline()
    whole = opened()
    filled(whole, stages, 5)
    deriving.drain(whole, stages)
    wanted = rows(whole, stages)
    whole.close()
    database = opened()
    filled(database, stages, 5)
    deaths, steps = 0, 0
    while True:
        # A step further than the last time it died: each death is at a place where none was before.
        with monkeypatch.context() as patch:
            dies_after(stages, patch, steps)
            waiting = passes.count_waiting(database)
            try:
                deriving.drain(database, stages)
                break
            except Killed:
                deaths += 1
        assert not database.connection.in_transaction
        steps = steps + 1 if passes.count_waiting(database) == waiting else 0
    assert deaths > 20
    assert rows(database, stages) == wanted
    assert not passes.has_waiting(database)
    assert not database.value("select count(*) from derivers where rebuilding = 1")
    database.close()


def test_a_second_update_changes_nothing(database: Database) -> None:
    stages = pipeline(500)
    filled(database, stages)
    deriving.drain(database, stages)
    for deriver in stages.derivers:
        given = list(deriver.sources(database))
        before = database.connection.total_changes()
        with database.transaction():
            deriver.update(database, deriver.prepare(database, given, {}, lambda: None), lambda: None)
        assert database.connection.total_changes() == before and given, deriver


@pytest.mark.parametrize("names", [NAMES[::3], pytest.param(NAMES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_another_version_rebuilds(database: Database, names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stages = pipeline()
    filled(database, stages)
    deriving.drain(database, stages)
    before = rows(database, stages)
    for deriver in stages.derivers:
        if type(deriver).__name__ not in names:
            continue
        with database.transaction():
            deriver.clear(database)
        # What runs has no rows here: its table is that of another deriver.
        assert (rows(database, stages) != before) == (type(deriver).__name__ != "LiveStatements"), deriver
        assert not deriving.stale(database, stages)
        monkeypatch.setattr(type(deriver), "version", "another")
        assert deriver in deriving.stale(database, stages)
        with database.transaction():
            deriving.rebuild(database, stages, deriving.stale(database, stages))
        deriving.drain(database, stages)
        assert rows(database, stages) == before and not deriving.stale(database, stages), deriver
