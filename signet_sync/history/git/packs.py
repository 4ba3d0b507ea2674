"""Stores new objects and deletes old ones: few objects are a file each, many are one pack, which needs one sync."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from signet_sync.errors import WorkspaceError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.snapshot import OWN_LIMIT, Found
from signet_sync.history.git.objects import ObjectStore, incomplete, object_id
from signet_sync.storage import files
from signet_sync.storage.durable import sync_descriptor, sync_folder, sync_path, unlink
from signet_sync.storage.safe_paths import folder

if TYPE_CHECKING:
    import pygit2
    from pygit2.packbuilder import PackBuilder

LOOSE_OBJECTS = 100  # as in git (`fetch.unpackLimit`)
LOOSE_BYTES = 8 * 1024 * 1024
ROUND_BYTES = 256 * 1024 * 1024  # of new objects in one pack
_TRIES = 10
# Git deletes a folder of this name, too, if a kill leaves it.
_STAGED = "tmp_objdir-signet"
MANY, MUCH = 2000, 16 * 1024 * 1024  # loose objects, and their bytes, from which a pack is worthwhile
_OBJECTS = ".git/objects"
_PACKS = ".git/objects/pack"
_FAN, _LOOSE = late(r"[0-9a-f]{2}"), late(r"[0-9a-f]{38}")
_IDX_MAGIC = b"\xfftOc\x00\x00\x00\x02"


class NewObjects:
    """New objects for a repository. None is visible before `flush`, all are durable after it.

    They wait in a file without a name. libgit2 makes packs of them in a folder that the repository does not read.
    """

    def __init__(self, git: pygit2.Repository) -> None:
        self._git = git
        self._objects = os.path.join(git.path, "objects")
        self._staged = os.path.join(self._objects, _STAGED)
        import tempfile  # slow to import, and only writing needs it

        self._file = tempfile.SpooledTemporaryFile(LOOSE_BYTES, dir=self._objects, prefix="tmp_")  # noqa: SIM115
        self._end = 0
        self._waiting: dict[bytes, tuple[int, int, int]] = {}  # kind, place and length by id
        self._packed: set[bytes] = set()

    def __enter__(self) -> NewObjects:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        shutil.rmtree(self._staged, ignore_errors=True)

    def add(self, kind: int, data: bytes) -> bytes:
        """Adds an object and returns its id."""
        oid = object_id(kind, data)
        if oid not in self._waiting and oid not in self._packed:
            if self._end > ROUND_BYTES:
                self._pack()
            self._file.seek(self._end)
            self._file.write(data)
            self._waiting[oid] = kind, self._end, len(data)
            self._end += len(data)
        return oid

    def flush(self) -> None:
        """Makes all of them part of the repository."""
        if self._packed or len(self._waiting) > LOOSE_OBJECTS or self._end > LOOSE_BYTES:
            self._pack()
            self._publish()
        else:
            for oid in self._waiting:
                self._write(*self._read(oid))

    def _read(self, oid: bytes) -> tuple[int, bytes]:
        kind, at, length = self._waiting[oid]
        self._file.seek(at)
        return kind, self._file.read(length)

    def _write(self, kind: int, data: bytes) -> None:
        """Writes an object to a file of its own; retries, since git's packing may have removed its empty folder."""
        for left in reversed(range(_TRIES)):
            try:
                self._git.write(kind, data)
                return
            except OSError:
                if not left:
                    raise

    def _pack(self) -> None:
        """Packs the waiting objects, beside the repository's packs."""
        if not self._packed:
            shutil.rmtree(self._staged, ignore_errors=True)
            os.mkdir(self._staged)
            self._git.odb.add_backend(_backend(self._waiting, self._read), 0)
        _write_pack(self._git, self._waiting, self._staged)
        self._packed |= self._waiting.keys()
        self._waiting.clear()
        self._file.seek(0)
        self._file.truncate()
        self._end = 0

    def _publish(self) -> None:
        """Moves the packs, which libgit2 has synced, into place."""
        packs = os.path.join(self._objects, "pack")
        with suppress(FileExistsError):
            os.mkdir(packs)
        # The index comes last, because a pack without one is invisible.
        for name in sorted(os.listdir(self._staged), reverse=True):
            os.rename(os.path.join(self._staged, name), os.path.join(packs, name))
        sync_folder(packs)


def _backend(waiting: Collection[bytes], read: Callable[[bytes], tuple[int, bytes]]) -> pygit2.OdbBackend:
    """Makes objects that are in no file of the repository readable for libgit2."""
    import pygit2

    class _PendingObjects(pygit2.OdbBackend):
        def read_cb(self, oid: pygit2.Oid) -> tuple[int, bytes]:
            return read(oid.raw)

        def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
            kind, data = read(oid.raw)
            return kind, len(data)

        def exists_cb(self, oid: pygit2.Oid) -> bool:
            return oid.raw in waiting

        def read_prefix_cb(self, oid: object) -> Any:
            raise KeyError(oid)

        exists_prefix_cb = read_prefix_cb

        def refresh_cb(self) -> None:
            pass

        def __iter__(self) -> Any:
            return iter(())

    return _PendingObjects()


def _write_pack(git: pygit2.Repository, oids: Iterable[bytes], to: str | None = None) -> None:
    """Writes a pack of some objects next to the others, or in a folder; libgit2 syncs it."""
    import pygit2

    wanted = sorted(oids)

    def add(builder: PackBuilder) -> None:
        for oid in wanted:
            builder.add(pygit2.Oid(raw=oid))

    if wanted:
        git.pack(to, pack_delegate=add)


def prove_packed(git: pygit2.Repository, oids: Iterable[bytes]) -> None:
    """Reads objects from packs only. Raises `WorkspaceError` if one is missing there or damaged."""
    import pygit2

    packs = pygit2.Odb()
    packs.add_backend(pygit2.OdbBackendPack(os.path.join(git.path, "objects")), 1)
    for oid in oids:
        try:
            packs.read(pygit2.Oid(raw=oid))  # libgit2 compares the hash
        except (KeyError, pygit2.GitError):
            raise incomplete(oid) from None


def drop(root: str, store: ObjectStore, doomed: Collection[bytes], *, strays: bool) -> int:
    """Deletes objects, loose and packed; a pack that contains one is replaced by one without it. Returns how many.

    With `strays` also deletes what aborted writes left. A kill leaves every other object where it was, or twice.
    """
    gone: set[bytes] = set()
    if doomed:
        _drop_indexes(root)  # before the objects that they name
    for stem, held in _packs(root).items():
        dead = held.intersection(doomed)
        if dead:
            _write_pack(store.git, held - dead)
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


def pack_loose(root: str, store: ObjectStore) -> int:
    """Packs the loose objects of our own repository once there are many. Returns how many.

    The trees of a large folder hardly differ from commit to commit, and a pack stores only their differences. Loose
    objects are deleted only after the pack contains them durably, so that a kill leaves objects twice at worst. Raises
    `WorkspaceError`, `OSError`, and what libgit2 raises.
    """
    loose = _loose(root)
    if len(loose) < MANY and sum(loose.values()) < MUCH:
        return 0
    _write_pack(store.git, loose.keys() - set().union(*_packs(root).values()))
    packed: set[bytes] = set()
    for stem, held in _packs(root).items():
        if not held.isdisjoint(loose):
            _sync(root, [f"{stem}.pack", f"{stem}.idx"])
            packed |= held & loose.keys()
    prove_packed(store.git, packed)
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
                    "the index of a pack cannot be read", path=f"{_PACKS}/{name}", hint="git repack -a -d repairs it"
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
        status = files.status_of(root, f"{path}/{name}")
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
