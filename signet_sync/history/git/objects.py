"""Reads git's objects as bytes, and their files: entries of trees, fields of commits, content of packs."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.errors import WorkspaceError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.snapshot import OWN_LIMIT, Found
from signet_sync.storage import files
from signet_sync.storage.durable import sync_descriptor, sync_path, unlink
from signet_sync.storage.safe_paths import folder

if TYPE_CHECKING:
    import pygit2
    from pygit2.packbuilder import PackBuilder

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4  # git's own numbers
FOLDER_MODE, LINKED_MODE = b"40000", b"160000"

Entry = tuple[bytes, bytes, bytes]  # mode, name, id

# Bytes that are no entry end the tree, so that a damaged one is read once, not once per byte.
_ENTRY = late(rb"([0-7]{1,6}+) ([^\0]++)\0([\s\S]{20})|[\s\S]++")
_MODES = (b"40000", b"100644", b"100755", b"120000", b"160000", b"100664")
_FEW = 64
_SIGNATURE = late(rb"^-----BEGIN (?:PGP|SSH|SIGNED) [A-Z ]+-----$", re.MULTILINE)
_SIGNED_BY = (b"gpgsig", b"gpgsig-sha256", b"mergetag")  # fields that sign bytes which no longer exist
_OBJECTS = ".git/objects"
_PACKS = ".git/objects/pack"
_FAN, _LOOSE = late(r"[0-9a-f]{2}"), late(r"[0-9a-f]{38}")
_IDX_MAGIC = b"\xfftOc\x00\x00\x00\x02"


def entries(tree: bytes) -> list[Entry]:
    """Returns mode, name and id (20 bytes) of each entry of a tree."""
    found: list[Entry] = _ENTRY.findall(tree)
    return found[:-1] if found and not found[-1][0] else found


def found_in(tree: bytes, names: Collection[bytes]) -> list[tuple[int, int, Entry]]:
    """Returns a tree's entries with some names, each with its start and end in the tree, in order."""
    if len(names) <= _FEW:
        # A few of thousands of entries are wanted: bytes that only look like one show up as a second match.
        likely = [_looking_like(name, tree) for name in names]
        if all(len(found) < 2 for found in likely):
            return sorted(entry for found in likely for entry in found)
    return [(match.start(), match.end(), _parts(match)) for match in _ENTRY.finditer(tree) if match[2] in names]


def _looking_like(name: bytes, tree: bytes) -> list[tuple[int, int, Entry]]:
    found = []
    at = tree.find(b" %b\0" % name)
    while at >= 0:
        end = at + len(name) + 22
        mode = next((mode for mode in _MODES if tree.endswith(mode, 0, at)), None)
        if mode is not None and end <= len(tree):
            found.append((at - len(mode), end, (mode, name, tree[end - 20 : end])))
        at = tree.find(b" %b\0" % name, at + 1)
    return found


def _parts(match: re.Match[bytes]) -> Entry:
    mode, name, oid = match.groups()
    return mode, name, oid


def joined(listed: Iterable[Entry]) -> bytes:
    """Serialises a tree of these entries, in the order given."""
    return b"".join([b"%b %b\0%b" % entry for entry in listed])


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


class Store:
    """Reads the objects of a repository by their ids of 20 bytes."""

    def __init__(self, git: pygit2.Repository) -> None:
        from pygit2 import GitError, Oid

        self.git = git
        self._oid, self._errors = Oid, (KeyError, GitError)

    def read(self, oid: bytes) -> tuple[int, bytes]:
        """Returns type and bytes of an object. Raises `WorkspaceError` if it is missing or damaged."""
        if self._is_cut_off(oid.hex()):
            raise _incomplete(oid)
        try:
            kind, raw = self.git.odb.read(self._oid(raw=oid))
        except self._errors:
            raise _incomplete(oid) from None
        return int(kind), raw

    def _is_cut_off(self, oid: str) -> bool:
        """Whether an object's own file ends too early, which libgit2 would read forever."""
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
        """Whether the object exists."""
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
                    if inner in found or inner in but or mode == LINKED_MODE:
                        continue
                    if mode == FOLDER_MODE:
                        waiting.append(inner)
                    elif self.has(inner):
                        found.add(inner)
                    else:
                        raise _incomplete(inner)
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

    def prove_packed(self, oids: Iterable[bytes]) -> None:
        """Reads objects from packs only. Raises `WorkspaceError` if one is missing there or damaged."""
        from pygit2 import Odb, OdbBackendPack

        packs = Odb()
        packs.add_backend(OdbBackendPack(os.path.join(self.git.path, "objects")), 1)
        for oid in oids:
            try:
                packs.read(self._oid(raw=oid))  # libgit2 compares the hash
            except self._errors:
                raise _incomplete(oid) from None

    def pack(self, oids: Iterable[bytes]) -> None:
        """Writes a pack of some objects next to the others; libgit2 syncs it."""
        wanted = sorted(oids)

        def add(builder: PackBuilder) -> None:
            for oid in wanted:
                builder.add(self._oid(raw=oid))

        if wanted:
            self.git.pack(pack_delegate=add)


def _incomplete(oid: bytes) -> WorkspaceError:
    return WorkspaceError(
        f"the git repository lacks the object {oid.hex()}, or it is damaged",
        path=".git",
        hint="git fsck says more; a repository that is not whole cannot be rewritten",
        code="history-damaged",
    )


def drop(root: str, store: Store, doomed: Collection[bytes], *, strays: bool) -> int:
    """Deletes objects, loose and packed; a pack that contains one is replaced by one without it. Returns how many.

    With `strays` also deletes what aborted writes left. A kill leaves every other object where it was, or twice.
    """
    gone: set[bytes] = set()
    if doomed:
        _drop_indexes(root)  # before the objects that they name
    for stem, held in _packs(root).items():
        dead = held.intersection(doomed)
        if dead:
            store.pack(held - dead)
            _unlink(root, _PACKS, [f"{stem}{ending}" for ending in _endings(root, stem)])
            gone |= dead
    for fan in files.listing(root, _OBJECTS, ""):
        if _FAN.fullmatch(fan):
            dead_names = []
            for name in files.listing(root, f"{_OBJECTS}/{fan}", ""):
                oid = bytes.fromhex(fan + name) if _LOOSE.fullmatch(name) else None
                if (oid is None and strays) or (oid is not None and oid in doomed):
                    dead_names.append(name)
                    gone.update([oid] if oid is not None else [])
            _unlink(root, f"{_OBJECTS}/{fan}", dead_names)
    if strays:
        _drop_strays(root)
    return len(gone)


_MANY, _MUCH = 2000, 16 * 1024 * 1024  # loose objects, and their bytes, from which a pack is worthwhile


def pack_loose(root: str, store: Store) -> int:
    """Packs the loose objects of our own repository once there are many. Returns how many.

    The trees of a large folder hardly differ from commit to commit, and a pack stores only their differences. Loose
    objects
    are deleted only after the pack contains them durably, so that a kill leaves objects twice at worst. Raises
    `WorkspaceError`, `OSError`, and what libgit2 raises.
    """
    loose = _loose(root)
    if len(loose) < _MANY and sum(loose.values()) < _MUCH:
        return 0
    store.pack(loose.keys() - set().union(*_packs(root).values()))
    packed: set[bytes] = set()
    for stem, held in _packs(root).items():
        if not held.isdisjoint(loose):
            _sync(root, [f"{stem}.pack", f"{stem}.idx"])
            packed |= held & loose.keys()
    store.prove_packed(packed)
    for fan in {oid[:1] for oid in packed}:
        _unlink(root, f"{_OBJECTS}/{fan.hex()}", [oid[1:].hex() for oid in packed if oid[:1] == fan])
    return len(packed)


def _loose(root: str) -> dict[bytes, int]:
    """Returns the bytes on disk of each loose object."""
    found = {}
    for fan in filter(_FAN.fullmatch, files.listing(root, _OBJECTS, "")):
        with folder(root, f"{_OBJECTS}/{fan}") as descriptor, os.scandir(descriptor) as entries_of:
            for entry in entries_of:
                if _LOOSE.fullmatch(entry.name):
                    found[bytes.fromhex(fan + entry.name)] = entry.stat(follow_symlinks=False).st_size
    return found


def _sync(root: str, names: Iterable[str]) -> None:
    """Syncs files of packs, and their folder."""
    with folder(root, _PACKS) as descriptor:
        for name in names:
            sync_path(name, dir_fd=descriptor)
        sync_descriptor(descriptor)


def _packs(root: str) -> dict[str, set[bytes]]:
    """Returns the ids in each pack, by the name of its files without ending. Raises `WorkspaceError`."""
    found = {}
    for name in files.listing(root, _PACKS, "pack-"):
        if name.endswith(".idx"):
            read = files.read(root, f"{_PACKS}/{name}", OWN_LIMIT)
            if not isinstance(read, Found) or read.raw[:8] != _IDX_MAGIC:
                raise WorkspaceError(
                    "the index of a pack cannot be read", path=f"{_PACKS}/{name}", hint="git repack -a -d mends it"
                )
            count = int.from_bytes(read.raw[1028:1032], "big")
            start = 8 + 256 * 4
            ids = read.raw[start : start + 20 * count]
            found[name.removesuffix(".idx")] = {ids[at : at + 20] for at in range(0, len(ids), 20)}
    return found


def _endings(root: str, stem: str) -> list[str]:
    """Returns the endings of a pack's files, with the index last, because it identifies a pack after a kill."""
    endings = [name.removeprefix(stem) for name in files.listing(root, _PACKS, f"{stem}.")]
    return sorted(endings, key=lambda ending: ending == ".idx")


def _drop_indexes(root: str) -> None:
    """Deletes git's lookup files for objects, which git creates again."""
    _unlink(root, _PACKS, files.listing(root, _PACKS, "multi-pack-index"))
    _unlink(root, f"{_OBJECTS}/info", ["commit-graph", "packs"])
    graphs = f"{_OBJECTS}/info/commit-graphs"
    _unlink(root, graphs, files.listing(root, graphs, ""))


def _drop_strays(root: str) -> None:
    """Deletes what killed writers left: temporary objects and packs, packs without index, received objects."""
    names = files.listing(root, _PACKS, "")
    whole = {name.removesuffix(".idx") for name in names if name.startswith("pack-") and name.endswith(".idx")}
    _unlink(root, _PACKS, [name for name in names if name.partition(".")[0] not in whole])
    for name in files.listing(root, _OBJECTS, ""):
        if name.startswith("tmp_obj"):
            _unlink(root, _OBJECTS, [name])
        elif len(name) != 2 and name not in ("info", "pack"):
            drop_folder(root, f"{_OBJECTS}/{name}")


def drop_folder(root: str, path: str) -> None:
    """Deletes a folder of `.git` with its content; links in it are deleted, not followed."""
    for name in files.listing(root, path, ""):
        status = files.look(root, f"{path}/{name}")
        if status is not None and (status.st_mode & 0o170000) == 0o040000:
            drop_folder(root, f"{path}/{name}")
        else:
            _unlink(root, path, [name])
    files.remove_empty_folders(root, path, path.rpartition("/")[0])


def _unlink(root: str, path: str, names: Collection[str]) -> None:
    """Deletes files of one folder, and syncs it once."""
    if not names:
        return
    with suppress(FileNotFoundError), folder(root, path) as descriptor:
        for name in names:
            unlink(name, dir_fd=descriptor)
        sync_descriptor(descriptor)
