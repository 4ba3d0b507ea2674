"""Writes files that a person names, anywhere: whole or not at all, readable for the user alone, no link followed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from signet_sync.errors import UsageError
from signet_sync.storage.durable import CREATE, Replacing, sweep, sync_descriptor, sync_folder

_HEAD = 128
_A_WRITE = 600.0  # seconds: no write takes as long, so an older file was left behind


@contextmanager
def replacing(path: str, is_ours: Callable[[bytes], bool]) -> Iterator[str]:
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
        with Replacing(path, beside, durable=False) as temporary:
            yield temporary
            _refuse_others(path, is_ours)
    except OSError as error:  # name the requested file, not the one beside it
        raise OSError(error.errno, error.strerror or str(error), path) from error
    with suppress(OSError):  # some file systems of sticks and shares cannot, and the file is there
        sync_folder(folder)


def write(path: str, chunks: Iterable[bytes]) -> None:
    """Writes a new file that only its owner may read, durably. Raises `OSError`."""
    with open(os.open(path, CREATE, 0o600), "wb") as file:
        file.writelines(chunks)
        file.flush()
        sync_descriptor(file.fileno())


def head(path: str) -> bytes:
    """Returns the first bytes of a file; empty if there is none, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD)
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
    if not stat.S_ISREG(status.st_mode) or (status.st_size and not is_ours(head(path))):
        raise _refuse("another file is there", path, "choose another name, or move it away")


def _refuse(what: str, path: str, remedy: str) -> UsageError:
    return UsageError(f"nothing was written: {what}", path=path, hint=remedy, code="not-writable")
