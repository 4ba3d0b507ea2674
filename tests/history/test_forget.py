"""`history forget`: no commit is left but one of the present files, and nothing of others goes unasked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from crash_runner import KILLED, Steps, command, forked
from history_vault import git
from workbench import NOW, Vault

from signet_sync.history.operations import filter_line
from signet_sync.storage import state_dir

pytest.importorskip("pygit2")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

WORD = "zxvcanary"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault whose history tells a word that no file has any more."""
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    vault = Vault(tmp_path / "vault")
    for text in (f"{WORD}\n", "clean\n"):
        (vault / "notes.md").write_text(text)
        assert vault.call("checkpoint", "--now", NOW).code == 0
    return vault


def told(vault: Vault) -> str:
    return git(vault.root, "log", "--all", "-p", "--reflog")


def forget(vault: Vault, *more: str, code: int = 0):
    answer = vault.call("history", "forget", "--json", "--now", NOW, *more)
    assert answer.code == code, answer
    return answer.json if not code else answer.json["error"]


def test_one_commit_of_what_is_there_is_left(vault: Vault) -> None:
    assert WORD in told(vault)
    assert forget(vault, code=2)["code"] == "usage"  # a person is asked, a script says --yes
    done = forget(vault, "--yes")
    assert (done["ok"], done["subject"]) == (True, "checkpoint: history forgotten")
    assert git(vault.root, "log", "--format=%s").split("\n")[:-1] == ["checkpoint: history forgotten", "workspace init"]
    assert WORD not in told(vault) and "+clean" in told(vault) and git(vault.root, "fsck", "--strict") == ""
    assert os.listdir(vault / ".signet/tmp") == [] and git(vault.root, "status", "--porcelain") == ""


OTHERS = {
    "1 commit of others": [("commit", "-q", "--allow-empty", "-m", "by a person")],
    "refs/heads/mine": [("branch", "mine")],
    "refs/tags/v1": [("tag", "v1")],
    "the remote origin": [("remote", "add", "origin", "https://example.org/x.git")],
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_ours_goes_only_where_that_is_said(vault: Vault, name: str) -> None:
    for arguments in OTHERS[name]:
        git(vault.root, *arguments)
    error = forget(vault, code=2)
    assert error["code"] == "not-only-ours" and name in error["message"] and "--yes" in error["hint"]
    assert WORD in told(vault)
    forget(vault, "--yes")
    assert WORD not in told(vault) and git(vault.root, "remote") == ""


def test_where_the_history_is_off_none_begins(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "false")
    assert forget(vault, "--yes")["reason"] == "history-disabled"
    assert not (vault / ".git").exists()
    assert forget(vault, "--yes", code=2)["code"] == "no-repository"


def test_nothing_goes_while_git_is_at_work(vault: Vault) -> None:
    (vault / ".git/index.lock").write_text("")
    assert forget(vault, "--yes", code=2)["code"] == "history-busy"
    assert WORD in told(vault)


def test_a_killed_one_is_finished_by_the_next(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = shutil.copytree(vault.root, tmp_path / "kept", symlinks=True)
    step, code = 1, KILLED
    while code == KILLED:
        shutil.rmtree(vault.root)
        shutil.copytree(kept, vault.root, symlinks=True)

        def killed(last: int = step) -> int:
            steps = Steps(last)
            for name in ("rename", "unlink", "rmdir"):
                steps.wrap(os, name)
            return command(str(vault.root), "history", "forget", "--yes", "--now", NOW)

        code = forked(killed)
        assert code in (0, KILLED)
        if vault.call("history", "forget", "--yes", "--now", NOW).code:  # it was all gone, and the commit is left
            assert vault.call("checkpoint", "--now", NOW).code == 0
        assert WORD not in told(vault) and not (vault / ".signet/tmp/history").exists()
        step += 25


def test_a_person_s_repository_gets_the_line_to_run(tmp_path: Path) -> None:
    inner = tmp_path / "my work" / "vault"
    inner.mkdir(parents=True)
    key = state_dir.locate(str(inner)).key
    assert filter_line(str(inner), key, ["memory/a.md"]) == ""
    git(tmp_path / "my work", "init", "-q")
    line = filter_line(str(inner), key, ["memory/a b.md", "MEMORY.md"])
    assert line == "git filter-repo --invert-paths --path 'vault/memory/a b.md' --path vault/MEMORY.md"
