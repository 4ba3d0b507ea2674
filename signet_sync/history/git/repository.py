"""Opens the workspace's own git repository safely, or explains why not; sets all of libgit2's options.

There are two lines of defence. Before libgit2 is called, `inspect` has checked that `.git` consists only of plain
folders and files, that none of them points elsewhere, and that its config (parsed by us) names nothing that would be
opened. Then the repository is opened as a bare one: without a working tree libgit2 looks up no attributes, filters or
ignore files. It takes bytes and returns bytes.

A process that replaces files of `.git` meanwhile is not kept out: it could write to the workspace anyway.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from signet_sync.errors import SignetSyncError, extra_hint
from signet_sync.formats.paths import display
from signet_sync.formats.snapshot import Found
from signet_sync.history.git import config as git_config
from signet_sync.storage import files

if TYPE_CHECKING:
    import pygit2

MARK = "signet-history"  # the file in `.git` with the id of the workspace whose history it is
CONFIG_LIMIT = 1024 * 1024  # bytes

State = Literal["none", "ours", "existing", "unsafe"]
Refusal = Literal[
    "no-repository",
    "inside-repository",
    "existing-repository",
    "unsafe-repository",
    "damaged-repository",
    "extra-missing",
]

_INSTALL = extra_hint("git")


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """What is at the root. `reason` is for a person, `hint` what that person can do; both are empty for `ours`.

    `outer` is the folder of a repository around the workspace (state `none`), else empty.
    """

    state: State
    reason: str = ""
    hint: str = ""
    outer: str = ""


class RepositoryRefused(SignetSyncError):
    """The history cannot be used; `code` is a `Refusal`, `hint` the remedy."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class OpenRepository:
    """Our repository, found safe.

    `git` has no working tree (it is opened as a bare one), so that libgit2 cannot read the workspace's files.
    """

    root: str
    folder: str  # the absolute path of `.git`
    git: pygit2.Repository


# ── checking ──


def inspect(root: str, workspace_id: str) -> RepositoryStatus:
    """Returns what is at the root itself. Needs no extra, runs nothing, follows no link, never blocks."""
    dot = os.path.join(root, ".git")
    try:
        os.lstat(dot)
    except FileNotFoundError:
        return _nothing(root)
    except OSError as error:
        return _unsafe(f"it cannot be inspected: {error.strerror}")
    if reason := objection(root):
        return _unsafe(reason)
    mark = files.read(root, f".git/{MARK}", 4096)
    if not isinstance(mark, Found):
        return RepositoryStatus(
            "existing",
            "the workspace is a git repository already, which is not ours",
            "commit with git, and set `enabled = false` under [history]; or move its `.git` away",
        )
    if mark.raw.decode("utf-8", "replace").strip() != workspace_id:
        return RepositoryStatus(
            "existing",
            "the repository is the history of another workspace",
            "if this folder is a copy, remove its `.git`",
        )
    return RepositoryStatus("ours")


def _nothing(root: str) -> RepositoryStatus:
    outer = os.path.realpath(root)
    while outer != (parent := os.path.dirname(outer)):
        outer = parent
        if os.path.lexists(os.path.join(outer, ".git")):
            return RepositoryStatus(
                "none",
                f"the workspace is inside another repository: {display(outer)}",
                "commit with that repository, and set `enabled = false` under [history]; or move the workspace out",
                outer,
            )
    return RepositoryStatus("none", "the workspace has no history yet", "`signet-sync checkpoint` starts one")


def _unsafe(reason: str) -> RepositoryStatus:
    return RepositoryStatus(
        "unsafe", f"`.git` is not opened: {reason}", "see docs/history.md, *Repositories we refuse*"
    )


# Files that point elsewhere, wherever that is.
_POINTERS = ("commondir", "gitdir", "config.worktree", "objects/info/alternates", "objects/info/http-alternates")
# The folders in which libgit2 opens files; in our calls it ignores others (hooks, modules, worktrees, lfs).
_ENTERED = ("objects", "refs", "logs", "info")


def objection(root: str, name: str = ".git") -> str:
    """Returns why the `.git` of a folder is not opened, for a person; empty if there is no objection.

    With the `name` "." the folder itself is a bare repository.
    """
    dot = os.path.join(root, name)
    try:
        status = os.lstat(dot)
        if not stat.S_ISDIR(status.st_mode):
            return "it points elsewhere" if _is_pointer(status.st_mode) else "it is not a folder"
        if status.st_uid != os.geteuid():
            return "it belongs to another user"
        return _strange_entry(dot) or _missing(dot) or _pointer(dot) or _config(dot)
    except OSError as error:
        return f"it cannot be inspected: {error.strerror}"


def _is_pointer(mode: int) -> bool:
    return stat.S_ISLNK(mode) or stat.S_ISREG(mode)


def _missing(dot: str) -> str:
    for name, kind in (
        ("HEAD", stat.S_ISREG),
        ("config", stat.S_ISREG),
        ("objects", stat.S_ISDIR),
        ("refs", stat.S_ISDIR),
    ):
        path = os.path.join(dot, name)
        if not os.path.lexists(path) or not kind(os.lstat(path).st_mode):
            return f"it is not a repository: `{name}` is missing"
    return ""


def _pointer(dot: str) -> str:
    found = next((name for name in _POINTERS if os.path.lexists(os.path.join(dot, name))), None)
    return f"`{found}` points elsewhere" if found else ""


def _config(dot: str) -> str:
    config = files.read(dot, "config", CONFIG_LIMIT)
    return git_config.objection(config.raw) if isinstance(config, Found) else f"its config: {config.message}"


def _strange_entry(dot: str) -> str:
    """Finds what is neither folder nor file where libgit2 opens files: a link would lead out, a pipe would block."""
    pending = [""]
    while pending:
        where = pending.pop()
        try:
            found = _entries(os.path.join(dot, where))
        except FileNotFoundError:
            continue  # git removes folders that its packing emptied
        for entry in found:
            path = f"{where}/{entry.name}" if where else entry.name
            if entry.is_dir(follow_symlinks=False):
                if where or entry.name in _ENTERED:
                    pending.append(path)
            elif not entry.is_file(follow_symlinks=False) and not (path == "hooks" or _is_socket(entry)):
                return f"`{display(path)}` is neither file nor folder"
    return ""


def _entries(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as found:
        return list(found)


def _is_socket(entry: os.DirEntry[str]) -> bool:
    # Git's own fsmonitor leaves one; it cannot be opened as a file.
    return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)


# ── opening ──


@functools.cache
def _library() -> None:
    """Makes libgit2 ignore everything but the repository itself.

    Process-wide and permanent: this program has no other use of libgit2. No system, user or XDG config, no template, no
    home folder. It only reads; what we write we write ourselves.
    """
    import pygit2
    from pygit2.enums import ConfigLevel, Option

    for level in (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.option(Option.SET_SEARCH_PATH, level, "")
    pygit2.option(Option.SET_TEMPLATE_PATH, "")
    pygit2.option(Option.SET_HOMEDIR, "")


def require() -> None:
    """Raises `RepositoryRefused` (`extra-missing`) if the extra is not installed."""
    try:
        _library()
    except ImportError:
        raise RepositoryRefused(
            "the history needs the extra `git`, which is not installed", hint=_INSTALL, code="extra-missing"
        ) from None


@contextmanager
def opened(root: str, workspace_id: str) -> Iterator[OpenRepository]:
    """Opens the workspace's repository if it is ours.

    Raises `RepositoryRefused`, also for errors of libgit2 inside the `with`.
    """
    dot = os.path.join(root, ".git")
    before = files.status_of(root, ".git")
    status = inspect(root, workspace_id)
    if status.state != "ours":
        raise refusal(status)
    require()
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

    exactly = RepositoryOpenFlag.BARE | RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT
    with readable():
        git = pygit2.Repository(dot, exactly)
        try:
            after = files.status_of(root, ".git")
            if before is None or after is None or not os.path.samestat(before, after):
                raise refusal(_unsafe("it was replaced while it was being opened"))
            with private():
                yield OpenRepository(root, dot, git)
        finally:
            git.free()


def branch(place: OpenRepository) -> str | None:
    """Returns the full name of the ref that our commits are on; None if `HEAD` is a commit instead of a branch.

    Raises `RepositoryRefused` if `HEAD` names something that is no ref: the name becomes a path, and could lead out.
    """
    import pygit2

    target = place.git.lookup_reference("HEAD").target
    if not isinstance(target, str):
        return None
    if not (target.startswith("refs/") and pygit2.reference_is_valid_name(target)):
        raise RepositoryRefused(
            f"its HEAD names no branch: {display(target)}",
            hint="`git symbolic-ref HEAD refs/heads/main` repairs it",
            code="damaged-repository",
        )
    return target


def tip(place: OpenRepository) -> bytes | None:
    """Returns the id of the history's newest commit, 20 bytes; None if there is none yet."""
    ref = place.git.references.get(branch(place) or "HEAD")
    if ref is None:
        return None
    target = ref.target
    if isinstance(target, str):
        raise RepositoryRefused("its branch is a symbolic ref", code="damaged-repository")
    return target.raw


@contextmanager
def private() -> Iterator[None]:
    """Sets the umask so that libgit2's new files are private; libgit2 has no option for that."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def readable() -> Iterator[None]:
    """Converts what libgit2 raises for a broken repository to `RepositoryRefused` (`damaged-repository`)."""
    import pygit2

    try:
        yield
    except (pygit2.GitError, KeyError, ValueError) as error:
        raise RepositoryRefused(
            f"the repository cannot be read: {display(str(error))}", hint="try `git fsck`", code="damaged-repository"
        ) from error


def refusal(status: RepositoryStatus) -> RepositoryRefused:
    """Returns the error to raise for a repository in this state."""
    if status.state == "none":
        code: Refusal = "inside-repository" if status.outer else "no-repository"
    else:
        code = "existing-repository" if status.state == "existing" else "unsafe-repository"
    return RepositoryRefused(status.reason, hint=status.hint, code=code)


# ── other git processes ──

_BUSY = {
    "index.lock": "another git command is running, or died and left `.git/index.lock`",
    "HEAD.lock": "another git command is running, or died and left `.git/HEAD.lock`",
    "MERGE_HEAD": "a merge is not finished",
    "CHERRY_PICK_HEAD": "a cherry-pick is not finished",
    "REVERT_HEAD": "a revert is not finished",
    "BISECT_LOG": "a bisection is not finished",
    "rebase-merge": "a rebase is not finished",
    "rebase-apply": "a rebase is not finished",
    "sequencer": "a cherry-pick or revert is not finished",
}


def busy(folder: str) -> str:
    """Returns which git operation is unfinished, for a person; `folder` is `.git`. Empty if none is."""
    return next((why for name, why in _BUSY.items() if os.path.lexists(os.path.join(folder, name))), "")
