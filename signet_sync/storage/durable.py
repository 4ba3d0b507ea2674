"""Writes files that survive a power loss, sweeps what a crash left. Standard library only: hooks import it."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256

from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.storage.locations import process_alive

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from typing import Any

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
DAY = 86_400.0  # seconds
# Temporary files of `publish` and SQLite, beside their target; the number is the id of the writing process.
TEMPORARY = late(r".+\.(\d{1,10})\.tmp(?:-journal|-wal|-shm)?", re.ASCII)


def private_folder(path: str) -> None:
    """Makes a folder and its missing parents for the user alone; `os.makedirs` leaves the mode of parents to the umask.

    Each new folder is synced in its parent: a file is lost with a folder whose name was not durable.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path) or "."
    private_folder(parent)
    os.makedirs(path, mode=0o700, exist_ok=True)
    sync_folder(parent)


def sync_descriptor(descriptor: int) -> None:
    """Calls fsync, on macOS `F_FULLFSYNC`. After an error the descriptor must not be synced again.

    A kernel may mark pages as clean that it failed to write; a second fsync would then succeed although bytes are lost.
    """
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL):
                raise
    os.fsync(descriptor)


def sync_folder(path: str) -> None:
    """Syncs a folder: names that were added or removed in it survive a power loss. Raises `OSError`."""
    sync_path(path, FOLDER)


def sync_path(path: str, flags: int = READ) -> None:
    """Opens a path with these flags and syncs it. Raises `OSError`."""
    handle = os.open(path, flags)
    try:
        sync_descriptor(handle)
    finally:
        os.close(handle)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the bytes: the system may accept fewer at once. Raises `OSError`."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def create(
    path: str, data: bytes, mode: int = 0o600, *, exact: bool = False, durable: bool = True, dir_fd: int | None = None
) -> int:
    """Creates a file of these bytes and returns it open; after any error there is none. `exact` ignores the umask.

    Raises `FileExistsError` if the name is taken, `OSError`.
    """
    descriptor = os.open(path, CREATE, mode, dir_fd=dir_fd)
    try:
        if exact:
            os.fchmod(descriptor, mode)
        write_all(descriptor, data)
        if durable:
            sync_descriptor(descriptor)
    except BaseException:
        os.close(descriptor)
        unlink(path, dir_fd=dir_fd)
        raise
    return descriptor


@contextmanager
def replacement(path: str, temporary: str = "", *, durable: bool = True) -> Iterator[str]:
    """Yields a path beside `path`; the file that is written there replaces it, durably, or is deleted.

    If only the sync of the folder failed, the new file is in place.
    """
    temporary = temporary or f"{path}.{os.urandom(4).hex()}.{os.getpid()}.tmp"
    try:
        yield temporary
        os.replace(temporary, path)
        if durable:
            sync_folder(os.path.dirname(path))
    finally:
        unlink(temporary)


def add_sum(document: Mapping[str, Any]) -> bytes:
    """Returns a document as JSON behind its sum: whoever reads it need not ask what damage could have made of it."""
    text = json.dumps(document)
    return f"{_sum_of(text)} {text}".encode()


def read_with_sum(raw: bytes) -> dict[str, Any] | None:
    """Returns the document that `add_sum` wrote, None for anything else."""
    given, _, text = raw.decode("utf-8", "replace").partition(" ")
    document: dict[str, Any] | None = json.loads(text) if given == _sum_of(text) else None
    return document


def _sum_of(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def publish(path: str, data: bytes, mode: int = 0o600, *, durable: bool = True, lock: bool = False) -> int:
    """Writes a file of these bytes to `path`, whole or not at all, replacing what is there; returns it open.

    With `lock` it is locked before it gets its name. Raises `OSError`; if only the sync of the folder failed, the new
    file is in place.
    """
    descriptor = -1
    try:
        with replacement(path, durable=durable) as temporary:
            descriptor = create(temporary, data, mode, durable=durable)
            if lock:
                import fcntl

                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        if descriptor >= 0:
            os.close(descriptor)
        raise
    return descriptor


def unlink(path: str, *, dir_fd: int | None = None) -> bool:
    """Deletes a file; False if there is none. Raises `OSError`."""
    try:
        os.unlink(path, dir_fd=dir_fd)
    except FileNotFoundError:
        return False
    return True


def sweep(
    path: str,
    temporary: re.Pattern[str] = TEMPORARY,
    *,
    longest: float = DAY,
    now: float | None = None,
    dir_fd: int | None = None,
) -> None:
    """Removes the temporary files that a crash left in a folder. Raises `OSError` for the folder.

    `temporary` matches their names; its first group, if any, is the id of the writing process. A file is left over if
    it is older than `longest` seconds or its process is dead. What cannot be removed stays.
    """
    folder = os.open(path, FOLDER, dir_fd=dir_fd)
    try:
        for name in os.listdir(folder):
            match = temporary.fullmatch(name)
            if match is None:
                continue
            with suppress(OSError):
                written = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
                old = (time.time() if now is None else now) - written > longest
                if old or (match.lastindex and not process_alive(int(match[1]))):
                    os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


# ── files that a person names, anywhere: readable for the user alone, no link followed ──

_HEAD_BYTES = 128
_A_WRITE = 600.0  # seconds: no write takes as long, so an older file was left behind


@contextmanager
def replace_file(path: str, is_ours: Callable[[bytes], bool]) -> Iterator[str]:
    """Yields a path beside `path`; the file written there gets its name if all went well, durably.

    An existing file is replaced only if `is_ours` accepts its first bytes. Raises `UsageError` (`not-writable`) if
    something else is there, `OSError` if it cannot be written; then nothing has changed.
    """
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise _refuse("its folder does not exist", path, "make the folder first, or choose another place")
    _refuse_others(path, is_ours)
    with suppress(OSError):  # what a crash left of earlier writes is as readable as the file itself
        left = re.escape(f".{name[:150]}.") + r"[0-9a-f]{32}\.tmp(?:\.[0-9a-f]{8}\.\d+\.tmp(?:-journal)?)?"
        sweep(folder, re.compile(left, re.ASCII), longest=_A_WRITE)
    beside = os.path.join(folder, f".{name[:150]}.{os.urandom(16).hex()}.tmp")
    try:
        with replacement(path, beside, durable=False) as temporary:
            yield temporary
            _refuse_others(path, is_ours)
    except OSError as error:  # name the requested file, not the one beside it
        raise OSError(error.errno, error.strerror or str(error), path) from error
    with suppress(OSError):  # some file systems of sticks and shares cannot, and the file is there
        sync_folder(folder)


def read_head(path: str) -> bytes:
    """Returns the first bytes of a file; empty if there is none, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _refuse_others(path: str, is_ours: Callable[[bytes], bool]) -> None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise _refuse("this is a folder", path, "name a file in it")
    if stat.S_ISLNK(status.st_mode):
        raise _refuse("this is a link, and links are not followed", path, "name the file itself")
    if not stat.S_ISREG(status.st_mode) or (status.st_size and not is_ours(read_head(path))):
        raise _refuse("another file is there", path, "choose another name, or move it away")


def _refuse(what: str, path: str, remedy: str) -> UsageError:
    return UsageError(f"nothing was written: {what}", path=path, hint=remedy, code="not-writable")
