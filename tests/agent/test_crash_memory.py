"""The graph, memories and live turns, killed at every step and with every write failing once: nothing lost or half."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from crash_runner import forked
from flow_runner import NOW_US, SECRET, answering, distil
from workbench import NOW, ROOT, Vault, numbered

from signet_sync.agent import memories, reconcile, sessions
from signet_sync.agent.workspace import opened
from signet_sync.config import Settings
from signet_sync.contracts.inputs import session_input
from signet_sync.index import live, telemetry
from signet_sync.index.database import Database
from signet_sync.index.schema import SINCE_2, TABLES

RUNNER = ROOT / "tests" / "agent" / "flow_runner.py"

RUNNING = {"session_id": "5e551003-0000-4000-8000-000000000003", "session_key": "agent:main/third"}
MOMENT = "2026-03-29T11:30:00.000Z"
ENDING = {
    **RUNNING,
    "project": "/home/ada/code/lantern",
    "harness": "claude-code",
    "captured_at": MOMENT,
    "transcript": f"## User\n\nBound the retry loop.\n\nThe key was {SECRET} then.\n",
    "summary": "# Queue\n\n## Decisions\n\n- lantern bounds the retry loop of src/queue.py at five attempts.\n\n"
    "## Blockers\n\n- The broker of staging is down.\n",
    "memory_sentence": "Bounded the retry loop of src/queue.py in lantern at five attempts so that the queue drains.",
}
# What session 2 alone has said, and what is to be forgotten: no file may hold these once they are gone.
WORDS = {"removal": ["number2x", "step number 2", "zzremoved"], "forget": ["zzforget", "deploys on fridays"]}
FORGOTTEN = "Zzforget: nobody deploys on Fridays, whatever the queue of lantern says."
REMOVED = "Zzremoved: this came from the second session of lantern alone."
FACTS = [
    {"aspect": "note", "text": f"Lantern keeps its word number{n}x", "quote": f"Lantern keeps its word number{n}x"}
    for n in (1, 2, 4)
]
PARAGRAPH = "The sessions of this week in lantern bounded the retry loop of src/queue.py so that it ends."
BY_HAND = ["append", "remember", "pin", "forget", "distil"]
PASSES = ["schema 1", "other rules"]
SCENARIOS = [*BY_HAND, "session end", "removal", *PASSES]


def prepare(folder: Path, scenario: str) -> None:
    """A vault with a thread, its arc, memories, pins, accesses and live turns, as the scenario begins."""
    vault = Vault(folder / "vault")
    for number in (1, 2, 4):
        vault.session(number)
    vault.reindex()
    told: dict[str, Any] = {
        "documents": {"session end": ENDING},
        "remove": numbered(2)["session_id"],
        "words": WORDS,
        "facts": "\n".join(map(json.dumps, FACTS)),
        "paragraph": PARAGRAPH,
    }
    with opened(str(vault.root), Settings()) as workspace:
        told["pin"] = remember(workspace, "Tests run before every push.")
        told["forget"] = remember(workspace, FORGOTTEN)
        remember(workspace, REMOVED, session=told["remove"])
        for handle in (told["forget"], *arcs_and_nodes(workspace.database, told["remove"])):
            memories.pin(workspace, "default", handle, NOW_US)
            telemetry.count_nodes(workspace.database, "default", [handle], NOW[:10])
        with workspace.database.transaction():
            turn = live.LiveTurn(1, "user", "Bound it.", MOMENT)
            live.buffer(workspace.database, "default", RUNNING["session_key"], [turn])
            live.buffer(workspace.database, "default", "somebody else's", [turn])
    if scenario == "removal":
        with opened(str(vault.root), answering(told)) as workspace:
            distil(workspace)
        assert vault.rows("select count(*) from node_wordings where model <> ''") == [(1,)]
    vault.reindex()
    vary(vault, scenario)
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    (folder / "told.json").write_text(json.dumps(told))


def remember(workspace: Any, text: str, session: str | None = None) -> str:
    given: dict[str, Any] = {"kind": "fact", "tags": (), "private": False, "now_us": NOW_US, "session": session}
    return memories.remember(workspace, "default", text, **given).memory.id


def arcs_and_nodes(database: Database, session_id: str) -> list[str]:
    """Handles of the arc and of a session's nodes."""
    sql = "select id from session_summaries where kind = 'arc' or session_id = ? order by id"
    handles = [row[0] for row in database.execute(sql, (session_id,))]
    assert len(handles) >= 3
    return handles


def vary(vault: Vault, scenario: str) -> None:
    """What a scenario finds otherwise than the others."""
    if scenario in ("forget", "removal"):
        # Somebody wrote into our part of the page: that is kept beside it, and must be found there.
        words = f"> {FORGOTTEN}\n> {REMOVED}\n> {numbered(2)['memory_sentence']}\n"
        (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"{words}\n## ", 1))
    if scenario == "other rules":
        database = Database(str(vault.db))
        with database.transaction():
            database.execute("delete from session_summaries where kind = 'arc'")
            database.execute("update entity_attributes set text = 'of other rules'")
            database.set_meta("graph", "0")
        database.close()
    if scenario == "schema 1":
        to_schema_1(vault)


def to_schema_1(vault: Vault) -> None:
    """Takes the database back to what it was before there was a graph."""
    database = Database(str(vault.db))
    names = list(TABLES)
    derived = names[names.index("session_summaries") : names.index("seals")]
    with database.transaction():
        for name in (*derived, *SINCE_2):
            kind = database.value("select type from sqlite_schema where name = ?", (name,))
            database.execute(f"drop {kind} {name}")
        database.execute(
            "create table session_transcripts(agent_id text not null, session_key text not null, turn integer not null,"
            " role text not null, content text not null, at text not null, primary key(agent_id, session_key, turn))"
            " without rowid"
        )
        database.execute("pragma user_version = 1")
    database.connection.close()


def swept(folder: Path, scenario: str, faults: list[str], every: int, again: int = 0) -> Iterator[list[dict[str, Any]]]:
    """What the runner says of every point, fault by fault; nothing may be wrong. Prints how many were visited."""
    prepare(folder, scenario)
    done = subprocess.run(
        [sys.executable, RUNNER, folder, scenario, ",".join(faults), str(every), str(again)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [line for line in lines if line["wrong"]]
    assert wrong == [], (
        "\n".join(map(str, wrong[:5])) + f"\n{len(wrong)} of {len(lines)} points\n" + done.stderr[-2000:]
    )
    for fault in faults:
        found = [line for line in lines if line["fault"] == fault]
        ends = Counter({line["point"]: line["ended"] for line in found}.values())
        ways = Counter(line["outcome"] for line in found)
        print(f"{scenario}, {fault}: {ends.total()} points, {len(found)} recoveries, {dict(ends)}, {dict(ways)}")
        yield found
