"""The history through the command line, attacked: trapped and damaged repositories."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from history_vault import HistoryVault
from hostile_repositories import RUN, Traps
from workbench import NOW, Vault, contents, numbered

pytest.importorskip("pygit2")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="the traps are built with git")

SESSION = numbered(1)["session_id"]
COMMANDS = (
    ("checkpoint", "--json", "trapped"),
    ("history", "--json", "--diff"),
    ("history", "forget", "--yes", "--json", "--now", NOW),
    ("remove", SESSION, "--reason", "asked", "--yes", "--json", "--now", NOW),
    ("check", "--json"),
)

# One process, as the first one of a user with this environment.
CHILD = """
import json, sys
from workbench import call
for arguments in json.loads(sys.argv[1]):
    answer = call(*arguments)
    print(json.dumps([answer.code, answer.out, answer.err]))
"""


@pytest.fixture
def vault(tmp_path, monkeypatch):
    """A vault of two sessions with a history of three commits."""
    monkeypatch.setenv("SIGNET_HISTORY_ENABLED", "true")
    vault = Vault(tmp_path / "vault")
    for number in (1, 2):
        vault.session(number)
    vault.reindex()
    for text in ("one\n", "two\n"):
        (vault / "a.md").write_text(text)
        done(vault, "checkpoint", "--json", text.strip())
    return vault


def done(vault, *arguments):
    answer = vault.call(*arguments)
    assert answer.code == 0, answer
    return answer.json


# ── traps ──


def hostile_home(folder, traps):
    """An environment of which git would read and run everything; the first `git` on the way is a trap, too."""
    home = folder / "hostile"
    pipe, program = str(traps.pipe), str(traps.program("program"))
    for name in (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(home / name)
    (folder / "templates/hooks").mkdir(parents=True)
    shutil.copy(program, folder / "templates/hooks/post-commit")
    (folder / "relative").mkdir()
    shutil.copy(traps.program("git"), folder / "relative/git")
    return {
        **{f"GIT_{name}": program for name in ("EXTERNAL_DIFF", "PAGER", "EDITOR", "SSH_COMMAND", "ASKPASS")},
        **{f"GIT_{name}": pipe for name in ("CONFIG", "CONFIG_GLOBAL", "CONFIG_SYSTEM", "INDEX_FILE")},
        **{f"GIT_{name}": str(folder / "nowhere") for name in ("DIR", "WORK_TREE", "OBJECT_DIRECTORY", "COMMON_DIR")},
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": program,
        "GIT_TEMPLATE_DIR": str(folder / "templates"),
        "GIT_TRACE": str(traps.folder / "marks/trace"),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "PATH": f"relative:.:{os.environ['PATH']}",
    }


def test_no_trap_fires_whatever_is_asked(vault, tmp_path):
    """All traps at once, those of the repository and those of its user."""
    traps = Traps(tmp_path / "traps")
    for arm in RUN.values():
        arm(HistoryVault(vault.root), traps)
    environ = {**os.environ, **hostile_home(tmp_path, traps), "PYTHONPATH": os.pathsep.join(sys.path)}
    lines = json.dumps([["--workspace", str(vault.root), *command] for command in COMMANDS])
    run = subprocess.run(
        [sys.executable, "-c", CHILD, lines], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(COMMANDS), run
    assert [code for code, _, _ in answers[:-1]] == [0] * (len(COMMANDS) - 1), answers
    told = [json.loads(out) for _, out, _ in answers]
    assert told[0]["ok"] and told[2]["ok"]
    # git itself was asked, and found on the way that is not the trap's
    assert told[3]["removals"][0]["git_history"] == "contains"
    assert traps.fired() == [] and not (tmp_path / "nowhere").exists()


# ── damage ──


def test_a_head_that_names_no_branch_leads_nowhere(vault, tmp_path):
    (tmp_path / "victim").write_text("mine\n")
    (vault / "a.md").write_text("three\n")
    for head in ("ref: refs/../../../victim", "ref: refs/heads/../../hooks/post-commit", "ref: index", "garbage"):
        (vault / ".git/HEAD").write_text(f"{head}\n")
        before = contents(vault.root, but=[".signet"])
        answer = vault.call("checkpoint", "--json", "x")
        assert (answer.code, answer.json["reason"]) == (2, "history-busy"), head
        assert "git switch main" in answer.err and len(done(vault, "history", "--json")["commits"]) == 3
        assert contents(vault.root, but=[".signet"]) == before
    assert (tmp_path / "victim").read_text() == "mine\n"
