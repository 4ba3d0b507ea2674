"""Defines what a look at the disk found, as values: signatures, files as they were read, snapshots."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Ground = Literal["present", "missing", "refused"]

# Largest number of bytes that is read: of a tombstone; of a page, or a copy of one; of what has to be read whole.
TOMBSTONE_LIMIT, PAGE_LIMIT, OWN_LIMIT = 1 << 20, 1 << 28, 1 << 31
# The kind of a file whose name is not UTF-8 or holds control characters: never one of ours.
STRANGE_NAME = "file with a name that is not plain text"


class Signature(NamedTuple):
    """Distinguishes states of a file without reading it. Bytes, nanoseconds, inode number."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


LARGEST = (1 << 63) - 1


def storable(number: int) -> int:
    """Limits a time or an inode number to what the index can hold: some file systems exceed SQLite's integers."""
    return number if -LARGEST <= number <= LARGEST else number & LARGEST


class Found(NamedTuple):
    """A file as it was read: its bytes and the signature that they belong to."""

    raw: bytes
    signature: Signature


class Trouble(NamedTuple):
    """Why a file could not be read; `code` is a verdict's code, `gone`, or `unsettled` (it changed meanwhile)."""

    code: str
    message: str
    signature: Signature | None = None


class Snapshot(NamedTuple):
    """Names found in `memory/` and `memory/tombstones/`, or the state of the hinted paths only.

    `files` holds regular files by path, `odd` anything else by path, with the reason. `ground` says whether `memory/`
    can be trusted: only then does a missing name mean a missing file.
    """

    everything: bool
    ground: Ground
    ground_message: str = ""
    files: Mapping[str, Signature] = MappingProxyType({})
    odd: Mapping[str, str] = MappingProxyType({})
    asked: frozenset[str] = frozenset()
