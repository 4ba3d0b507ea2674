"""Reads what git has of `memory/` at a revision: which files differ from those on disk, and their bytes then.

Uses only plumbing commands, which compare trees with the index and return objects as they are: no filter, hook or
driver that a repository configures is run, and git reads no file of the working tree. As in git, sizes and times show
which files changed since git's last look.
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.snapshot import Signature, Snapshot
from signet_sync.history import git_program
from signet_sync.history.git_program import run_git, top_of
from signet_sync.history.repository import objection

_REVISION = re.compile(r"[A-Za-z0-9_./@{}^~+-]{1,256}")
# One entry of `git ls-files --stage --debug -z`. Anything else is no entry: its file is read then.
_ENTRY = re.compile(
    rb"(?P<mode>\d{6}) [0-9a-f]+ 0\t(?P<path>[^\0]+)\0  ctime: \d+:\d+\n  mtime: (?P<seconds>\d+):(?P<rest>\d+)\n"
    rb"  dev: [^\n]*\n  uid: [^\n]*\n  size: (?P<size>\d+)\tflags: (?P<flags>[0-9a-f]+)\n"
)
_NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the empty tree, built into git
_LINK = "120000"
_ELSEWHERE = 1 << 30  # a sparse checkout: the file is not wanted in the working tree


class _IndexEntry(NamedTuple):
    """A file in the index: its mode, and its size and time when git last looked at it."""

    mode: str
    size: int
    seconds: int
    rest: int
    flags: int

    def is_as(self, found: Signature) -> bool:
        """Returns whether a file's size and time are unchanged; seconds suffice if nanoseconds were not stored."""
        seconds, rest = divmod(found.mtime_ns, 10**9)
        return (self.size, self.seconds) == (found.size & 0xFFFFFFFF, seconds) and self.rest in (0, rest)


class Revision:
    """A commit of the repository that contains the workspace."""

    def __init__(self, root: str, top: str, commit: str) -> None:
        self.root = root
        self._top = top
        self.commit = commit
        self._below = os.path.relpath(os.path.realpath(root), top)

    def changed(self, seen: Snapshot) -> list[str]:
        """Returns paths below `memory/`, relative to the workspace, added, removed or changed since; not ignored ones.

        Compares the index with the revision, and the files on disk (`seen`) with the index.
        """
        listed = self._index()
        known = {path for path, entry in listed.items() if (found := seen.files.get(path)) and entry.is_as(found)}
        known |= {path for path, entry in listed.items() if path in seen.odd and entry.mode == _LINK}
        known |= {path for path, entry in listed.items() if path not in seen.files and entry.flags & _ELSEWHERE}
        new = {path for path in (*seen.files, *seen.odd) if path not in listed}
        here = (listed.keys() - known) | (new - git_program.ignored(self.root, sorted(new)))
        differ = self._names("diff-index", "--cached", "--no-renames", "--name-only", "-r", "-z", self.commit, "--")
        return sorted(path for path in {*map(self._inside, differ), *here} if path.startswith(f"{MEMORY}/"))

    def knows(self, path: str) -> bool:
        """Returns whether git tracks a file, ignored or not."""
        return path in self._index()

    def _index(self) -> dict[str, _IndexEntry]:
        answer = self._git("ls-files", "--stage", "--debug", "-z", "--", f"{MEMORY}/")
        return {
            os.fsdecode(found["path"]): _IndexEntry(
                found["mode"].decode(),
                int(found["size"]),
                int(found["seconds"]),
                int(found["rest"]),
                int(found["flags"], 16),
            )
            for found in _ENTRY.finditer(answer)
        }

    def _names(self, *arguments: str) -> list[str]:
        return [os.fsdecode(name) for name in self._git(*arguments, f"{MEMORY}/").split(b"\0") if name]

    def _inside(self, path: str) -> str:
        """Converts a path relative to the repository to one relative to the workspace."""
        return path if self._below == "." else path.removeprefix(f"{self._below}/")

    def files(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Returns the bytes that these files had then; skips those that were no plain files."""
        wanted = list(paths)
        prefix = "" if self._below == "." else f"{self._below}/"
        names = [f"{self.commit}:{prefix}{path}" for path in wanted if "\n" not in path]
        answer = self._git("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names))
        found: dict[str, bytes] = {}
        for path in (path for path in wanted if "\n" not in path):
            head, _, answer = answer.partition(b"\n")
            if head.endswith(b" missing"):
                continue
            size = int(head.rpartition(b" ")[2])
            if head.split(b" ")[-2] == b"blob":
                found[path] = answer[:size]
            answer = answer[size + 1 :]
        return found

    def _git(self, *arguments: str, stdin: str = "") -> bytes:
        done = run_git(self._top, self.root, *arguments, stdin=os.fsencode(stdin))
        if done is None or done.returncode != 0:
            reason = "" if done is None else done.stderr.decode("utf-8", "replace").strip().partition("\n")[0][:200]
            raise WorkspaceError(
                f"git cannot compare: {reason or 'no answer'}", path=self.root, hint="run git fsck for details"
            )
        return done.stdout


def at(root: str, name: str) -> Revision:
    """Resolves a revision's name (a branch, a tag, an id, `origin/main`, `HEAD~1`).

    Before the first commit `HEAD` is an empty revision. Raises `UsageError` for one that does not exist, or not in this
    shallow clone, and `WorkspaceError` if there is no repository, one that is not opened, or no git.
    """
    top = top_of(root)
    if top is None:
        raise WorkspaceError("the workspace is in no git repository", path=root, hint="leave out --changed-since")
    if reason := objection(top):
        raise WorkspaceError(
            f"the repository was not opened: {reason}",
            path=os.path.join(top, ".git"),
            hint="check it out by itself (actions/checkout: persist-credentials: false), as the user who runs this; "
            "see docs/ci.md",
        )
    if not _REVISION.fullmatch(name) or name.startswith("-"):
        raise UsageError(f"{name!r} is not the name of a revision", hint="give a branch, a tag or a commit's id")
    done = run_git(top, root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done is None:
        raise WorkspaceError("git is not installed", hint="install git, or leave out --changed-since")
    commit = done.stdout.decode("ascii", "replace").strip()
    if not commit and name == "HEAD":
        return Revision(root, top, _NOTHING)
    if done.returncode != 0 or not commit:
        if not name.strip("0"):
            raise UsageError(
                "a revision of zeros does not exist: CI passes it for the first push of a branch",
                hint="leave out --changed-since",
            )
        shallow = os.path.lexists(os.path.join(top, ".git", "shallow"))
        raise UsageError(
            f"there is no {name} in this {'shallow clone' if shallow else 'repository'}",
            path=top,
            hint="clone with its history (actions/checkout: fetch-depth: 0; GitLab: GIT_DEPTH: 0), or git fetch it"
            if shallow
            else "git fetch it first, or give another revision",
        )
    return Revision(root, top, commit)
