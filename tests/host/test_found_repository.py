"""The repository of a folder, read from files of git's: real ones, and hostile ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from signet_sync.formats.ids import origin_of
from signet_sync.host import repository
from signet_sync.host.repository import Repository, list_standing

ORIGIN = "https://example.org/ada/lantern.git"
NAME = "example.org/ada/lantern"


def resolve(cwd: str) -> Repository | None:
    """What is found of a folder, but for the branch."""
    found = repository.resolve(cwd)
    return found and found._replace(branch=None)


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(where: Path, *arguments: str) -> None:
    who = {f"GIT_{role}_{part}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    allowed = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
    environ = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *allowed, *arguments], cwd=where, env=environ, check=True, capture_output=True, timeout=60)


def repository_at(place: Path, config: str = "") -> Path:
    """A repository as far as it is looked at, made by hand."""
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place / ".git" / "config").write_text(config)
    return place


def with_origin(place: Path, url: str = ORIGIN) -> Path:
    return repository_at(place, f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n')


@pytest.fixture
def made(tmp_path: Path) -> Path:
    place = tmp_path / "lantern"
    place.mkdir()
    git(place, "init")
    git(place, "commit", "--allow-empty", "-m", "one")
    git(place, "remote", "add", "origin", ORIGIN)
    return place


# ── repositories that git makes ──


@needs_git
def test_each_worktree_has_its_branch_and_git_lists_which_are_there(made: Path) -> None:
    tree, detached = made.parent / "tree", made.parent / "detached"
    git(made, "worktree", "add", "-b", "ada/wick", str(tree))
    git(made, "worktree", "add", "--detach", str(detached))
    (tree / "docs").mkdir()
    branches = [found and found.branch for found in map(repository.resolve, map(str, (made, tree / "docs", detached)))]
    assert branches == ["main", "ada/wick", None]
    (made / ".git" / "secret").write_text("x")
    hostile = {"../../secret", "../heads/main", "/etc/passwd", "main/", "ada", "", "a..b", "main\n", ".", "ada//wick"}
    for packed in (False, True):
        if packed:
            git(made, "pack-refs", "--all")
        for place in (made, tree, detached):
            assert list_standing(str(place), {"main", "ada/wick", "gone"} | hostile, set()) == {"main", "ada/wick"}
            assert list_standing(str(place), set(), {str(tree), str(detached), str(made), "/etc"}) == {
                str(tree),
                str(detached),
            }
    git(made, "worktree", "remove", "--force", str(tree))
    git(made, "branch", "-D", "ada/wick")
    assert list_standing(str(made), {"main", "ada/wick"}, {str(tree)}) == {"main"}
    assert list_standing(str(made.parent), {"main"}, set()) == list_standing(str(tree), {"main"}, set()) == set()


@needs_git
def test_a_repository_its_folders_and_what_is_beside_it(made: Path) -> None:
    (made / "src" / "deep").mkdir(parents=True)
    assert resolve(str(made)) == Repository(str(made), NAME, "")
    assert resolve(f"{made}/") == Repository(str(made), NAME, "")
    assert resolve(str(made / "src" / "deep")) == Repository(str(made), NAME, "src/deep")
    assert resolve(f"{made}/src/../src") == Repository(str(made), NAME, "src")
    assert resolve(str(made / ".git")) is not None
    assert resolve(str(made.parent)) is None


@needs_git
def test_worktrees_of_a_bare_repository(made: Path, tmp_path: Path) -> None:
    for name, root in ((".bare", "project"), ("project.git", "project/project.git")):
        shutil.rmtree(tmp_path / "project", ignore_errors=True)
        (tmp_path / "project").mkdir()
        bare = tmp_path / "project" / name
        git(tmp_path, "clone", "--bare", str(made), str(bare))
        git(bare, "remote", "set-url", "origin", ORIGIN)
        git(bare, "worktree", "add", str(tmp_path / "project" / "main"))
        assert resolve(str(tmp_path / "project" / "main")) == Repository(str(tmp_path / root), NAME, "")


@needs_git
def test_a_submodule_is_a_repository_of_its_own(made: Path, tmp_path: Path) -> None:
    wick = tmp_path / "wick"
    wick.mkdir()
    git(wick, "init")
    git(wick, "commit", "--allow-empty", "-m", "one")
    git(made, "submodule", "add", str(wick), "parts/wick")
    git(made / "parts" / "wick", "remote", "set-url", "origin", "git@example.org:ada/wick")
    found = resolve(str(made / "parts" / "wick"))
    assert found == Repository(str(made / "parts" / "wick"), "example.org/ada/wick", "")
    assert resolve(str(made / "parts")) == Repository(str(made), NAME, "parts")


@needs_git
def test_a_clone_and_a_moved_one(made: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", str(made), str(clone))
    assert resolve(str(clone)) == Repository(str(clone), None, "")
    git(clone, "remote", "set-url", "origin", "ssh://git@EXAMPLE.org:22/ada/lantern")
    assert resolve(str(clone)) == Repository(str(clone), NAME, "")
    moved = clone.rename(tmp_path / "elsewhere")
    assert resolve(str(moved)) == Repository(str(moved), NAME, "")
    git(clone.parent, "init", str(tmp_path / "new"))
    assert resolve(str(tmp_path / "new")) == Repository(str(tmp_path / "new"), None, "")


# ── origins ──


@pytest.mark.parametrize(("url", "origin"), [
    *((url, NAME) for url in (
        ORIGIN, "git@example.org:ada/lantern.git", "git@EXAMPLE.org:/ada/lantern/", "example.org:ada/lantern",
        "ssh://git@example.org:22/ada//lantern.git/", "https://ada:s3cret@example.org:443/ada/lantern",
        "https://s3cret@example.org./ada/lantern?token=s3cret#s3cret", "http://example.org:80/ada/lantern",
        "git://example.org:9418/ada/lantern", "https://Example.org/Ada/Lantern.git",
    )),
    *((f"{scheme}{name}/ada/lantern", f"{name}/ada/lantern") for scheme, name in (
        ("https://", "example.org:8443"), ("ssh://git@", "example.org:2222"), ("https://", "[2001:db8::1]:8443"),
    )),
    ("git@[2001:db8::1]:ada/lantern", "[2001:db8::1]/ada/lantern"),
    # A password with a slash, and what else is no usual URL.
    *((url, None) for url in (
        "https://ada:s3/cret@example.org/ada/lantern", "https://ada:12/s3cret@example.org/ada/lantern",
        "https://example.org", "https://example.org/../lantern", "https://exa mple.org/lantern",
        "https://example.org/a\x1b[31m", f"https://example.org/{'x' * 2_000}", "C:\\code\\lantern", "lantern", "",
        "/srv/lantern.git", "../lantern", "file://example.org/ada/lantern.git",
    )),
])  # fmt: skip
def test_one_origin_in_all_its_forms(tmp_path: Path, url: str, origin: str | None) -> None:
    assert origin_of(url) == origin
    if url.isprintable() and "#" not in url and "\\" not in url and not url.startswith(("/", "..")):
        found = resolve(str(with_origin(tmp_path / "lantern", url)))
        assert found == Repository(str(tmp_path / "lantern"), origin, "")
        assert "s3" not in str(found[1])


@needs_git
def test_a_worktree_of_the_home_folders_repository(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(made, "worktree", "add", str(made / "tree"))
    monkeypatch.setenv("HOME", str(made))
    assert resolve(str(made / "tree")) == Repository(str(made / "tree"), NAME, "")


def test_a_folder_that_says_itself_that_it_is_a_worktree(tmp_path: Path) -> None:
    victim, place = with_origin(tmp_path / "victim"), with_origin(tmp_path / "x")
    (place / ".git" / "gitdir").write_text(f"{place}/.git")
    (place / ".git" / "commondir").write_text(f"{victim}/.git")
    assert resolve(str(place)) is None


SHAPES = (
    "https://{0}@example.org/ada/lantern", "https://ada:{0}@example.org/ada/lantern", "{0}@example.org:ada/lantern",
    "ssh://ada:{0}@example.org:22/ada/lantern", "https://example.org/{0}@ada/lantern", "https:/ada:{0}/lantern",
    "https://example.org/ada/lantern?private={0}", "https://example.org/ada/lantern#{0}", "HTTPS:/{0}/lantern",
    "https://ada:12/{0}?y@example.org/ada", "git@example.org:ada:{0}@lantern", "gcrypt::{0}:x@example.org/lantern",
    "ext::curl --user ada:{0} https://example.org/%S", "file://{0}@example.org/ada", "https://example.org/ada={0}",
    "https://ada:12/{0};y@example.org/ada", '"https://ada:12/{0}"@example.org/ada', "https://example.org\\{0}@ada/lantern",
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "credential", ["hunter2pw", "hunter2:pw", "hunter2pw/x", "ghp_hunter2", "hunter2%40", "hunter2@"]
)
def test_no_part_of_a_credential_is_in_an_origin(tmp_path: Path, shape: str, credential: str) -> None:
    url = shape.format(credential)
    assert "hunter2" not in str(origin_of(url))
    assert "hunter2" not in str(resolve(str(with_origin(tmp_path / "lantern", url))))


@pytest.mark.parametrize(("config", "origin"), [
    (f'[remote "origin"] url = {ORIGIN}', NAME),
    (f'[Remote "origin"]\n  URL="{ORIGIN}" ; a comment', NAME),
    (f'[remote "origin"]\n  url = {ORIGIN} # a comment\n  url = https://example.org/second', NAME),
    (f'[remote "upstream"]\n url = {ORIGIN}\n[branch "main"]\n url = {ORIGIN}', None),
    (f'[remote "Origin"]\n url = {ORIGIN}', None),
    (f'[url "{ORIGIN}"]\n insteadOf = x\n[remote "origin"]\n url = x', None),
    ('[include]\n path = ../more\n[remote "origin"]', None),
    (f'[remote "origin"]\n fetch = +refs/heads/*\n pushurl = {ORIGIN}', None),
    ("[remote", None), ("\0\xff", None),
    ('[remote "origin"]\n url =', None),
])  # fmt: skip
def test_what_a_configuration_says(tmp_path: Path, config: str, origin: str | None) -> None:
    (tmp_path / "more").write_text(f'[remote "origin"]\n url = {ORIGIN}')
    assert resolve(str(repository_at(tmp_path / "x", config))) == Repository(str(tmp_path / "x"), origin, "")


# ── whatever is wrong ──


def test_the_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = with_origin(tmp_path / "home")
    (home / "notes").mkdir()
    assert resolve(str(home / "notes")) is not None
    monkeypatch.setenv("HOME", str(home))
    assert resolve(str(home / "notes")) is None and resolve(str(home)) is None
    assert resolve(str(with_origin(home / "code"))) == Repository(str(home / "code"), NAME, "")


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _link(place: Path) -> None:
    place.symlink_to(with_origin(place.parent.parent / "victim") / ".git")


def _text(text: str):
    return lambda place: place.write_text(text)


@pytest.mark.parametrize("make", [
    _pipe, _link, _text(""), _text("gitdir:"), _text("gitdir: .git"), _text("gitdir: /etc"),
    _text("gitdir: /proc/self"), _text("gitdir: /dev/null"), _text("gitdir: ../gone"), _text(f"gitdir: {'x/' * 3_000}"),
    _text("gitdir: ../victim/.git\n" * 100_000), _text("gitdir: a\0b"), _text("something else"),
    lambda place: place.write_bytes(b"gitdir: \xff\xfe"), lambda place: place.symlink_to(place),
])  # fmt: skip
def test_a_hostile_git_file(tmp_path: Path, make) -> None:
    place = tmp_path / "x"
    place.mkdir()
    make(place / ".git")
    assert resolve(str(place)) is None


@pytest.mark.parametrize("name", ["config", "commondir", "gitdir"])
@pytest.mark.parametrize(
    "make", [_pipe, lambda place: place.symlink_to("/etc/passwd"), Path.mkdir, _text("x" * 999_999)]
)
def test_a_hostile_file_in_a_repository(tmp_path: Path, name: str, make) -> None:
    place = with_origin(tmp_path / "x")
    (place / ".git" / "commondir").write_text("../../y/.git" if name == "gitdir" else "..")
    (place / ".git" / name).unlink(missing_ok=True)
    make(place / ".git" / name)
    assert resolve(str(place)) is None


def test_a_folder_that_names_a_repository_which_does_not_know_it(tmp_path: Path) -> None:
    """Anyone can put a `.git` into an archive that names a worktree of yours."""
    victim = with_origin(tmp_path / "victim")
    tree = victim / ".git" / "worktrees" / "tree"
    tree.mkdir(parents=True)
    (tree / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / "commondir").write_text("../..\n")
    (tree / "gitdir").write_text(f"{tmp_path}/tree/.git\n")
    for name in ("tree", "hostile"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text(f"gitdir: {tree}\n")
    assert resolve(str(tmp_path / "tree")) == Repository(str(victim), NAME, "")
    assert resolve(str(tmp_path / "hostile")) is None
    (tree / "commondir").write_text("../../../../other/.git")
    assert resolve(str(tmp_path / "tree")) is None


def test_another_users_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = with_origin(tmp_path / "x")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert resolve(str(place)) is None


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    place = with_origin(tmp_path / "x")
    (place / "file").write_text("")
    for wrong in (place / "file", place / "gone", place / "file" / "below"):
        assert resolve(str(wrong)) is None
    for text in ("", ".", "x", "/", "/" * 5_000, f"{place}\0", f"{place}\udcff", f"{place}\n", "/" + "a/" * 3_000):
        assert resolve(text) is None


@pytest.mark.parametrize(("head", "branch"), [
    ("ref: refs/heads/main\n", "main"), ("ref: refs/heads/ada/wick", "ada/wick"), ("ref: refs/heads/größer", "größer"),
    ("0123456789abcdef0123456789abcdef01234567\n", None), ("ref: refs/heads/.invalid\n", None), ("", None),
    ("ref: refs/heads/../../config", None), ("ref: refs/remotes/origin/main", None), ("ref: refs/heads/a b", None),
    ("ref: refs/heads/main\nref: refs/heads/other", None), ("x" * 9_000, None),
])  # fmt: skip
def test_what_a_head_says(tmp_path: Path, head: str, branch: str | None) -> None:
    place = with_origin(tmp_path / "x")
    (place / ".git" / "HEAD").write_text(head, encoding="utf-8")
    assert repository.resolve(str(place)) == Repository(str(place), NAME, "", branch)
