"""Finds the repository that a folder belongs to, by reading git's files: no program runs, no setting of it has effect.

Hooks call it: it imports nothing slow, never raises, and reads a bounded number of small regular files of the user.
"""

from __future__ import annotations

import os
import re
import stat
from collections import namedtuple
from contextlib import suppress

from signet_sync.formats.ids import origin_of
from signet_sync.formats.lazy_pattern import late

TYPE_CHECKING = False  # same as in `typing`, without the milliseconds of importing it
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import NamedTuple

    class Repository(NamedTuple):
        """A repository: its root folder, its origin as `host/path` (no credentials), and a folder's path inside it.

        The root is where links lead to. Worktrees have the root of their main repository. `path` is empty at the top of
        the working tree, whose `branch` is None if no branch is checked out.
        """

        root: str
        origin: str | None
        path: str
        branch: str | None = None
else:
    Repository = namedtuple("Repository", "root origin path branch", defaults=(None,))

PARENTS = 64
LENGTH = 4_096  # characters of a path
_LINK_LIMIT, _CONFIG_LIMIT, _REFS_LIMIT = 8 * 1024, 256 * 1024, 4 * 1024 * 1024  # bytes
_WORKTREES = 64
_HEADS = "refs/heads/"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_SECTION = late(r'\[\s*(?i:remote)\s+"origin"\s*\]')
_KEY = late(r"url\s*=\s*(.*)", re.IGNORECASE)
# What git allows as a name: no part of it leads out of the folder of branches.
_BRANCH = late(
    r"(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\./-][^\x00-\x20\x7f~^:?*\[\\]{0,250}(?<![./])"
)


def resolve(cwd: str) -> Repository | None:
    """Returns the repository that a folder is in; None if it is in none, and whenever anything is unusual.

    The user's home folder is no repository, even if it keeps settings in one: what is below it has nothing in common.
    """
    try:
        return _resolve(cwd)
    except (OSError, ValueError):
        return None


def project_at(cwd: str) -> str:
    """Returns what sessions record as the project of a folder in a repository; "" outside of any."""
    found = resolve(cwd)
    return (found.origin or found.root) if found is not None else ""


def list_standing(cwd: str, branches: Collection[str], trees: Collection[str]) -> set[str]:
    """Returns which of some branches, and of the tops of some worktrees, the repository of a folder has now.

    None of these paths is opened: git's own lists of them are.
    """
    try:
        found = _find_top(cwd)
        if found is None:
            return set()
        common, named = _common_folder(found[1], found[0]), {one for one in branches if _BRANCH.fullmatch(one)}
        known = {one for one in named if os.path.isfile(f"{common}/{_HEADS}{one}")}
        if named - known:
            packed = small_text(f"{common}/packed-refs", _REFS_LIMIT) or ""
            known |= {one for one in named - known if f" {_HEADS}{one}\n" in packed}
        for name in (
            os.listdir(f"{common}/worktrees")[:_WORKTREES] if trees and os.path.isdir(f"{common}/worktrees") else ()
        ):
            with suppress(OSError):
                known |= {os.path.dirname(_read_named_path(f"{common}/worktrees/{name}/gitdir"))} & {*trees}
        return known
    except (OSError, ValueError):
        return set()


def _resolve(cwd: str) -> Repository | None:
    found = _find_top(cwd)
    if found is None:
        return None
    top, folder, path = found
    common = _common_folder(folder, top)
    config = small_text(f"{common}/config", _CONFIG_LIMIT)
    url = _origin_url(config) if config is not None else None
    # The folder that holds `.git`; a bare repository under a visible name is its own.
    main = os.path.dirname(common) if os.path.basename(common).startswith(".") else common
    root = top if common == folder or holds_home(main) else main
    return Repository(os.path.realpath(root), origin_of(url) if url else None, path, _branch(folder))


def _find_top(cwd: str) -> tuple[str, str, str] | None:
    """Returns the top of a folder's working tree, git's folder of it, and the path inside. Raises `OSError`."""
    if not cwd.startswith("/") or len(cwd) > LENGTH or not cwd.isprintable() or not os.path.isdir(cwd):
        return None
    start = top = os.path.realpath(cwd)  # through whichever links it was reached
    for _ in range(PARENTS):
        if holds_home(top):
            return None
        folder = _git_folder(f"{top}/.git")
        if folder is not None:
            return top, folder, start[len(top) + 1 :]
        top = os.path.dirname(top)
    return None


def _branch(folder: str) -> str | None:
    """Returns the branch that is checked out where git's folder is; None for a commit, and for what is unusual."""
    with suppress(OSError):
        head = (small_text(f"{folder}/HEAD", _LINK_LIMIT) or "").strip()
        name = head.removeprefix(f"ref: {_HEADS}")
        return name if name != head and name.isprintable() and _BRANCH.fullmatch(name) else None
    return None


def views(cwd: str, found: Repository | None) -> list[str]:
    """Returns the paths of a folder: as it was called, where it really is, and in the main tree of its repository."""
    inside = [f"{found.root}/{found.path}"] if found is not None else []
    return [cwd, real_path(cwd), *inside]


def real_path(path: str) -> str:
    """Returns where an absolute path leads through links; the same text for what is no path."""
    try:
        return os.path.realpath(path) if path.startswith("/") else path
    except ValueError:
        return path


def holds_home(folder: str) -> bool:
    """Returns whether a folder is the user's home folder or above it, where many projects are; links are followed."""
    above = os.path.realpath(folder).rstrip("/")
    return f"{os.path.realpath(os.path.expanduser('~'))}/".startswith(f"{above}/")


# ── git's folders ──


def _git_folder(place: str) -> str | None:
    """Returns the folder of a repository, which `.git` is or names; None if there is none. Raises `OSError`."""
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        folder = place
    else:
        named = _read_named_path(place, "gitdir:")
        folder = os.path.normpath(os.path.join(os.path.dirname(place), named))
        status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise OSError("not a folder")
    _require_own(status)
    # git ignores a folder without it, too.
    return folder if os.path.lexists(f"{folder}/HEAD") else None


def _common_folder(folder: str, top: str) -> str:
    """Returns the folder of a worktree's main repository, else the same folder. Raises `OSError`.

    The main repository must list the worktree: any folder's `.git` can name a repository that knows nothing of it.
    """
    if not os.path.lexists(f"{folder}/commondir"):
        return folder
    back = os.path.join(folder, _read_named_path(f"{folder}/gitdir"))
    if os.path.realpath(back) != os.path.realpath(f"{top}/.git"):
        raise OSError("not a worktree of this repository")
    common = os.path.normpath(os.path.join(folder, _read_named_path(f"{folder}/commondir")))
    if os.path.realpath(os.path.dirname(folder)) != os.path.realpath(f"{common}/worktrees"):
        raise OSError("not listed by this repository")
    _require_own(os.lstat(common))
    return common


def _read_named_path(place: str, label: str = "") -> str:
    """Returns the path that a file of git's holds in its one line. Raises `OSError`."""
    text = small_text(place, _LINK_LIMIT)
    named = text.strip().removeprefix(label).strip() if text is not None and text.startswith(label) else ""
    if not named or len(named) > LENGTH or not named.isprintable():
        raise OSError("no path")
    return named


def small_text(place: str, limit: int) -> str | None:
    """Returns the text of a regular file of the user, None if there is none. Raises `OSError`."""
    try:
        handle = os.open(place, _READ)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
        _require_own(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise OSError("not a small file")
        data = os.read(handle, limit + 1)
    finally:
        os.close(handle)
    return data.decode("utf-8", "surrogateescape")


def _require_own(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise OSError("of another user")


# ── origins ──


def _origin_url(config: str) -> str | None:
    """Returns the first URL of the remote `origin` in git's configuration; includes and rewrites are not followed."""
    inside = False
    for line in config.split("\n"):
        words = line.strip()
        if words.startswith("["):
            header, end, words = words.partition("]")
            inside = _SECTION.fullmatch(header + end) is not None
            words = words.strip()
        found = _KEY.fullmatch(words) if inside else None
        if found is not None:
            return _value(found[1]) or None
    return None


def _value(written: str) -> str:
    """Returns a value without quotes and comment; empty for an unusual one, which may be cut inside a password."""
    said = re.fullmatch(r'(?:"([^"\\]*)"|([^"#;\\]*))\s*(?:[#;][^@]*)?', written)
    return (said[1] or said[2] or "").strip() if said is not None else ""
