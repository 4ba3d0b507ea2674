"""Opening the workspace's repository: booby-trapped ones are refused or harmless, and nothing they name is touched."""

import os
import shutil
import signal

import pytest
from history_vault import HistoryVault, git
from hostile_repositories import REFUSED, RUN, Traps

from signet_sync.history import repository
from signet_sync.history.repository import run_git

pytest.importorskip("pygit2")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="the traps are built with git")


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


# ── programs: they are not run ──


@pytest.mark.parametrize("name", RUN)
def test_no_program_is_run(past, traps, name):
    RUN[name](past, traps)
    assert past.look() == ""
    everything(past)
    assert repository.holds(str(past.root), ["a.md"]) == "contains"
    assert repository.ignored(str(past.root), ["a.md", "notes.txt"]) == {"notes.txt"}
    packed = run_git(str(past.root), str(past.root), "repack", "-d", "-q")
    assert packed is not None and packed.returncode == 0
    assert traps.fired() == []


ARMED = {
    "hooks": ["commit", "-qam", "x"],
    "hooks in a linked folder": ["commit", "-qam", "x"],
    "core.hooksPath": ["commit", "-qam", "x"],
    "filter clean": ["add", "a.md"],
    "filter smudge": ["checkout", "-f", "HEAD~1", "--", "a.md"],
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
        with pytest.raises(repository.RepositoryRefused) as refused:
            operation()
        assert refused.value.code == "unsafe-repository" and refused.value.message and refused.value.hint
    assert repository.holds(str(past.root), ["a.md"]) == "unknown"
    assert repository.ignored(str(past.root), ["a.md"]) == frozenset()
    assert traps.fired() == []


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_gits_own_files_in_the_workspace_are_not_followed(past, traps, name, kind):
    """A link to a pipe, or a pipe: whoever opened it would hang."""
    (past.root / name).unlink()
    (past.root / name).symlink_to(traps.pipe) if kind == "link" else os.mkfifo(past.root / name)
    past.put("ledger/b.md")
    everything(past)
    assert past.data("ledger/b.md") == b"text\n"


# ── where a history stands ──


def test_nothing_there(tmp_path):
    past = HistoryVault(tmp_path / "vault")
    assert past.look() == "no-repository"
    with pytest.raises(repository.RepositoryRefused) as refused:
        past.commit()
    assert (refused.value.code, refused.value.exit_code) == ("no-repository", 2)


def test_a_repository_further_up_is_not_ours(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "deep").mkdir()
    past = HistoryVault(tmp_path / "deep/vault")
    assert past.look() == "inside-repository"
    with pytest.raises(repository.RepositoryRefused) as refused:
        past.begin()
    assert refused.value.code == "inside-repository" and os.listdir(past.root) == []
    assert str(tmp_path.resolve()) in refused.value.message


def test_the_repository_is_its_owners_alone(past):
    assert (past.root / ".git").stat().st_mode & 0o777 == 0o700


def test_another_workspaces_history_is_not_ours(past):
    refused = repository.inspect(str(past.root), "another")
    assert refused.code == "existing-repository" and "copy" in refused.hint


def test_a_damaged_repository_is_told(past):
    for path in (past.root / ".git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"nonsense")
    with pytest.raises(repository.RepositoryRefused) as refused:
        past.commit()
    assert refused.value.code == "damaged-repository"


# ── the config ──


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
