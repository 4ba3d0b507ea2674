"""What befalls people on ordinary days: it is told in one plain line, and the remedy works as it is typed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from agents import Inside, Session, quick, until  # noqa: F401 - `quick` is a fixture
from test_doctor_findings import a_service, ailing, do, fixed, left_alone, look, told, vault  # noqa: F401 - a fixture
from workbench import Vault, call

from signet_sync.host import service
from signet_sync.host.service_manager import ServiceState
from signet_sync.storage import state_dir


def test_a_deleted_page(vault: Vault) -> None:  # noqa: F811
    page = vault / "MEMORY.md"
    whole = page.read_bytes()
    page.unlink()
    do(told(vault, "page", "MEMORY.md is not there")["remedy"])
    assert page.read_bytes() == whole
    page.unlink()
    fixed(vault, "page")
    assert page.read_bytes() == whole


def test_a_folder_or_a_link_in_the_place_of_a_page(vault: Vault) -> None:  # noqa: F811
    page, mine = vault / "MEMORY.md", vault.root.parent / "notes.md"
    page.rename(mine)
    page.symlink_to(mine)
    left_alone(vault, "page")
    do(told(vault, "page", "is a link", "no longer written")["remedy"])
    assert page.is_file() and not page.is_symlink() and mine.is_file() and "page" not in ailing(look(vault))


def test_an_emptied_database(vault: Vault) -> None:  # noqa: F811
    vault.db.write_bytes(b"")
    do(told(vault, "database-behind", "empty")["remedy"])
    vault.db.write_bytes(b"")
    assert "came back from the backup" in fixed(vault, "database-behind")


def test_a_folder_in_the_place_of_the_database(vault: Vault) -> None:  # noqa: F811
    vault.db.unlink()
    vault.db.mkdir(mode=0o700)
    do(told(vault, "database", "is a folder")["remedy"])
    assert "database" not in ailing(look(vault))


def test_a_mistyped_setting(vault: Vault) -> None:  # noqa: F811
    (vault / "signet-sync.toml").write_text("watch.mod = 'polling'\n")
    remedy = told(vault, "settings", "watch.mod ignored", "did you mean watch.mode?")["remedy"]
    assert remedy.startswith("correct its name in ")
    (vault / "signet-sync.toml").write_text("log.level = 'DEBUG'\n")
    assert told(vault, "settings", "a workspace may not set this")["remedy"].startswith("move it to ")


def test_a_workspace_that_is_a_link_to_nowhere(vault: Vault) -> None:  # noqa: F811
    link = vault.root.parent / "link"
    link.symlink_to(vault.root.parent / "unmounted")
    for words in (["doctor"], ["status"]):
        assert "/unmounted, which does not exist" in call("--workspace", link, *words).out
    said = call("--workspace", vault.root.parent / "mistyped", "status").out
    assert "no such workspace" in said and "reindex" not in said


def test_copies_of_a_sync_service(vault: Vault) -> None:  # noqa: F811
    summary = next(vault.memory.glob("*--summary.md"))
    shutil.copy(summary, summary.with_stem(f"{summary.stem} (1)"))
    (vault / "MEMORY (conflicted copy).md").write_text("my own words\n")
    vault.call("reindex")
    remedy = told(vault, "copies", "2, the first MEMORY (conflicted copy).md")["remedy"]
    said = call(*shlex.split(remedy, comments=True)[1:]).out
    assert said.count("ignored conflict-copy") == 2


def test_a_hook_that_was_pasted_in_once_more(vault: Vault) -> None:  # noqa: F811
    settings = Path(os.environ["HOME"]) / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    assert vault.call("hooks", "install", "claude-code").code == 0
    whole = json.loads(settings.read_text())
    twice = {event: groups * 2 for event, groups in whole["hooks"].items()}
    settings.write_text(json.dumps({"hooks": twice}))
    do(told(vault, "hooks", "called more than once", "SessionStart")["remedy"])
    assert json.loads(settings.read_text()) == whole


def test_a_service_whose_program_is_gone(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with a_service(vault, tmp_path, monkeypatch):
        unit = next((Path(os.environ["HOME"]) / ".config/systemd/user").glob("signet-sync-vault-*.service"))
        whole = unit.read_text()
        program = whole.partition("\nExecStart=:")[2].split()[0]
        unit.write_text(whole.replace(f"ExecStart=:{program}", "ExecStart=:/gone/venv/bin/signet-sync"))
        left_alone(vault, "service-program")
        do(told(vault, "service-program", "/gone/venv/bin/signet-sync")["remedy"])
        assert unit.read_text() == whole

        script = tmp_path / "script"
        script.write_text("#!/gone/python3.9\n")
        script.chmod(0o700)
        unit.write_text(f"ExecStart=:{script} run\n")
        assert service.missing_program(ServiceState("signet-sync", None, str(unit), True, True)) == "/gone/python3.9"


@pytest.mark.usefixtures("quick")
def test_a_state_folder_that_is_deleted_under_the_agent(vault: Vault) -> None:  # noqa: F811
    with Inside(vault) as agent:
        agent.wait("watching")
        shutil.move(vault.state, vault.state.with_name("moved"))  # at once: the agent goes on writing
        shutil.rmtree(vault.state.with_name("moved"), ignore_errors=True)
        until(lambda: (vault.state / "heartbeat.json").exists() and agent.state == "watching", "it begins anew")
        # The heartbeat may come back before the agent has noticed, its lock only afterwards.
        until(lambda: state_dir.run_lock_holder(state_dir.locate(str(vault.root))), "it holds its new lock")
        until(lambda: vault.call("search", "nothing").code == 0, "its new database is filled")
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "it works")


def test_a_check_that_had_nothing_to_look_at(vault: Vault) -> None:  # noqa: F811
    git = ["git", "-C", str(vault.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    (vault / ".gitignore").write_text("memory/\n")
    do(shlex.join([*git, "init", "-q"]))
    do(shlex.join([*git, "add", "."]))
    do(shlex.join([*git, "commit", "-qm", "one"]))
    answer = vault.call("check", "--strict", "--changed-since", "HEAD")
    assert answer.code == 0 and "git ignores memory/" in answer.out
    shutil.rmtree(vault.memory)
    answer = vault.call("check", "--strict")
    assert answer.code == 0 and "nothing was checked" in answer.out
