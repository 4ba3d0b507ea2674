"""Measures signet-sync as whole processes, each beside its baseline in the same round, and prints ratios.

`python -m benchmarks.bench` makes its workspaces in a temporary folder and points everything that signet-sync
might touch (`HOME`, state, settings) into it. Seconds differ by a factor of two between identical runs on a
busy machine; ratios within a round hardly do, so a goal is held against the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import corpus

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(PROJECT, "benchmarks", "README.md")
BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"
PARTS = ("cold", "nochange", "startup", "onechange", "idle")

DEBOUNCE = 0.2
"""Seconds; given to `run` and taken off every latency: it is a setting, not a cost."""

PROCESS_LIMIT = 1800.0
"""Seconds after which a measured process is killed and its part fails."""


class BenchError(Exception):
    """A process failed, took too long, or did other work than it should: its numbers would mean nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `met` is None where there is no goal."""

    what: str
    files: str
    ours: str
    reference: str
    figure: str
    goal: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """One finished process: wall seconds from start to end, peak memory in MB, what it printed."""

    seconds: float
    peak_mb: float
    stdout: str

    def json(self) -> Any:
        """The JSON document that it printed."""
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
        return os.path.join(self.root, *parts)

    def fresh_state(self) -> None:
        """No database and no state folder, as before the first run."""
        shutil.rmtree(self.path("state"), ignore_errors=True)
        for suffix in ("", "-wal", "-shm", "-journal"):
            for name in ("ours.db", "baseline.db", "empty.db"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path(name + suffix))

    def pristine(self, sessions: int) -> str:
        """A corpus that ends at the default moment; kept between runs in a folder given by `--keep`."""
        where = self.path(f"corpus-{sessions}-{self.per_day:g}-{self.agents}")
        if not os.path.exists(where + ".done"):
            shutil.rmtree(where, ignore_errors=True)
            self._write(where, sessions, corpus.DEFAULT_END)
            with open(where + ".done", "w"):
                pass
        return where

    def workspace(self, sessions: int) -> str:
        """A fresh copy of the corpus: no page, no ledger, manifests as they were first written."""
        where = self.path("workspace")
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(self.pristine(sessions), where)
        return where

    def live_workspace(self, sessions: int, end: str) -> str:
        """A corpus up to `end`, for the agent, whose clock is the real one."""
        where = self.path("live")
        shutil.rmtree(where, ignore_errors=True)
        self._write(where, sessions, end)
        return where

    def _write(self, where: str, sessions: int, end: str) -> None:
        # In a process of its own, because a child's peak memory starts at its parent's size.
        options = ["--sessions", sessions, "--per-day", self.per_day, "--end", end, "--agents", self.agents]
        self.run(sys.executable, "-m", "benchmarks.corpus", where, *map(str, options))

    def run(self, *argv: str) -> Ran:
        """Runs a process to its end; `BenchError` with the end of its stderr when that is not exit code 0."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            began = time.perf_counter()
            process = subprocess.Popen(argv, stdout=out, stderr=err, env=self.env, cwd=self.root)
            limit = threading.Timer(PROCESS_LIMIT, process.kill)
            limit.start()
            # wait4 and not Popen.wait: the usage of this child alone, not the largest of all so far.
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            limit.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            if process.returncode != 0:
                tail = (err.read().strip() or out.read().strip())[-1500:]
                raise BenchError(f"{_shown(argv)}: exit code {process.returncode}\n{tail}")
            unit = 1024**2 if sys.platform == "darwin" else 1024
            return Ran(seconds, usage.ru_maxrss / unit, out.read())

    def signet(self, workspace: str, database: str, *command: str) -> list[str]:
        """The command line of signet-sync on that workspace and database."""
        base = [sys.executable, "-m", "signet_sync", "--workspace", workspace, "--db", self.path(database)]
        return [*base, *command]

    def baseline(self, workspace: str) -> list[str]:
        """The command line of the straight-line baseline into a new database."""
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path("baseline.db" + suffix))
        return [sys.executable, "-m", "benchmarks.baseline", workspace, self.path("baseline.db")]


def _shown(argv: Sequence[str]) -> str:
    return " ".join("python" if word == sys.executable else os.path.basename(word) for word in argv)


def _seconds(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} s ({min(values):.2f})"


def _ms(values: Sequence[float]) -> str:
    return f"{statistics.median(values) * 1000:.0f} ms ({min(values) * 1000:.0f})"


def _ratio(ours: float, reference: float) -> str:
    return f"{ours / reference:.2f}" if reference > 0 else "?"


def _count(files: int) -> str:
    return f"{files:,}"


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(part * len(ordered)) - 1]


REINDEX = ("reindex", "--json", "--now", corpus.DEFAULT_END)


def _reindex(ground: Ground, workspace: str, database: str, files: int) -> tuple[Ran, dict[str, Any]]:
    """One pass and its answer; `BenchError` unless every file is indexed and nothing was found wrong."""
    ran = ground.run(*ground.signet(workspace, database, *REINDEX))
    answer: dict[str, Any] = ran.json()
    indexed = answer["counts"]["indexed"]
    if indexed != files or answer["problems"] or answer["halted"]:
        first = answer["problems"][:1] or answer["halted"]
        raise BenchError(f"reindex indexed {indexed} of {files} files; first problem: {first}")
    return ran, answer


def _straight(ground: Ground, workspace: str, files: int) -> Ran:
    """The baseline into a new database; `BenchError` unless it has read every file."""
    ran = ground.run(*ground.baseline(workspace))
    if ran.json()["files"] != files:
        raise BenchError(f"the baseline read {ran.json()['files']} of {files} files")
    return ran


Job = Callable[[], None]


def _in_turn(turn: int, *jobs: Job) -> None:
    """Runs the jobs, every other time in reverse, so that going second is nobody's advantage."""
    for job in jobs if turn % 2 == 0 else reversed(jobs):
        os.sync()
        job()


# ── the parts ──


def cold(ground: Ground, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """First `reindex` of a workspace against the baseline: whole processes, start-up included."""
    for sessions in sizes:
        yield from _cold(ground, sessions, rounds)


def _cold(ground: Ground, sessions: int, rounds: int) -> Iterator[Row]:
    files = 3 * sessions
    ours: list[Ran] = []
    theirs: list[Ran] = []
    workspace = ground.path("workspace")
    jobs: list[Job] = [
        lambda: theirs.append(_straight(ground, workspace, files)),
        lambda: ours.append(_reindex(ground, workspace, "ours.db", files)[0]),
    ]
    for turn in range(rounds):
        ground.fresh_state()
        ground.workspace(sessions)
        _in_turn(turn, *jobs)
    mine, base = [ran.seconds for ran in ours], [ran.seconds for ran in theirs]
    ratio = statistics.median(a / b for a, b in zip(mine, base, strict=True))
    figure = f"{ratio:.2f} ({min(mine) / min(base):.2f})"
    yield Row("cold index", _count(files), _seconds(mine), _seconds(base), figure, "≤ 0.5", ratio <= 0.5)
    peak = [max(ran.peak_mb for ran in runs) for runs in (ours, theirs)]
    yield Row("· peak memory", _count(files), f"{peak[0]:.0f} MB", f"{peak[1]:.0f} MB", _ratio(*peak))
    size = [os.path.getsize(ground.path(name)) / 1e6 for name in ("ours.db", "baseline.db")]
    yield Row("· database", _count(files), f"{size[0]:.0f} MB", f"{size[1]:.0f} MB", _ratio(*size))


def nochange(ground: Ground, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """`reindex` when nothing changed against a bare scandir + stat, the start of the process taken off both.

    The start of ours is a `reindex` of an empty workspace; the bare one's is
    `python -c pass`.
    """
    for sessions in sizes:
        yield from _nochange(ground, sessions, 4 * rounds)


def _nochange(ground: Ground, sessions: int, rounds: int) -> Iterator[Row]:
    files = 3 * sessions
    ground.fresh_state()
    workspace, empty = ground.workspace(sessions), ground.path("empty")
    shutil.rmtree(empty, ignore_errors=True)
    os.makedirs(os.path.join(empty, "memory"))
    scan = "import sys; from benchmarks.baseline import bare; bare(sys.argv[1])"
    walls: dict[str, list[float]] = {"full": [], "empty": [], "bare": [], "pass": []}
    read: list[int] = []

    def full() -> None:
        ran, answer = _reindex(ground, workspace, "ours.db", files)
        walls["full"].append(ran.seconds)
        read.append(answer["counts"]["read"])

    jobs: list[Job] = [
        lambda: walls["pass"].append(ground.run(sys.executable, "-c", "pass").seconds),
        lambda: walls["bare"].append(ground.run(sys.executable, "-c", scan, workspace).seconds),
        lambda: walls["empty"].append(_reindex(ground, empty, "empty.db", 0)[0].seconds),
        full,
    ]
    # Files as young as the first pass may be read again by the next one, which is then no idle pass.
    for _ in range(2):
        _in_turn(0, *jobs)
        time.sleep(2.5)
    read.clear()
    for values in walls.values():
        values.clear()
    for turn in range(rounds):
        _in_turn(turn, *jobs)
    (ours, bare), (best, least) = (_beyond_start(walls, of) for of in (statistics.median, min))
    again = f", {max(read)} files read" if max(read) else ""
    yield Row(
        "nothing changed, start-up taken off",
        _count(files),
        f"{ours * 1000:.0f} ms{again}",
        f"{bare * 1000:.0f} ms",
        f"{_ratio(ours, bare)} ({_ratio(best, least)})",
        "≤ 3",
        ours <= 3 * bare if bare > 0.02 else None,  # below that, processes start less evenly than it takes
    )
    yield Row("· whole process", _count(files), _ms(walls["full"]), _ms(walls["bare"]), "")


def _beyond_start(walls: dict[str, list[float]], middle: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    """Seconds of our pass and of the bare scan beyond the start of their processes."""
    of = {name: middle(values) for name, values in walls.items()}
    return of["full"] - of["empty"], of["bare"] - of["pass"]


def startup(ground: Ground, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """How much later than bare Python the commands that people wait for are done."""
    sessions = min(sizes)
    ground.fresh_state()
    workspace = ground.workspace(sessions)
    _reindex(ground, workspace, "ours.db", 3 * sessions)
    module = [sys.executable, "-m", "signet_sync"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "--help": [*module, "--help"],
        "--version": [*module, "--version"],
        "status": ground.signet(workspace, "ours.db", "status"),
        "search heartbeat": ground.signet(workspace, "ours.db", "search", "heartbeat"),
    }
    for argv in commands.values():  # compiles modules and fills caches
        ground.run(*argv)
    walls: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(5 * rounds):
        for name, argv in commands.items():
            walls[name].append(ground.run(*argv).seconds)
    bare = walls.pop("python -c pass")
    for name, values in walls.items():
        more = (statistics.median(values) - statistics.median(bare)) * 1000
        row = (f"start-up, `{name}`", _count(3 * sessions), _ms(values), _ms(bare), f"+{more:.0f} ms")
        yield Row(*row, "≤ +150 ms", more <= 150)


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from a file's arrival to its row and to its line in MEMORY.md, the debounce taken off."""

    row: float
    page: float

    @property
    def both(self) -> float:
        return max(self.row, self.page)


def onechange(ground: Ground, sizes: Sequence[int], changes: int) -> Iterator[Row]:
    """From the arrival of one new summary under `run` to its row and to its line in MEMORY.md."""
    middles: list[float] = []
    for sessions in sizes:
        both = [latency.both for latency in _latencies(ground, sessions, changes)]
        half, most = percentile(both, 0.5) * 1000, percentile(both, 0.99) * 1000
        middles.append(half)
        row = ("one change → row and page", _count(3 * sessions), f"p50 {half:.0f} ms, p99 {most:.0f} ms")
        how = f"{changes} changes, less {DEBOUNCE * 1000:.0f} ms debounce"
        yield Row(*row, how, "", "p99 ≤ 60 ms", most <= 60)
    if len(middles) > 1:
        met = middles[-1] <= max(1.2 * middles[0], middles[0] + 1)  # a millisecond is below the clock's noise
        span = f"{_count(3 * sizes[0])} → {_count(3 * sizes[-1])}"
        within = f"{middles[-1]:.1f} ms", f"{middles[0]:.1f} ms"
        yield Row("· p50, growth with the vault", span, *within, _ratio(middles[-1], middles[0]), "≤ 1.2", met)


def _latencies(ground: Ground, sessions: int, changes: int) -> list[Latency]:
    ground.fresh_state()
    # An hour ago, so that the new sessions are the newest and none of them lies in the future.
    end_ms = int(time.time() * 1000) - 3_600_000
    workspace = ground.live_workspace(sessions, corpus.iso(end_ms))
    arrivals = _arrivals(ground, workspace, end_ms, changes)
    with _agent(ground, workspace) as process:
        watch = _Watch(workspace, ground.path("ours.db"), process)
        found = []
        for number, arrival in enumerate(arrivals):
            # Longer than the debounce, so that no change rides along with the one before it.
            time.sleep(2 * DEBOUNCE + 0.05 * (number % 7))
            found.append(watch.latency(arrival))
        watch.close()
    return found


@dataclass(frozen=True, slots=True)
class Arrival:
    """A summary still to come: where it waits, its path in the workspace, a word that only it holds."""

    waiting: str
    path: str
    word: str


class _Watch:
    """Looks at the database and at MEMORY.md until a change shows in them."""

    def __init__(self, workspace: str, database: str, process: subprocess.Popen[bytes]) -> None:
        import apsw

        self.workspace = workspace
        self.process = process
        self.connection = apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY)
        self.connection.set_busy_timeout(1000)

    def latency(self, arrival: Arrival) -> Latency:
        """Moves the file into place and times its row and its line."""
        began = time.perf_counter()
        os.replace(arrival.waiting, os.path.join(self.workspace, arrival.path))
        row = self._until(lambda: self._in_database(arrival.path), began)
        page = self._until(lambda: self._in_page(arrival.word.encode()), began)
        return Latency(row - DEBOUNCE, page - DEBOUNCE)

    def close(self) -> None:
        self.connection.close()

    def _in_database(self, path: str) -> bool:
        query = "SELECT 1 FROM memory_artifacts WHERE agent_id = 'default' AND source_path = ?"
        return self.connection.execute(query, (path,)).fetchall() != []

    def _in_page(self, word: bytes) -> bool:
        try:
            with open(os.path.join(self.workspace, "MEMORY.md"), "rb") as handle:
                return word in handle.read()
        except FileNotFoundError:
            return False

    def _until(self, seen: Callable[[], bool], began: float) -> float:
        """Seconds since `began` at which the change was seen."""
        while True:
            visible = seen()
            now = time.perf_counter() - began
            if visible:
                return now
            if self.process.poll() is not None:
                raise BenchError(f"`run` ended with exit code {self.process.returncode} during a change")
            if now > 60:
                raise BenchError("a change was not seen within 60 s")
            time.sleep(0.0005)


def _arrivals(ground: Ground, workspace: str, end_ms: int, changes: int) -> list[Arrival]:
    """Prepares sessions of which only the summary is still to come.

    Their manifests lie there already, so that one arrival is one changed file, and nothing has to be written
    for it but rows and pages.
    """
    made = corpus.Corpus(agents=1, seed=2)
    outbox = ground.path("outbox")
    shutil.rmtree(outbox, ignore_errors=True)
    os.makedirs(outbox)
    step = 3_000_000 // changes
    prepared = []
    for number in range(changes):
        word = f"arrival{number:05d}q"
        ended = end_ms + (number + 1) * step
        session, files = made.compose(number, ended_ms=ended, slack_ms=step // 2, word=word)
        manifest, summary = session["paths"]["manifest"], session["paths"]["summary"]
        corpus.write_files(workspace, {manifest: files[manifest]})
        waiting = os.path.join(outbox, os.path.basename(summary))
        with open(waiting, "wb") as handle:
            handle.write(files[summary].encode())
        prepared.append(Arrival(waiting, summary, word))
    return prepared


@contextlib.contextmanager
def _agent(ground: Ground, workspace: str) -> Iterator[subprocess.Popen[bytes]]:
    """`run` on that workspace, once it is watching; ended by SIGTERM."""
    log = ground.path("run.log")
    command = ground.signet(workspace, "ours.db", "run", "--debounce", str(DEBOUNCE))
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=ground.env, cwd=ground.root)
    try:
        _until_watching(ground, workspace, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_watching(ground: Ground, workspace: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 600
    while (state := _state(ground, workspace)) != "watching":
        stuck = state.startswith(("halted", "held", "polling")) or time.monotonic() > deadline
        if stuck or process.poll() is not None:
            with open(ground.path("run.log"), errors="replace") as handle:
                tail = handle.read()[-1500:]
            raise BenchError(f"`run` is not watching: {state or 'no state'}, code {process.poll()}\n{tail}")
        time.sleep(0.3)


def _state(ground: Ground, workspace: str) -> str:
    """What `status` says of the agent; empty while there is nothing to ask yet."""
    try:
        answer = ground.run(*ground.signet(workspace, "ours.db", "status", "--json")).json()
    except BenchError:
        return ""
    return str(answer["state"]) if answer["running"] else ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far: CPU seconds, resident MB, voluntary context switches."""

    cpu: float
    resident_mb: float
    switches: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        """From `/proc`; CPU from the scheduler's nanoseconds where it counts them, else from clock ticks."""
        with open(f"/proc/{pid}/stat") as handle:
            fields = handle.read().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        nanoseconds, switches = 0, 0
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError):
                switches += _status(f"/proc/{pid}/task/{thread}/status", "voluntary_ctxt_switches")
                with open(f"/proc/{pid}/task/{thread}/schedstat") as handle:
                    nanoseconds += int(handle.read().split()[0])
        resident = _status(f"/proc/{pid}/status", "VmRSS") / 1024
        return cls(nanoseconds / 1e9 if nanoseconds else cpu, resident, switches)


def _status(path: str, key: str) -> int:
    with open(path) as handle:
        return next(int(line.split()[1]) for line in handle if line.startswith(key + ":"))


def idle(ground: Ground, sizes: Sequence[int], seconds: float) -> Iterator[Row]:
    """What `run` costs while nothing happens, after its first pass has settled. Linux only."""
    sessions = max(sizes)
    if not os.path.isdir("/proc/self/task"):
        yield Row("idle", _count(3 * sessions), "not measured", "needs /proc", "")
        return
    ground.fresh_state()
    workspace = ground.live_workspace(sessions, corpus.iso(int(time.time() * 1000) - 3_600_000))
    with _agent(ground, workspace) as process:
        _settle(process.pid, seconds)
        before = Usage.of(process.pid)
        time.sleep(seconds)
        after = Usage.of(process.pid)
    share = 100 * (after.cpu - before.cpu) / seconds
    rate = (after.switches - before.switches) / seconds
    files, span = _count(3 * sessions), f"over {seconds:.0f} s"
    yield Row("idle, CPU", files, f"{share:.3f} % of a core", span, "", "< 0.1 %", share < 0.1)
    resident = after.resident_mb
    yield Row("idle, resident memory", files, f"{resident:.0f} MB", "", "", "≤ 80 MB", resident <= 80)
    yield Row("idle, wake-ups", files, f"{rate:.1f} a second", span, "")


def _settle(pid: int, seconds: float) -> None:
    """Waits until the agent has been nearly still for three seconds, at most two minutes."""
    deadline = time.monotonic() + 120
    time.sleep(min(5.0, seconds))
    while time.monotonic() < deadline:
        before = Usage.of(pid).cpu
        time.sleep(3)
        if Usage.of(pid).cpu - before < 0.01:
            return


# ── the table ──


def table(rows: Sequence[Row]) -> str:
    """A markdown table; the mark says whether the goal was met."""
    lines = [
        "| measured | files | signet-sync | baseline | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mark = "" if row.met is None else "met" if row.met else "**missed**"
        cells = (row.what, row.files, row.ours, row.reference, row.figure, row.goal, mark)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> str:
    """One line that says on what the table was measured."""
    import apsw

    from signet_sync import __version__

    python = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"signet-sync {__version__}, {python}, {system}"


def write_readme(text: str, path: str = README) -> None:
    """Puts the text between the two marks of the README; `BenchError` when they are not there."""
    with open(path, encoding="utf-8") as handle:
        page = handle.read()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"{os.path.basename(path)} lacks the marks {BEGIN} and {END}")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(f"{before}{begin}\n{text}\n{end}{after}")


def measure(ground: Ground, chosen: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Runs the chosen parts, each as far as it gets; the rows, and the names of parts that failed."""
    sizes: list[int] = sorted(chosen.sessions)
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "cold": lambda: cold(ground, sizes, chosen.rounds),
        "nochange": lambda: nochange(ground, sizes, chosen.rounds),
        "startup": lambda: startup(ground, sizes, chosen.rounds),
        "onechange": lambda: onechange(ground, sizes, chosen.changes),
        "idle": lambda: idle(ground, sizes, chosen.idle_seconds),
    }
    rows: list[Row] = []
    failed: list[str] = []
    for name in PARTS:
        if name not in chosen.only:
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            for row in parts[name]():
                rows.append(row)
                print(
                    "  " + " | ".join(filter(None, (row.what, row.files, row.ours, row.figure))),
                    file=sys.stderr,
                )
        except BenchError as error:
            failed.append(name)
            print(f"  failed: {error}", file=sys.stderr)
    return rows, failed


def _only(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(PARTS)}")
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m benchmarks.bench`: prints the table; exit code 1 when a part failed, not when a goal did."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, nargs="+", default=[500, 5000], help="sizes; three files a session")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each measurement")
    parser.add_argument("--changes", type=int, default=100, help="arrivals in `onechange`")
    parser.add_argument("--idle-seconds", type=float, default=30.0, help="length of `idle`")
    parser.add_argument("--per-day", type=float, default=50, help="sessions in 24 hours")
    parser.add_argument("--agents", type=int, default=3, help="agents that share the workspace")
    parser.add_argument("--only", type=_only, default=list(PARTS), help="comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="100 sessions, one round: does it run at all?")
    parser.add_argument("--keep", metavar="DIR", help="work in DIR/signet-bench and keep it")
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.sessions, chosen.rounds, chosen.changes, chosen.idle_seconds = [100], 1, 10, 5.0
    if min(*chosen.sessions, chosen.rounds, chosen.changes, chosen.agents) < 1:
        parser.error("--sessions, --rounds, --changes and --agents must be at least 1")
    with contextlib.ExitStack() as stack:
        if chosen.keep:
            # A folder of its own, because old workspaces are removed from it.
            root = os.path.abspath(os.path.join(chosen.keep, "signet-bench"))
            os.makedirs(root, exist_ok=True)
        else:
            root = stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-bench-"))
        rows, failed = measure(Ground(root, chosen.per_day, chosen.agents), chosen)
    text = f"{machine()}; rounds: {chosen.rounds}; medians, the best in brackets.\n\n{table(rows)}"
    print(text)
    if failed:
        print(f"\nfailed: {', '.join(failed)}; nothing is written", file=sys.stderr)
    elif chosen.write:
        write_readme(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
