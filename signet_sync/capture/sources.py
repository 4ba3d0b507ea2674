"""Describes one transcript, and which files may be one: of the user, and regular."""

import errno
import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.errors import HarnessError
from signet_sync.formats.body import well_formed
from signet_sync.formats.ids import MODEL_FOLDER
from signet_sync.formats.paths import display

LINE_LIMIT = 64 * 1024 * 1024


class TranscriptSource(NamedTuple):
    """One transcript of a harness: a file, or (OpenCode) a row of its database.

    `size` is bytes (0 for a row, where only the time shows a change), `mtime_ns` nanoseconds since 1970 UTC.
    """

    harness: str
    path: str
    session_id: str
    size: int
    mtime_ns: int

    @property
    def is_model_call(self) -> bool:
        """Returns whether its folder, which some harnesses name after a session's, is that of our own model calls."""
        return f"{MODEL_FOLDER}/" in self.path

    @property
    def place(self) -> str:
        """Returns the path in a form that a row can store: a name need not be UTF-8."""
        return display(self.path) if self.path != well_formed(self.path) else self.path


def require_own_file(path: str, status: os.stat_result) -> None:
    """Raises `HarnessError` unless it is a regular file of the user (or of root, who can read all files anyway)."""
    if not stat.S_ISREG(status.st_mode):
        raise HarnessError("it is not a regular file", path=path, hint="name a transcript file, or the folder of some")
    if not is_own_file(status):
        raise HarnessError("it belongs to another user", path=path, hint="copy it if you trust it, and name the copy")


def is_own_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid in (os.geteuid(), 0)


_REMEDIES: Mapping[int | None, tuple[str, str]] = {
    errno.ENOENT: ("it does not exist", "check the path"),
    errno.ENOTDIR: ("it does not exist", "check the path"),
    errno.ELOOP: ("it is a link", "name the file that it leads to"),
    errno.EACCES: ("it cannot be read", "check its permissions"),
    errno.EPERM: ("it cannot be read", "check its permissions"),
}


def unreadable(path: str, error: OSError | ValueError) -> HarnessError:
    """Returns our exception for a file that cannot be opened or read."""
    if not isinstance(error, OSError):
        return HarnessError("it is not a path", path=path, hint="check the path")
    what, hint = _REMEDIES.get(error.errno, (f"reading it failed: {error.strerror}", "check the disk and try again"))
    return HarnessError(what, path=path, hint=hint)
