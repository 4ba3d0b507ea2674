"""Skips files whose processing has crashed the agent or workers twice; a file leaves quarantine when it changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from signet_sync.formats.snapshot import Trouble
from signet_sync.storage import files, state_dir
from signet_sync.storage.files import Root

MOST = 2  # deaths in a row while the same file was processed, after which the file is skipped
_LARGE = 8 << 20  # bytes from which a file is the likeliest cause if memory runs out after everything was read
_IN_HAND, _LIST = "in-hand", "perils.json"
_ROOM = 512  # bytes for a path: a name has 255 at most
OUT_OF_MEMORY = (MemoryError, apsw.NoMemError)


class Quarantine:
    """Records the file being processed, so that a killed process leaves its path on disk.

    Only a pass that `records_crashes` (the agent's) records anything; every pass skips quarantined files, except one
    that tries everything `from_scratch`.
    """

    def __init__(self, folder: str, *, records_crashes: bool, from_scratch: bool = False) -> None:
        self._folder = folder
        self._records_crashes = records_crashes
        self._known = _read(folder)
        self._deaths = {} if from_scratch else dict(self._known)
        self._handle: int | None = None
        self._held: set[str] = set()
        self._largest = (0, "")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Wraps the processing of files; if memory runs out, the record stays on disk for `account`."""
        try:
            yield
        except OUT_OF_MEMORY:
            self._close(keep=True)
            raise
        except BaseException:
            self._close()
            raise
        self._close()
        left = {path: known for path, known in self._deaths.items() if path not in self._held}
        if left != self._known:
            _write(self._folder, left)

    def hold(self, path: str) -> None:
        """Records that this file is read next."""
        if not self._records_crashes:
            return
        with suppress(OSError):
            if self._handle is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._handle = os.open(os.path.join(self._folder, _IN_HAND), flags, 0o600)
            os.pwrite(self._handle, os.fsencode(path).ljust(_ROOM, b"\0"), 0)
        self._held.add(path)

    def took(self, path: str, size: int) -> None:
        """Records that the file was read and judged; a large one stays recorded until its rows are written."""
        self._largest = max(self._largest, (size, path))
        if size >= _LARGE:
            self.hold(path)
        elif self._records_crashes:
            self._held.add(path)

    def died_of(self, root: str, path: str) -> None:
        """Quarantines a file that killed workers."""
        if (state := _state(root, path)) is not None:
            self._deaths[path] = [MOST, *state]

    def all_read(self) -> None:
        """Records the largest file as the likely cause of a later crash, or no file if none is large."""
        size, path = self._largest
        if size >= _LARGE:
            self.hold(path)
        else:
            self._close()

    def left_alone(self, root: Root, path: str) -> Trouble | None:
        """Returns why a file is skipped, as long as it is unchanged."""
        deaths, *state = self._deaths.get(path, [0])
        signature = files.signatures(root, [path]).get(path) if deaths >= MOST else None
        if signature is None or [signature.size, signature.mtime_ns] != state:
            return None
        self._held.discard(path)
        message = f"the agent died {deaths} times while it read this file; it is left alone until it changes"
        return Trouble("unreadable", f"{message} (signet-sync reindex --full tries it again)", signature)

    def _close(self, *, keep: bool = False) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            with suppress(OSError):
                if not keep:
                    os.unlink(os.path.join(self._folder, _IN_HAND))


def account(root: str, folder: str) -> str | None:
    """Counts a death for the recorded file, if there is one, and returns its path. No pass may run meanwhile."""
    place = os.path.join(folder, _IN_HAND)
    try:
        with open(place, "rb") as file:
            path = os.fsdecode(file.read(_ROOM).rstrip(b"\0"))
        os.unlink(place)
    except OSError:
        return None
    state = _state(root, path) if path else None
    if state is None:
        return None
    deaths = _read(folder)
    before = deaths.get(path, [0])
    deaths[path] = [before[0] + 1 if before[1:] == state else 1, *state]
    _write(folder, deaths)
    return path


def _state(root: Root, path: str) -> list[int] | None:
    """Returns size and time of a file; None if it is gone."""
    signature = files.signatures(root, [path]).get(path)
    return [signature.size, signature.mtime_ns] if signature is not None else None


def _read(folder: str) -> dict[str, list[int]]:
    """Returns deaths in a row, size and time, by path."""
    found = state_dir.read_json(os.path.join(folder, _LIST)) or {}
    sound = {path: known for path, known in found.items() if isinstance(known, list) and len(known) == 3}
    return {path: known for path, known in sound.items() if all(isinstance(each, int) for each in known)}


def _write(folder: str, deaths: dict[str, list[int]]) -> None:
    place = os.path.join(folder, _LIST)
    with suppress(OSError):
        if deaths:
            state_dir.write_json(place, deaths)
        else:
            os.unlink(place)
