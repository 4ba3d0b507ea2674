"""Runs pure work in worker processes, and leaves files alone over which processes have died.

A worker gets a function of ours and values, and returns answers. No connection, lock or open file of the pass is passed
to it. It ends with the pass, even if that was killed. What workers leave unanswered, for whatever reason, the caller
does itself. The libraries for processes load slowly, so only a pass that has much to do imports them.

A file whose processing has killed the agent or workers twice is skipped until it changes.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import apsw

from signet_sync.errors import place_of
from signet_sync.formats.snapshot import Trouble
from signet_sync.storage import files, state_dir
from signet_sync.storage.files import Root

if TYPE_CHECKING:
    from concurrent.futures import Future

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer = TypeVar("Answer")
Alive = Callable[[], None]  # called in long steps; an exception that it raises ends the work
Reply = list[tuple[str, Any]]  # for each value: where the function failed, and its answer

_MOST = 4  # more would wait for the one process that writes
_DEATHS = 8  # after so many nothing is given to workers any more
_VALUES = 16  # of one piece
LONGEST = 60.0  # seconds for one piece; the largest possible file takes three
_STEP = 0.2  # seconds between two calls of `alive` while the pass waits


def useful() -> int:
    """Returns the number of useful workers: one per core, as the pass mostly waits for them; none on one core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, _MOST) if cores > 1 else 0


class Workers:
    """Holds worker processes: started by the first work, ended with the `with` block."""

    def __init__(self, count: int | None = None) -> None:
        self._count = useful() if count is None else count
        self._pools: dict[bool, _Pool] = {}  # True: one process, for the values of a piece over which a worker died
        self._deaths = 0
        # Where functions failed, without the value, which may contain private text.
        self.failures: set[str] = set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._count = 0
        for pool in self._pools.values():
            pool.end()

    def __bool__(self) -> bool:
        return self._count > 0

    def start(self, *, single: bool = False) -> _Pool | None:
        """Returns the processes, which the first call starts; None where there can be none."""
        try:
            if self and single not in self._pools:
                self._pools[single] = _Pool(1 if single else self._count)
        # ValueError: the handle of Python's tracker of resources is another's by now, as after a process that cannot be
        # started. NotImplementedError: a system without semaphores, as Python says it.
        except (OSError, ImportError, ValueError, NotImplementedError) as error:
            self._count = 0  # everything is left to the caller, which does it itself, and says so
            self.failures.add(f"none can be started: {type(error).__name__}")
        return self._pools.get(single)

    def give(
        self, function: Callable[[Value], Answer | None], values: Iterable[tuple[Key, Value]]
    ) -> Given[Key, Value, Answer]:
        """Queues values for a function that workers import; each value has a key for its answer."""
        given: Given[Key, Value, Answer] = Given(self, function)
        rest = iter(values)
        while self and (piece := list(islice(rest, _VALUES))):
            if (pool := self.start()) is not None:
                given.pieces.append((piece, pool, pool.submit(function, [value for _, value in piece])))
        return given

    def reply(self, pool: _Pool, future: Future[Reply] | None, alive: Alive) -> Reply | None:
        """Waits for the answers to a piece; None if a worker died, or was killed because it took too long."""
        found = pool.wait(future, alive, self.failures)
        if found is None and pool in self._pools.values():
            pool.end()
            self._pools = {single: each for single, each in self._pools.items() if each is not pool}
            self._deaths += 1
            self._count = self._count if self._deaths < _DEATHS else 0
        return found

    def alone(self, function: Callable[[Any], Any], value: object, alive: Alive) -> Reply | None:
        """Returns the answer of a process that has nothing else to do; None if it died over this value, too."""
        there = True in self._pools
        pool = self.start(single=True)
        if pool is None or (not there and pool.wait(pool.submit(len, []), alive, self.failures) is None):
            self._count = 0  # one that does not even start did not die over a value
            return []
        return self.reply(pool, pool.submit(function, [value]), alive)


class Given(Generic[Key, Value, Answer]):
    """Collects the answers to values that workers were given; `deadly` are keys over which workers died twice."""

    def __init__(self, workers: Workers, function: Callable[[Value], Answer | None]) -> None:
        self._workers = workers
        self._function = function
        self.pieces: deque[tuple[list[tuple[Key, Value]], _Pool, Future[Reply] | None]] = deque()
        self.deadly: set[Key] = set()

    def answers(self, alive: Alive) -> Iterator[tuple[Key, Answer]]:
        """Yields keys and answers in the order of the values, without those left to the caller."""
        while self.pieces:
            piece, pool, future = self.pieces.popleft()
            reply = self._workers.reply(pool, future, alive)
            for place, (key, value) in enumerate(piece):
                if reply is not None:
                    one: Reply | None = reply[place : place + 1]
                elif self._workers:
                    one = self._workers.alone(self._function, value, alive)
                else:
                    break
                if one is None:
                    self.deadly.add(key)
                for failure, answer in one or ():
                    if failure:
                        self._workers.failures.add(failure)
                    elif answer is not None:
                        yield key, answer


class _Pool:
    """Some processes. Raises what `Workers.start` takes for "there can be none"."""

    def __init__(self, count: int) -> None:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        before = set(multiprocessing.active_children())
        # Processes are started in the current folder: without this they would run code that lies in it.
        safe = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
            for _ in range(count):
                self.submit(len, [])  # each starts one, as none is idle yet
        finally:
            os.environ.pop("PYTHONSAFEPATH")
            if safe is not None:
                os.environ["PYTHONSAFEPATH"] = safe
        self._processes = set(multiprocessing.active_children()) - before
        # While we could write ourselves, the rest of an answer whose process was killed would be waited for.
        self._pool._result_queue._writer.close()  # type: ignore[attr-defined]

    def submit(self, function: Callable[[Any], Any], values: list[Any]) -> Future[Reply] | None:
        """Queues values for a function; returns None if a process has died."""
        try:
            # Pickled here: what a process cannot import would end it.
            import pickle

            return self._pool.submit(_answers, pickle.dumps((function, values), pickle.HIGHEST_PROTOCOL))
        except (RuntimeError, OSError):
            return None

    def wait(self, future: Future[Reply] | None, alive: Alive, failures: set[str]) -> Reply | None:
        """Waits for the answers to a piece; returns None if a process died, or was killed as it took too long."""
        from concurrent.futures import CancelledError
        from concurrent.futures.process import BrokenProcessPool

        end = time.monotonic() + LONGEST
        while future is not None:
            try:
                return future.result(_STEP)
            except (BrokenProcessPool, CancelledError):
                return None
            except TimeoutError:
                alive()
                if time.monotonic() > end:
                    self.end()
            except Exception as error:  # noqa: BLE001 - the caller does it, and raises its error
                failures.add(place_of(error))
                return []
        return None

    def end(self) -> None:
        """Kills the processes, whatever they are at."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)


# ── in the worker ──


def _begin() -> None:
    """Makes this worker silent, leaves Ctrl-C to the pass, and ends with it."""
    import gc
    import multiprocessing
    import signal
    import threading

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # it makes no cycles, and does not live long
    threading.Thread(target=end_with_parent, daemon=True).start()


def _answers(packed: bytes) -> Reply:
    """Returns for each value where the function failed, and its answer; the caller repeats a failed call."""
    import pickle

    found: Reply = []
    try:
        function, values = pickle.loads(packed)  # noqa: S301 - written by the pass
        for value in values:
            try:
                found.append(("", function(value)))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - the pass reports it
                found.append((place_of(error), None))
    except MemoryError:
        os._exit(1)
    return found


# ── files over which a process has died ──

MOST_DEATHS = 2  # deaths in a row while the same file was processed, after which the file is skipped
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
        self._known = _read_deaths(folder)
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
            _write_deaths(self._folder, left)

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
        if (state := _file_state(root, path)) is not None:
            self._deaths[path] = [MOST_DEATHS, *state]

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
        signature = files.signatures(root, [path]).get(path) if deaths >= MOST_DEATHS else None
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
    state = _file_state(root, path) if path else None
    if state is None:
        return None
    deaths = _read_deaths(folder)
    before = deaths.get(path, [0])
    deaths[path] = [before[0] + 1 if before[1:] == state else 1, *state]
    _write_deaths(folder, deaths)
    return path


def _file_state(root: Root, path: str) -> list[int] | None:
    """Returns size and time of a file; None if it is gone."""
    signature = files.signatures(root, [path]).get(path)
    return [signature.size, signature.mtime_ns] if signature is not None else None


def _read_deaths(folder: str) -> dict[str, list[int]]:
    """Returns deaths in a row, size and time, by path."""
    found = state_dir.read_json(os.path.join(folder, _LIST)) or {}
    sound = {path: known for path, known in found.items() if isinstance(known, list) and len(known) == 3}
    return {path: known for path, known in sound.items() if all(isinstance(each, int) for each in known)}


def _write_deaths(folder: str, deaths: dict[str, list[int]]) -> None:
    place = os.path.join(folder, _LIST)
    with suppress(OSError):
        if deaths:
            state_dir.write_json(place, deaths)
        else:
            os.unlink(place)
