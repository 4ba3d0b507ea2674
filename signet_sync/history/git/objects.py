"""Reads and makes git's objects as bytes: trees, commits and tags."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.lazy_pattern import late

if TYPE_CHECKING:
    import pygit2

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4  # git's own numbers
KINDS = {COMMIT: "commit", TREE: "tree", BLOB: "blob", TAG: "tag"}
FILE, PROGRAM, LINK, REPOSITORY, FOLDER = 0o100644, 0o100755, 0o120000, 0o160000, 0o040000

# Bytes that are no entry end the tree, so that a damaged one is read once, not once per byte.
_ENTRY = late(rb"([0-7]{1,6}+) ([^\0]++)\0([\s\S]{20})|[\s\S]++")
_SIGNATURE = late(rb"^-----BEGIN (?:PGP|SSH|SIGNED) [A-Z ]+-----$", re.MULTILINE)
_SIGNED_BY = (b"gpgsig", b"gpgsig-sha256", b"mergetag")  # fields that sign bytes which no longer exist


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


# ── commits and tags ──


def split_message(raw: bytes) -> tuple[bytes, bytes]:
    """Returns the fields of a commit or tag, and its message."""
    head, _, message = raw.partition(b"\n\n")
    return head, message


def fields(head: bytes) -> list[bytes]:
    """Splits the fields of a commit or tag, each with its continuation lines."""
    found: list[bytes] = []
    for line in head.split(b"\n"):
        if line.startswith(b" ") and found:
            found[-1] += b"\n" + line
        else:
            found.append(line)
    return found


def ids_of(head: bytes, name: bytes) -> list[bytes]:
    """Returns the ids (20 bytes) in the fields of one name."""
    return [bytes.fromhex(field[len(name) + 1 :].decode()) for field in fields(head) if field.startswith(name + b" ")]


def composed(head: list[bytes], message: bytes) -> bytes:
    """Composes a commit or tag of these fields, without signatures, which were for its old content."""
    unsigned = [field for field in head if field.partition(b" ")[0] not in _SIGNED_BY]
    return b"\n".join(unsigned) + b"\n\n" + message


def unsigned_message(message: bytes) -> bytes:
    """Returns the message of a tag without the signature at its end."""
    signature = _SIGNATURE.search(message)
    return message if signature is None else message[: signature.start()]


class ObjectStore:
    """Reads the objects of a repository by their ids of 20 bytes."""

    def __init__(self, git: pygit2.Repository) -> None:
        from pygit2 import GitError, Oid

        self.git = git
        self._oid, self._errors = Oid, (KeyError, GitError)

    def read(self, oid: bytes) -> tuple[int, bytes]:
        """Returns type and bytes of an object. Raises `WorkspaceError` if it is missing or damaged."""
        if self._is_cut_off(oid.hex()):
            raise incomplete(oid)
        try:
            kind, raw = self.git.odb.read(self._oid(raw=oid))
        except self._errors:
            raise incomplete(oid) from None
        return int(kind), raw

    def _is_cut_off(self, oid: str) -> bool:
        """Returns whether an object's own file ends too early, which libgit2 would read forever."""
        try:
            with open(os.path.join(self.git.path, "objects", oid[:2], oid[2:]), "rb") as file:
                raw = file.read()
        except OSError:
            return False
        inflating = zlib.decompressobj()
        try:
            inflating.decompress(raw)
        except zlib.error:
            return True
        return not inflating.eof

    def has(self, oid: bytes) -> bool:
        """Returns whether the object exists."""
        return self.git.odb.exists(self._oid(raw=oid))

    def all(self) -> Iterator[bytes]:
        """Yields the ids of all objects."""
        for oid in self.git.odb:
            yield oid.raw

    def closure(self, tips: Iterable[bytes], but: Collection[bytes] = ()) -> set[bytes]:
        """Returns all objects that some objects reach, themselves included; those of `but` are not entered.

        Raises `WorkspaceError` if one of them is missing: so a caller that deletes the others knows that these exist.
        """
        found: set[bytes] = set()
        waiting = list(tips)
        while waiting:
            oid = waiting.pop()
            if oid in found or oid in but:
                continue
            found.add(oid)
            kind, raw = self.read(oid)
            if kind == TREE:
                for mode, _, inner in entries(raw):
                    if inner in found or inner in but or mode == REPOSITORY_MODE:
                        continue
                    if mode == FOLDER_MODE:
                        waiting.append(inner)
                    elif self.has(inner):
                        found.add(inner)
                    else:
                        raise incomplete(inner)
            elif kind != BLOB:
                head, _ = split_message(raw)
                for name in (b"tree", b"parent") if kind == COMMIT else (b"object",):
                    waiting.extend(ids_of(head, name))
        return found

    def commits(self, tips: Iterable[bytes]) -> set[bytes]:
        """Returns the commits that some commits and tags reach."""
        found: set[bytes] = set()
        waiting = list(tips)
        while waiting:
            oid = waiting.pop()
            if oid in found:
                continue
            kind, raw = self.read(oid)
            if kind == COMMIT:
                found.add(oid)
                waiting.extend(ids_of(split_message(raw)[0], b"parent"))
            elif kind == TAG:
                waiting.extend(ids_of(split_message(raw)[0], b"object"))
        return found


def incomplete(oid: bytes) -> WorkspaceError:
    """Makes the error for an object that is missing or damaged."""
    return WorkspaceError(
        f"the git repository lacks the object {oid.hex()}, or it is damaged",
        path=".git",
        hint="run git fsck for details; an incomplete repository cannot be rewritten",
        code="history-damaged",
    )
