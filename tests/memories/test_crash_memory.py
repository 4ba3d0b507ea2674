"""The graph, memories and live turns, killed at every step and with every write failing once: nothing lost or half."""

from __future__ import annotations

import errno
import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import flow_runner
import pytest
from crash_runner import forked
from flow_runner import NOW_US, SECRET, answering, asked, distil, done, remember
from workbench import NOW, Vault, numbered, to_0_1_0

from signet_sync.app.workspace import opened
from signet_sync.formats.timestamps import DAY
from signet_sync.formats.turn import Turn
from signet_sync.memories import operations as memories_operations
from signet_sync.memories import promotion
from signet_sync.memories.store import memories, recall_events
from signet_sync.privacy import forget as privacy_forget
from signet_sync.recall import pinning
from signet_sync.sessions import live as sessions_live
from signet_sync.sessions.store import live
from signet_sync.settings.model import Settings
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import NODES
from signet_sync.sync import engine, indexing
from signet_sync.sync.store import access_counts
from signet_sync.sync.workspace import Workspace

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
PASSES = ["0.1.0", "other rules"]
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
        told["pin"] = keep(workspace, "Tests run before every push.")
        told["forget"] = keep(workspace, FORGOTTEN)
        keep(workspace, REMOVED, session=told["remove"])
        for handle in (told["forget"], *arcs_and_nodes(workspace.database, told["remove"])):
            pinning.pin(workspace, "default", handle, NOW_US)
            access_counts.count_nodes(workspace.database, "default", [handle], NOW[:10])
        turn = Turn(1, "user", "Bound it.", MOMENT)
        sessions_live.append(workspace, [turn], agent_id="default", session_key=RUNNING["session_key"])
        sessions_live.append(workspace, [turn], agent_id="default", session_key="somebody else's")
        of_the_removed = turn._replace(text=f"Once more: {REMOVED}")
        sessions_live.append(workspace, [of_the_removed], agent_id="default", session_key=told["remove"])
    if scenario == "removal":
        with opened(str(vault.root), answering(told)) as workspace:
            distil(workspace)
        assert vault.rows("select count(*) from node_wordings where model <> ''") == [(1,)]
    vault.reindex()
    vary(vault, scenario)
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    (folder / "prepared.json").write_text(json.dumps(told))


def keep(workspace: Workspace, text: str, session: str | None = None) -> str:
    given: dict[str, Any] = {"kind": "fact", "tags": (), "private": False, "now_us": NOW_US, "session": session}
    return memories_operations.remember(workspace, "default", text, **given).memory.id


def arcs_and_nodes(database: Database, session_id: str) -> list[str]:
    """Handles of the arc and of a session's nodes."""
    sql = f"select id from {NODES} where kind = 'arc' or session_id = ? order by id"
    handles = [row[0] for row in database.execute(sql, (session_id,))]
    assert len(handles) >= 3
    return handles


def recalled(workspace: Workspace) -> None:
    """Every memory was found by three queries, one of them in its own words."""
    rows = list(workspace.database.execute("select id, content from memories order by id"))
    for memory_id, content in rows:
        for query in ("the queue", "lantern", content):
            recall_events.record(workspace.database, "default", query, [(memory_id, 1.0)], NOW_US)


def vary(vault: Vault, scenario: str) -> None:
    """What a scenario finds otherwise than the others."""
    if scenario in ("forget", "removal", "dream", "first dream"):
        with opened(str(vault.root), Settings()) as workspace:
            recalled(workspace)
            if "dream" not in scenario:
                promotion.dream(workspace, "default", NOW_US - DAY)
        vault.reindex()
    if scenario == "first dream":
        with vault.database(readonly=False) as database, database.transaction():
            memories.forget_concepts(database)
            database.execute("insert into recall_events select null, agent_id, id, 'of old', 1, 0 from memories")
    if scenario in ("forget", "removal"):
        # Somebody wrote into our part of the page: that is kept beside it, and must be found there.
        words = f"> {FORGOTTEN}\n> {REMOVED}\n> {numbered(2)['memory_sentence']}\n"
        (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"{words}\n## ", 1))
        # There are backups of other days.
        shutil.copy(next(vault.state.rglob("native-*.db")), vault.state / "backups" / "native-20260301.db")
    if scenario == "other rules":
        database = Database(str(vault.db))
        with database.transaction():
            database.execute("delete from session_summaries where kind = 'arc'")
            database.execute("update attribute_sources set text = 'of other rules'")
            database.execute("update derivers set version = '0' where name = 'graph'")
        database.close()
    if scenario == "0.1.0":
        to_0_1_0(vault)


swept = partial(flow_runner.swept, prepare)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_asked_for_is_done_or_was_never_asked(tmp_path, scenario):
    for lines in swept(tmp_path, scenario, ["kill", "EIO", "ENOSPC"], 1):
        assert lines[-1]["label"] == "end" and lines[-1]["ended"] == "answered"
        outcomes = {line["outcome"] for line in lines}
        assert "all" in outcomes and ("nothing" in outcomes) == (scenario not in PASSES)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["remember", "forget", "0.1.0", "other rules"])
def test_a_fault_inside_sqlite_is_no_different_for_what_stands_there_alone(tmp_path, scenario):
    for lines in swept(tmp_path, scenario, ["sqlite-kill", "sqlite-EIO", "sqlite-ENOSPC"], 1):
        assert len(lines) > 10


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["forget", "removal"])
def test_a_recovery_that_is_killed_leaves_no_words_either(tmp_path, scenario):
    (lines,) = swept(tmp_path, scenario, ["kill"], 5, 5)
    assert len(lines) > 20


@pytest.mark.parametrize(
    ("scenario", "fault", "every"),
    [
        ("forget", "kill", 149),
        pytest.param("0.1.0", "kill", 23, marks=pytest.mark.slow),
        pytest.param("remember", "EIO", 17, marks=pytest.mark.slow),
    ],
)
def test_what_was_asked_for_is_done_or_was_never_asked_at_a_few_points(tmp_path, scenario, fault, every):
    (lines,) = swept(tmp_path, scenario, [fault], every)
    assert len({line["point"] for line in lines}) >= 2 and lines[-1]["ended"] == "answered"


# ── what the matrix has found ──


def vault_with_a_memory(folder: Path) -> tuple[Vault, str]:
    """A vault that remembers something, which somebody wrote into our part of the page once more."""
    vault = Vault(folder / "vault")
    vault.session(1)
    with opened(str(vault.root), Settings()) as workspace:
        memory_id = keep(workspace, FORGOTTEN)
    (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"> {FORGOTTEN}\n\n## ", 1))
    return vault, memory_id


def test_once_it_is_forgotten_no_copy_of_the_page_has_its_words(tmp_path):
    """They are known as long as it stands: whoever dies right afterwards must not leave them."""
    vault, memory_id = vault_with_a_memory(tmp_path)

    def work() -> int:
        passes = iter([engine.run_locked])
        memories_operations.engine.run_locked = lambda *given: next(passes, lambda *_: os._exit(137))(*given)
        with opened(str(vault.root), Settings()) as workspace:
            privacy_forget.forget(workspace, "default", memory_id, NOW_US)
        return 0

    assert forked(work) == 137
    assert vault.rows("select count(*) from memories") == [(0,)]
    vault.reindex()
    (kept,) = vault.root.glob("MEMORY.user-*")
    found = [path for place in (vault.root, vault.state) for path in place.rglob("*") if path.is_file()]
    assert kept in found and [path.name for path in found if b"Zzforget" in path.read_bytes()] == []


def test_nothing_is_forgotten_where_a_copy_of_the_page_cannot_be_cleaned(tmp_path, monkeypatch):
    vault, memory_id = vault_with_a_memory(tmp_path)
    vault.reindex()
    (kept,) = vault.root.glob("MEMORY.user-*")
    real = files._rename

    def refuse(*given: Any) -> Any:
        if kept.name in map(str, given):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return real(*given)

    monkeypatch.setattr(files, "_rename", refuse)
    answer = vault.call("forget", memory_id, "--json")
    assert answer.code != 0 and "nothing was forgotten" in answer.out, answer
    assert vault.rows("select id from memories") == [(memory_id,)]
    monkeypatch.undo()


def test_a_first_index_that_dies_takes_nothing_with_it_that_stands_nowhere_else(tmp_path):
    """Live turns came before the first look at a vault of many files, which goes without a journal."""
    vault = Vault(tmp_path / "vault")
    with opened(str(vault.root), Settings()) as workspace, workspace.database.transaction():
        live.buffer(workspace.database, "default", "running", [live.LiveTurn(1, "user", "Hello.", MOMENT)])
    vault.session(1)

    def work() -> int:
        indexing.MUCH = 1
        indexing._links = lambda *_, **__: os._exit(137)
        vault.reindex()
        return 0

    assert forked(work) == 137
    vault.reindex()
    assert vault.rows("select content from session_transcripts") == [("Hello.",)]


@pytest.mark.parametrize("command", [asked(ENDING), done(remember)], ids=["session end", "remember"])
def test_the_first_write_after_an_upgrade_hides_nothing_of_the_vault(tmp_path, monkeypatch, command):
    """A pass over the few paths of one ending would make a page of that session alone."""
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path, "0.1.0")
    vault = Vault(tmp_path / "vault")
    assert command(vault.root) == 0
    assert "step number 1 bounded" in vault.page() and "3 sessions" in vault.page()
    before = vault.dump()
    page = vault.page()
    vault.reindex()
    assert vault.dump() == before == vault.dump_from_scratch() and vault.page() == page


def test_a_backup_made_while_the_clock_was_ahead_is_not_taken_for_the_newest(tmp_path):
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex(now="2027-01-01T00:00:00.000Z")
    with opened(str(vault.root), Settings()) as workspace:
        memory_id = keep(workspace, FORGOTTEN)
    vault.db.unlink()
    vault.reindex()
    assert vault.rows("select id from memories") == [(memory_id,)]
