"""`status`, `logs` and `service`: the kernel decides what is alive; whatever is wrong is a line of the answer."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from agents import Session, ago
from workbench import Vault

from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.storage import state_dir
from signet_sync.storage.state_dir import StateFolder

NOW = "2026-03-29T12:00:00.000Z"


@pytest.fixture
def indexed(vault: Vault) -> Vault:
    Session().write(vault)
    vault.reindex()
    return vault


def folder(vault: Vault) -> StateFolder:
    return state_dir.locate(str(vault.root))


def beat(vault: Vault, *, age: float = 0.0, **facts: Any) -> None:
    """A heartbeat as an agent leaves it, of so many seconds ago."""
    given = {"state": "watching", "since": ago(hours=1), "last_full_pass": ago(seconds=5), "interval": 300.0}
    state_dir.write_heartbeat(
        folder(vault), {**given, "watch": "inotify", "version": "0.1.0", "trouble": None, **facts}
    )
    moment = time.time() - age
    os.utime(folder(vault).heartbeat, (moment, moment))


def status(vault: Vault) -> dict[str, Any]:
    answer = vault.call("status", "--json")
    assert answer.code == 0, answer
    return dict(answer.json)


def check(vault: Vault) -> int:
    return vault.call("status", "--check").code


def test_before_the_first_pass_there_is_nothing_but_a_hint(vault: Vault) -> None:
    found = status(vault)
    assert not found["running"]
    assert "signet-sync reindex" in found["trouble"]
    assert found["last_full_pass"] is None
    assert check(vault) == 1
    assert "\ndatabase " not in vault.call("status").out
    assert not Path(os.environ["SIGNET_STATE"]).exists(), "looking writes nothing"


def test_a_held_lock_and_a_fresh_heartbeat_are_a_living_agent(indexed: Vault) -> None:
    with state_dir.run_lock(folder(indexed)):
        beat(indexed)
        found = status(indexed)
        assert (found["running"], found["pid"], found["state"]) == (True, os.getpid(), "watching")
        assert (found["watch"], found["interval"], found["responding"]) == ("inotify", 300.0, True)
        assert check(indexed) == 0
        text = indexed.call("status").out
        assert f"watching (pid {os.getpid()})" in text
        assert "3 artifacts · 1 session · 1 agent ·" in text


def test_a_heartbeat_without_a_lock_is_stale_though_its_pid_lives(indexed: Vault) -> None:
    beat(indexed)  # after kill -9 the number belongs to somebody else: here, to this very process
    found = status(indexed)
    assert (found["running"], found["pid"], found["state"], found["watch"]) == (False, None, "stopped", None)
    assert found["stale_heartbeat"]
    assert check(indexed) == 1
    assert "did not end normally" in indexed.call("status").out


def test_an_agent_that_gives_no_sign_of_life_is_not_well(indexed: Vault) -> None:
    with state_dir.run_lock(folder(indexed)):
        beat(indexed, age=500)
        found = status(indexed)
        assert (found["running"], found["responding"]) == (True, False)
        assert check(indexed) == 1
        assert "does not respond" in indexed.call("status").out


@pytest.mark.parametrize(("facts", "code"), [
    ({"state": "watching"}, 0), ({"state": "polling", "watch": "polling"}, 0), ({"state": "reconciling"}, 0),
    ({"state": "held: signet daemon", "trouble": "a Signet daemon (pid 7) is alive"}, 0),
    ({"state": "halted: cliff"}, 1), ({"state": "degraded: the disk is full"}, 1), ({"state": "waiting: workspace"}, 1),
    ({"state": "starting", "last_full_pass": None}, 1),
    ({"last_full_pass": ago(seconds=660)}, 1),
    ({"last_full_pass": ago(seconds=660), "interval": 3600.0}, 0),
    ({"last_full_pass": "nonsense"}, 1),
])  # fmt: skip
def test_check_answers_with_its_exit_code(indexed: Vault, facts: dict[str, Any], code: int) -> None:
    if facts.get("last_full_pass") in (None, "nonsense") and "last_full_pass" in facts:
        (folder(indexed).path / Path("last-pass.json")).unlink()
    with state_dir.run_lock(folder(indexed)):
        beat(indexed, **facts)
        assert check(indexed) == code


def test_halts_are_told_with_their_way_out_by_a_stopped_agent_too(indexed: Vault) -> None:
    aside = indexed.root.parent / "aside"
    indexed.memory.rename(aside)
    assert indexed.call("reindex").code == 5
    assert status(indexed)["state"] == "halted: cliff"
    assert "--accept-removals" in indexed.call("status").out
    assert check(indexed) == 1


def test_what_is_wrong_with_files_is_counted_and_named(indexed: Vault) -> None:
    path = next(path for path in indexed.memory.iterdir() if "summary" in path.name)
    path.write_bytes(path.read_bytes() + b"More.\n")
    (indexed.memory / path.name.replace("summary", "compaction")).write_text("not an artifact")
    indexed.reindex()
    found = status(indexed)
    assert (found["counts"]["violations"], found["counts"]["invalid"]) == (1, 1)
    assert found["violations"] == [f"memory/{path.name}"]
    assert "→ signet-sync violations list, signet-sync check\n" in indexed.call("status").out
    (indexed.memory / path.name.replace("summary", "compaction")).unlink()
    indexed.reindex()
    assert "→ signet-sync violations list\n" in indexed.call("status").out  # check without the index may show none


@pytest.mark.parametrize("damage", ["garbage", "newer"])
def test_a_database_that_cannot_be_read_is_a_line_of_the_answer(indexed: Vault, damage: str) -> None:
    raw = bytearray(indexed.db.read_bytes())
    if damage == "garbage":
        raw[100:] = os.urandom(len(raw) - 100)
    else:
        raw[60:64] = (999).to_bytes(4, "big")
    indexed.db.write_bytes(raw)
    found = status(indexed)
    assert found["trouble"]
    assert found["counts"]["artifacts"] == 0
    assert indexed.call("status").code == 0
    assert bytes(raw) == indexed.db.read_bytes(), "looking heals nothing"


def test_a_session_at_work_is_no_job_that_waits(indexed: Vault) -> None:
    spool_folder = folder(indexed).spool
    for event in ("stop", "end"):
        job = Job(event=event, harness="claude-code", session_id="s-1", agent_id="default", at=NOW)
        spool.put(spool_folder, job)
    intake = status(indexed)["intake"]
    assert (intake["waiting"], intake["at_work"]) == (1, 1)
    assert "1 job waiting · 1 session active recently" in indexed.call("status").out


def test_the_receipt_counts_what_was_given_and_taken(vault: Vault) -> None:
    project = "/home/ada/code/lantern"
    vault.session(
        2, body="# One\n\n## Decisions\n\n- Storage: the ledger of 5 tides is kept in SQLite\n", project=project
    )
    vault.reindex()
    assert not [line for line in vault.call("status").out.splitlines() if line.startswith("7 days")]
    start = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": project, "source": "startup"}
    given = vault.hook("claude-code", given=json.dumps(start).encode()).out
    assert "SQLite" in given
    seen = vault.call("status", "--json").json["receipt"]
    assert seen["sessions"] == 1 and 0 < seen["tokens"] <= len(given) // 4 and not seen["stale"]
    vault.session(
        1, body="# Two\n\n## Decisions\n\n- Storage: the ledger of 7 tides is kept in SQLite\n", project=project
    )
    vault.reindex()
    vault.call("remember", "The lamp is lit at nine.")
    vault.call("recall", "when is the lamp lit")
    assert vault.call("status", "--json").json["receipt"]["stale"] == 1
    line = next(line for line in vault.call("status").out.splitlines() if line.startswith("7 days"))
    assert "given to 1 session, 1 line of it stale · 1 question answered from memories · 1 note · 0 corrections" in line
    assert line.endswith("no model asked")
    (mark,) = [hit for hit in vault.call("recall", "ledger tides", "--json").json["hits"] if hit["tier"] == "statement"]
    assert vault.call("statements", "withdraw", mark["id"]).code == 0
    seen = vault.call("status", "--json").json["receipt"]
    counted = {name: seen[name] for name in ("sessions", "questions", "notes", "corrections")}
    assert counted == {"sessions": 1, "questions": 1, "notes": 1, "corrections": 1}
    kept = sum(path.stat().st_size for path in vault.memory.glob("*--*.md"))
    assert seen["bytes_kept"] == kept
