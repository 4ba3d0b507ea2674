"""A vault with rows of every native kind, for the tests of backups, and what it holds of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Answer, Vault, numbered

from signet_sync.entities import store as entities_store
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.memories.score import Promotion
from signet_sync.memories.store import memories, promotions
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import list_backed_up
from signet_sync.text.memory import derive_tags, memory_id

BACKED_UP = {table.name: table.columns for table in list_backed_up()}
NOW_US = parse_instant(NOW) or 0
LAMP = "Ada trims the wick of the lamp before she reads."
PRIVATE = "Ada is afraid of moths."
OF_SESSION = "The zqxcanary of the first session likes opals."
LUIS = "Luis moved to Bogotá."
FIRST, SECOND = numbered(1)["session_id"], numbered(2)["session_id"]


def done(answer: Answer) -> Answer:
    """The answer, held to exit code 0."""
    assert answer.code == 0, answer
    return answer


def memory(text: str, agent: str = "default", *, private: bool = False, kind: str = "note") -> memories.Memory:
    """A memory as `remember` keeps it."""
    identity = memory_id(agent, kind, text)
    return memories.Memory(agent, identity, kind, text, ("tag",), private, NOW, derive_tags(text))


@contextmanager
def elsewhere(place: Path) -> Iterator[Vault]:
    """A filled vault on a machine of its own, for as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIGNET_STATE", str(place / "state"))
        patch.setenv("SIGNET_CONFIG", str(place / "config.toml"))
        patch.setenv("HOME", str(place / "home"))
        vault = Vault(place / "vault")
        fill(vault)
        yield vault


def fill(vault: Vault) -> None:
    """Two sessions, and rows of every kind, of two agents, one of them resting on the first session."""
    vault.session(1)
    vault.session(2)
    vault.reindex()
    with vault.database(readonly=False) as database, database.transaction():
        put(database)
    vault.reindex()


def put(database: Database) -> None:
    """Rows of every kind that files do not make. In the caller's transaction."""
    first = (token_of("default", FIRST), FIRST)
    for one, origin in (
        (memory(LAMP, kind="preference"), memories.OWN_WORD),
        (memory(PRIVATE, private=True), memories.OWN_WORD),
        (memory(OF_SESSION), first),
        (memory(LUIS, "scout"), memories.OWN_WORD),
    ):
        memories.store(database, one, origin)
    lamp, opals = memory(LAMP, kind="preference").id, memory(OF_SESSION).id
    for agent, found, query in (
        ("default", lamp, "what about the wick"),
        ("default", lamp, "what about the wick"),
        ("default", lamp, "number1x and the wick"),  # a word of the first session
        ("default", opals, "opals"),
        ("scout", memory(LUIS, "scout").id, "Bogotá"),
    ):
        database.execute(
            "insert into recall_events(agent_id, memory_id, query, score, at_us) values(?, ?, ?, 1.0, ?)",
            (agent, found, promotions.digest(query), NOW_US),
        )
    risen = [Promotion(one, 0.9, 3, 1.0, 1.0, 1.0, 1.0, 1, 3, NOW_US) for one in (lamp, opals)]
    promotions.store(database, "default", ("20260329T120000000Z", NOW_US, 2, len(risen), 0), risen)
    database.execute(f"insert into node_telemetry values('default', '{lamp}', 2, '2026-03-29', 1, '2026-03-28')")
    database.execute(
        "insert into flow_results values('default', 'key', 'end', 'hash', ?, ?, ?, ?)",
        (*first, '{"summary": "memory/x.md", "words": ["é"]}', NOW),
    )
    entities_store.set_log_end(database, "default", "a" * 64, "01M81S50B5MGF1JWVMSS2XBEQW")
    database.execute(
        "insert into captures values('claude-code', ?, 'x', 10, 20, 'default', 'captured', ?, '/home/ada', ?)",
        (os.path.expanduser("~/.claude/projects/a/b.jsonl"), SECOND, NOW),
    )
    said = live.LiveTurn(0, "user", "Where do the herons sleep?", NOW)
    live.buffer(database, "default", "agent:main:main", [said], session_id="live-1")
    place = live.LivePlace("/home/ada/code/lantern", "codex", "/home/ada/code/lantern", "git.example/ada/lantern", "")
    live.describe(database, "default", "agent:main:main", "live-1", place, noise=False)
    database.execute("insert into forgotten_memories values(?)", ("0" * 32,))
    database.execute("insert into removed_handles values('default', ?, ?)", ("1" * 32, first[0]))
    database.execute("insert into acceptances values(?, 0, ?, 'it is right so')", (vault_path("summary", 2), NOW))
    database.execute("insert into redactions values(?, ?, 'a rule × 1: it leaked', 1)", (vault_path("summary", 2), NOW))


def vault_path(kind: str, number: int) -> str:
    """The path of a file of a session."""
    stamp = numbered(number)["captured_at"].replace(":", "-")
    return f"memory/{stamp}--{token_of('default', numbered(number)['session_id'])}--{kind}.md"


def native(vault: Vault) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that is worth keeping, sealed bytes and marks too; events in their order."""
    with vault.database() as database:
        found = {
            table: list(database.execute(f"select {', '.join(columns)} from {table}"))
            for table, columns in BACKED_UP.items()
        }
        found["seals"] = sorted(database.execute("select * from seals"))
    return found


def holding(place: Path, word: str) -> list[str]:
    """Files below a place that hold a word."""
    return [
        str(path.relative_to(place))
        for path in sorted(place.rglob("*"))
        if path.is_file() and word.encode() in path.read_bytes()
    ]
