"""Flattens git's trees to paths, and builds them from paths."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pygit2

FILE, PROGRAM, LINK, REPOSITORY, FOLDER = 0o100644, 0o100755, 0o120000, 0o160000, 0o040000

Kind = str  # blob, tree or commit


class Entry(NamedTuple):
    """An entry of a tree: git's mode and the 20 bytes of the object's id."""

    mode: int
    oid: bytes


def object_id(kind: Kind, data: bytes) -> bytes:
    """Returns the id of an object, 20 bytes."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


def entries(raw: bytes) -> Iterator[tuple[bytes, Entry]]:
    """Yields names and entries from the bytes of a tree. Raises `ValueError` if it is damaged."""
    at = 0
    while at < len(raw):
        blank, end = raw.index(b" ", at), raw.index(b"\0", at)
        if len(raw) < end + 21 or blank > end:
            raise ValueError("a tree is cut off")
        yield raw[blank + 1 : end], Entry(int(raw[at:blank], 8), raw[end + 1 : end + 21])
        at = end + 21


def read(git: pygit2.Repository, oid: bytes) -> bytes:
    """Returns the bytes of a tree. Raises `KeyError` if it is missing, `ValueError` if it is no tree."""
    import pygit2

    kind, raw = git.odb.read(pygit2.Oid(oid))
    if kind != pygit2.enums.ObjectType.TREE:
        raise ValueError("an object that should be a tree is none")
    return raw


def flatten(git: pygit2.Repository, top: bytes) -> tuple[dict[str, Entry], set[bytes]]:
    """Returns everything in a tree but folders, by path; and the ids of all trees. Raises `KeyError`, `ValueError`."""
    found: dict[str, Entry] = {}
    trees = {top}
    pending = [("", top)]
    while pending:
        where, oid = pending.pop()
        for name, entry in entries(read(git, oid)):
            path = where + os.fsdecode(name)
            if entry.mode == FOLDER:
                trees.add(entry.oid)
                pending.append((f"{path}/", entry.oid))
            else:
                found[path] = entry
    return found, trees


def build(flat: Mapping[str, Entry], add: Callable[[Kind, bytes], bytes]) -> bytes:
    """Builds the tree of these paths; returns its id. `add` stores each tree, inner ones first, and returns its id."""
    folders: dict[str, dict[bytes, Entry]] = {"": {}}
    for path, entry in flat.items():
        where, _, name = path.rpartition("/")
        if where not in folders:
            _make(folders, where)
        folders[where][os.fsencode(name)] = entry
    # A folder's path is longer than those above it: inner folders come first, the root (empty) last.
    for path in sorted(folders, key=len, reverse=True):
        oid = add("tree", _serialised(folders[path]))
        if path:
            where, _, name = path.rpartition("/")
            folders[where][os.fsencode(name)] = Entry(FOLDER, oid)
        else:
            top = oid
    return top


def _make(folders: dict[str, dict[bytes, Entry]], path: str) -> None:
    while path not in folders:
        folders[path] = {}
        path = path.rpartition("/")[0]


def _serialised(folder: Mapping[bytes, Entry]) -> bytes:
    # Git sorts a folder as if its name ended with a slash.
    order = sorted(folder.items(), key=lambda item: item[0] + b"/" if item[1].mode == FOLDER else item[0])
    return b"".join(b"%o %s\0%s" % (entry.mode, name, entry.oid) for name, entry in order)
