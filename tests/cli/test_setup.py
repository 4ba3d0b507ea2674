"""`setup`: what it finds, asks and does; that it may be run again; the way from an empty home to a first context."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from agents import until
from transcript_builder import TranscriptBuilder, store
from workbench import ROOT, Vault, call, contents, spawn, spawn_ordinary, tree

from signet_sync.cli import reindex, setup
from signet_sync.cli.main import Context

PASSING = ("last-pass.json", "signet-sync.db-wal", "signet-sync.db-shm", "logs", ".cache")


@pytest.fixture(autouse=True)
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the folder of one coding agent, and a PATH without any service manager."""
    (home / "bin").mkdir()
    (home / ".claude").mkdir()
    monkeypatch.setenv("PATH", str(home / "bin"))
    return home


def past(home: Path, number: int = 1, **where: str) -> TranscriptBuilder:
    """A session of long ago."""
    talk = TranscriptBuilder(store(home), f"{number:08d}-0000-4000-8000-000000000000", **where)
    talk.user("Bound the retry loop of src/queue.py, which never ends.", number * 3600)
    talk.assistant(
        "Done: the loop of src/queue.py ends after five tries. Next: measure how long the queue waits.",
        number * 3600 + 60,
    )
    talk.idle()
    return talk


def on_disk(home: Path) -> list[dict[str, Any]]:
    """Every file of the home and of the state, with time and inode; folders without, for names come and go in them."""
    places = (home, Path(os.environ["SIGNET_STATE"]))
    return [{k: v for k, v in tree(one, but=PASSING).items() if not v[0].startswith("0o4")} for one in places]


def states(steps: dict[str, setup.Step]) -> dict[str, str]:
    return {name: step.state for name, step in steps.items()}


def done(*words: str, code: int = 0) -> dict[str, setup.Step]:
    """Runs it; gives its steps by name."""
    with patch.object(setup, "_show_rest", wraps=setup._show_rest) as shown:
        answer = call("setup", *words)
    assert answer.code == code, answer
    return {step.name: step for step in shown.call_args.args[1]}


def service_manager(home: Path, script: str) -> None:
    program = home / "bin/systemctl"
    program.write_text(f'#!/bin/sh\necho "$*" >> {home}/calls\n{script}\n')
    program.chmod(0o755)


def test_everything_once_and_nothing_twice(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = machine / "code/lantern"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    past(machine, project=str(project))
    answer = call("setup", "--yes")
    # What a session in this folder is told ends it, with a question that is a clause of it.
    told, _, asked = answer.out.partition("what past sessions say can be asked:\n")
    assert "\n  === Project" in told and "five tries" in told
    (question,), (first, *_) = shlex.split(asked.split("\n")[0])[2:], asked.split("\n")[1:]
    assert question in told
    assert "hook claude-code" in (machine / ".claude/settings.json").read_text()
    before = on_disk(machine)
    names = ("workspace", "hooks", "import", "index")
    assert states(done("--yes")) == {**dict.fromkeys(names, "present"), "service": "absent"}
    for was, now in zip(before, on_disk(machine), strict=True):
        assert {path for path in was.keys() | now.keys() if was.get(path) != now.get(path)} == set()
    vault = Vault(machine / ".agents")
    assert vault.hits("retry") and vault.page()
    found = call("recall", question, "--json").json["hits"][0]["text"]
    assert found.startswith(first.strip().rstrip("…"))


def test_a_session_that_may_still_run_is_named(machine: Path) -> None:
    recent = past(machine).path
    os.utime(recent)
    says = "1 session changed in the last 15 minutes is left out; run signet-sync setup again later, or: "
    step = done("--yes")["import"]
    assert step.state == "skipped" and step.text == f"{says}signet-sync import claude-code PATH"
    past(machine, 2)
    step = done("--yes")["import"]
    assert step.state == "done" and says in step.left[0]


def test_the_newest_sessions_are_indexed_first(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2, 3):
        os.utime(past(machine, number).path, (1.7e9 + number, 1.7e9 + number))
    whole, seen = reindex.run_pass, []

    def passed(context: Context) -> dict[str, Any]:
        seen.append([*(machine / ".agents/memory").glob("*--summary.md")])
        return whole(context)

    monkeypatch.setattr(setup, "_FIRST", 1)
    monkeypatch.setattr(reindex, "run_pass", passed)
    assert done("--yes")["import"].text == "3 sessions imported"
    assert [len(one) for one in seen] == [1, 3]
    assert "00000003-" in seen[0][0].read_text()


def test_hooks_and_service_can_be_left_out(machine: Path) -> None:
    past(machine)
    service_manager(machine, "exit 0")
    steps = states(done("--yes", "--no-hooks", "--no-service"))
    assert steps["hooks"] == steps["service"] == "skipped"
    assert not (machine / ".claude/settings.json").exists() and not (machine / "calls").exists()


def test_what_fails_keeps_nothing_else_from_being_done(machine: Path) -> None:
    past(machine)
    (machine / ".claude/settings.json").write_text("{ no JSON")
    steps = done("--yes", code=1)
    assert steps["hooks"].state == "failed" and steps["import"].state == steps["index"].state == "done"
    (failed,) = [step.error for step in steps.values() if step.error]
    assert failed.path and failed.path.endswith("settings.json") and failed.hint
    assert (machine / ".claude/settings.json").read_text() == "{ no JSON"
    said = call("setup", "--yes")
    assert said.code == 1 and "not done: hooks" in said.out


def test_without_a_workspace_the_rest_is_not_tried(machine: Path) -> None:
    (machine / ".agents").write_text("a file")
    steps = states(done("--yes", code=1))
    assert steps["workspace"] == "failed" and steps["hooks"] == steps["index"] == "skipped"
    said = call("setup", "--yes").out
    assert "next:" not in said and "hooks install" not in said
    assert not (machine / ".claude/settings.json").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="root is told to obey file modes by a call of Linux")
def test_a_workspace_that_cannot_be_written_is_one_problem_with_one_remedy(machine: Path) -> None:
    root = machine / ".agents"
    session = past(machine).session
    assert call("setup", "--yes", "--no-hooks").code == 0
    for folder in (root / "memory", root):
        folder.chmod(0o500)
    remedy = f"the workspace cannot be written [{root}] — signet-sync doctor"
    answer = spawn_ordinary("setup", "--yes")
    assert answer.code == 1 and answer.out.count("cannot be written") == 1 and remedy in answer.out
    assert "there is no workspace" not in answer.out and not (machine / ".claude/settings.json").exists()
    answer = spawn_ordinary("remove", session, "--reason", "x", "--yes")
    assert answer.code == 3 and remedy in answer.err
    root.chmod(0o700)
    assert "memory/ cannot be written" in spawn_ordinary("doctor").out
    (root / "memory").chmod(0o700)


@pytest.mark.skipif(sys.platform != "linux", reason="a stand-in for systemctl")
def test_the_service_is_started_once(machine: Path) -> None:
    service_manager(machine, 'case "$*" in *show*) printf "ActiveState=active\\nSubState=running\\n" ;; esac')
    assert states(done("--yes"))["service"] == "done"
    assert "restart signet-sync.service" in (machine / "calls").read_text()
    (machine / "calls").unlink()
    assert states(done("--yes"))["service"] == "present"
    assert "restart" not in (machine / "calls").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="a stand-in for systemctl")
def test_a_service_that_does_not_start_is_a_failure_with_a_remedy(machine: Path) -> None:
    service_manager(machine, 'case "$*" in *restart*) echo "Job failed." >&2; exit 1 ;; *) echo Version=1 ;; esac')
    steps = done("--yes", code=1)
    step = steps["service"]
    assert step.state == "failed" and step.error and step.error.hint and "# not done: Job failed." in step.left
    assert steps["index"].state == "done"


def test_what_belongs_to_others_is_left_to_them(machine: Path) -> None:
    other = machine / "other"
    assert call("--workspace", other, "setup", "--yes").code == 0
    before = contents(machine / ".claude")
    root = machine / ".agents"
    (root / "memory").mkdir(parents=True)
    (root / "memory/memories.db").write_bytes(b"")
    answer = call("setup", "--yes")
    assert contents(machine / ".claude") == before
    assert f"feeds another workspace, {other}" in answer.out and "hooks install claude-code" in answer.out
    assert "signet-sync migrate signet" in answer.out


# ── the whole way, as a person goes it ──


def answered(keys: str, *words: str) -> tuple[int, str, int]:
    """Runs a command on a terminal, types a key at each question; gives exit code, screen and number of answers."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "signet_sync", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown, given = b"", 0
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
        if shown.count(b"[Y/n]:") > given:
            os.write(ours, f"{keys[given]}\n".encode().lstrip(b" "))
            given += 1
    os.close(ours)
    return process.wait(timeout=300), shown.decode(), given


@pytest.mark.slow
def test_from_an_empty_home_to_the_first_context(machine: Path) -> None:
    past(machine)
    if sys.platform == "linux":
        service_manager(machine, 'case "$*" in *show*) printf "ActiveState=active\\nSubState=running\\n" ;; esac')
    code, shown, answers = answered("   ", "setup")
    assert code == 0, shown
    assert answers <= 3 and "Traceback" not in shown
    assert "Connect claude-code?" in shown and "Import 1 transcript" in shown and "next:" in shown
    vault = Vault(machine / ".agents")

    settings = json.loads((machine / ".claude/settings.json").read_text())
    command = settings["hooks"]["SessionEnd"][0]["hooks"][0]["command"]

    def hook(given: bytes) -> str:
        environ = {**os.environ, "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(["/bin/sh", "-c", command], input=given, env=environ, capture_output=True, check=True)
        return ended.stdout.decode()

    talk = past(machine, 2)
    talk.user("Decided: the queue of lantern keeps its jobs in SQLite, for one file is easy to copy.", 90)
    hook(talk.payload("SessionEnd", reason="exit"))
    until(lambda: list(vault.memory.glob("*--summary.md"))[1:], "the session is captured")
    until(lambda: "SQLite" in spawn("context", "--project", talk.project).out, "and told")
    told = hook(TranscriptBuilder(store(machine), "00000003-0000-4000-8000-000000000000").payload("SessionStart"))
    assert "SQLite" in told and "five tries" in told

    code, shown, answers = answered("", "setup")
    assert (code, answers) == (0, 0) and "in place" in shown
