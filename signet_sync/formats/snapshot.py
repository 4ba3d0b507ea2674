"""What the doors saw, as values that the desks read: signatures, files as they were read, snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Ground = Literal["present", "missing", "refused"]

# Bytes of a file that are read at most: of a tombstone; of a page, or a copy of one; of what has to be read whole.
TOMBSTONE_LIMIT, PAGE_LIMIT, OWN_LIMIT = 1 << 20, 1 << 28, 1 << 31
# What stands under a name that is not UTF-8 or holds control characters: never one of ours, whatever it is.
STRANGE_NAME = "file with a name that is not plain text"


class Signature(NamedTuple):
    """What tells one state of a file from another without reading it. Bytes, nanoseconds, inode number."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


LARGEST = (1 << 63) - 1


def storable(number: int) -> int:
    """A time or an inode number as the index holds it: some file systems know greater ones than SQLite's integers."""
    return number if -LARGEST <= number <= LARGEST else number & LARGEST


class Found(NamedTuple):
    """A file as it was read: its bytes and the signature they belong to."""

    raw: bytes
    signature: Signature


class Trouble(NamedTuple):
    """Why a file could not be read; `code` is a verdict's code, `gone`, or `unsettled` (it changed meanwhile)."""

    code: str
    message: str
    signature: Signature | None = None


class Snapshot(NamedTuple):
    """Names found in `memory/` and `memory/tombstones/`, or the state of the hinted paths alone.

    `files` holds regular files by path, `odd` what stands under a name without being one, with the reason. `ground`
    says whether `memory/` can be trusted as a witness: only then is a missing name a missing file.
    """

    everything: bool
    ground: Ground
    ground_message: str = ""
    files: Mapping[str, Signature] = MappingProxyType({})
    odd: Mapping[str, str] = MappingProxyType({})
    asked: frozenset[str] = frozenset()
