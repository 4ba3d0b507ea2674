"""A model of power loss: what an operation did to the disk, in order, and every state a cut may leave of it.

`Recorder` writes down what a process does to files and folders: its own calls and, below SQLite, those of its VFS.
`Disk` plays that back up to a cut and gives the states that a file system may show afterwards. What was synced is
there. Of the rest anything may be missing, each by itself: a new name in a folder that was not synced, the bytes of a
write, a part of them, or all but the length of the file, which then reads as zeros.
"""

from __future__ import annotations

import os
import pickle
import random
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import apsw
from crash_runner import forked

from signet_sync.storage import writing

SECTOR, PAGE = 512, 4096


# ── what was done ──


@dataclass(frozen=True)
class Write:
    """Bytes at a place of a file."""

    node: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    """A file's new length."""

    node: int
    size: int


@dataclass(frozen=True)
class Names:
    """What stands under names from now on: (folder, name, node), or None for nothing."""

    changes: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True)
class Sync:
    """An fsync of a file or a folder that succeeded."""

    node: int


@dataclass(frozen=True)
class Answered:
    """The caller has been answered: it is done."""


Step = Write | Truncate | Names | Sync | Answered


@dataclass
class Image:
    """Files and folders as they stand: a node has bytes, or names. Node 0 is the folder above all."""

    data: dict[int, bytearray] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})

    def copy(self) -> Image:
        """One to change; the bytes of files are shared until they do."""
        return Image(dict(self.data), {node: dict(names) for node, names in self.folders.items()})

    def write(self, node: int, offset: int, data: bytes) -> None:
        """Bytes at a place; a gap before it reads as zeros."""
        held = bytearray(self.data[node])
        held.extend(bytes(max(0, offset + len(data) - len(held))))
        held[offset : offset + len(data)] = data
        self.data[node] = held

    def truncate(self, node: int, size: int) -> None:
        """A new length."""
        held = self.data[node]
        self.data[node] = bytearray(held[:size]) + bytes(max(0, size - len(held)))

    def name(self, folder: int, name: str, node: int | None) -> None:
        """What stands under a name."""
        if node is None:
            self.folders[folder].pop(name, None)
        else:
            self.folders[folder][name] = node

    def tree(self, node: int = 0, path: str = "") -> Iterator[tuple[str, bytes | None]]:
        """Every path from the top, folders (None) before what is in them."""
        for name, child in sorted(self.folders[node].items()):
            inner = f"{path}/{name}" if path else name
            if child in self.folders:
                yield inner, None
                yield from self.tree(child, inner)
            else:
                yield inner, bytes(self.data[child])

    def digest(self) -> str:
        """Equal where two images are the same to a reader."""
        found = sha256()
        for path, data in self.tree():
            contents = b"folder" if data is None else sha256(data).digest()
            found.update(path.encode("utf-8", "surrogateescape") + b"\0" + contents + b"\n")
        return found.hexdigest()

    def put(self, top: Path) -> None:
        """Makes it real below a folder that holds none of it."""
        for path, data in self.tree():
            if data is None:
                (top / path).mkdir(mode=0o700)
            else:
                (top / path).write_bytes(data)
                (top / path).chmod(0o600)


# ── the record ──


class Recorder:
    """Writes down what this process does below some folders of `top`, from `begin` on."""

    def __init__(self, top: Path, places: tuple[str, ...]) -> None:
        self.top = top
        self.places = places
        self.before = Image()
        self.steps: list[Step] = []
        self.now = Image()
        self._nodes: dict[tuple[int, int], int] = {}
        self._last = 0
        for place in places:
            self._take(0, place, top / place)
        self.now = self.before.copy()

    def _take(self, folder: int, name: str, path: Path) -> None:
        """What stands before: all of it is on the disk."""
        node = self._node(path.lstat(), fresh=True)
        self.before.name(folder, name, node)
        if not path.is_dir():
            self.before.data[node] = bytearray(path.read_bytes())
            return
        self.before.folders[node] = {}
        for inner in sorted(os.listdir(path)):
            if not inner.endswith("-shm"):
                self._take(node, inner, path / inner)

    def _node(self, status: os.stat_result, *, fresh: bool = False) -> int | None:
        """The number of a file or folder; None for one that lies elsewhere. Inodes are used again: a new one is new."""
        key = status.st_dev, status.st_ino
        if fresh:
            self._last += 1
            self._nodes[key] = self._last
        return self._nodes.get(key)

    # ── what has happened ──

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        play(self.now, step)

    def made(self, folder: int | None, name: str, status: os.stat_result) -> None:
        """A new file or folder stands under a name."""
        if folder is None or name.endswith("-shm"):
            return
        node = self._node(status, fresh=True)
        assert node is not None
        if stat.S_ISDIR(status.st_mode):
            self.before.folders[node] = {}
            self.now.folders[node] = {}
        else:
            self.before.data[node] = bytearray()
            self.now.data[node] = bytearray()
        self._add(Names(((folder, name, node),)))

    def wrote(self, status: os.stat_result, offset: int, data: bytes) -> None:
        """Bytes were written to a file."""
        node = self._node(status)
        if node is not None and node in self.now.data and data:
            self._add(Write(node, offset, bytes(data)))

    def cut(self, status: os.stat_result, size: int) -> None:
        """A file has a new length."""
        node = self._node(status)
        if node is not None and len(self.now.data[node]) != size:
            self._add(Truncate(node, size))

    def synced(self, status: os.stat_result) -> None:
        """A file or folder was synced."""
        node = self._node(status)
        if node is not None:
            self._add(Sync(node))

    def named(self, *changes: tuple[int | None, str, int | None]) -> None:
        """Names were given, taken away, or changed hands."""
        kept = tuple((folder, name, node) for folder, name, node in changes if folder is not None)
        if kept:
            self._add(Names(kept))

    def caught_up(self, path: str | int, **given: Any) -> None:
        """What was written past us (by a file object of Python) is written down now, as not synced."""
        status = os.stat(path, **given)
        node = self._node(status)
        if node is None or node not in self.now.data or status.st_size == len(self.now.data[node]):
            return
        handle = _OPEN(path, os.O_RDONLY, **given) if isinstance(path, str) else path
        try:
            self.cut(status, 0)
            self.wrote(status, 0, os.pread(handle, status.st_size, 0))
        finally:
            if handle is not path:
                os.close(handle)

    def at(self, path: Any, dir_fd: int | None = None) -> tuple[int | None, str]:
        """The folder's number and the name of a path."""
        where, name = os.path.split(os.fspath(path))
        status = os.stat(where or ".", dir_fd=dir_fd) if where or dir_fd is None else os.fstat(dir_fd)
        return self._node(status), name

    def node_at(self, path: Any, dir_fd: int | None = None) -> int | None:
        """The number of what stands at a path; None for nothing, or for something elsewhere."""
        try:
            return self._node(os.stat(path, dir_fd=dir_fd, follow_symlinks=False))
        except OSError:
            return None

    # ── where it is written down ──

    def begin(self) -> None:
        """Listens from now on: to the calls of this process, and to those of SQLite."""
        for listen in (self._files, self._folders, self._renames):
            listen()
        self._vfs = _listening_vfs(self)

    def _files(self) -> None:
        real_write, real_pwrite, real_ftruncate = os.write, os.pwrite, os.ftruncate

        def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            new = flags & os.O_CREAT and self.node_at(path, dir_fd) is None
            descriptor = _OPEN(path, flags, mode, dir_fd=dir_fd)
            if new:
                self.made(*self.at(path, dir_fd), os.fstat(descriptor))
            elif flags & os.O_TRUNC:
                self.cut(os.fstat(descriptor), 0)
            return descriptor

        def write(descriptor: int, data: Any) -> int:
            status = os.fstat(descriptor)
            place = os.lseek(descriptor, 0, os.SEEK_CUR) if stat.S_ISREG(status.st_mode) else 0
            count = real_write(descriptor, data)
            if stat.S_ISREG(status.st_mode):
                end = os.lseek(descriptor, 0, os.SEEK_CUR)  # where it appends, only the kernel knows the place
                self.wrote(status, end - count if end != place else place, bytes(data)[:count])
            return count

        def pwrite(descriptor: int, data: Any, offset: int) -> int:
            count = real_pwrite(descriptor, data, offset)
            self.wrote(os.fstat(descriptor), offset, bytes(data)[:count])
            return count

        def ftruncate(descriptor: int, size: int) -> None:
            real_ftruncate(descriptor, size)
            self.cut(os.fstat(descriptor), size)

        def fsync(descriptor: int) -> None:
            # The disk below is real, and is not asked: only that it was asked counts.
            self.caught_up(descriptor)
            self.synced(os.fstat(descriptor))

        os.open, os.write, os.pwrite, os.ftruncate = open_, write, pwrite, ftruncate
        os.fsync = os.fdatasync = fsync

    def _folders(self) -> None:
        real_mkdir, real_link = os.mkdir, os.link

        def mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            real_mkdir(path, mode, dir_fd=dir_fd)
            self.made(*self.at(path, dir_fd), os.stat(path, dir_fd=dir_fd))

        def taking(real: Callable[..., None]) -> Callable[..., None]:
            def take(path: Any, *, dir_fd: int | None = None) -> None:
                real(path, dir_fd=dir_fd)
                self.named((*self.at(path, dir_fd), None))

            return take

        def link(source: Any, target: Any, **given: Any) -> None:
            real_link(source, target, **given)
            self.caught_up(source, dir_fd=given.get("src_dir_fd"))
            there = given.get("dst_dir_fd")
            self.named((*self.at(target, there), self.node_at(target, there)))

        os.mkdir, os.link, os.rmdir = mkdir, link, taking(os.rmdir)
        os.unlink = os.remove = taking(os.unlink)

    def _renames(self) -> None:
        real_replace, real_swap = os.replace, writing._rename

        def replace(source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
            if not os.path.isdir(source):
                self.caught_up(source, dir_fd=src_dir_fd)
            node = self.node_at(source, src_dir_fd)
            real_replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            if node is None:
                return
            self.named((*self.at(target, dst_dir_fd), node), (*self.at(source, src_dir_fd), None))

        def swap(source_fd: int, source: str, target_fd: int, target: str, flag: int) -> bool:
            given, taken = self.node_at(source, source_fd), self.node_at(target, target_fd)
            done = real_swap(source_fd, source, target_fd, target, flag)
            if done:
                left = taken if flag == writing._EXCHANGE else None
                self.named((*self.at(target, target_fd), given), (*self.at(source, source_fd), left))
            return done

        os.replace = os.rename = replace
        writing._rename = swap

    def whole(self) -> None:
        """Holds the record to the truth: played back in full it gives what stands, byte for byte."""
        there = Recorder(self.top, self.places).before
        kept, found = dict(self.now.tree()), dict(there.tree())
        unlike = [path for path in kept.keys() | found.keys() if kept.get(path, b"-") != found.get(path, b"-")]
        assert not unlike, f"the record misses what was done to {sorted(unlike)}"


_OPEN = os.open
_LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


def _listening_vfs(record: Recorder) -> apsw.VFS:
    """SQLite's calls, written down; the usual VFS below does the work."""
    usual = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def __init__(self, name: Any, flags: list[int]) -> None:
            self.path = name.filename() if isinstance(name, apsw.URIFilename) else name
            new = bool(self.path) and not os.path.exists(self.path)
            super().__init__(usual, name, flags)
            self.unsynced_name = new and bool(flags[0] & _LOGS)
            if new and flags[0] & apsw.SQLITE_OPEN_CREATE:
                record.made(*record.at(self.path), os.stat(self.path))

        def xWrite(self, data: bytes, offset: int) -> None:
            super().xWrite(data, offset)
            if self.path:
                record.wrote(os.stat(self.path), offset, data)

        def xTruncate(self, size: int) -> None:
            super().xTruncate(size)
            if self.path:
                record.cut(os.stat(self.path), size)

        def xSync(self, flags: int) -> None:
            if not self.path:
                return
            record.synced(os.stat(self.path))
            if self.unsynced_name:
                # The usual VFS syncs the folder of a log or journal that it has made, at its first sync.
                record.synced(os.stat(os.path.dirname(self.path)))
                self.unsynced_name = False

    class Listening(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("listening", usual, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> File:
            return File(name, flags)

        def xDelete(self, name: str, syncdir: bool) -> None:
            there = os.path.exists(name)
            super().xDelete(name, syncdir)
            if there and not name.endswith("-shm"):
                record.named((*record.at(name), None))
            if syncdir:
                record.synced(os.stat(os.path.dirname(name)))

    return Listening()


def play(image: Image, step: Step) -> None:
    """Does one step to an image."""
    if isinstance(step, Write):
        image.write(step.node, step.offset, step.data)
    elif isinstance(step, Truncate):
        image.truncate(step.node, step.size)
    elif isinstance(step, Names):
        for change in step.changes:
            image.name(*change)


# ── what may be left ──

Way = Callable[[Image], None]  # one of the ways in which a step may have reached the disk


Loose = tuple[Way, ...]  # of a step that no sync has made sure of: the ways in which it may have, besides not at all


def ways_of(step: Write | Truncate | Names) -> Loose:
    """The ways in which a step may have reached the disk; in full is the first."""
    ways: list[Way] = [lambda image: play(image, step)]
    if isinstance(step, Write):
        for size in torn(len(step.data)):
            ways.append(lambda image, size=size: image.write(step.node, step.offset, step.data[:size]))
        ways.append(lambda image: image.write(step.node, step.offset, bytes(len(step.data))))
    return tuple(ways)


def torn(length: int) -> list[int]:
    """Where a write of so many bytes may be torn: after a sector, in the middle, after a page, before the last one."""
    places = {SECTOR, length // 2 // SECTOR * SECTOR, PAGE, (length - 1) // PAGE * PAGE}
    return sorted(place for place in places if 0 < place < length)


@dataclass(frozen=True)
class Cut:
    """The disk after a cut: an image of what is sure, and what is not."""

    at: int
    answered: bool
    image: Image
    loose: list[Loose]


@dataclass(frozen=True)
class Record:
    """What stood before, and what was done then."""

    before: Image
    steps: list[Step]


def recorded(top: Path, places: tuple[str, ...], work: Callable[[], int]) -> Record:
    """What some work does below folders of `top`; it runs in a fork, and ends with 0."""

    def watched() -> int:
        record = Recorder(top, places)
        record.begin()
        code = work()
        record.steps.append(Answered())
        record.whole()
        (top / "record").write_bytes(pickle.dumps(Record(record.before, record.steps)))
        return code

    assert forked(watched) == 0
    found = pickle.loads((top / "record").read_bytes())
    (top / "record").unlink()
    assert isinstance(found, Record)
    return found


def cuts(record: Record) -> Iterator[Cut]:
    """Every cut that leaves states of its own, in order: before a sync, before the answer, at the end.

    A cut between two of these leaves nothing that the next of these does not leave too.
    """
    sure = record.before.copy()
    loose: list[tuple[int, Write | Truncate | Names, Loose]] = []
    answered = False
    for at, step in enumerate(record.steps):
        if isinstance(step, Write | Truncate | Names):
            loose += parts_of(step)
            continue
        if isinstance(step, Answered):
            yield Cut(at, answered, sure, [way for _, _, way in loose])
            answered = True
        elif any(node == step.node for node, _, _ in loose):
            yield Cut(at, answered, sure, [way for _, _, way in loose])
            sure = sure.copy()
            for node, part, _ in loose:
                if node == step.node:
                    play(sure, part)
            loose = [each for each in loose if each[0] != step.node]
    yield Cut(len(record.steps), answered, sure, [way for _, _, way in loose])


def parts_of(step: Write | Truncate | Names) -> Iterator[tuple[int, Write | Truncate | Names, Loose]]:
    """What each folder or file must be synced for. A rename between two folders is as sure as either of them is.

    Within one folder it is done or not, as every file system promises.
    """
    if not isinstance(step, Names):
        yield step.node, step, ways_of(step)
        return
    for folder in dict.fromkeys(folder for folder, _, _ in step.changes):
        part = Names(tuple(change for change in step.changes if change[0] == folder))
        yield folder, part, ways_of(part)


def states(cut: Cut, most: int, chance: random.Random) -> Iterator[Image]:
    """The states that a cut may leave: all where there are few, else the plainest and others by chance."""
    widths = [len(loose) + 1 for loose in cut.loose]
    picks = product(*map(range, widths)) if prod(widths) <= most else picked(widths, most, chance)
    for pick in picks:
        image = cut.image.copy()
        for loose, way in zip(cut.loose, pick, strict=True):
            if way:
                loose[way - 1](image)
        yield image


def picked(widths: list[int], most: int, chance: random.Random) -> Iterator[tuple[int, ...]]:
    """Nothing of what is loose, all of it, all up to a point; one thing missing, there alone, or torn; then chance."""
    count = len(widths)
    nothing, everything = (0,) * count, (1,) * count
    plain = [nothing, everything]
    for place, width in enumerate(widths):
        plain += [
            everything[:place] + nothing[place:],
            (*nothing[:place], 1, *nothing[place + 1 :]),
            *((*everything[:place], way, *everything[place + 1 :]) for way in (0, *range(2, width))),
        ]
    if len(plain) > most // 2:
        plain = [*plain[:2], *chance.sample(plain[2:], max(most // 2 - 2, 0))]
    yield from plain
    for _ in range(most - len(plain)):
        odds = chance.random()
        yield tuple(chance.randrange(width) if chance.random() < odds else 1 for width in widths)
