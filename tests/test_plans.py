"""Query plans: no statement of an ordinary command goes through all rows of an agent or of a table that grows."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from endings import FIRST, SECOND, SENTENCE, compact, end
from workbench import Vault

from signet_sync.index.database import Database
from signet_sync.index.schema import TABLES

AGENTS = ("default", "scout")


class Asked(NamedTuple):
    """A statement that a command ran, with the values that it was given first."""

    command: str
    bindings: Any


class Plan(NamedTuple):
    """A step of a statement's plan that goes through many rows."""

    step: str
    command: str
    sql: str


@contextmanager
def listening(asked: dict[str, Asked], command: str) -> Iterator[None]:
    """Notes every statement of every connection that is opened meanwhile."""

    def note(_: Any, sql: str, bindings: Any) -> bool:
        asked.setdefault(sql, Asked(command, bindings))
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


def run(vault: Vault, asked: dict[str, Asked], *arguments: str) -> Any:
    """A command that succeeds, with its statements noted."""
    with listening(asked, " ".join(arguments[:2])):
        answer = vault.call(*arguments, "--json")
    assert answer.code == 0, (arguments, answer)
    return answer.json


def talk(number: int, agent: str) -> dict[str, Any]:
    """A session's end: odd ones of a lineage of their own, each with decisions and a question."""
    day = f"2026-03-{1 + number:02d}"
    return {
        "agent_id": agent,
        "session_id": f"5e5510{number:02d}-0000-4000-8000-{number:012d}",
        "session_key": "agent:main:main" if number % 2 else None,
        "captured_at": f"{day}T10:00:00.000Z",
        "transcript": FIRST + SECOND * 4,
        "summary": f"# Queue {number}\n\n## Decisions\n\n- Database: store number {number}\n- src/queue.py ends.\n\n"
        f"## People\n\n- Ada: keeps src/queue.py\n\n## Next steps\n\n- Look at #{number}\n",
    }


def flows(vault: Vault, asked: dict[str, Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that people and hooks run, over two agents."""
    for agent in AGENTS:
        for number in range(8):
            with listening(asked, "session end"):
                end(vault, **talk(number, agent))
        with listening(asked, "session compact"):
            compact(vault, agent_id=agent, session_id="running", session_key="agent:main:main",
                    captured_at="2026-03-20T10:00:00.000Z")  # fmt: skip
    run(vault, asked, "reindex")
    for agent in AGENTS:
        mine = ("--agent", agent)
        made = run(vault, asked, "remember", f"{agent} asks Ada first.", "--type", "preference", *mine)
        run(vault, asked, "remember", "Of the queue.", "--session", talk(3, agent)["session_id"], *mine)
        said = {"turn": 0, "role": "user", "text": "Does the queue drain?", "at": "2026-03-28T11:00:00Z"}
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(said).encode() + b"\n")))
        run(vault, asked, "transcript", "append", "--session-key", "live", *mine)
        for question in ("retry loop", "what keeps src/queue.py", "queue drain", "ada first"):
            run(vault, asked, "recall", question, *mine)
            run(vault, asked, "context", "--prompt", question, *mine)
        run(vault, asked, "search", "queue", *mine)
        run(vault, asked, "search", "queue", "--kind", "summary", "--since", "2026-03-02", *mine)
        run(vault, asked, "context", *mine)
        graph = run(vault, asked, "graph", *mine)
        run(vault, asked, "graph", "--limit", "5", *mine)
        for node in {letter(node): node for node in handles(graph)}.values():
            run(vault, asked, "expand", node, *mine)
            run(vault, asked, "expand", node[:8], *mine)
            run(vault, asked, "pin", node, *mine)
            run(vault, asked, "unpin", node, *mine)
        for name in (talk(3, agent)["session_id"], "agent:main:main", "live"):
            run(vault, asked, "expand", name, *mine)
        run(vault, asked, "open", talk(3, agent)["session_id"], *mine)
        run(vault, asked, "forget", made["id"], *mine)
    run(vault, asked, "status")
    run(vault, asked, "reindex")
    run(vault, asked, "remove", talk(2, "default")["session_id"], "--reason", "asked", "--yes")
    run(vault, asked, "remove", "agent:main:main", "--reason", "asked", "--yes", "--agent", "scout")


HANDLE = re.compile(r"[skcaetfmx]-[a-z2-7]{12}")


def handles(document: Any) -> list[str]:
    """Every id that stands in an answer."""
    return HANDLE.findall(json.dumps(document))


def letter(node: str) -> str:
    return node[0]


SELECTS = re.compile(r"\s*(?:with|select|insert|replace|update|delete)\b", re.IGNORECASE)
NAMED = re.compile(r"\b(?:from|join|into|update)\s+(\w+)(?:\s+as)?(?:\s+(\w+))?", re.IGNORECASE)
# `SCAN name …`, or `SEARCH name USING … (agent_id=?)` and nothing narrower.
WIDE = re.compile(r"SCAN (\w+)(?! VIRTUAL)|SEARCH (\w+) .*\(agent_id=\?\)(?: LEFT-JOIN)?$")


def wide(database: Database, asked: dict[str, Asked]) -> list[Plan]:
    """The steps of all statements that go through all rows of an agent or a table."""
    found = []
    for sql, (command, bindings) in asked.items():
        if not SELECTS.match(sql) or "kept." in sql:
            continue
        tables = names(sql)
        try:
            steps = [row[3] for row in database.execute(f"explain query plan {sql}", bindings or ())]
        except apsw.BindingsError:
            continue
        for step in steps:
            match = WIDE.match(step)
            name = match and (match[1] or match[2])
            if name and tables.get(name) in TABLES:
                found.append(Plan(step, command, " ".join(sql.split())))
    return found


def names(sql: str) -> dict[str, str]:
    """Tables of a statement by the names that its plan calls them."""
    found = {}
    for table, alias in NAMED.findall(sql):
        found[table] = table
        found[alias] = table
    return found


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def test_plans(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Asked] = {}
    flows(vault, asked, monkeypatch)
    print(len(asked))
    with vault.database(readonly=False) as database:
        for how in ("as it stands", "analyze", "seeded"):
            if how == "analyze":
                database.execute("analyze")
            if how == "seeded":
                database.execute("delete from sqlite_stat1")
                database.execute("delete from sqlite_stat4")
                database._tell_the_planner()
            print("=======", how)
            for plan in wide(database, asked):
                print(plan.step, "|", plan.command, "|", plan.sql[:330])
    assert 0
