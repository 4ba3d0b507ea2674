"""The history through the command line, attacked: trapped, damaged, locked and vanishing repositories."""

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from history_vault import HistoryVault
from hostile_repositories import REFUSED, RUN, Traps
from workbench import NOW, Vault, contents, numbered

from signet_sync.history import commit, repository

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
    return filled(Vault(tmp_path / "vault"))


def filled(vault):
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


def refused(vault, *arguments):
    answer = vault.call(*arguments)
    assert answer.code == 2, answer
    assert answer.json["error"]["hint"]
    return answer.json["error"]["code"]


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
        [sys.executable, "-c", CHILD, lines],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(COMMANDS), run
    assert [code for code, _, _ in answers[:-1]] == [0] * (len(COMMANDS) - 1), answers
    told = [json.loads(out) for _, out, _ in answers]
    assert told[0]["ok"] and told[2]["ok"]
    assert told[3]["git_history"] == "contains"  # git itself was asked, and found on the way that is not the trap's
    assert traps.fired() == [] and not (tmp_path / "nowhere").exists()


# `test_repository` holds the door to all of them.
@pytest.mark.parametrize("name", ["include of a pipe", ".git file pointing outside"])
def test_what_leads_elsewhere_is_refused_whatever_is_asked(vault, tmp_path, name):
    traps = Traps(tmp_path / "traps")
    REFUSED[name](HistoryVault(vault.root), traps)
    before = contents(tmp_path, but=[".signet", "state"])
    for command in COMMANDS[:3]:
        assert refused(vault, *command) == "unsafe-repository"
    after = contents(tmp_path, but=[".signet", "state"])
    assert {path: raw for path, raw in after.items() if path in before} == before and traps.fired() == []
    assert done(vault, *COMMANDS[3])["git_history"] in ("unknown", "clean")  # the session goes all the same
    assert len(list(vault.memory.glob("*--summary.md"))) == 1 and traps.fired() == []


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


# ── somebody else, at the very same moment ──


@pytest.fixture
def past(tmp_path):
    past = HistoryVault(tmp_path / "past").begin()
    past.put("a.md", "one\n")
    past.commit()
    past.put("a.md", "two\n")
    return past


def test_a_repository_that_is_deleted_meanwhile_stays_deleted(past):
    with past.opened() as git:
        shutil.rmtree(past.root / ".git")
        with pytest.raises(repository.RepositoryRefused):
            commit.commit(git, str(past.root), subject="x", author=("a", "b"), now_us=past.now, cache={})
    assert not (past.root / ".git/HEAD").exists()


def test_a_branch_that_cannot_be_written_leaves_no_lock(past):
    (past.root / ".git/refs/heads/main").unlink()
    past.put(".git/refs/heads/main/deeper", "x")
    with pytest.raises(IsADirectoryError):
        past.commit()
    assert list((past.root / ".git").rglob("*.lock")) == []


def test_a_repository_put_in_its_place_is_not_taken_for_it(past, monkeypatch):
    """Between the look and the opening."""
    look = repository.inspect

    def exchanged(root, workspace_id):
        standing = look(root, workspace_id)
        os.rename(past.root / ".git", past.root.parent / "elsewhere")
        (past.root / ".git").symlink_to(past.root.parent / "elsewhere")
        return standing

    monkeypatch.setattr(repository, "inspect", exchanged)
    with pytest.raises(repository.RepositoryRefused) as found, past.opened():
        pass
    assert found.value.code == "unsafe-repository"


def test_folders_that_git_takes_away_while_we_look_are_no_danger(past):
    """What its packing emptied."""
    over = threading.Event()

    def toggle():
        while not over.is_set():
            for number in range(40):
                place = past.root / f".git/objects/{number:02}"
                with suppress(OSError):
                    place.mkdir()
                    place.rmdir()

    git_ = threading.Thread(target=toggle)
    git_.start()
    try:
        assert {repository.objection(str(past.root)) for _ in range(300)} == {""}
    finally:
        over.set()
        git_.join()


def test_a_person_at_work_and_we_do_not_lose_a_commit(past):
    """Commits by turns with a loop of a person's git, which takes the same locks."""
    script = "for i in 1 2 3 4 5 6; do echo $i > p$i.md; git add p$i.md && git commit -qm p$i; done; git gc -q"
    identity = {f"GIT_{who}_{what}": "p" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    person = subprocess.Popen(["sh", "-c", script], cwd=past.root, env={**os.environ, **identity}, **quiet)
    outcomes = []
    while person.poll() is None:
        past.put("a.md", f"{len(outcomes)}\n")
        try:
            outcomes.append("committed" if past.commit(f"ours {len(outcomes)}")[0] else "clean")
        except repository.RepositoryRefused as refused:
            assert refused.code == "history-busy"
            outcomes.append("busy")
    subjects = past.git("log", "--format=%s").splitlines()
    assert len(set(subjects)) == len(subjects)
    assert sum(subject.startswith("ours") for subject in subjects) == outcomes.count("committed")
    assert past.git("fsck", "--strict", "--no-dangling") == ""
    assert past.git("status", "--porcelain", "--", "a.md") in ("", " M a.md\n")
