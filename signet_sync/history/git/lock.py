"""Replaces files of `.git` that other programs write, too (a ref, the index), under git's locks; recovers after a kill.

In git's protocol, the process that creates `NAME.lock` may replace `NAME`. A lock that a dead process left blocks all
programs forever, git and libgit2 included. Ours is a hard link of a file that only we write, so that our next process
recognises it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from signet_sync.storage.durable import create, sync_folder, unlink

_STAGED_REF = "signet-ref"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The next content of a file. The caller holds the history lock, so that no other process of ours does the same."""

    folder: str  # `.git`
    name: str  # of the file, relative to it
    staged: str  # of our own file, relative to it

    @property
    def _ours(self) -> str:
        return os.path.join(self.folder, self.staged)

    @property
    def _target(self) -> str:
        return os.path.join(self.folder, self.name)

    @property
    def _lock(self) -> str:
        return f"{self._target}.lock"

    def unfinished(self) -> bool:
        """Returns whether an earlier replacement was interrupted; removes its lock, keeps our file until `publish`."""
        if not os.path.lexists(self._ours):
            return False
        self._unlock()
        return True

    def stage(self, data: bytes) -> bool:
        """Writes the bytes durably beside the file, and locks it; False, with nothing left behind, if it is locked."""
        unlink(self._ours)
        self._make_folders()
        os.close(create(self._ours, data, 0o666))
        try:
            os.link(self._ours, self._lock, follow_symlinks=False)
        except FileExistsError:
            os.unlink(self._ours)
            return False
        except OSError:
            pass  # no hard links here: unlocked, a git command at the same moment may win, but nothing is lost
        return True

    def _make_folders(self) -> None:
        # Not `.git` itself: if it was just deleted, it stays deleted.
        path = self.folder
        for part in self.name.split("/")[:-1]:
            path = os.path.join(path, part)
            with suppress(FileExistsError):
                os.mkdir(path)

    def publish(self) -> None:
        """Moves the bytes into place and releases the lock."""
        source = self._lock if self._is_locked() else self._ours
        os.rename(source, self._target)
        sync_folder(os.path.dirname(self._target))
        unlink(self._ours)

    def drop(self) -> None:
        """Releases the lock without a change."""
        self._unlock()
        unlink(self._ours)

    def _unlock(self) -> None:
        if self._is_locked():
            os.unlink(self._lock)

    def _is_locked(self) -> bool:
        """Returns whether the lock is ours: the very file that we staged."""
        try:
            return os.path.samestat(os.lstat(self._lock), os.lstat(self._ours))
        except FileNotFoundError:
            return False


def mend(folder: str) -> None:
    """Removes the locks that a killed process of ours left, also on a branch that `HEAD` has since left."""
    index(folder).unfinished()
    ours = os.path.join(folder, _STAGED_REF)
    try:
        left = os.lstat(ours)
    except FileNotFoundError:
        return
    if left.st_nlink > 1:
        for where, _, names in os.walk(os.path.join(folder, "refs")):
            for path in (os.path.join(where, name) for name in names if name.endswith(".lock")):
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.lstat(path), left):
                        os.unlink(path)
    os.unlink(ours)


def index(folder: str) -> Replacement:
    """Returns the replacement of the index."""
    return Replacement(folder, "index", "signet-index")


def ref(folder: str, name: str) -> Replacement:
    """Returns the replacement of a ref, by its full name."""
    return Replacement(folder, name, _STAGED_REF)
