"""Keeps the live turns of running sessions as append-only files in the state folder, one per session.

The first line identifies the session; every other line holds the sanitized turns of one append, each behind its sum.
A line counts once its newline is written, so an append is kept as a whole or not at all. The rows of the index follow
from these files.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import LivePlace, LiveTurn
from signet_sync.storage.database.connection import Database
from signet_sync.storage.durable import (
    FOLDER,
    READ,
    add_sum,
    private_folder,
    publish,
    read_with_sum,
    sync_descriptor,
    sync_folder,
    unlink,
    write_all,
)

VERSION = 1
_NAME = late(r"[0-9a-f]{32}\.jsonl", re.ASCII)
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class LiveIdentity(NamedTuple):
    """The session of a file; `session_id` is empty if only the session's key is known."""

    agent_id: str
    session_key: str
    session_id: str

    @property
    def name(self) -> str:
        """Returns the file's name."""
        digest = sha256("\0".join(self).encode("utf-8", "surrogatepass")).hexdigest()
        return f"{digest[:32]}.jsonl"


class LiveFile(NamedTuple):
    """The content of a file; `place` is where the session works, as it was named last.

    `damaged` counts the lines that hold no turns.
    """

    identity: LiveIdentity
    turns: list[LiveTurn]
    damaged: int
    place: LivePlace = LivePlace()


# ── the folder ──


def names(folder: str) -> list[str]:
    """Lists the names of all files of live turns."""
    with suppress(OSError):
        return sorted(filter(_NAME.fullmatch, os.listdir(folder)))
    return []


def fingerprints(folder: str) -> dict[str, str]:
    """Returns the shape of each file by name: it changes when the file does."""
    found = {}
    for name in names(folder):
        with suppress(OSError):
            found[name] = _fingerprint(os.lstat(os.path.join(folder, name)))
    return found


def _fingerprint(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


def is_settled(database: Database, folder: str) -> bool:
    """Returns whether the rows of live turns agree with their files, and no row lacks a file."""
    known = live.shapes(database)
    return fingerprints(folder) == known and all(
        LiveIdentity(*one).name in known for one in live.list_handed_over(database)
    )


def drop(folder: str, unwanted: Callable[[LiveIdentity], bool]) -> None:
    """Deletes the files of unwanted sessions. Raises `OSError`.

    A file that cannot be read is deleted too: it may contain anything. One of a newer version stays.
    """
    gone = []
    for name in names(folder):
        kept = read(folder, name)
        if unwanted(kept.identity) if kept is not None else _is_unreadable(folder, name):
            gone.append(name)
    remove(folder, gone)


def _is_unreadable(folder: str, name: str) -> bool:
    try:
        with open(os.path.join(folder, name), "rb") as handle:
            head = read_with_sum(handle.readline(1 << 20).rstrip(b"\n"))
    except OSError:
        return False
    return head is None or head["v"] <= VERSION


def remove(folder: str, names: Sequence[str]) -> None:
    """Deletes the files of these names. Raises `OSError`."""
    if [name for name in names if unlink(os.path.join(folder, name))]:
        sync_folder(folder)


# ── a file's text ──


def read(folder: str, name: str) -> LiveFile | None:
    """Reads a file; returns None if it is gone, or not written by this version. Raises `OSError`."""
    try:
        descriptor = os.open(os.path.join(folder, name), READ)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as handle:
        return _parse(handle.read(), name)


def _parse(raw: bytes, name: str) -> LiveFile | None:
    head, *lines = [read_with_sum(line) for line in raw[: raw.rfind(b"\n") + 1].split(b"\n")[:-1]] or [None]
    if head is None or head.pop("v") != VERSION or (identity := LiveIdentity(**head)).name != name:
        return None
    turns: dict[int, LiveTurn] = {}
    damaged, place = 0, LivePlace()
    for line in lines:
        if line is None:
            damaged += 1
            continue
        place = LivePlace(**line["place"]) if "place" in line else place
        for one in line["turns"]:
            turns.setdefault(one["turn"], LiveTurn(**one))
    return LiveFile(identity, sorted(turns.values()), damaged, place)


def _line(turns: Sequence[LiveTurn], place: LivePlace | None = None) -> bytes:
    named = {} if place is None else {"place": place._asdict()}
    return add_sum({"turns": [turn._asdict() for turn in turns], **named}) + b"\n"


# ── one session's file ──


@contextmanager
def lock_buffer(folder: str, identity: LiveIdentity) -> Iterator["Buffer"]:
    """Locks a session's file, which need not exist. Raises `OSError`."""
    private_folder(folder)
    # A missing file cannot be locked, so the folder is; what is done under the lock takes milliseconds.
    guard = os.open(folder, FOLDER)
    try:
        with suppress(OSError):  # some file systems cannot lock folders
            fcntl.flock(guard, fcntl.LOCK_EX)
        yield Buffer(folder, identity)
    finally:
        os.close(guard)


class Buffer:
    """The file of one session, locked: no other process appends to it or deletes from it meanwhile."""

    def __init__(self, folder: str, identity: LiveIdentity) -> None:
        self.folder = folder
        self.identity = identity
        self.path = os.path.join(folder, identity.name)

    @property
    def shape(self) -> str:
        """Changes when the file does; empty if there is no file."""
        with suppress(FileNotFoundError):
            return _fingerprint(os.lstat(self.path))
        return ""

    def read(self) -> LiveFile:
        """Returns what the file holds; `damaged` if it or some of its lines cannot be read."""
        found = read(self.folder, self.identity.name)
        return found or LiveFile(self.identity, [], damaged=int(bool(self.shape)))

    def append(self, turns: Sequence[LiveTurn], place: LivePlace | None = None) -> None:
        """Adds turns, and where the session works from now on (None: as before), durable on return.

        Raises `OSError`; then either all of them are in the file or none.
        """
        if not self.shape:
            self.replace(turns, place or LivePlace())
        elif turns or place is not None:
            descriptor = os.open(self.path, _OPEN)
            try:
                end = os.lseek(descriptor, 0, os.SEEK_END)
                is_torn = os.pread(descriptor, 1, max(end - 1, 0)) != b"\n"
                write_all(descriptor, b"\n" * is_torn + _line(turns, place))
                sync_descriptor(descriptor)
            finally:
                os.close(descriptor)

    def replace(self, turns: Sequence[LiveTurn], place: LivePlace) -> None:
        """Keeps only these turns, and deletes the file if there are none. Durable on return. Raises `OSError`."""
        if turns:
            head = add_sum({"v": VERSION, **self.identity._asdict()}) + b"\n"
            # Published as a whole, so one line per turn is safe: one damaged line then damages one turn.
            where = _line((), place) if place != LivePlace() else b""
            os.close(publish(self.path, head + where + b"".join(_line([turn]) for turn in turns)))
        else:
            remove(self.folder, [self.identity.name])
