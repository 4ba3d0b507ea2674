"""Planted ailments: `doctor` names each with a remedy that works, and changes nothing itself."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Inside, Session, until
from workbench import Vault, call

from signet_sync import __version__
from signet_sync.admin.doctor import vault as checks
from signet_sync.admin.doctor.installation import Installation
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.storage import state_dir

quick, sleeper = agents.quick, agents.sleeper

HOLDS_A_LOCK = """
import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
print(flush=True)
time.sleep(600)
"""

SYSTEMCTL = """\
#!/bin/sh
case "$*" in
  *restart*) : > {up}; {then} ;;
  *show*) if [ -e {up} ]; then s=active; else s=failed; fi
          printf 'ActiveState=%s\\nSubState=running\\nUnitFileState=enabled\\nExecMainStatus=0\\n' $s ;;
esac
"""


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """A vault of one session, indexed just now."""
    vault = Vault(tmp_path / "vault")
    vault.session()
    assert vault.call("reindex").code == 0
    return vault


def look(vault: Vault, *words: str) -> Any:
    """The document of `doctor --json`."""
    answer = vault.call("doctor", "--json", *words)
    assert answer.code == (0 if answer.json["ok"] else 1) and answer.err == "", answer
    return answer.json


def ailing(document: Any) -> dict[str, Any]:
    """What is not well, by name."""
    return {one["name"]: one for one in document["findings"] if one["level"] != "ok"}


def told(vault: Vault, name: str, *words: str) -> Any:
    """The finding of this name; it has a remedy, and these words are in its message."""
    found = ailing(look(vault)).get(name)
    assert found and found["remedy"], (name, look(vault))
    for word in words:
        assert word in found["message"], found
    return found


def do(remedy: str) -> None:
    """What a person does who reads a remedy: types it."""
    words = shlex.split(remedy, comments=True)
    if words[0] == "signet-sync":
        assert call(*words[1:]).code == 0, remedy
    else:
        places = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            ["/bin/sh", "-c", remedy], check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PATH": places}
        )


def test_a_stale_lock(vault: Vault) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})
    heartbeat = vault.state / "heartbeat.json"
    heartbeat.write_text(heartbeat.read_text().replace(str(os.getpid()), str(dead.pid)))
    told(vault, "stale-heartbeat", str(dead.pid), "did not end normally")

    other_holder = subprocess.Popen(
        [sys.executable, "-IS", "-c", HOLDS_A_LOCK, vault.state / "locks/run.lock"], stdout=subprocess.PIPE
    )
    try:
        assert other_holder.stdout is not None and other_holder.stdout.readline()
        told(vault, "stale-lock", "held")
    finally:
        other_holder.kill()
        other_holder.communicate()


def test_a_wrong_mode(vault: Vault) -> None:
    vault.state.chmod(0o755)
    do(told(vault, "state-mode", "other users can read")["remedy"])
    assert "state-mode" not in ailing(look(vault))
    assert oct(vault.state.stat().st_mode)[-3:] == "700"


def test_a_corrupt_database(vault: Vault) -> None:
    raw = bytearray(vault.db.read_bytes())
    raw[8192:20480] = b"\xa5" * 12288
    vault.db.write_bytes(raw)
    do(told(vault, "database", "damaged")["remedy"])
    assert "database" not in ailing(look(vault)) and len(vault.hits("number1x")) == 2
    do(told(vault, "database-aside", "moved aside")["remedy"])
    assert "database-aside" not in ailing(look(vault))


@contextmanager
def a_service(vault: Vault, folder: Path, monkeypatch: pytest.MonkeyPatch, then: str = ":") -> Iterator[Path]:
    """The unit of the vault, installed with a systemctl of our own; the file that is given stands while it runs."""
    up, programs = folder / "up", folder / "programs"
    programs.mkdir()
    program = programs / "systemctl"
    program.write_text(SYSTEMCTL.format(up=shlex.quote(str(up)), then=then))
    program.chmod(0o755)
    with monkeypatch.context() as here:
        here.setenv("PATH", str(programs))
        here.setattr(sys, "platform", "linux")
        here.delenv("SSH_CONNECTION", raising=False)
        assert vault.call("service", "install", "--json").json["running"]
        yield up


def test_a_dead_service(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_service(vault, tmp_path, monkeypatch) as up:
        up.unlink()
        finding = told(vault, "service", "is not running")
        assert finding["level"] == "problem" and finding["remedy"].startswith("systemctl --user restart signet-sync-")
        do(finding["remedy"])
        assert "service" not in ailing(look(vault))


def test_a_broken_hook(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Path(os.environ["HOME"]) / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    assert vault.call("hooks", "install", "claude-code").code == 0
    whole = settings.read_text()
    python = json.loads(whole)["hooks"]["Stop"][0]["hooks"][0]["command"].split()[0]

    settings.write_text(whole.replace(python, "/gone/python3"))
    finding = told(vault, "hooks", "claude-code", "/gone/python3", "does not exist")
    assert finding["level"] == "problem" and finding["remedy"].endswith("hooks install claude-code")
    do(finding["remedy"])
    assert "hooks" not in ailing(look(vault)), "it was called, and answered"
    assert settings.read_text() == whole
    assert not vault.state.joinpath("spool").exists() and not vault.state.joinpath("logs/hook.log").exists()

    monkeypatch.setenv("SIGNET_AGENT_ID", "No Such")
    assert "its hook fails" in told(vault, "hook-fails", "claude-code")["message"]


def test_a_full_spool(vault: Vault) -> None:
    folder = str(vault.state / "spool")

    for number in range(3):
        job = Job(
            event="session-start", harness="claude-code", session_id=f"s{number}", agent_id="default",
            at="2026-03-20T10:00:00.000Z",
        )  # fmt: skip
        put = Path(spool.put(folder, job).place)
        put.rename(put.with_name(f"{1_774_000_000_000 + number:014d}-{put.name[15:]}"))
    do(told(vault, "spool", "spool: 3", "no agent runs")["remedy"])
    assert "spool" not in ailing(look(vault)) and spool.count(folder) == 0


def test_a_live_signet(vault: Vault, sleeper: subprocess.Popen[bytes]) -> None:
    (vault / ".daemon").mkdir()
    (vault / ".daemon/pid").write_text(str(sleeper.pid))
    remedy = told(vault, "signet-daemon", str(sleeper.pid), "held back")["remedy"]
    assert "projection.takeover" in remedy
    do(remedy)
    sleeper.wait()
    assert "signet-daemon" not in ailing(look(vault))


def test_a_version_skew(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = state_dir.locate(str(vault.root))
    sed = f"{shutil.which('sed')} -i s/0.0.7/{__version__}/ {shlex.quote(folder.heartbeat)}"
    with state_dir.run_lock(folder):
        state_dir.write_heartbeat(folder, {"version": "0.0.7", "state": "watching"})
        finding = told(vault, "version-skew", "0.0.7", __version__, "once it notices")
        assert finding["remedy"].startswith(f"kill {os.getpid()}; signet-sync ")
        with a_service(vault, tmp_path, monkeypatch, then=sed):
            state_dir.write_heartbeat(folder, {"version": "0.0.7", "state": "watching"})
            do(told(vault, "version-skew")["remedy"])
            answer = vault.call("doctor")
    # Nothing is left that is not well: it is said in few lines.
    assert answer.code == 0 and answer.out.endswith("everything is in order\n") and len(answer.out.splitlines()) < 22, (
        answer.out
    )


def test_a_mistyped_setting(vault: Vault) -> None:
    (vault / "signet-sync.toml").write_text("watch.mod = 'polling'\n")
    remedy = told(vault, "settings", "watch.mod ignored", "did you mean watch.mode?")["remedy"]
    assert remedy.startswith("correct its name in ")
    (vault / "signet-sync.toml").write_text("log.level = 'DEBUG'\n")
    assert told(vault, "settings", "a workspace may not set this")["remedy"].startswith("move it to ")


def test_a_workspace_that_is_a_link_to_nowhere(vault: Vault) -> None:
    link = vault.root.parent / "link"
    link.symlink_to(vault.root.parent / "unmounted")
    for words in (["doctor"], ["status"]):
        said = call("--workspace", link, *words)
        assert "/unmounted, which does not exist" in said.out + said.err
    (vault.root.parent / "file").write_text("")
    for name, trouble in (("mistyped", "does not exist"), ("file", "not a folder")):
        said = call("--workspace", vault.root.parent / name, "status")
        assert trouble in said.err and "reindex" not in said.out + said.err


def test_copies_of_a_sync_service(vault: Vault) -> None:
    summary = next(vault.memory.glob("*--summary.md"))
    shutil.copy(summary, summary.with_stem(f"{summary.stem} (1)"))
    (vault / "MEMORY (conflicted copy).md").write_text("my own words\n")
    vault.call("reindex")
    remedy = told(vault, "copies", "2, the first MEMORY (conflicted copy).md")["remedy"]
    said = call(*shlex.split(remedy, comments=True)[1:]).out
    assert said.count("ignored conflict-copy") == 2


@pytest.mark.usefixtures("quick")
def test_a_state_folder_that_is_deleted_under_the_agent(vault: Vault) -> None:
    with Inside(vault) as agent:
        agent.wait("watching")
        shutil.move(vault.state, vault.state.with_name("moved"))  # at once: the agent goes on writing
        shutil.rmtree(vault.state.with_name("moved"), ignore_errors=True)
        until(lambda: (vault.state / "heartbeat.json").exists() and agent.state == "watching", "it begins anew")
        # The heartbeat may come back before the agent has noticed, its lock only afterwards.
        until(lambda: state_dir.run_lock_holder(state_dir.locate(str(vault.root))), "it holds its new lock")
        until(lambda: vault.call("recall", "--words", "nothing").code == 0, "its new database is filled")
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "it works")


# ── what a person has set up beside the vault ──


@pytest.fixture
def empty() -> Vault:
    """An empty vault below the home folder."""
    return Vault(Path(os.environ["HOME"]) / "notes/agents")


def installation(empty: Vault) -> Installation:
    return Installation(str(empty.root), str(empty.db))


def test_a_remedy_names_workspace_and_database_only_where_it_has_to(
    empty: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(empty.root / "an other.db")
    words = shlex.split(Installation(str(empty.root), other).command("reindex"))
    assert words == ["signet-sync", "--workspace", str(empty.root), "--db", other, "reindex"]
    monkeypatch.setenv("SIGNET_WORKSPACE", str(empty.root))
    assert installation(empty).command("reindex") == "signet-sync reindex"


def test_what_was_given_up_is_told(empty: Vault) -> None:
    folder = state_dir.locate(str(empty.root))
    job = Job(event="end", harness="codex", session_id="s", agent_id="default", at="2026-03-20T10:00:00.000Z", tries=7)
    assert not spool.begin(spool.put(folder.spool, job), 0)
    found = {one.name: one for one in checks.jobs(installation(empty))}
    assert "could not be processed: 1;" in found["spool-given-up"].message
