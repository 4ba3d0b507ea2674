"""The door to git: what the history holds is told rightly; `test_repository` holds that nothing of it is run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from signet_sync.history import repository as history_repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

A, B = "memory/a.md", "memory/b.md"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A user without any git settings of their own."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def root(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    return vault


def git(root, *arguments, check=True):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(command, capture_output=True, check=check, stdin=subprocess.DEVNULL)


def put(root, path, text="text\n"):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def commit(root, path, text="text\n"):
    put(root, path, text)
    git(root, "--literal-pathspecs", "add", "-f", path)
    git(root, "commit", "-q", "-m", path)


@pytest.fixture
def repository(root):
    git(root, "init", "-q", "-b", "main")
    commit(root, A)
    return root


def holds(root, *paths):
    return history_repository.holds(str(root), paths)


def test_a_committed_path_is_contained(repository):
    assert holds(repository, A) == "contains"
    assert holds(repository, B) == "clean"
    assert holds(repository, B, A) == "contains"
    assert holds(repository) == "clean"


def test_a_path_that_was_deleted_since_is_contained_and_one_never_committed_is_not(repository):
    git(repository, "rm", "-q", A)
    git(repository, "commit", "-q", "-m", "gone")
    put(repository, B)
    git(repository, "add", B)
    assert (holds(repository, A), holds(repository, B)) == ("contains", "clean")


@pytest.mark.parametrize("merged", [True, False])
def test_other_branches_count_even_where_a_merge_hides_them(repository, merged):
    """A file that came and went on a branch leaves no trace in the simplified history of the merge."""
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, B)
    git(repository, "rm", "-q", B)
    git(repository, "commit", "-q", "-m", "gone")
    git(repository, "checkout", "-q", "main")
    commit(repository, "other.md")
    if merged:
        git(repository, "merge", "-q", "--no-ff", "-m", "merge", "side")
        git(repository, "branch", "-D", "side")
    git(repository, "reflog", "expire", "--expire=now", "--all")
    assert holds(repository, B) == "contains"


def test_a_commit_that_was_amended_away_counts_while_the_reflog_has_it(repository):
    commit(repository, B)
    git(repository, "rm", "-q", B)
    git(repository, "commit", "-q", "--amend", "--allow-empty", "-m", "never happened")
    assert holds(repository, B) == "contains"
    git(repository, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    assert holds(repository, B) == "clean"


@pytest.mark.parametrize(
    "name", ["*.md", "[ab].md", ":(top)x.md", "!x.md", "sp ace.md", "-x.md", "caf\u00e9.md", "q?.md"]
)
def test_names_are_names_and_no_patterns(repository, name):
    assert holds(repository, name) == holds(repository, f"memory/{name}") == "clean"
    commit(repository, f"memory/{name}")
    assert holds(repository, f"memory/{name}") == "contains"
    assert holds(repository, name) == "clean"


def test_names_that_are_no_utf8(repository):
    try:
        with open(os.fsencode(repository) + b"/memory/\xff.md", "wb") as handle:
            handle.write(b"x")
    except OSError:
        pytest.skip("this file system takes only some names")
    git(repository, "add", ".")
    assert holds(repository, "memory/\udcff.md") == "clean"
    git(repository, "commit", "-q", "-m", "odd")
    assert holds(repository, "memory/\udcff.md") == "contains"
    put(repository, ".gitignore", "*.md\n")
    assert history_repository.ignored(str(repository), ["memory/\udcff.md", "x"]) == {"memory/\udcff.md"}


@pytest.mark.parametrize("folder", ["agents", " my notes ", "caf\u00e9", "*"])
def test_the_workspace_may_be_a_part_of_the_repository(root, folder):
    git(root, "init", "-q")
    inner = root / folder
    commit(root, f"{folder}/{A}")
    commit(root, B)
    assert holds(inner, A) == "contains"
    assert holds(inner, B) == "clean"
    put(root, ".gitignore", "*.log\n")
    put(inner, ".gitignore", "/memory/b.md\n")
    assert history_repository.ignored(str(inner), [A, B, "x.log"]) == {B, "x.log"}


def test_without_a_repository_or_a_commit(root):
    assert holds(root, A) == "no-repository" == holds(root)
    assert history_repository.ignored(str(root), [A]) == frozenset()
    git(root, "init", "-q")
    assert holds(root, A) == "clean"


@pytest.mark.parametrize("damage", ["HEAD", "objects", "gitfile", "config"])
def test_a_repository_that_cannot_be_read_is_unknown(repository, damage):
    dot = repository / ".git"
    if damage == "HEAD":
        (dot / "HEAD").write_text("nonsense\n")
    elif damage == "config":
        (dot / "config").write_text("[core\n")
    else:
        shutil.rmtree(dot / "objects" if damage == "objects" else dot)
        (dot / "objects").mkdir() if damage == "objects" else dot.write_text("gitdir: nowhere\n")
    assert holds(repository, A) == "unknown"
    assert history_repository.ignored(str(repository), [A]) == frozenset()


def test_without_git(repository, root, monkeypatch, tmp_path):
    (tmp_path / "plain").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "plain"))
    assert holds(repository, A) == "unknown"
    assert holds(tmp_path / "plain", A) == "no-repository"
    assert history_repository.ignored(str(repository), [A]) == frozenset()


def test_ignored_paths_follow_the_rules_of_the_repository(repository):
    put(repository, ".gitignore", "*.db\n/private/\n!keep.db\nmemory/b.md\n")
    put(repository, "memory/.gitignore", "secret-*\n")
    (repository / ".git/info/exclude").write_text("excluded.md\n")
    asked = ["x.db", "keep.db", "private/deep/a.md", A, B, "memory/secret-1.md", "excluded.md", "two\nlines.db"]
    assert history_repository.ignored(str(repository), asked) == set(asked) - {"keep.db", A}
    assert history_repository.ignored(str(repository), []) == frozenset()
    assert history_repository.ignored(str(repository), [A]) == frozenset()
    put(repository, ".gitignore", "memory/\n")
    assert history_repository.ignored(str(repository), [A]) == {A}, "though it is tracked"


@pytest.mark.parametrize("how", ["replace", "graft"])
def test_what_stands_in_for_a_commit_hides_nothing(repository, how):
    git(repository, "rm", "-q", A)
    git(repository, "commit", "-q", "-m", "gone")
    git(repository, "reflog", "expire", "--expire=all", "--all")
    if how == "replace":
        git(repository, "replace", "--graft", "HEAD")
    else:
        head = git(repository, "rev-parse", "HEAD").stdout.decode()
        (repository / ".git/info").mkdir(exist_ok=True)
        (repository / ".git/info/grafts").write_text(head)
    assert git(repository, "rev-list", "--all", "--", A).stdout == b"", "it hides nothing"
    assert holds(repository, A) == "contains"


def test_promised_objects_are_not_fetched(repository, tmp_path):
    """A partial clone fetches what it lacks, by any program that its remote names; we would rather not know."""
    canary = tmp_path / "canary"
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {canary}",
        "remote.origin.uploadpack": f"touch {canary};",
        "protocol.ext.allow": "always",
    }.items():
        git(repository, "config", name, value)
    tree = git(repository, "rev-parse", "HEAD:memory").stdout.decode().strip()
    top = git(repository, "rev-parse", "HEAD^{tree}").stdout.decode().strip()
    for name in (tree, top):
        (repository / ".git/objects" / name[:2] / name[2:]).unlink()
    git(repository, "rev-list", "--all", "--", A, check=False)
    assert canary.exists(), "the trap is not armed"
    canary.unlink()
    assert holds(repository, A) == "unknown"
    assert not canary.exists()


def test_asking_writes_nothing(repository):
    def state():
        return {p: (os.lstat(p).st_mtime_ns, os.lstat(p).st_ino) for p in [repository, *Path(repository).rglob("*")]}

    put(repository, A, "changed\n")
    before = state()
    holds(repository, A, B)
    history_repository.ignored(str(repository), [A, B])
    assert state() == before
