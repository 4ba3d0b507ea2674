"""Rows of the graph, statements and memories, written straight into the tables, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import artifacts_fixture as made

from signet_sync.formats.handle import id_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage.database import batches
from signet_sync.storage.database.connection import Database

AGENT = "default"


def us(moment: str) -> int:
    """Microseconds of `2026-03-28` or `2026-03-28T10:00:00Z`."""
    instant = parse_instant(moment if "T" in moment else f"{moment}T10:00:00Z")
    assert instant is not None
    return instant


def insert(database: Database, table: str, **columns: Any) -> None:
    """One row; what is left out is null."""
    marks = ", ".join("?" * len(columns))
    database.execute(f"insert or replace into {table}({', '.join(columns)}) values({marks})", list(columns.values()))


def numbered(database: Database, agent_id: str, token: str, session_id: str, path: str, at_us: int) -> tuple[int, int]:
    """The numbers of a session and of an artifact of it."""
    batches.number(database, [(agent_id, token, session_id)])
    if not batches.artifacts(database, [path]):
        row = dict.fromkeys("source_sha256 source_kind captured_at content".split(), "")
        instants = dict.fromkeys(("captured_us", "membership_us", "noise"), at_us)
        names = {"agent_id": agent_id, "session_token": token, "session_id": session_id}
        insert(database, "memory_artifacts", source_path=path, **names, **row, **instants)
    number = batches.numbers(database, [(agent_id, token, session_id)])[agent_id, token, session_id]
    return number, batches.artifacts(database, [path])[path]


def path_of(number: str | int, day: str, kind: str = "summary") -> str:
    """The path of a made-up session's artifact."""
    return made.path_for(kind, session_id=f"s-{number}", captured_at=f"{day}T10:00:00.000Z")


def thread(
    database: Database,
    name: str,
    day: str,
    *,
    agent_id: str = AGENT,
    sample: str = "In lantern the retry loop of src/queue.py was bounded so that a dead broker cannot block a start.",
    number: str | int = 1,
) -> str:
    """The head of a thread; gives its id."""
    thread_id = thread_of(agent_id, name)
    insert(
        database, "memory_thread_heads", agent_id=agent_id, thread_id=thread_id, label=f"{name} (codex)",
        project=f"/home/ada/code/{name}", session_key=None, harness="codex", status="open", sessions=4,
        earliest_us=us(day), latest_us=us(day), node_id=id_of("s", agent_id, number),
        source_ref=path_of(number, day[:10]), sample=sample,
    )  # fmt: skip
    return thread_id


def thread_of(agent_id: str, name: str | None) -> str:
    """The id of a thread."""
    return id_of("t", agent_id, name or "", "", "codex")


def session(database: Database, thread_id: str, number: str | int, day: str, sentence: str) -> None:
    """A session of a thread."""
    insert(
        database, "thread_sessions", agent_id=AGENT, session_token=made.token_for(AGENT, f"s-{number}"),
        session_id=f"s-{number}", thread_id=thread_id, earliest_us=us(day), latest_us=us(day), week="2026-W13",
        node_id=id_of("s", AGENT, number), source_ref=path_of(number, day[:10]),
        sentence=sentence, harness="codex",
    )  # fmt: skip


def statement(
    database: Database,
    kind: str,
    text: str,
    day: str,
    *,
    project: str | None = "lantern",
    agent_id: str = AGENT,
    status: str = "open",
    speaker: str = "agent",
    number: str | int = 1,
) -> str:
    """What a session of a project (None: of none) states; gives its id. What was stated last has the status."""
    place = f"/home/ada/code/{project}" if project else ""
    statement_id = id_of("f", agent_id, place, kind, text)
    token = made.token_for(agent_id, f"s-{number}")
    session, artifact = numbered(database, agent_id, token, f"s-{number}", path_of(number, day[:10]), us(day))
    database.execute("update statements set newest = 0 where agent_id = ? and id = ?", (agent_id, statement_id))
    insert(
        database, "statements", agent_id=agent_id, id=statement_id, kind=kind, text=text, speaker=speaker,
        thread_id=thread_of(agent_id, project), project=place, at_us=us(day), artifact=artifact, line=3,
        done=int(status == "done"), session=session, newest=1, status=status,
    )  # fmt: skip
    return statement_id


def memory(database: Database, kind: str, text: str, day: str, *, agent_id: str = AGENT, private: int = 0) -> str:
    """Something that somebody asked to be remembered; gives its id."""
    memory_id = id_of("m", agent_id, kind, text)
    insert(
        database, "memories", agent_id=agent_id, id=memory_id, type=kind, content=text, tags="[]", private=private,
        created_at=f"{day}T10:00:00.000Z",
    )  # fmt: skip
    return memory_id


def node(
    database: Database,
    source_type: str,
    number: str | int,
    day: str,
    *,
    thread_id: str | None = None,
    children: Iterable[str] = (),
    agent_id: str = AGENT,
    label: str = "The loop gives up after five tries",
    since: str = "",
    kind: str = "session",
) -> str:
    """A node and the edges to its children; gives its id. `kind` arc or epoch makes it a condensation."""
    letters: dict[str, Any] = {"summary": "s", "compaction": "c", "chunk": "k", "arc": "a", "epoch": "e"}
    node_id = id_of(letters[source_type if kind == "session" else kind], agent_id, number, 0)
    path = path_of(number, day[:10], "transcript" if source_type == "chunk" else source_type)
    session, artifact = numbered(database, agent_id, made.token_for(agent_id, f"s-{number}"), f"s-{number}", path, 0)
    of_session = {"artifact": artifact, "session": session}
    insert(
        database, "session_summaries", agent_id=agent_id, id=node_id, kind=kind, source_type=source_type,
        depth=("session", "arc", "epoch").index(kind), thread_id=thread_id, earliest_us=us(since or day),
        latest_us=us(day), end=100, label=label,
        **(of_session if kind == "session" else {"content": "its text"}),
    )  # fmt: skip
    for child in children:
        insert(database, "session_summary_children", agent_id=agent_id, parent_id=node_id, child_id=child)
    return node_id


def pin(database: Database, thing_id: str, *, agent_id: str = AGENT) -> None:
    """Pins a thing."""
    insert(database, "pins", agent_id=agent_id, id=thing_id, pinned_at="2026-03-01T00:00:00.000Z")


def use(
    database: Database, thing_id: str, accesses: int, last_day: str, *, before: int = 0, before_day: str | None = None
) -> None:
    """How often a thing was asked for."""
    insert(
        database, "node_telemetry", agent_id=AGENT, id=thing_id, accesses=accesses, last_day=last_day, before=before,
        before_day=before_day,
    )  # fmt: skip
