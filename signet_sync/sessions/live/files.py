"""Keeps the live turns of running sessions as append-only files in the state folder, one per session.

The first line identifies the session; every other line holds the sanitized turns of one append. A line counts once its
newline is written, so an append is kept as a whole or not at all; the next append cuts off an incomplete line. The rows
of the index follow from these files.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import LivePlace, LiveTurn
from signet_sync.storage.database.connection import Database
from signet_sync.storage.durable import (
    FOLDER,
    READ,
    private_folder,
    publish,
    sync_descriptor,
    sync_folder,
    unlink,
    write_all,
)

VERSION = 1
_NAME = late(r"[0-9a-f]{32}\.jsonl", re.ASCII)
_ASIDE = ".damaged"
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
    """The content of a file; `damaged` counts the lines that hold no turns."""

    identity: LiveIdentity
    turns: list[LiveTurn]
    damaged: int
    place: LivePlace = LivePlace()


def names(folder: str) -> list[str]:
    """Lists the names of all files of live turns."""
    return [name for name in _list_folder(folder) if _NAME.fullmatch(name)]


def list_damaged_files(folder: str) -> list[str]:
    """Lists the names of damaged files that were moved aside."""
    return [
        name for name in _list_folder(folder) if _NAME.fullmatch(name.removesuffix(_ASIDE)) and name.endswith(_ASIDE)
    ]


def _list_folder(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def fingerprints(folder: str) -> dict[str, str]:
    """Returns the shape of each file by name: it changes when the file does."""
    found = {}
    for name in names(folder):
        with suppress(OSError):
            found[name] = _fingerprint(os.lstat(os.path.join(folder, name)))
    return found


def is_settled(database: Database, folder: str) -> bool:
    """Returns whether the rows of live turns agree with their files, and no row lacks a file."""
    known = live.shapes(database)
    return fingerprints(folder) == known and all(
        LiveIdentity(*one).name in known for one in live.list_handed_over(database)
    )


def _fingerprint(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


def read(folder: str, name: str) -> LiveFile | None:
    """Reads a file; returns None if it is gone, or not written by this version. Raises `OSError`."""
    try:
        descriptor = os.open(os.path.join(folder, name), READ)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as handle:
        return _parse_file(handle.read(), name)


def _parse_file(raw: bytes, name: str) -> LiveFile | None:
    lines = raw[: raw.rfind(b"\n") + 1].split(b"\n")[:-1]
    identity = _identity(lines[0] if lines else b"", name)
    if identity is None:
        return None
    turns: dict[int, LiveTurn] = {}
    damaged = 0
    place = LivePlace()
    for line in lines[1:]:
        document = _object(line) or {}
        given = document.get("turns")
        place = _place(document.get("place")) or place
        found = [_turn(one) for one in given] if isinstance(given, list) else [None]
        damaged += None in found
        for turn in filter(None, found):
            turns.setdefault(turn.turn, turn)
    return LiveFile(identity, sorted(turns.values()), damaged, place)


def _place(value: object) -> LivePlace | None:
    found = {name: value.get(name) for name in LivePlace._fields} if isinstance(value, dict) else {}
    sound = found and all(text is None or isinstance(text, str) for text in found.values())
    return LivePlace(**found) if sound else None


def _identity(line: bytes, name: str) -> LiveIdentity | None:
    head = _object(line) or {}
    found = LiveIdentity(*(head.get(field) for field in LiveIdentity._fields))  # type: ignore[arg-type]
    sound = head.get("v") == VERSION and all(isinstance(value, str) for value in found)
    return found if sound and found.name == name else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _turn(value: object) -> LiveTurn | None:
    if not isinstance(value, dict):
        return None
    found = LiveTurn(*(value.get(field) for field in LiveTurn._fields))  # type: ignore[arg-type]
    sound = type(found.turn) is int and all(isinstance(text, str) for text in found[1:])
    return found if sound else None


class Buffer:
    """The file of one session, locked: no other process appends to it or deletes from it meanwhile."""

    def __init__(self, folder: str, identity: LiveIdentity, descriptor: int | None) -> None:
        self.folder = folder
        self.identity = identity
        self._descriptor = descriptor

    @property
    def path(self) -> str:
        """Returns the file's path."""
        return os.path.join(self.folder, self.identity.name)

    @property
    def shape(self) -> str:
        """Changes when the file does; empty if there is no file."""
        return "" if self._descriptor is None else _fingerprint(os.fstat(self._descriptor))

    def turns(self) -> list[LiveTurn]:
        """Returns the turns of the file, in order."""
        kept = self._kept()
        return kept.turns if kept is not None else []

    @property
    def place(self) -> LivePlace:
        """Returns where the session works, as the file names it last."""
        kept = self._kept()
        return kept.place if kept is not None else LivePlace()

    @property
    def is_damaged(self) -> bool:
        """Returns whether the file or some of its lines cannot be read."""
        kept = self._kept()
        return self._descriptor is not None and (kept is None or kept.damaged > 0)

    def _kept(self) -> LiveFile | None:
        return None if self._descriptor is None else _parse_file(self._bytes(), self.identity.name)

    def append(self, turns: Sequence[LiveTurn], place: LivePlace | None = None) -> None:
        """Adds turns, and where the session works from now on (None: as before), durable on return.

        Raises `OSError`; then either all of them are in the file or none.
        """
        if not turns and (place is None or self._descriptor is None):
            return
        if self._descriptor is None:
            self._replace(turns, place or LivePlace())
            return
        os.lseek(self._descriptor, self._whole(), os.SEEK_SET)
        write_all(self._descriptor, _line(turns, place))
        sync_descriptor(self._descriptor)

    def replace(self, turns: Sequence[LiveTurn]) -> None:
        """Keeps only these turns, and deletes the file if there are none. Durable on return. Raises `OSError`."""
        if turns:
            self._replace(turns, self.place)
        elif self._descriptor is not None:
            unlink(self.path)
            sync_folder(self.folder)
            self.release()

    def put_aside(self) -> None:
        """Moves a damaged file aside, for a person to inspect. Raises `OSError`."""
        os.replace(self.path, self.path + _ASIDE)
        self.release()

    def release(self) -> None:
        """Closes the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _whole(self) -> int:
        """Returns where the last complete line ends; cuts off an incomplete one behind it."""
        assert self._descriptor is not None
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) == b"\n":
            return size
        whole = self._bytes().rfind(b"\n") + 1
        os.ftruncate(self._descriptor, whole)
        return whole

    def _bytes(self) -> bytes:
        assert self._descriptor is not None
        with open(os.dup(self._descriptor), "rb") as handle:
            handle.seek(0)
            return handle.read()

    def _replace(self, turns: Sequence[LiveTurn], place: LivePlace) -> None:
        """Publishes a complete file of these turns in place of the present one, and opens it."""
        private_folder(self.folder)
        head = {"v": VERSION, **self.identity._asdict()}
        # Published as a whole, so one line per turn is safe: one damaged line then damages one turn.
        where = _line((), place) if place != LivePlace() else b""
        descriptor = publish(self.path, _json(head) + where + b"".join(_line([turn]) for turn in turns))
        self.release()
        self._descriptor = descriptor


def _line(turns: Sequence[LiveTurn], place: LivePlace | None = None) -> bytes:
    # Versions that know no place read the turns of the line.
    named = {} if place is None else {"place": place._asdict()}
    return _json({"turns": [turn._asdict() for turn in turns], **named})


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


@contextmanager
def locked(folder: str, identity: LiveIdentity) -> Iterator[Buffer]:
    """Locks a session's file, which need not exist. Raises `OSError`."""
    private_folder(folder)
    # A missing file cannot be locked, so the folder is; what is done under the lock takes milliseconds.
    guard = os.open(folder, FOLDER)
    try:
        with suppress(OSError):  # some file systems cannot lock folders
            fcntl.flock(guard, fcntl.LOCK_EX)
        buffer = Buffer(folder, identity, _open_file(os.path.join(folder, identity.name)))
        try:
            yield buffer
        finally:
            buffer.release()
    finally:
        os.close(guard)


def _open_file(path: str) -> int | None:
    try:
        return os.open(path, _OPEN)
    except FileNotFoundError:
        return None


def drop(folder: str, unwanted: Callable[[LiveIdentity], bool]) -> int:
    """Deletes the files of unwanted sessions; returns how many. Raises `OSError`.

    A file that cannot be read is deleted too: it may contain anything. One of a newer version stays.
    """
    dropped = 0
    for name in [*names(folder), *list_damaged_files(folder)]:
        kept = read(folder, name)
        if unwanted(kept.identity) if kept is not None else _is_unreadable(folder, name):
            dropped += unlink(os.path.join(folder, name))
    if dropped:
        sync_folder(folder)
    return dropped


def remove(folder: str, names: Sequence[str]) -> None:
    """Deletes the files of these names. Raises `OSError`."""
    if [name for name in names if unlink(os.path.join(folder, name))]:
        sync_folder(folder)


def _is_unreadable(folder: str, name: str) -> bool:
    try:
        with open(os.path.join(folder, name), "rb") as handle:
            head = _object(handle.readline(1 << 20))
    except OSError:
        return False
    version = (head or {}).get("v")
    return not (isinstance(version, int) and version > VERSION)
