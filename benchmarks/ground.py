"""Runs signet-sync and its baselines as whole processes in a folder of their own, and measures them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from benchmarks import corpus

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

STILL = 25.0
"""Seconds; memory is given back 20 seconds after the last work."""

PROCESS_LIMIT = 7200.0
"""Seconds after which a measured process is killed and its part fails."""

HOUR_MS = 3_600_000


class BenchError(Exception):
    """A process failed, took too long, or did other work than it should: its numbers would mean nothing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One finished process: seconds by the clock and of a processor, peak memory with its children, what it printed.

    `read_mb` is what it read from disk.
    """

    seconds: float
    processor: float
    peak_mb: float
    read_mb: float
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Reads the JSON document that it printed."""
        return json.loads(self.stdout)


@dataclass(slots=True)
class Ground:
    """The folder in which everything happens, and the environment of every process."""

    root: str
    per_day: float
    agents: int
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGNET_")}
        self.env = kept | {
            "HOME": self.path("home"),
            "SIGNET_CONFIG": self.path("home", "no-settings.toml"),
            "XDG_STATE_HOME": self.path("state"),
            "XDG_CONFIG_HOME": self.path("home", "config"),
            "XDG_DATA_HOME": self.path("home", "data"),
            "XDG_CACHE_HOME": self.path("home", "cache"),
            "PYTHONPATH": PROJECT,
            "NO_COLOR": "1",
        }
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        os.makedirs(self.path("home"), exist_ok=True)

    def path(self, *parts: str) -> str:
        """Joins a path below the folder."""
        return os.path.join(self.root, *parts)

    def fresh_state(self) -> None:
        """Leaves no database and no state folder, as before the first run."""
        shutil.rmtree(self.path("state"), ignore_errors=True)
        for name in os.listdir(self.root):
            if name.startswith(("ours.db", "baseline.db")):
                os.unlink(self.path(name))

    def workspace(self, sessions: int) -> str:
        """Copies a corpus whose sessions ended an hour ago or earlier: no page, no ledger, manifests as first written.

        The corpus is kept, and serves as long as its end is a few hours old: the agent's clock is the real one.
        """
        pristine, where = self.path(f"corpus-{sessions}-{self.per_day:g}-{self.agents}"), self.path("workspace")
        if not os.path.exists(pristine + ".end") or time.time() * 1000 - self.end_ms(sessions) > 6 * HOUR_MS:
            shutil.rmtree(pristine, ignore_errors=True)
            end = int(time.time() * 1000) - HOUR_MS
            options = ["--sessions", sessions, "--per-day", self.per_day, "--agents", self.agents]
            # In a process of its own, because a child's peak memory starts at its parent's size.
            self.run(*python("benchmarks.corpus", pristine, "--end", corpus.iso(end), *map(str, options)))
            with open(pristine + ".end", "w", encoding="ascii") as file:
                file.write(str(end))
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(pristine, where)
        return where

    def end_ms(self, sessions: int) -> int:
        """Reads the moment before which all sessions of a corpus ended, in milliseconds since 1970."""
        with open(self.path(f"corpus-{sessions}-{self.per_day:g}-{self.agents}.end"), encoding="ascii") as file:
            return int(file.read())

    def run(self, *argv: str, kill_after: float | None = None, given: bytes = b"") -> Ran:
        """Runs a process to its end, or for so many seconds; `BenchError` with what it said when it fails."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, _input(given) as told:
            began = time.perf_counter()
            process = subprocess.Popen(argv, stdin=told, stdout=out, stderr=err, env=self.env, cwd=self.root)
            limit = threading.Timer(kill_after or PROCESS_LIMIT, process.kill)
            limit.start()
            with watched(lambda: _held_mb(process.pid), 0.1) as peaks:
                # wait4 and not Popen.wait: the usage of this child alone, not the largest of all so far.
                _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            limit.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            printed, said = out.read(), err.read()
        if process.returncode != (0 if kill_after is None else -signal.SIGKILL):
            raise BenchError(f"{_shown(argv)}: exit code {process.returncode}\n{(said.strip() or printed)[-1500:]}")
        unit = 1024**2 if sys.platform == "darwin" else 1024
        peak = max(usage.ru_maxrss / unit, *peaks)
        processor, read = usage.ru_utime + usage.ru_stime, usage.ru_inblock * 512 / 1e6
        return Ran(seconds, processor, peak, read, printed, said)

    def signet(self, workspace: str, *command: str, apart: bool = True) -> list[str]:
        """Gives the command line of signet-sync on a workspace, with a database `apart` from its state."""
        database = ["--db", self.path("ours.db")] if apart else []
        return python("signet_sync", "--workspace", workspace, *database, *command)

    def index(self, workspace: str, files: int) -> tuple[Ran, dict[str, Any]]:
        """Makes one pass; `BenchError` unless every file is indexed and nothing was found wrong."""
        ran = self.run(*self.signet(workspace, "reindex", "--json"))
        answer: dict[str, Any] = ran.json()
        indexed = answer["counts"]["indexed"]
        if indexed != files or answer["problems"] or answer["halted"]:
            first = answer["problems"][:1] or answer["halted"]
            raise BenchError(f"reindex indexed {indexed} of {files} files; first problem: {first}")
        return ran, answer

    def baseline(self, workspace: str, files: int) -> Ran:
        """Runs the straight-line baseline into a new database; `BenchError` unless it has read every file."""
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path("baseline.db" + suffix))
        ran = self.run(*python("benchmarks.baseline", workspace, self.path("baseline.db")))
        if ran.json()["files"] != files:
            raise BenchError(f"the baseline read {ran.json()['files']} of {files} files")
        return ran

    @contextlib.contextmanager
    def agent(self, workspace: str, *, apart: bool = True) -> Iterator[subprocess.Popen[bytes]]:
        """Starts `run` on a workspace, and ends it by SIGTERM; one with a database `apart` answers nobody."""
        command = self.signet(workspace, "run", apart=apart)
        with open(self.path("run.log"), "wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=self.env, cwd=self.root)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def until_idle(self, workspace: str, process: subprocess.Popen[bytes], *, apart: bool = True) -> None:
        """Waits until the agent watches, has nothing left to follow, and was still for longer than it puts work off."""
        deadline = time.monotonic() + PROCESS_LIMIT
        while not self._is_done(workspace, apart=apart):
            if time.monotonic() > deadline or process.poll() is not None:
                with open(self.path("run.log"), errors="replace") as handle:
                    raise BenchError(f"`run` does not come to rest, code {process.poll()}\n{handle.read()[-1500:]}")
            time.sleep(0.5)
        while time.monotonic() < deadline:
            before = Usage.of(process.pid).processor
            time.sleep(STILL)
            if Usage.of(process.pid).processor - before < 0.02:
                return

    def _is_done(self, workspace: str, *, apart: bool) -> bool:
        try:
            answer = self.run(*self.signet(workspace, "status", "--json", apart=apart)).json()
        except BenchError:
            return False  # there is nothing to ask yet
        return bool(answer["running"] and answer["state"] == "watching" and not answer["backlog"])


@contextlib.contextmanager
def _input(given: bytes) -> Iterator[IO[bytes]]:
    """A file that a process reads from its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far: seconds of a processor, resident and peak MB, voluntary context switches."""

    processor: float
    resident_mb: float
    peak_mb: float
    switches: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        """Reads `/proc`; the processor's time from the scheduler's nanoseconds where it counts them."""
        with open(f"/proc/{pid}/stat") as handle:
            fields = handle.read().rsplit(")", 1)[1].split()
        ticks = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        nanoseconds, switches = 0, 0
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError):
                switches += _number(f"/proc/{pid}/task/{thread}/status", "voluntary_ctxt_switches")
                with open(f"/proc/{pid}/task/{thread}/schedstat") as handle:
                    nanoseconds += int(handle.read().split()[0])
        resident, peak = (_number(f"/proc/{pid}/status", name) / 1024 for name in ("VmRSS", "VmHWM"))
        return cls(nanoseconds / 1e9 if nanoseconds else ticks, resident, peak, switches)


def _number(path: str, key: str) -> int:
    with open(path) as handle:
        return next((int(line.split()[1]) for line in handle if line.startswith(key + ":")), 0)


@contextlib.contextmanager
def watched(measure: Callable[[], float], every: float) -> Iterator[list[float]]:
    """Fills in what a function measures, every so many seconds; what it cannot read is left out."""
    peaks, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(every):
            with contextlib.suppress(OSError):
                peaks.append(measure())

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def _held_mb(pid: int) -> float:
    """What a process and its children hold together."""
    return sum(_share_mb(one) for one in _family(pid))


def _family(pid: int) -> Iterator[int]:
    """Gives a process and all below it, whichever of its threads has started them."""
    yield pid
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as handle:
                children = handle.read().split()
            for child in children:
                yield from _family(int(child))


def _share_mb(pid: int) -> float:
    """Memory of a process; of pages that several hold, its share."""
    return _number(f"/proc/{pid}/smaps_rollup", "Pss") / 1024


def python(module: str, *arguments: str) -> list[str]:
    """Gives the command line that runs a module."""
    return [sys.executable, "-m", module, *arguments]


def _shown(argv: Sequence[str]) -> str:
    return " ".join("python" if word == sys.executable else os.path.basename(word) for word in argv)


def percentile(values: Sequence[float], part: float) -> float:
    """Gives the smallest value that at least `part` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(part * len(ordered)) - 1]


def machine() -> str:
    """Says in one line on what something was measured."""
    import apsw

    from signet_sync import __version__

    versions = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    return f"signet-sync {__version__}, {versions}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
