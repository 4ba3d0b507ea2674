"""Reads and makes git's objects as bytes, and writes new ones durably."""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.storage.durable import create, sync_folder, sync_path

if TYPE_CHECKING:
    import pygit2

COMMIT, TREE, BLOB = 1, 2, 3  # git's own numbers
KINDS = {COMMIT: "commit", TREE: "tree", BLOB: "blob"}
FILE, PROGRAM, LINK, REPOSITORY, FOLDER = 0o100644, 0o100755, 0o120000, 0o160000, 0o040000

# Bytes that are no entry end the tree, so that a damaged one is read once, not once per byte.
_ENTRY = late(rb"([0-7]{1,6}+) ([^\0]++)\0([\s\S]{20})|[\s\S]++")


def object_id(kind: int, data: bytes) -> bytes:
    """Returns the id of an object, 20 bytes."""
    digest = hashlib.sha1(b"%s %d\0" % (KINDS[kind].encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


# ── trees ──


class TreeEntry(NamedTuple):
    """An entry of a tree without its name: git's mode and the 20 bytes of the object's id."""

    mode: int
    oid: bytes


NamedEntry = tuple[bytes, bytes, bytes]  # mode in octal digits, name, id
FOLDER_MODE, REPOSITORY_MODE = b"40000", b"160000"


def entries(tree: bytes) -> list[NamedEntry]:
    """Returns the entries of a tree, in its order. Raises `ValueError` if it is damaged."""
    found: list[NamedEntry] = _ENTRY.findall(tree)
    if found and not found[-1][0]:
        raise ValueError("a tree is damaged")
    return found


def joined(listed: Iterable[NamedEntry]) -> bytes:
    """Serialises a tree of these entries, in the order given."""
    return b"".join([b"%b %b\0%b" % entry for entry in listed])


def read_tree(git: pygit2.Repository, oid: bytes) -> list[NamedEntry]:
    """Returns the entries of a tree. Raises `KeyError` if it is missing, `ValueError` if it is damaged or no tree."""
    import pygit2

    kind, raw = git.odb.read(pygit2.Oid(oid))
    if kind != TREE:
        raise ValueError("an object that should be a tree is none")
    return entries(raw)


def flatten(git: pygit2.Repository, top: bytes) -> tuple[dict[str, TreeEntry], set[bytes]]:
    """Returns everything in a tree but folders, by path; and the ids of all trees. Raises as `read_tree`."""
    found: dict[str, TreeEntry] = {}
    trees = {top}
    pending = [("", top)]
    while pending:
        where, oid = pending.pop()
        for mode, name, inner in read_tree(git, oid):
            path = where + os.fsdecode(name)
            if mode == FOLDER_MODE:
                trees.add(inner)
                pending.append((f"{path}/", inner))
            else:
                found[path] = TreeEntry(int(mode, 8), inner)
    return found, trees


def build(flat: Mapping[str, TreeEntry], add: Callable[[int, bytes], bytes]) -> bytes:
    """Builds the tree of these paths; returns its id. `add` stores each tree, inner ones first, and returns its id."""
    folders: dict[str, dict[bytes, TreeEntry]] = {"": {}}
    for path, entry in flat.items():
        where, _, name = path.rpartition("/")
        above = where
        while above not in folders:
            folders[above] = {}
            above = above.rpartition("/")[0]
        folders[where][os.fsencode(name)] = entry
    # A folder's path is longer than those above it: inner folders come first, the root (empty) last.
    for path in sorted(folders, key=len, reverse=True):
        # Git sorts a folder as if its name ended with a slash.
        order = sorted(folders[path].items(), key=lambda item: item[0] + b"/" * (item[1].mode == FOLDER))
        oid = add(TREE, joined((b"%o" % entry.mode, name, entry.oid) for name, entry in order))
        if path:
            where, _, last = path.rpartition("/")
            folders[where][os.fsencode(last)] = TreeEntry(FOLDER, oid)
    return oid


# ── new objects ──

_STAGED = "tmp_objdir-signet"  # git deletes a folder of this name, too, if a kill leaves it
_TRIES = 10


class NewObjects:
    """New objects for a repository: none is visible before `flush`, all are durable after it."""

    def __init__(self, git: pygit2.Repository) -> None:
        self._objects = os.path.join(git.path, "objects")
        self._staged = os.path.join(self._objects, _STAGED)
        self._new: dict[bytes, None] = {}

    def __enter__(self) -> NewObjects:
        shutil.rmtree(self._staged, ignore_errors=True)
        os.mkdir(self._staged)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._staged, ignore_errors=True)

    def add(self, kind: int, data: bytes) -> bytes:
        """Adds an object and returns its id."""
        oid = object_id(kind, data)
        if oid not in self._new:
            raw = zlib.compress(b"%s %d\0%b" % (KINDS[kind].encode(), len(data), data), 1)
            os.close(create(os.path.join(self._staged, oid.hex()), raw, 0o444, durable=False))
            self._new[oid] = None
        return oid

    def flush(self) -> None:
        """Makes all of them part of the repository, in the order in which they were added: a tree after its blobs.

        Syncing many at the end costs hardly more than syncing one.
        """
        for oid in self._new:
            sync_path(os.path.join(self._staged, oid.hex()))
        for oid in self._new:
            self._move(oid.hex())
        for fan in {oid[:1].hex() for oid in self._new}:
            sync_folder(os.path.join(self._objects, fan))
        sync_folder(self._objects)
        self._new.clear()

    def _move(self, oid: str) -> None:
        fan = os.path.join(self._objects, oid[:2])
        for left in reversed(range(_TRIES)):
            with suppress(FileExistsError):
                os.mkdir(fan)
            try:
                os.rename(os.path.join(self._staged, oid), os.path.join(fan, oid[2:]))
                return
            except FileNotFoundError:  # git's packing removes folders that it finds empty
                if not left:
                    raise
