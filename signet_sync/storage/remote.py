"""Lets a workspace that is no folder of this machine be read like one: listings as stat results, files as bytes.

Imports as little as `locations`, whose callers pay for it.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import sha256

TYPE_CHECKING = False  # as in `locations`
if TYPE_CHECKING:
    from signet_sync.formats.snapshot import Found, Trouble


class Reader(ABC):
    """Reads below a workspace's root; paths are relative to it, `""` is the root itself.

    Raises `Unreachable` where a place does not answer: what was not seen must not be taken for missing.
    """

    @abstractmethod
    def entries(self, path: str) -> Mapping[str, os.stat_result]:
        """Lists a folder: the status of each name in it. Raises `FileNotFoundError`, `PermissionError`."""

    @abstractmethod
    def read(self, path: str, limit: int) -> Found | Trouble:
        """Reads a regular file once, never beyond `limit` bytes; the signature is that of the bytes."""

    def read_ahead(self, paths: Sequence[str], limit: int) -> None:
        """Begins to read files, or all files of folders, that are read next, where that saves time."""
        return


class RemoteRoot(str):
    """A workspace's root elsewhere: its URL, without what is secret in it, and what reads it."""

    __slots__ = ("reader",)
    reader: Reader

    def __new__(cls, url: str, reader: Reader) -> RemoteRoot:
        """Makes the root; `url` is what people see of it."""
        made = super().__new__(cls, url)
        made.reader = reader
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Makes it a plain text in another process, which opens the place itself."""
        return str, (str(self),)


class RemoteFolder:
    """A folder below a remote root, in the place of an open folder's descriptor."""

    __slots__ = ("_path", "_reader")

    def __init__(self, reader: Reader, path: str) -> None:
        self._reader = reader
        self._path = path

    def statuses(self) -> Mapping[str, os.stat_result]:
        """Returns the status of each name. Raises `OSError`."""
        return self._reader.entries(self._path)

    def status(self, name: str) -> os.stat_result | None:
        """Returns the status of a name; None if nothing is there."""
        return self.statuses().get(name)

    def read(self, name: str, limit: int) -> Found | Trouble:
        """Reads a file of the folder once."""
        return self._reader.read(self._below(name), limit)

    def inside(self, name: str) -> RemoteFolder:
        """Returns a folder of this one."""
        return RemoteFolder(self._reader, self._below(name))

    def _below(self, name: str) -> str:
        return f"{self._path}/{name}" if self._path else name


def status(mode: int, size: int, version: str) -> os.stat_result:
    """Makes the status of a remote file: its version stands where a local file has its inode, and it has no times.

    `version` is what the place changes with every change of the file: an ETag, a version id, the id of a blob.
    """
    inode = int.from_bytes(sha256(version.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
    return os.stat_result((mode, inode, 0, 1, 0, 0, size, 0, 0, 0), {"st_mtime_ns": 0, "st_ctime_ns": 0})


FOLDER = status(stat.S_IFDIR, 0, "")
