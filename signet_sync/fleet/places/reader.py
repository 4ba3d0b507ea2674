"""What all places have in common: judging a listed file before it is read, and naming a place that does not answer."""

from __future__ import annotations

import errno
import os
import re
import stat
from abc import abstractmethod

from signet_sync.errors import Unreachable
from signet_sync.formats.paths import display
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.storage.files import kind_of, signature_of
from signet_sync.storage.remote import Reader
from signet_sync.text.sanitizer import sanitize_line

_SECRET = re.compile(r"(?<=//)[^/\s]*@|\?[^#!\s]*")
_LONGEST = 300  # characters of a message


def shown(url: str) -> str:
    """Returns a URL as it may be printed and stored: without user, password and query, which may be secret."""
    return display(_SECRET.sub("", url))


def unreachable(url: str, error: BaseException | str) -> Unreachable:
    """Returns the error for a place that does not answer. What its library says may quote the URL."""
    said = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    message = f"the workspace cannot be reached: {sanitize_line(shown(said))[:_LONGEST]}"
    hint = "check its address, the network and the credentials of this machine"
    return Unreachable(message, path=shown(url), hint=hint)


def is_a_name(name: str) -> bool:
    """Returns whether a folder of this machine could hold an entry of that name; nothing else is looked at."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


class PlaceReader(Reader):
    """Reads what a listing shows to be a regular file of bearable size; a place defines `entries` and `content`."""

    @abstractmethod
    def content(self, path: str, status: os.stat_result) -> Found | Trouble:
        """Reads a file that was listed with this status."""

    def status(self, path: str) -> os.stat_result | None:
        """Returns the status of a path; None if nothing is there. Raises `PermissionError`."""
        where, _, name = path.rpartition("/")
        try:
            return self.entries(where).get(name)
        except FileNotFoundError:
            return None

    def read(self, path: str, limit: int) -> Found | Trouble:
        """Reads a file; answers as `storage.files` does for one of this machine."""
        try:
            status = self.status(path)
        except PermissionError:
            return denied()
        if status is None:
            return Trouble("gone", "it is not there")
        if stat.S_ISLNK(status.st_mode):
            return Trouble("not-a-file", "it is a symlink")
        if not stat.S_ISREG(status.st_mode):
            return Trouble("not-a-file", f"it is a {kind_of(status.st_mode)}", signature_of(status))
        if status.st_size > limit:
            return Trouble("too-large", f"{status.st_size:,} bytes, more than {limit:,}", signature_of(status))
        return self.content(path, status)


def denied() -> Trouble:
    """Returns why a file cannot be read if that is forbidden."""
    return Trouble("unreadable", f"it cannot be opened: {os.strerror(errno.EACCES)}")


def failed(error: BaseException) -> Trouble:
    """Returns why a file cannot be read if its place failed."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return Trouble("unreadable", f"reading failed: {sanitize_line(shown(said))[:_LONGEST]}")
