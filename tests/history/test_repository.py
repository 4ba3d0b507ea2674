"""The door to the workspace's repository: booby-trapped ones are refused or harmless; what git is asked is told.

Nothing that a repository names is touched, and asking writes nothing.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from history_vault import HistoryVault, git
from hostile_repositories import REFUSED, RUN, Traps

from signet_sync.history import repository

pytest.importorskip("pygit2")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="the traps are built with git")

A, B = "memory/a.md", "memory/b.md"


@pytest.fixture(autouse=True)
def never_for_ever():
    """Whoever opens a pipe that nobody writes is woken up, and has failed."""

    def late(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def traps(tmp_path):
    return Traps(tmp_path / "traps")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    past = HistoryVault(tmp_path_factory.mktemp("made") / "vault").begin()
    for text in ("one\n", "two\n", "three\n"):
        past.put("a.md", text)
        if text != "three\n":
            past.commit(text.strip())
    return past


@pytest.fixture
def past(made, tmp_path):
    """A vault with a history of two commits, and something to commit."""
    return made.copied(tmp_path / "vault")


def everything(past):
    """Every operation of the history."""
    past.begin()
    assert past.commit("trapped")[0]
    assert past.log()[0].subject == "trapped"
    assert "+three" in past.diff("HEAD~1")[0]


def refused(code, act):
    with pytest.raises(repository.RepositoryRefused) as found:
        act()
    assert found.value.code == code and found.value.exit_code == 2 and found.value.message
    return found.value


# ── programs: test_history_attacked.py runs all that is asked over these traps ──

ARMED = {
    "hooks": ["commit", "-qam", "x"],
    "hooks in a linked folder": ["commit", "-qam", "x"],
    "core.hooksPath": ["commit", "-qam", "x"],
    "filter clean": ["add", "a.md"],
    "filter process": ["add", "a.md"],
    "fsmonitor": ["status"],
    "external diff": ["diff"],
    "textconv": ["diff"],
    "gpg": ["commit", "-qam", "x"],
    "pager and editor": ["commit", "--amend"],
}


@pytest.mark.parametrize("name", ARMED)
def test_the_traps_are_armed(past, traps, name):
    """The same repository in the hands of git: the program is run."""
    RUN[name](past, traps)
    git(past.root, *ARMED[name], check=False)
    assert traps.fired()


# ── what leads elsewhere, or would hold us: it is refused ──


@pytest.mark.parametrize("name", REFUSED)
def test_what_leads_elsewhere_is_refused(past, traps, name):
    REFUSED[name](past, traps)
    assert past.look() == "unsafe-repository"
    for operation in (past.begin, past.commit, past.log):
        assert refused("unsafe-repository", operation).hint
    assert repository.holds(str(past.root), ["a.md"]) == "unknown"
    assert repository.find_ignored(str(past.root), ["a.md"]) == frozenset()
    assert traps.fired() == []


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_gits_own_files_in_the_workspace_are_not_followed(past, traps, kind):
    """A link to a pipe, or a pipe: whoever opened it would hang."""
    for name in (".gitignore", ".gitattributes"):
        (past.root / name).unlink()
        (past.root / name).symlink_to(traps.pipe) if kind == "link" else os.mkfifo(past.root / name)
    past.put("ledger/b.md")
    everything(past)
    assert past.data("ledger/b.md") == b"text\n"


def test_a_repository_put_in_its_place_is_not_taken_for_it(past, monkeypatch):
    """Between the look and the opening."""
    look = repository.inspect

    def exchanged(root, workspace_id):
        standing = look(root, workspace_id)
        os.rename(past.root / ".git", past.root.parent / "elsewhere")
        (past.root / ".git").symlink_to(past.root.parent / "elsewhere")
        return standing

    monkeypatch.setattr(repository, "inspect", exchanged)
    refused("unsafe-repository", past.log)


# ── where a history stands ──


def test_what_is_not_ours_is_told(past, tmp_path):
    assert (past.root / ".git").stat().st_mode & 0o777 == 0o700
    other = repository.inspect(str(past.root), "another")
    assert other.code == "existing-repository" and "copy" in other.hint
    for path in (past.root / ".git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"nonsense")
    refused("damaged-repository", past.commit)
    none = HistoryVault(tmp_path / "none")
    assert none.look() == "no-repository"
    refused("no-repository", none.commit)
    git(tmp_path, "init", "-q")
    assert none.look() == "inside-repository"
    assert str(tmp_path.resolve()) in refused("inside-repository", none.begin).message and os.listdir(none.root) == []


@pytest.mark.parametrize(
    "text",
    [
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/includes.git ; x\n',
        '[user]\n\tname = "Ada # Lovelace" ; poet\'s daughter\n\temail=a@b\n[a "b\\"c"]\nflag\n',
        "\r\n# comment\r\n[core]\r\n\tignorecase = true\r\n\trepositoryFormatVersion = 1\r\n",
        "",
    ],
)
def test_an_ordinary_config_is_read(past, text):
    (past.root / ".git/config").write_text(text)
    assert past.look() == ""


# ── what git is asked, in anybody's repository ──


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A person's repository with one file, and no git settings but its own."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ada@example.org")
    root = tmp_path / "vault"
    root.mkdir()
    done(root, f"git init -q -b main; {COMMIT.format(A)}")
    return root


def done(root, script):
    """What a person does at a shell."""
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def holds(root, *paths):
    return repository.holds(str(root), paths)


def ignored(root, *paths):
    return repository.find_ignored(str(root), paths)


COMMIT = "mkdir -p \"$(dirname -- '{0}')\"; echo text > '{0}'; git --literal-pathspecs add -f '{0}'; git commit -qm x; "
GONE = "git rm -q {}; git commit -qm gone; "
EXPIRE = "git reflog expire --expire=now --expire-unreachable=now --all; "
# A file that came and went on a branch leaves no trace in the simplified history of a merge.
SIDE = f"git checkout -qb side; {COMMIT.format(B)}{GONE.format(B)}git checkout -q main; {COMMIT.format('c.md')}"
MERGED = "git merge -q --no-ff -m merge side; git branch -qD side; "
AMENDED = f"{COMMIT.format(B)}git rm -q {B}; git commit -q --amend --allow-empty -m never; "


@pytest.mark.parametrize(
    ("script", "path", "answer"),
    [
        ("", A, "contains"),
        (f"echo x > {B}; git add {B}", B, "clean"),
        (GONE.format(A), A, "contains"),
        (SIDE + EXPIRE, B, "contains"),
        (SIDE + MERGED + EXPIRE, B, "contains"),
        (AMENDED, B, "contains"),  # while the reflog has it
        (AMENDED + EXPIRE, B, "clean"),
        (f"{GONE.format(A)}{EXPIRE}mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts", A, "contains"),
        ("rm -r .git", A, "no-repository"),
        ("echo nonsense > .git/HEAD", A, "unknown"),
        ("echo '[core' > .git/config", A, "unknown"),
        ("rm -r .git/objects; mkdir .git/objects", A, "unknown"),
        ("rm -r .git; echo 'gitdir: nowhere' > .git", A, "unknown"),
    ],
)
def test_what_a_history_contains(theirs, script, path, answer):
    done(theirs, script)
    assert holds(theirs, path) == answer
    if answer in ("unknown", "no-repository"):
        assert ignored(theirs, path) == frozenset()


def test_names_are_names_and_no_patterns(theirs):
    names = ["*.md", "[ab].md", ":(top)x.md", "!x.md", "sp ace.md", "-x.md", "caf\u00e9.md", "q?.md"]
    for name in names:
        assert holds(theirs, name) == holds(theirs, f"memory/{name}") == "clean", name
    done(theirs, COMMIT.format("x.md") + "".join(COMMIT.format(f"memory/{name}") for name in names))
    for name in names:
        assert holds(theirs, f"memory/{name}") == holds(theirs, B, f"memory/{name}") == "contains", name
        assert holds(theirs, name) == holds(theirs) == "clean", name


def test_ignored_paths_follow_the_rules_of_the_repository(theirs, tmp_path, monkeypatch):
    (theirs / ".gitignore").write_text("*.db\n/private/\n!keep.db\nmemory/b.md\n")
    (theirs / "memory/.gitignore").write_text("secret-*\n")
    (theirs / ".git/info/exclude").write_text("excluded.md\n")
    asked = ["x.db", "keep.db", "private/deep/a.md", A, B, "memory/secret-1.md", "excluded.md", "two\nlines.db"]
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in Path(theirs).rglob("*")}
    assert ignored(theirs, *asked) == set(asked) - {"keep.db", A}
    assert ignored(theirs) == ignored(theirs, A) == frozenset() and holds(theirs, A, B) == "contains"
    assert {path: (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in Path(theirs).rglob("*")} == before
    (theirs / ".gitignore").write_text("memory/\n")
    assert ignored(theirs, A) == {A}, "though it is tracked"
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert holds(theirs, A) == "unknown" and ignored(theirs, A) == frozenset()
    assert holds(tmp_path, A) == "no-repository"


def test_promised_objects_are_not_fetched(theirs, tmp_path):
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
        git(theirs, "config", name, value)
    for name in ("HEAD:memory", "HEAD^{tree}"):
        tree = git(theirs, "rev-parse", name).strip()
        (theirs / ".git/objects" / tree[:2] / tree[2:]).rename(tmp_path / tree)
    git(theirs, "rev-list", "--all", "--", A, check=False)
    assert canary.exists(), "the trap is not armed"
    canary.unlink()
    assert holds(theirs, A) == "unknown" and not canary.exists()
