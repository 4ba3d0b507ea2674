"""`--purge-history`: no object, no file of `.git` keeps a byte of what was removed; everything else stays as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, ROOT, Vault, sampled

from signet_sync.app.workspace import opened
from signet_sync.formats import managed_block
from signet_sync.history import purge_plan
from signet_sync.history.git import objects, packs
from signet_sync.settings.model import load

pygit2 = pytest.importorskip("pygit2")

CANARY = b"zxvcanary"
KEY = "zxvcanary-key-of-main"
GIT = shutil.which("git")
real_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Real git, as a person has it."""
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    environ = {**os.environ, **dict.fromkeys(names, "ada")}
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], input=stdin, capture_output=True, env=environ, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def enabled(vault: Vault, more: str = "") -> None:
    """Switches the history on, as a person does."""
    config = Path(os.environ["SIGNET_CONFIG"])
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[history]\nenabled = true\ntranscripts = true\n{more}")


def checkpoint(vault: Vault, note: str) -> None:
    answer = vault.call("checkpoint", "--json", "--now", NOW, note)
    assert answer.code == 0, answer
    assert answer.json["ok"], answer


def history(vault: Vault) -> dict[str, str]:
    """A vault with a history: a session that will go, one that stays, people's notes. Gives the paths of the first."""
    gone = vault.session(
        1,
        session_key=KEY,
        project="/home/ada/zxvcanary-project",
        body="# Work\n\n## Decisions\n\n- The zxvcanary lantern shall be lit at six every day.\n- zxvcanary wins.\n",
        memory_sentence="In lantern the zxvcanary retry loop of src/queue.py was bounded so that it ends.",
    )
    vault.session(2)
    (vault / "notes.md").write_text("# Mine\n\nMine alone.\n")
    vault.reindex()
    checkpoint(vault, "first")
    vault.session(3)
    page = vault / "MEMORY.md"
    page.write_text(page.read_text().replace("<!-- signet:begin -->", "My head.\n\n<!-- signet:begin -->"))
    vault.reindex()
    checkpoint(vault, f"about {KEY}")
    return gone


def entangled(vault: Vault) -> None:
    """What a person's git adds: another branch, tags, a stash, staged text, dangling objects, logs, a pack."""
    root = vault.root
    git(root, "tag", "-a", "-m", f"tagged\n\nthe day of {KEY}", "first-day")
    git(root, "tag", "light")
    git(root, "checkout", "-q", "-b", "other")
    (vault / "side.md").write_text("a side\n")
    git(root, "add", "side.md")
    git(root, "commit", "-q", "-m", f"session-close: {KEY}\n\n- {KEY} (agent default)\nnothing else")
    git(root, "checkout", "-q", "main")
    (vault / "side.md").unlink(missing_ok=True)
    for number in (1, 2):  # two stashes: the older one stands in a log alone
        page = vault / "MEMORY.md"
        before = page.read_text()
        page.write_text(before.replace("My head.", f"My head {number}."))
        git(root, "stash")
    git(root, "gc", "-q")
    git(root, "hash-object", "-w", "--stdin", stdin=b"dangling zxvcanary words")
    (vault / "staged.md").write_text("nothing told here\n")
    git(root, "add", "staged.md")
    (vault / ".git/COMMIT_EDITMSG").write_text("about zxvcanary\n")
    (vault / ".git/ORIG_HEAD").write_bytes(git(root, "rev-parse", "HEAD"))


def everything(root: Path) -> dict[str, bytes]:
    """Every object as bytes, and every file of `.git`, loose objects decompressed."""
    found = {}
    repository = pygit2.Repository(str(root))
    for oid in repository.odb:
        kind, raw = repository.odb.read(oid)
        found[f"{kind} {oid}"] = raw
    for path in (root / ".git").rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            name = path.relative_to(root).as_posix()
            loose = name.startswith(".git/objects/") and len(path.parent.name) == 2
            found[name] = zlib.decompress(raw) if loose else raw
    return found


def holding(root: Path, *needles: bytes) -> list[str]:
    return sorted(name for name, raw in everything(root).items() if any(needle in raw for needle in needles))


def commits(vault: Vault) -> list[Any]:
    """The commits of the branch, newest first."""
    repository = pygit2.Repository(str(vault.root))
    return list(repository.walk(repository.head.target))


def purge(vault: Vault, *more: str):
    answer = vault.call("remove", KEY, "--purge-history", "--reason", "asked", "--yes", "--json", "--now", NOW, *more)
    assert answer.code == 0, answer
    return answer.json


def test_nothing_of_a_removed_session_is_left_in_the_history(tmp_path):
    vault = Vault(tmp_path / "vault")
    enabled(vault)
    gone = history(vault)
    if GIT:
        entangled(vault)
    assert holding(vault.root, CANARY)
    old = commits(vault)
    would = vault.call("remove", KEY, "--purge-history", "--dry-run", "--json", "--now", NOW).json["purge"][0]
    told = purge(vault)
    assert told["git_history"] == "clean"
    assert told["purged"]["commits"] == would["commits"] >= 2
    assert told["purged"]["objects"] > 5 and told["purged"]["left"] == []
    names = [Path(path).name.encode() for path in gone.values()]
    assert holding(vault.root, CANARY, told["session_token"].encode(), *names) == []
    new = commits(vault)
    assert [(c.author.name, c.author.email, c.author.time) for c in new] == [
        (c.author.name, c.author.email, c.author.time) for c in old
    ]
    assert [c.message.split("\n")[0] for c in new] == ["[removed]", "checkpoint: first", "workspace init"]
    for number in (2, 3):
        text = f"number{number}x".encode()
        kept = [path for path in vault.memory.iterdir() if path.is_file() and text in path.read_bytes()]
        assert kept and all((new[0].tree / "memory" / path.name).data == path.read_bytes() for path in kept)
    page = (new[0].tree / "MEMORY.md").data
    assert b"My head." in page and b"step number 3" in page and managed_block.is_generated(page)
    if GIT:
        assert git(vault.root, "fsck", "--strict", "--full") == b""
        assert git(vault.root, "reflog", "show", "main") == b""
        assert len(git(vault.root, "stash", "list").splitlines()) == 2
        assert b"My head 1." in git(vault.root, "show", "stash@{1}:MEMORY.md")
        assert git(vault.root, "tag", "-l", "--format=%(contents)", "first-day") == b"tagged\n\n[removed]\n\n"
        assert git(vault.root, "log", "-1", "--format=%B", "other") == b"[removed]\n\n[removed]\nnothing else\n\n"
        assert b"staged.md\n" in git(vault.root, "diff", "--cached", "--name-only")
    checkpoint(vault, "after")
    assert holding(vault.root, CANARY) == []
    if GIT:
        assert git(vault.root, "fsck", "--strict", "--full") == b""
        assert git(vault.root, "status", "--porcelain") == b""


def test_people_s_files_that_quote_it_stay_and_are_named(tmp_path):
    vault = Vault(tmp_path / "vault")
    enabled(vault)
    history(vault)
    mine = b"# Mine\n\nThe zxvcanary lantern shall be lit at six every day.\n"
    (vault / "notes.md").write_bytes(mine)
    page = vault / "MEMORY.md"
    page.write_text(page.read_text().replace("My head.", "The zxvcanary lantern shall be lit at six every day."))
    checkpoint(vault, "quoting")
    told = purge(vault)
    assert told["git_history"] == "contains"
    assert told["purged"]["left"] == ["MEMORY.md", "notes.md"] == told["foreign"]
    newest = commits(vault)[0].tree
    assert (newest / "notes.md").data == mine
    lines = [line for line in (newest / "MEMORY.md").data.splitlines() if CANARY in line]
    assert lines == [b"The zxvcanary lantern shall be lit at six every day."]


def test_a_forgotten_memory_leaves_every_older_page(tmp_path):
    vault = Vault(tmp_path / "vault")
    enabled(vault)
    vault.session(2)
    vault.reindex()
    for text in ("Ada calls the zxvcanary lantern her own.", "Ada wants short answers."):
        assert vault.call("remember", text, "--now", NOW).code == 0
    checkpoint(vault, "remembered")
    ((handle,),) = vault.rows("select id from memories where content like '%zxvcanary%'")
    answer = vault.call("forget", handle, "--purge-history", "--json", "--now", NOW)
    assert answer.code == 0 and answer.json["git_history"] == "clean", answer
    assert holding(vault.root, CANARY, handle.encode()) == []
    assert b"short answers" in (commits(vault)[0].tree / "MEMORY.md").data


def test_in_a_repository_of_somebody_else_only_our_ref_is_rewritten(tmp_path):
    vault = Vault(tmp_path / "vault")
    pygit2.init_repository(str(vault.root), initial_head="main")
    if GIT:
        (vault / "mine.md").write_text("The zxvcanary of my own\n")
        git(vault.root, "add", "mine.md")
        git(vault.root, "commit", "-q", "-m", "my zxvcanary")
    refused = vault.call("remove", "x", "--purge-history", "--reason", "r", "--yes", "--now", NOW)
    assert refused.code == 2
    enabled(vault, "adopt = true\n")
    history(vault)
    before = {name: raw for name, raw in everything(vault.root).items() if not name.startswith(("3 ", "2 ", "1 "))}
    told = purge(vault)
    assert told["git_history"] == "clean"  # the word in the person's file is no phrase of the session
    left = holding(vault.root, CANARY)
    assert all(
        b"my own" in everything(vault.root)[name] or b"my zxvcanary" in everything(vault.root)[name] for name in left
    )
    after = everything(vault.root)
    for name in (".git/HEAD", ".git/index", ".git/refs/heads/main", ".git/logs/HEAD", ".git/config"):
        assert before.get(name) == after.get(name), name
    if GIT:
        assert git(vault.root, "fsck", "--strict", "--full") == b""


TROUBLES = {
    # name: (exit code, where the reason stands, what it says)
    "none": (0, "nothing", "no git history"),
    "existing": (0, "nothing", "not ours"),
    "existing-holds": (1, "refused", "not ours"),
    "inside": (0, "nothing", "not ours"),
    "inside-holds": (1, "refused", "another repository"),
    "worktree": (1, "refused", "points elsewhere"),
    "link": (1, "refused", "neither file nor folder"),
    "empty": (1, "refused", "missing"),
    "truncated": (1, "refused", "or it is damaged"),
    "record": (1, "refused", "record of a begun purge"),
    "shallow": (1, "refused", "shallow clone"),
    "extra": (1, "refused", "pip install"),
    "busy": (1, "waiting", "index.lock"),
}


def troubled(vault: Vault, trouble: str, beside: Path) -> None:
    dot = vault / ".git"
    if trouble in ("existing", "worktree"):
        pygit2.init_repository(str(vault.root))
    if trouble.startswith("inside"):
        pygit2.init_repository(str(vault.root.parent))
    if trouble.endswith("-holds"):
        where = vault.root if trouble.startswith("existing") else vault.root.parent
        pygit2.init_repository(str(where))
        git(where, "add", ".")
        git(where, "commit", "-q", "-m", "mine")
    if trouble == "worktree":
        dot.rename(beside / "elsewhere")
        dot.write_text(f"gitdir: {beside / 'elsewhere'}\n")
    if trouble in ("link", "empty", "truncated", "record", "shallow", "extra", "busy"):
        enabled(vault)
        checkpoint(vault, "first")
    if trouble == "link":
        (dot / "refs").rename(beside / "refs")
        (dot / "refs").symlink_to(beside / "refs")
    elif trouble == "empty":
        shutil.rmtree(dot)
        dot.mkdir()
    elif trouble == "truncated":
        for path in (dot / "objects").rglob("*"):
            if path.is_file() and path.parent.name != "info":
                path.chmod(0o600)
                path.write_bytes(path.read_bytes()[:20])
    elif trouble == "record":
        (dot / "signet-purge").write_text("nonsense")
    elif trouble == "shallow":
        (dot / "shallow").write_text("")
    elif trouble == "busy":
        (dot / "index.lock").touch()
    elif trouble == "extra":
        (beside / "pygit2.py").write_text("raise ImportError\n")


@real_git
@pytest.mark.parametrize("trouble", sampled(TROUBLES))
def test_where_it_is_impossible_the_session_is_removed_all_the_same(tmp_path, trouble):
    vault = Vault(tmp_path / "vault")
    session = vault.session(1, session_key=KEY)
    vault.reindex()
    troubled(vault, trouble, tmp_path)
    code, place, says = TROUBLES[trouble]
    run, more = vault.call, {}
    if trouble == "extra":
        run, more = vault.spawn, {"environ": {"PYTHONPATH": f"{tmp_path}:{ROOT}"}}
    would = vault.call("remove", KEY, "--purge-history", "--dry-run", "--json", "--now", NOW)
    assert would.code == 0 and all((vault / path).exists() for path in session.values()), would
    answer = run("remove", KEY, "--purge-history", "--reason", "r", "--yes", "--json", "--now", NOW, **more)
    assert answer.code == code, answer
    purged = answer.json["purged"]
    assert says in purged[place] and [purged[one] for one in ("waiting", "refused", "nothing")].count(None) == 2
    assert not any((vault / path).exists() for path in session.values())
    assert len(list((vault / "memory/tombstones").glob("*.md"))) == 1
    assert vault.rows("select count(*) from memory_artifacts") == [(0,)]
    if code:
        assert answer.json["git_history"] in ("contains", "unknown")
    # It can be asked for again, with the reason still there.
    again = run("remove", KEY, "--purge-history", "--yes", "--now", NOW, **more)
    assert again.code == code and "removed earlier" in again.out, again
    if place == "refused":
        assert "--purge-history" in again.out


def test_what_held_up_a_purge_goes_and_it_is_finished(tmp_path):
    vault = Vault(tmp_path / "vault")
    enabled(vault)
    history(vault)
    (vault / ".git/index.lock").touch()
    answer = vault.call("remove", KEY, "--purge-history", "--reason", "r", "--yes", "--json", "--now", NOW)
    assert answer.code == 1 and answer.json["purged"]["waiting"] and holding(vault.root, CANARY)
    (vault / ".git/index.lock").unlink()
    vault.reindex()
    assert holding(vault.root, CANARY) == []
    assert not (vault / ".git/signet-purge").exists()


def test_a_memory_is_forgotten_where_its_history_cannot_be_purged(tmp_path):
    vault = Vault(tmp_path / "vault")
    enabled(vault)
    vault.session(2)
    vault.reindex()
    assert vault.call("remember", "Ada calls the zxvcanary lantern her own.", "--now", NOW).code == 0
    checkpoint(vault, "remembered")
    ((handle,),) = vault.rows("select id from memories")
    config = vault / ".git/config"
    held = config.read_text()
    config.write_text(held + "[include]\n\tpath = /elsewhere\n")
    answer = vault.call("forget", handle, "--purge-history", "--json", "--now", NOW)
    assert answer.code == 1 and answer.json["purged"]["refused"] and answer.json["git_history"] != "clean", answer
    assert vault.rows("select count(*) from memories") == [(0,)] and CANARY not in (vault / "MEMORY.md").read_bytes()
    config.write_text(held)
    answer = vault.call("forget", handle, "--purge-history", "--json", "--now", NOW)
    assert answer.code == 0 and answer.json["git_history"] == "clean" and holding(vault.root, CANARY) == [], answer


def test_a_purge_whose_removal_never_came_about_is_forgotten(tmp_path):
    vault = Vault(tmp_path / "vault")
    enabled(vault)
    history(vault)
    with opened(str(vault.root), load(vault.root)[0]) as workspace:
        note = purge_plan.note_of_sessions("default", "a" * 16, [])
        purge_plan.begin(workspace, lambda: purge_plan.PurgeRules([CANARY]), note, lambda: "contains")
    assert CANARY not in (vault / ".git/signet-purge").read_bytes()
    tip = commits(vault)[0].id
    vault.reindex()
    assert not (vault / ".git/signet-purge").exists()
    assert commits(vault)[0].id == tip


def test_a_signed_page_is_sealed_again():
    page = managed_block.block("one\ntwo\nthree")
    left = managed_block.without_lines(b"two\n" + page + b"two\n", lambda line: line == b"two")
    assert left == b"two\n" + managed_block.block("one\nthree") + b"two\n"
    assert managed_block.without_lines(b"two\n", lambda line: True) == b"two\n"
    torn = page.replace(b"one", b"four")
    assert not managed_block.is_generated(managed_block.without_lines(torn, lambda line: line == b"two"))


@pytest.mark.parametrize(("first", "every"), [(45, 1000), pytest.param(1, 1, marks=pytest.mark.slow)])
def test_killed_at_any_step_the_history_is_valid_and_the_next_pass_finishes(tmp_path, first, every):
    """Apart from the table of operations: it holds no repository, and only git tells whether one is valid."""
    vault = Vault(tmp_path / "before")
    enabled(vault)
    root = tmp_path / "vault"
    vault.root.rename(root)  # the runner puts copies of it where its state knows it
    vault = Vault(root)
    history(vault)
    if GIT:
        entangled(vault)
    shutil.copytree(root, tmp_path / "before", symlinks=True)
    shutil.copytree(os.environ["SIGNET_STATE"], tmp_path / "state-before", symlinks=True)
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}"}
    command = [sys.executable, str(ROOT / "tests/support/purge_runner.py"), str(tmp_path), KEY, str(first), str(every)]
    done = subprocess.run(command, env=environ, capture_output=True, timeout=900, check=False)
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr.decode()[-2000:], steps[-3:])
    assert [step for step in steps if step["wrong"]] == []
    assert len(steps) > 1 and steps[-1]["label"] == "end"


@pytest.mark.parametrize("limit", ["LOOSE_BYTES", "ROUND_BYTES"])
def test_many_objects_are_packed_by_their_differences(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(packs, limit, 9_000)
    repository = pygit2.init_repository(str(tmp_path), bare=True)
    random = [os.urandom(3_000) for _ in range(4)]
    texts = [text + ending for text in random for ending in (b"", b"one", b"two")]
    with packs.NewObjects(repository) as new:
        ids = [new.add(objects.BLOB, text) for text in (*texts, *texts)]
        assert not any(oid.hex() in repository for oid in ids) or limit == "ROUND_BYTES"
        new.flush()
    assert [repository.odb.read(pygit2.Oid(oid))[1] for oid in ids] == [*texts, *texts]
    folder = tmp_path / "objects"
    assert len(list(folder.glob("pack/*.pack"))) == len(list(folder.glob("pack/*.idx"))) and not list(folder.glob("??"))
    assert sum(path.stat().st_size for path in folder.glob("pack/*.pack")) < 18_000
    assert sorted(os.listdir(folder)) == ["info", "pack"]
