"""Keeps the inputs of write flows in one durable file per flow, so that another process can finish it.

A file has a sum of its document: a damaged one must neither name other paths nor stop a pass.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from signet_sync.formats.lazy_pattern import late
from signet_sync.storage.durable import READ, add_sum, private_folder, publish, read_with_sum, sync_folder, unlink

_NAME = late(r"([0-9a-f]{32})\.json", re.ASCII)


class JournalledFlow:
    """A flow's file, locked by this process: no other process resumes the flow while this one lives.

    The kernel releases the lock when the process dies, so an abandoned flow is recognised without a timeout.
    """

    def __init__(self, path: str, descriptor: int, document: dict[str, Any]) -> None:
        self.path = path
        self.document = document
        self._descriptor = descriptor

    def finish(self) -> None:
        """Deletes the inputs of a finished flow."""
        if unlink(self.path):
            sync_folder(os.path.dirname(self.path))
        self.release()

    def release(self) -> None:
        """Releases the flow, so that another process may resume it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def begin(folder: str, key: str, document: Mapping[str, Any]) -> JournalledFlow:
    """Writes a flow's inputs durably and locks them; replaces an earlier, abandoned file of this flow.

    The document contains sanitized text only. Raises `OSError`; then the file is either missing or complete, but may
    not be durable. Raises `BlockingIOError` if a living process holds this flow.
    """
    private_folder(folder)
    path = os.path.join(folder, f"{key}.json")
    earlier = _lock_flow(path)
    if earlier is None and os.path.lexists(path):
        raise BlockingIOError(f"another process works on this flow: {path}")
    try:
        descriptor = publish(path, add_sum(document), lock=True)
    finally:
        if earlier is not None:
            os.close(earlier)
    return JournalledFlow(path, descriptor, dict(document))


def take(folder: str, key: str) -> JournalledFlow | None:
    """Locks an abandoned flow; returns None if it is gone or held by a living process.

    Raises `ValueError` with the path for a damaged one.
    """
    path = os.path.join(folder, f"{key}.json")
    descriptor = _lock_flow(path)
    if descriptor is None:
        return None
    try:
        document = _read(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise ValueError(f"{path}: {error.strerror}") from None
    if document is None:
        os.close(descriptor)
        raise ValueError(path)
    return JournalledFlow(path, descriptor, document)


def _lock_flow(path: str) -> int | None:
    """Returns a locked descriptor of a flow's file; None if it is gone or held by a living process."""
    try:
        descriptor = os.open(path, READ)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The flow may have been finished or replaced between opening and locking the file.
        if os.fstat(descriptor).st_nlink:
            return descriptor
    os.close(descriptor)
    return None


def keys(folder: str) -> list[str]:
    """Lists the unfinished flows, oldest first."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            match = _NAME.fullmatch(entry.name)
            if match is not None:
                with suppress(OSError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, match[1]))
    return [key for _, key in sorted(found)]


def drop(folder: str, unwanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """Deletes the inputs of flows that may not be finished (their session was removed).

    A file that cannot be read as a flow is deleted too: it cannot be finished, and may contain anything.
    """
    for key in keys(folder):
        path = os.path.join(folder, f"{key}.json")
        try:
            descriptor = os.open(path, READ)
        except OSError:
            continue
        document = _read(descriptor)
        os.close(descriptor)
        if (document is None or unwanted(document)) and unlink(path):
            sync_folder(folder)


def _read(descriptor: int) -> dict[str, Any] | None:
    with open(os.dup(descriptor), "rb") as handle:
        return read_with_sum(handle.read())
