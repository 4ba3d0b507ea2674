"""Files on which the agent died again and again: left alone until they change, so that none can end every start."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from signet_sync.formats.snapshot import Signature, Trouble
from signet_sync.storage import files, state_dir
from signet_sync.sync.workers import DEATHS

# So many deaths in a row with the same file in hand, of the agent or of workers, and it is not read any more.
MOST = DEATHS
# A file of so many bytes is the likeliest reason when memory runs out after everything was read.
_LARGE = 8 << 20
_IN_HAND, _LIST = "in-hand", "perils.json"
_ROOM = 512  # bytes for a path: a name has 255 at most
OUT_OF_MEMORY = (MemoryError, apsw.NoMemError)


class Quarantine:
    """What the agent has in hand in one pass, written down where a process that is killed leaves it.

    Only a `wary` pass (the agent's) writes anything down; every pass leaves alone what is known to be deadly, but for
    one that makes everything `anew`.
    """

    def __init__(self, folder: str, *, wary: bool, anew: bool = False) -> None:
        self._folder = folder
        self._wary = wary
        self._deaths = {} if anew else _read(folder)
        self._anew = anew
        self._more = False
        self._handle: int | None = None
        self._held: set[str] = set()
        self._largest = (0, "")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While files are in hand; where memory runs out, what is in hand stays written down for `account`."""
        try:
            yield
        except OUT_OF_MEMORY:
            self._let_go()
            raise
        except BaseException:
            self._lay_down()
            raise
        self._lay_down()
        self._forget_survived()

    def hold(self, path: str) -> None:
        """This file is read next."""
        if not self._wary:
            return
        if self._handle is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            with suppress(OSError):
                self._handle = os.open(os.path.join(self._folder, _IN_HAND), flags, 0o600)
        if self._handle is not None:
            with suppress(OSError):
                os.pwrite(self._handle, os.fsencode(path).ljust(_ROOM, b"\0"), 0)
        self._held.add(path)

    def took(self, path: str, size: int) -> None:
        """It was read and judged."""
        self._largest = max(self._largest, (size, path))

    def received(self, path: str, size: int) -> None:
        """A worker read and judged it; a large one is in hand as long as its rows are to be written."""
        self.took(path, size)
        if size >= _LARGE:
            self.hold(path)
        elif self._wary:
            self._held.add(path)

    def died_of(self, root: str, path: str) -> None:
        """Workers died of this file: it is left alone from now on."""
        signature = _signature(root, path)
        if signature is not None:
            self._deaths[path] = [MOST, *signature]
            self._more = True

    def all_read(self) -> None:
        """What ends the process from here on is what the largest file gives to do, or no file at all."""
        size, path = self._largest
        if size >= _LARGE:
            self.hold(path)
        else:
            self._lay_down()

    def left_alone(self, root: str, path: str) -> Trouble | None:
        """Why a file is not to be read, as long as it is the one that it was."""
        known = self._deaths.get(path)
        if known is None or known[0] < MOST:
            return None
        signature = _signature(root, path)
        if signature is None or list(signature) != known[1:]:
            return None
        self._held.discard(path)
        message = (
            f"the agent died {known[0]} times while it read this file; it is left alone until it changes"
            " (signet-sync reindex --full tries it again)"
        )
        return Trouble("unreadable", message, signature)

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _lay_down(self) -> None:
        if self._handle is not None:
            self._let_go()
            with suppress(OSError):
                os.unlink(os.path.join(self._folder, _IN_HAND))

    def _forget_survived(self) -> None:
        left = {path: known for path, known in self._deaths.items() if path not in self._held}
        if self._anew or self._more or left != self._deaths:
            _write(self._folder, left)


def account(root: str, folder: str) -> str | None:
    """Counts a death on the file that was in hand, if any was; gives its path. Nobody makes a pass meanwhile."""
    place = os.path.join(folder, _IN_HAND)
    try:
        with open(place, "rb") as file:
            path = os.fsdecode(file.read(_ROOM).rstrip(b"\0"))
        os.unlink(place)
    except OSError:
        return None
    signature = _signature(root, path) if path else None
    if signature is None:
        return None
    deaths = _read(folder)
    before = deaths.get(path)
    count = before[0] if before is not None and before[1:] == list(signature) else 0
    deaths[path] = [count + 1, *signature]
    _write(folder, deaths)
    return path


def _signature(root: str, path: str) -> Signature | None:
    return files.signatures(root, [path]).get(path)


def _read(folder: str) -> dict[str, list[int]]:
    """Deaths in a row and signature, by path."""
    try:
        with open(os.path.join(folder, _LIST), "rb") as file:
            found = json.loads(file.read(1 << 20))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {path: known for path, known in found.items() if _is_entry(known)}


def _is_entry(known: object) -> bool:
    return (
        isinstance(known, list)
        and len(known) == 1 + len(Signature._fields)
        and all(isinstance(each, int) for each in known)
    )


def _write(folder: str, deaths: dict[str, list[int]]) -> None:
    place = os.path.join(folder, _LIST)
    with suppress(OSError):
        if deaths:
            state_dir.write_json(place, deaths)
        else:
            os.unlink(place)
