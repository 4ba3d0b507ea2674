"""Writes new objects of a repository: a few as separate files, many as one pack, which needs one sync for thousands."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from signet_sync.history.git import trees
from signet_sync.storage.durable import create, sync_descriptor, sync_folder, unlink

if TYPE_CHECKING:
    import pygit2

LOOSE_OBJECTS = 100  # as in git (`fetch.unpackLimit`)
LOOSE_BYTES = 8 * 1024 * 1024
_TRIES = 10

_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_MADE_OF = 7  # an object stored as its difference from another one
_LONGEST_COPY, _LONGEST_INSERT = 0xFFFF, 127


class NewObjects:
    """New objects for a repository. None is visible before `flush`, all are durable after it."""

    def __init__(self, git: pygit2.Repository) -> None:
        self._git = git
        self._waiting: dict[bytes, tuple[trees.Kind, bytes]] = {}
        self._bytes = 0
        self._pack: Pack | None = None

    def add(self, kind: trees.Kind, data: bytes) -> bytes:
        """Adds an object and returns its id."""
        oid = trees.object_id(kind, data)
        if self._pack is not None:
            self._pack.add(oid, kind, data)
        elif oid not in self._waiting:
            self._waiting[oid] = (kind, data)
            self._bytes += len(data)
            if len(self._waiting) > LOOSE_OBJECTS or self._bytes > LOOSE_BYTES:
                self._pack = Pack(os.path.join(self._git.path, "objects", "pack"))
                for waiting, (its_kind, its_data) in self._waiting.items():
                    self._pack.add(waiting, its_kind, its_data)
                self._waiting.clear()
        return oid

    def flush(self) -> None:
        """Makes all of them part of the repository."""
        if self._pack is not None:
            self._pack.publish()
            self._pack = None
        for kind, data in self._waiting.values():
            self._write(kind, data)
        self._waiting.clear()

    def _write(self, kind: trees.Kind, data: bytes) -> None:
        """Writes an object to a file of its own; retries, since git's packing may have removed its empty folder."""
        for left in reversed(range(_TRIES)):
            try:
                self._git.write(_KINDS[kind], data)
                return
            except OSError:
                if not left:
                    raise

    def discard(self) -> None:
        """Removes everything that was not flushed."""
        if self._pack is not None:
            self._pack.abandon()
            self._pack = None


class Pack:
    """A pack that is being written: whole objects, except those that the caller knows to resemble another one."""

    def __init__(self, folder: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(folder)
        self._folder = folder
        # The name is always the same: the next process removes what a kill left. Git's gc removes `tmp_…`, too.
        self._name = os.path.join(folder, "tmp_pack_signet")
        self._sweep()
        self._file: IO[bytes] = open(self._name, "x+b", opener=_opened)  # noqa: SIM115 - closed by publish or abandon
        self._file.write(struct.pack(">4sII", b"PACK", 2, 0))
        self._at: dict[bytes, tuple[int, int]] = {}

    def add(self, oid: bytes, kind: trees.Kind, data: bytes) -> None:
        if oid in self._at:
            return
        written = _header(_KINDS[kind], len(data)) + zlib.compress(data, 1)
        self._at[oid] = (self._file.tell(), zlib.crc32(written))
        self._file.write(written)

    def add_like(self, oid: bytes, data: bytes, base: bytes, base_data: bytes) -> None:
        """Adds an object as a delta of another one of this pack: good if they differ in one short stretch."""
        if oid in self._at:
            return
        delta = _delta(base_data, data)
        written = _header(_MADE_OF, len(delta)) + base + zlib.compress(delta, 1)
        self._at[oid] = (self._file.tell(), zlib.crc32(written))
        self._file.write(written)

    def publish(self) -> None:
        checksum = self._sealed()
        name = os.path.join(self._folder, f"pack-{checksum.hex()}")
        staged = f"{self._name}.idx"
        os.close(create(staged, index(self._at, checksum), 0o444))
        # The index comes last, because a pack without one is invisible.
        os.rename(self._name, f"{name}.pack")
        os.rename(staged, f"{name}.idx")
        sync_folder(self._folder)

    def _sealed(self) -> bytes:
        """Writes the number of objects and the checksum; returns the checksum."""
        self._file.seek(8)
        self._file.write(struct.pack(">I", len(self._at)))
        self._file.seek(0)
        digest = hashlib.sha1(usedforsecurity=False)
        while piece := self._file.read(1 << 20):
            digest.update(piece)
        self._file.write(digest.digest())
        self._file.flush()
        sync_descriptor(self._file.fileno())
        self._file.close()
        return digest.digest()

    def abandon(self) -> None:
        self._file.close()
        self._sweep()

    def _sweep(self) -> None:
        for path in (self._name, f"{self._name}.idx"):
            unlink(path)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)


def _header(kind: int, size: int) -> bytes:
    """Encodes kind and size of an object in a pack: four bits of the size beside the kind, then seven a byte."""
    found = [kind << 4 | size & 15]
    size >>= 4
    while size:
        found[-1] |= 128
        found.append(size & 127)
        size >>= 7
    return bytes(found)


def _delta(base: bytes, data: bytes) -> bytes:
    """Returns the delta of an object: the bytes before and after the stretch that differs are copied from the base."""
    most = min(len(base), len(data))
    before = _shared(most, lambda first, last: base[first:last] == data[first:last])
    after = _shared(
        most - before,
        lambda first, last: base[len(base) - last : len(base) - first] == data[len(data) - last : len(data) - first],
    )
    own = data[before : len(data) - after]
    inserts = (own[at : at + _LONGEST_INSERT] for at in range(0, len(own), _LONGEST_INSERT))
    return b"".join(
        (
            _size(len(base)),
            _size(len(data)),
            *_copies(0, before),
            *(bytes([len(piece)]) + piece for piece in inserts),
            *_copies(len(base) - after, after),
        )
    )


def _shared(most: int, is_equal: Callable[[int, int], bool]) -> int:
    """Returns how many bytes two texts share, at most `most`; `is_equal` compares a stretch of them."""
    known = 0
    while known < most:
        middle = (known + most + 1) // 2
        if is_equal(known, middle):
            known = middle
        else:
            most = middle - 1
    return known


def _copies(start: int, count: int) -> Iterator[bytes]:
    """Yields the instructions to copy bytes of the base: all four bytes of the position, two of the length."""
    for at in range(start, start + count, _LONGEST_COPY):
        yield b"\xbf" + struct.pack("<IH", at, min(_LONGEST_COPY, start + count - at))


def _size(size: int) -> bytes:
    """Encodes a size in a delta: seven bits a byte, the lowest first."""
    found = []
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes([*found, size])


def index(at: dict[bytes, tuple[int, int]], checksum: bytes) -> bytes:
    """Serialises the `.idx` (version 2) of a pack: ids with position and CRC-32, and the pack's checksum."""
    order = sorted(at)
    fanout, reached = [], 0
    for first in range(256):
        while reached < len(order) and order[reached][0] <= first:
            reached += 1
        fanout.append(reached)
    large = [at[oid][0] for oid in order if at[oid][0] >= 1 << 31]
    places = {offset: 1 << 31 | number for number, offset in enumerate(large)}
    found = b"".join(
        (
            b"\xfftOc" + struct.pack(">I", 2),
            struct.pack(">256I", *fanout),
            *order,
            struct.pack(f">{len(order)}I", *(at[oid][1] for oid in order)),
            struct.pack(f">{len(order)}I", *(places.get(at[oid][0], at[oid][0]) for oid in order)),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return found + hashlib.sha1(found, usedforsecurity=False).digest()
