"""Query plans: no statement of an ordinary command goes through all rows of an agent, or of a table that grows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from command_lines import COMMAND_LINES, note
from command_lines import run as run_line
from session_inputs import FIRST, SECOND, compact, end
from workbench import Vault

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import TABLES

# Commands that go over everything because that is what they are for.
WHOLE = {
    "first": "the first ending in a new database indexes the vault",
    "reindex": "a full pass",
    "status": "counts everything, for a person",
    "hooks": "counts what was captured, for a person",
}
# Commands that read what everybody else said, to tell whose words they take away; what they delete they find by key.
SCRUBBING = ("remove", "forget")
# Statements (as far as they say which one it is) that may go through many rows, and why.
ALLOWED = {
    "exists(select 1 from": "one row answers",
    "from memory_artifact_tombstones": "removals are few, and every pass must know them",
    "update memory_artifact_tombstones set scrubbed": "after a removal",
    "from violations": "violations are few: a vault that has many is halted",
    "from garden_drift where agent_id": "files that wait for a maintainer are few",
    "from garden_files where agent_id = ? order by path": "files of entities are few: each is held to its row",
    "from files where verdict <> 'indexed'": "the index holds only what is not simply indexed",
    "from derivers": "a row for each deriver",
    "from pins": "a person makes each",
    "from dream_sweeps s cross join memory_promotions": "in the order of the key, to as many as a page may show",
    "from dream_sweeps where agent_id = ?1": "a sweep a night: small rows without any text",
    "refs is not null": "the index holds only the manifests that the page shows",
    "from backups": "one row",
    "from passes": "one row",
    "from beside_signet": "one row",
    "redactions": "redactions are few, and every pass must know them",
    "removed_lines": "after a removal",
    "from unscrubbed_memories": "after a memory was forgotten",
    "from live_files": "turns of sessions that run now",
    "from live_sessions": "sessions that run now",
    "from statement_marks": "a person or an agent makes each",
    "from session_transcripts": "turns of sessions that run now",
    "max(session_key) from memory_artifacts where agent_id = ?1 and (": "a person names a session by any of its names",
    "|| ':' ||": "a backup asks whether it is due",
    "group_concat(quote(": "a backup asks whether it is due",
}
HANDLE = re.compile(r"\b[skcaetfm]-(?:[a-z2-7]{12}|[a-z2-7]{6})\b")
QUERY = re.compile(r"\s*(?:with|select|insert|replace|update|delete)\b", re.IGNORECASE)
NAMED = re.compile(
    r"\b(?:from|join|into|update)\s+(\w+)(?:\s+as)?(?:\s+(?!(?:cross|inner|join|left)\b)(\w+))?", re.IGNORECASE
)
# All of a table, or what one agent has of it; where the agent is the whole key, that is one row.
WIDE = re.compile(
    r"SCAN (\w+)(?! VIRTUAL)"
    r"|SEARCH (?!(?:memory_md_heads|garden_chain|text_owners)\b)(\w+) .*\(agent_id=\?\)(?: LEFT-JOIN)?$"
)


class Asked(NamedTuple):
    """Who ran a statement (an ordinary command rather than one that may do more), and with which values."""

    command: str
    bindings: Any


Statements = dict[str, Asked]


@contextmanager
def listening(asked: Statements, command: str) -> Iterator[None]:
    """Notes every statement of every connection that is opened meanwhile."""

    def note(_: Any, sql: str, bindings: Any) -> bool:
        text = " ".join(sql.split())
        if text not in asked or asked[text].command in (*WHOLE, *SCRUBBING):
            asked[text] = Asked(command, bindings)
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


def run(vault: Vault, asked: Statements, *arguments: str, given: bytes | None = None) -> Any:
    """A command that succeeds, with its statements noted."""
    with listening(asked, arguments[0]):
        answer = vault.call(*arguments, "--json", given=given)
    assert answer.code == 0, (arguments, answer)
    return answer.json


def talk(number: int, agent: str) -> dict[str, Any]:
    """A session's end: odd ones of one lineage, each with decisions, a person and a next step."""
    return {
        "agent_id": agent,
        "session_id": f"5e5510{number:02d}-0000-4000-8000-{number:012d}",
        "session_key": "agent:main:main" if number % 2 else None,
        "captured_at": f"2021-03-{1 + number:02d}T10:00:00.000Z",
        "transcript": FIRST + SECOND * 4,
        "summary": f"# Queue {number}\n\n## Decisions\n\n- Database: store number {number}\n- src/queue.py ends.\n\n"
        f"## People\n\n- Ada: keeps src/queue.py\n\n## Next steps\n\n- Look at #{number}\n",
    }


def ends(vault: Vault, asked: Statements, number: int, agent: str, command: str = "end") -> None:
    with listening(asked, command):
        end(vault, **talk(number, agent))


def writes(vault: Vault, asked: Statements, agent: str, numbers: Sequence[int]) -> str:
    """What hooks write, and people; gives the id of a memory."""
    for number in numbers:
        ends(vault, asked, number, agent)
    with listening(asked, "compact"):
        compact(vault, agent_id=agent, session_id="running", session_key="agent:main:main")
    mine = ("--agent", agent)
    said = {"turn": 0, "role": "user", "text": "Does the queue drain?", "at": "2021-03-28T11:00:00Z"}
    run(vault, asked, "transcript", "append", "--session-key", "live", *mine, given=json.dumps(said).encode())
    run(vault, asked, "remember", "Of the queue.", "--session", talk(1, agent)["session_id"], *mine)
    made: str = run(vault, asked, "remember", f"{agent} asks Ada.", "--type", "preference", *mine)["id"]
    return made


def reads(vault: Vault, asked: Statements, memory: str) -> None:
    """What people ask, and agents; every kind of handle is followed, and pinned."""
    for question in ("retry loop", "what keeps src/queue.py"):
        run(vault, asked, "recall", question)
    run(vault, asked, "recall", "--words", "queue")
    run(vault, asked, "recall", "--words", "queue", "--since", "2021-03-02")
    run(vault, asked, "context")
    drawn = vault.rows("select id from session_summaries where agent_id = 'default'")
    drawn += vault.rows("select thread_id from memory_thread_heads where agent_id = 'default'")
    handles = [*HANDLE.findall(json.dumps(drawn) + vault.page()), memory]
    kinds = {handle[0]: handle for handle in handles}
    assert set(kinds) == set("skcaetfm")
    for handle in kinds.values():
        run(vault, asked, "expand", handle)
        run(vault, asked, "expand", handle[:8])
    for handle in (kinds[letter] for letter in "tfm"):
        run(vault, asked, "pin", handle)
        run(vault, asked, "pin", "--remove", handle)
    session, other = (talk(number, "default")["session_id"] for number in (3, 9))
    artifact = next(iter(vault.rows("select source_path from memory_artifacts where session_id = ?", session)))[0]
    who = {"session": session, "other": other, "memory": memory, "entity": memory, "drifted": memory}
    note(vault, **who, changed=artifact, proposal="none")
    run(vault, asked, "open", session)
    for name in (session, "live"):
        run(vault, asked, "expand", name)
    for name, line in COMMAND_LINES.items():
        if line.reads and name != "backup list":  # that reads files beside the database
            with listening(asked, name.partition(" ")[0]):
                assert run_line(vault, name).code in (0, 1, 2), name


def flows(vault: Vault, asked: Statements) -> None:
    """Everyday commands in a vault of two agents, whole passes and removals, and an ending after those."""
    ends(vault, asked, 0, "default", "first")
    writes(vault, asked, "scout", (1, 2))
    made = writes(vault, asked, "default", (1, 2, 3, 9, 11))
    reads(vault, asked, made)
    run(vault, asked, "forget", made)
    run(vault, asked, "status")
    run(vault, asked, "reindex")
    run(vault, asked, "remove", talk(2, "default")["session_id"], "--reason", "asked", "--yes", "--quoting", "keep")
    run(
        vault, asked, "remove", "agent:main:main", "--reason", "asked", "--yes", "--quoting", "keep", "--agent", "scout"
    )
    ends(vault, asked, 12, "default")


def wide(database: Database, asked: Statements) -> list[tuple[str, str, str]]:
    """The steps of statements that go through all rows of an agent or a table: step, command, statement."""
    found = []
    for sql, (command, bindings) in asked.items():
        if not QUERY.match(sql) or "kept." in sql:  # a backup, attached by that name, has what nobody can rebuild
            continue
        tables = {alias: table for table, second in NAMED.findall(sql) for alias in (table, second)}
        for *_, step in database.execute(f"explain query plan {sql}", bindings or ()):
            match = WIDE.match(step)
            if match and tables.get(match[1] or match[2]) in TABLES:
                found.append((step, command, sql))
    return found


def allowed(step: str, command: str, sql: str) -> bool:
    reading = command in SCRUBBING and sql.startswith("select")
    return command in WHOLE or reading or any(fragment in sql for fragment in ALLOWED)


def statistics(database: Database) -> list[tuple[Any, ...]]:
    return list(database.execute("select tbl, idx, stat from sqlite_stat1 order by 1, 2, 3"))


def test_nothing_goes_through_all_rows_of_an_agent(tmp_path: Path) -> None:
    vault, asked = Vault(tmp_path / "vault"), Statements()
    flows(vault, asked)
    assert len(asked) > 300
    with vault.database() as database:
        found = wide(database, asked)
        # What is known of a vault never depends on its size, so that neither do the plans.
        assert statistics(database) == statistics(Database(":memory:"))
    unexplained = ["\n  ".join(one) for one in found if not allowed(*one)]
    assert not unexplained, "\n".join(["add a column of a key, or a line with the reason to ALLOWED:", *unexplained])
    held = [sql for _, command, sql in found if command not in WHOLE]
    assert [fragment for fragment in ALLOWED if not any(fragment in sql for sql in held)] == []
