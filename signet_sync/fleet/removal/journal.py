"""Keeps the journal of a removal: a line for each workspace, durable before the next, each with the hash of the last.

So a process that is killed loses nothing, and a line that was changed or taken out afterwards is noticed.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from signet_sync.errors import UsageError
from signet_sync.storage.durable import sync_descriptor, sync_folder, write_all

_FIRST = "0" * 64


class Journal:
    """An open journal; `lines` are those that it holds."""

    def __init__(self, descriptor: int, lines: list[dict[str, Any]]) -> None:
        self._descriptor = descriptor
        self.lines = lines

    @property
    def last(self) -> str:
        """Returns the hash of the last line."""
        return self.lines[-1]["hash"] if self.lines else _FIRST

    def add(self, line: Mapping[str, Any]) -> None:
        """Adds a line durably. Raises `OSError`."""
        made = {**line, "prev": self.last}
        made["hash"] = _hash(made)
        write_all(self._descriptor, (json.dumps(made) + "\n").encode())
        sync_descriptor(self._descriptor)
        self.lines.append(made)


@contextmanager
def opened(path: str) -> Iterator[Journal]:
    """Opens a journal for this process alone; what a killed one left of its last line is cut off.

    Raises `UsageError` if another process has it open, or a line is not as it was written.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise UsageError(f"the journal cannot be written: {error.strerror}", path=path, hint="see its mode") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError("another process is carrying out this plan", path=path, hint="wait for it") from None
        sync_folder(os.path.dirname(os.path.abspath(path)))
        with open(os.dup(descriptor), "rb") as handle:
            raw = handle.read()
        whole = raw.rfind(b"\n") + 1
        lines = read(raw[:whole], path)
        if whole < len(raw):
            os.ftruncate(descriptor, whole)
        yield Journal(descriptor, lines)
    finally:
        os.close(descriptor)


def read(raw: bytes, path: str) -> list[dict[str, Any]]:
    """Returns the lines of a journal. Raises `UsageError` if one of them is not as it was written."""
    lines: list[dict[str, Any]] = []
    last = _FIRST
    for number, text in enumerate(raw.split(b"\n")[:-1], 1):
        try:
            line = json.loads(text)
            true = line["prev"] == last and line["hash"] == _hash({k: v for k, v in line.items() if k != "hash"})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            true = False
        if not true:
            raise UsageError(
                f"line {number} of the journal is not as it was written",
                path=path,
                hint="bring the file back from a copy, or move it away: what is removed already is found to be gone",
            )
        lines.append(line)
        last = line["hash"]
    return lines


def _hash(line: Mapping[str, Any]) -> str:
    return sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()
