"""Opens the workspace's own git repository safely, or explains why not; sets all of libgit2's options.

There are two lines of defence. Before libgit2 is called, `inspect` has checked that `.git` consists only of plain
folders and files, that none of them points elsewhere, and that its config names nothing that would be opened. Then the
repository is opened as a bare one: without a working tree libgit2 looks up no attributes, filters or ignore files.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from signet_sync.errors import SignetSyncError, extra_hint
from signet_sync.formats.paths import TEMPORARY, display
from signet_sync.formats.snapshot import Found
from signet_sync.host import git as git_program
from signet_sync.storage import files, writing
from signet_sync.storage.durable import sync_folder, sync_path
from signet_sync.storage.files import folder

if TYPE_CHECKING:
    import pygit2

MARK = "signet-history"  # the file in `.git` with the id of the workspace whose history it is
MAIN = "refs/heads/main"
BUILDING = f"{TEMPORARY}/history"  # where a repository is made, and where one goes that is forgotten
_CONFIG_LIMIT = 1024 * 1024  # bytes


class RepositoryRefused(SignetSyncError):
    """The history cannot be used; `hint` is the remedy."""

    exit_code = 2


# ── checking ──


def inspect(root: str, workspace_id: str) -> RepositoryRefused | None:
    """Returns why what is at the root itself is not our repository, None if it is.

    The code is `no-repository`, `inside-repository` (there is none, but one around the workspace),
    `existing-repository` or `unsafe-repository`. Needs no extra, runs nothing, follows no link, never blocks.
    """
    if not os.path.lexists(os.path.join(root, ".git")):
        if (outer := top_of(root)) is not None:
            message = f"the workspace is inside another repository: {display(outer)}"
            hint = "commit with that repository, and set `enabled = false` under [history]; or move the workspace out"
            return RepositoryRefused(message, hint=hint, code="inside-repository")
        hint = "`signet-sync checkpoint` starts one"
        return RepositoryRefused("the workspace has no history yet", hint=hint, code="no-repository")
    if reason := objection(root):
        return _unsafe(reason)
    mark = files.read(root, f".git/{MARK}", 4096)
    if not isinstance(mark, Found):
        message = "the workspace is a git repository already, which is not ours"
        hint = "commit with git, and set `enabled = false` under [history]; or move its `.git` away"
        return RepositoryRefused(message, hint=hint, code="existing-repository")
    if mark.raw.decode("utf-8", "replace").strip() != workspace_id:
        message, hint = (
            "the repository is the history of another workspace",
            "if this folder is a copy, remove its `.git`",
        )
        return RepositoryRefused(message, hint=hint, code="existing-repository")
    return None


def _unsafe(reason: str) -> RepositoryRefused:
    hint = "see docs/history.md, *Repositories we refuse*"
    return RepositoryRefused(f"`.git` is not opened: {reason}", hint=hint, code="unsafe-repository")


# Files that point elsewhere, wherever that is.
_POINTERS = ("commondir", "gitdir", "config.worktree", "objects/info/alternates", "objects/info/http-alternates")
# The folders in which libgit2 opens files; in our calls it ignores others (hooks, modules, worktrees, lfs).
_ENTERED = ("objects", "refs", "logs", "info")
# What makes git or libgit2 open further files, wherever in a line it is: too much is refused rather than too little.
# Programs that a config names (hooks, filters, drivers, helpers) are no reason: none is run in the calls we make.
_ELSEWHERE = re.compile(
    rb"\[\s*(?:include|extensions)[^\]]*\]?|\b(?:worktree|excludesfile|attributesfile)\s*=|"
    rb"\brepositoryformatversion\s*=\s*+(?!\"?[01]\"?\s)",
    re.IGNORECASE,
)


def objection(root: str, name: str = ".git") -> str:
    """Returns why the `.git` of a folder is not opened, for a person; empty if there is no objection.

    With the `name` "." the folder itself is a bare repository.
    """
    dot = os.path.join(root, name)
    try:
        status = os.lstat(dot)
        if not stat.S_ISDIR(status.st_mode):
            points = stat.S_ISLNK(status.st_mode) or stat.S_ISREG(status.st_mode)
            return "it points elsewhere" if points else "it is not a folder"
        if status.st_uid != os.geteuid():
            return "it belongs to another user"
        if strange := _strange_entry(dot):
            return f"`{display(strange)}` is neither file nor folder"
        for needed in ("HEAD", "config", "objects", "refs"):
            if not os.path.lexists(os.path.join(dot, needed)):
                return f"it is not a repository: `{needed}` is missing"
        for pointer in _POINTERS:
            if os.path.lexists(os.path.join(dot, pointer)):
                return f"`{pointer}` points elsewhere"
        config = files.read(dot, "config", _CONFIG_LIMIT)
        if not isinstance(config, Found):
            return f"its config: {config.message}"
        found = _ELSEWHERE.search(config.raw + b"\n")
        return f"its config leads elsewhere: {display(found[0].decode('utf-8', 'replace'))[:80]}" if found else ""
    except OSError as error:
        return f"it cannot be inspected: {error.strerror}"


def _strange_entry(dot: str) -> str:
    """Finds what is neither folder nor file where libgit2 opens files: a link would lead out, a pipe would block."""
    pending = [""]
    while pending:
        where = pending.pop()
        try:
            with os.scandir(os.path.join(dot, where)) as entries:
                found = list(entries)
        except FileNotFoundError:
            continue  # git removes folders that its packing emptied
        for entry in found:
            path = f"{where}/{entry.name}" if where else entry.name
            if entry.is_dir(follow_symlinks=False):
                if where or entry.name in _ENTERED:
                    pending.append(path)
            elif path != "hooks" and not entry.is_file(follow_symlinks=False):
                # Git's own fsmonitor leaves a socket, which cannot be opened as a file.
                if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                    continue
                return path
    return ""


# What git leaves in its folder while a command, a merge, a rebase or the like is not finished, or died.
_BUSY = (
    "index.lock", "HEAD.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge",
    "rebase-apply", "sequencer",
)  # fmt: skip


def refuse_busy(root: str) -> None:
    """Raises `RepositoryRefused` (`history-busy`) if a git operation is unfinished, or `HEAD` is not `main`."""
    if not is_on_main(root):
        raise busy("HEAD is not on our branch; `git switch main` returns to it")
    if found := next((name for name in _BUSY if os.path.lexists(os.path.join(root, ".git", name))), ""):
        raise busy(f"a git operation is not finished, or died and left `.git/{found}`")


def busy(reason: str) -> RepositoryRefused:
    """Returns the error for a repository in which a person is at work."""
    return RepositoryRefused(reason, path=".git", hint="finish that first", code="history-busy")


def is_on_main(root: str) -> bool:
    """Returns whether `HEAD` is the branch of our commits."""
    head = files.read(root, ".git/HEAD", 4096)
    return isinstance(head, Found) and head.raw.strip() == f"ref: {MAIN}".encode()


# ── with git itself ──

# Plumbing that runs nothing a repository could configure; it needs the program, not the extra. A repository that
# `objection` refuses is not asked at all: its config could name files that git would open, and a pipe would block us.


def top_of(root: str) -> str | None:
    """Returns the nearest folder, from the root upwards, that contains a `.git` of any kind."""
    where = os.path.realpath(root)
    while not os.path.lexists(os.path.join(where, ".git")):
        where, below = os.path.dirname(where), where
        if where == below:
            return None
    return where


def run_git(top: str, root: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes] | None:
    """Runs git in the workspace; None if it is not installed or takes longer than a minute."""
    # Given the repository's place, git does not search for one.
    place = (f"--git-dir={os.path.join(top, '.git')}", f"--work-tree={top}")
    try:
        return subprocess.run(
            ["git", *git_program.SAFE, *place, "-C", os.path.realpath(root), *arguments],
            input=stdin,
            capture_output=True,
            env=git_program.environment(),
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def holds(root: str, paths: Sequence[str]) -> Literal["clean", "contains", "unknown", "no-repository"]:
    """Returns whether a commit of the workspace's repository, on any branch or in the reflog, contains a path."""
    top = top_of(root)
    if top is None:
        return "no-repository"
    if objection(top):
        return "unknown"
    inside = run_git(top, root, "rev-parse", "--git-dir")
    if inside is None or inside.returncode != 0:
        return "unknown"
    if not paths:
        return "clean"
    # Without --full-history, a file added and deleted on a merged branch would not be found.
    names = (f":(literal){path}" for path in paths)
    found = run_git(top, root, "rev-list", "--all", "--reflog", "--full-history", "--max-count=1", "--", *names)
    if found is None or found.returncode != 0:
        return "unknown"
    return "contains" if found.stdout.strip() else "clean"


def find_ignored(root: str, paths: Sequence[str]) -> frozenset[str]:
    """Returns those of the paths that the repository's ignore rules exclude; none without a local repository."""
    top = top_of(root) if paths else None
    if top is None or objection(top):
        return frozenset()
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    answer = run_git(top, root, "check-ignore", "--no-index", "-z", "--stdin", stdin=names)
    if answer is None or answer.returncode not in (0, 1):
        return frozenset()
    return frozenset(os.fsdecode(answer.stdout).split("\0")) - {""}


# ── creating and opening ──


@functools.cache
def require() -> None:
    """Makes libgit2 ignore everything but the repository itself, and sync what it writes.

    Process-wide and permanent: this program has no other use of libgit2. No system, user or XDG config, no template, no
    home folder. Raises `RepositoryRefused` (`extra-missing`) if the extra is not installed.
    """
    try:
        import pygit2
    except ImportError:
        message = "the history needs the extra `git`, which is not installed"
        raise RepositoryRefused(message, hint=extra_hint("git"), code="extra-missing") from None
    from pygit2.enums import ConfigLevel, Option

    for level in (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.option(Option.SET_SEARCH_PATH, level, "")
    pygit2.option(Option.SET_TEMPLATE_PATH, "")
    pygit2.option(Option.SET_HOMEDIR, "")
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)


def create(root: str, workspace_id: str, beside: dict[str, bytes]) -> None:
    """Creates the repository: branch `main`, no commit, no remote; and the files `beside` it that are absent.

    Does nothing if it is ours already. It is built in `.signet/tmp` and renamed: it is complete or absent. Raises
    `RepositoryRefused`, `OSError`.
    """
    present = inspect(root, workspace_id)
    if present is None:
        return
    if present.code != "no-repository":
        raise present
    require()
    import pygit2

    for name, text in beside.items():
        with suppress(FileExistsError):
            writing.create_once(root, name, text)
    writing.prepare(root)
    with folder(root, TEMPORARY, create=True):
        pass
    building = os.path.join(root, BUILDING)
    shutil.rmtree(building, ignore_errors=True)  # of an interrupted creation
    with _translate_errors(), _private():
        git = pygit2.init_repository(building, bare=True, initial_head="main")
        git.config["core.bare"] = False  # a person's git finds its working tree
        git.free()
        shutil.rmtree(os.path.join(building, "hooks"), ignore_errors=True)
        with open(os.path.join(building, MARK), "xb") as handle:
            handle.write(workspace_id.encode("utf-8", "surrogateescape") + b"\n")
    # Only the owner may read the workspace's files, and so it is with their earlier versions.
    os.chmod(building, 0o700)
    for where, _, names in os.walk(building, topdown=False):
        for path in (*(os.path.join(where, name) for name in names), where):
            sync_path(path)
    os.rename(building, os.path.join(root, ".git"))
    sync_folder(root)


@contextmanager
def open_repository(root: str, workspace_id: str) -> Iterator[pygit2.Repository]:
    """Opens the workspace's repository, without its working tree, if it is ours.

    Raises `RepositoryRefused`, also for errors of libgit2 inside the `with`.
    """
    before = files.status_of(root, ".git")
    if refused := inspect(root, workspace_id):
        raise refused
    require()
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

    exactly = RepositoryOpenFlag.BARE | RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT
    with _translate_errors():
        git = pygit2.Repository(os.path.join(root, ".git"), exactly)
        try:
            after = files.status_of(root, ".git")
            if before is None or after is None or not os.path.samestat(before, after):
                raise _unsafe("it was replaced while it was being opened")
            with _private():
                yield git
        finally:
            git.free()


def tip(git: pygit2.Repository) -> pygit2.Commit | None:
    """Returns the history's newest commit; None if there is none yet."""
    import pygit2

    ref = git.references.get(MAIN)
    if ref is None:
        return None
    if not isinstance(ref.target, pygit2.Oid):
        raise RepositoryRefused("its branch is a symbolic ref", code="damaged-repository")
    return git[ref.target].peel(pygit2.Commit)


@contextmanager
def _private() -> Iterator[None]:
    """Sets the umask so that libgit2's new files are private; libgit2 has no option for that."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Converts what libgit2 raises for a broken repository to `RepositoryRefused` (`damaged-repository`)."""
    import pygit2

    try:
        yield
    except (pygit2.GitError, KeyError, ValueError) as error:
        message = f"the repository cannot be read: {display(str(error))}"
        raise RepositoryRefused(message, hint="try `git fsck`", code="damaged-repository") from error
