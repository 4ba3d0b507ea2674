"""Writes files that outlast a power loss, and sweeps what a crash left; the standard library alone: hooks import it."""

from __future__ import annotations

import errno
import os
import re
import sys
import time

from signet_sync.formats.lazy_pattern import late
from signet_sync.storage.locations import process_alive

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
DAY = 86_400.0  # seconds
# What `publish` and SQLite make beside a file, with the id of the process that writes it.
TEMPORARY = late(r".+\.(\d{1,10})\.tmp(?:-journal|-wal|-shm)?", re.ASCII)


def private_folder(path: str) -> None:
    """Makes a folder and its missing parents for the user alone; `os.makedirs` leaves the parents to the umask.

    What is made is synced in its parent: a file in a folder without a durable name would go with it.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent:
        private_folder(parent)
    os.makedirs(path, mode=0o700, exist_ok=True)
    sync_folder(parent or ".")


def sync_descriptor(descriptor: int) -> None:
    """fsync, on macOS down to the platter (`F_FULLFSYNC`). After an error the descriptor must not be synced again.

    A kernel may call the pages clean that it failed to write; a second fsync would then succeed over lost bytes.
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
    """fsync of a folder: names that were given and taken away in it outlast a power loss. Raises `OSError`."""
    sync_path(path, FOLDER)


def sync_path(path: str, flags: int = READ, *, dir_fd: int | None = None) -> None:
    """fsync of what stands somewhere, opened with these flags. Raises `OSError`."""
    handle = os.open(path, flags, dir_fd=dir_fd)
    try:
        sync_descriptor(handle)
    finally:
        os.close(handle)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the bytes: the system may take less at once. Raises `OSError`."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def create(
    path: str, data: bytes, mode: int = 0o600, *, exact: bool = False, durable: bool = True, dir_fd: int | None = None
) -> int:
    """A new file of these bytes, open; after any error there is none. With `exact` the umask takes nothing of `mode`.

    Raises `FileExistsError` where the name is taken, `OSError`.
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


class Replacing:
    """`with Replacing(path) as temporary:` what is made there takes the place of `path`, durably, or nothing is left.

    `temporary` is beside `path`. Where only the folder's sync failed, the new file stands.
    """

    def __init__(self, path: str, temporary: str = "", *, durable: bool = True) -> None:
        self.path = path
        self.temporary = temporary or f"{path}.{os.urandom(4).hex()}.{os.getpid()}.tmp"
        self.durable = durable

    def __enter__(self) -> str:
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                os.replace(self.temporary, self.path)
                if self.durable:
                    sync_folder(os.path.dirname(self.path))
        finally:
            unlink(self.temporary)


def publish(path: str, data: bytes, mode: int = 0o600, *, durable: bool = True, lock: bool = False) -> int:
    """Puts a file of these bytes at `path`, whole or not at all, in place of what stands there; gives it, open.

    With `lock` it is locked before it has its name. Raises `OSError`; where only the folder's sync failed, it stands.
    """
    descriptor = -1
    try:
        with Replacing(path, durable=durable) as temporary:
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
    """Deletes a file; False where there is none. Raises `OSError`."""
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
) -> list[str]:
    """Removes the temporary files that a crash left in a folder; gives their names. Raises `OSError` for the folder.

    `temporary` tells them by their names; its first group, where it has one, is the id of the process that writes: what
    is older than `longest` seconds, or whose process is dead, was left behind. What cannot be removed stays.
    """
    swept = []
    folder = os.open(path, FOLDER, dir_fd=dir_fd)
    try:
        for name in os.listdir(folder):
            match = temporary.fullmatch(name)
            if match is None:
                continue
            try:
                written = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
                old = (time.time() if now is None else now) - written > longest
                if (old or (match.lastindex and not process_alive(int(match[1])))) and unlink(name, dir_fd=folder):
                    swept.append(name)
            except OSError:
                continue
    finally:
        os.close(folder)
    return swept
