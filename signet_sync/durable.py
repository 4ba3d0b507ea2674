"""Writes files of the state folder that outlast a power loss; the standard library alone, because hooks import it."""

from __future__ import annotations

import os

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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


def sync_folder(path: str) -> None:
    """fsync of a folder: names that were given and taken away in it outlast a power loss. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the bytes: the system may take less at once. Raises `OSError`."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def publish(path: str, data: bytes, *, durable: bool = True, lock: bool = False) -> int:
    """Puts a file of these bytes at `path`, whole or not at all, in place of what stands there; gives it, open.

    With `lock` it is locked before it has its name. Raises `OSError`; where only the folder's sync failed, it stands.
    """
    temporary = f"{path}.{os.urandom(4).hex()}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, _CREATE, 0o600)
    try:
        if lock:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
        os.replace(temporary, path)
        if durable:
            sync_folder(os.path.dirname(path))
    except BaseException:
        os.close(descriptor)
        unlink(temporary)
        raise
    return descriptor


def unlink(path: str) -> bool:
    """Deletes a file; False where there is none. Raises `OSError`."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
