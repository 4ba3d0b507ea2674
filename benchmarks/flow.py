"""Measures the end of a session, step by step, beside a program that only writes the same bytes durably.

`python -m benchmarks.flow` ends sessions of one megabyte and of a few kilobytes in a vault that already holds some, in
this process, so that the parts can be told apart, and as whole processes, as a harness calls it. The baseline writes
what the ending wrote, byte for byte and file for file, each with fsync and fsync of its folder: what durability costs
on this disk. Everything happens in a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any

from benchmarks import corpus
from benchmarks.ground import PROJECT, STILL, machine, percentile

REST = "rest"
"""What belongs to no step: locks, looking at what is done, going from step to step."""


@dataclass(slots=True)
class Stopwatch:
    """Seconds by step; a step within a step belongs to the outer one."""

    seconds: dict[str, float] = field(default_factory=dict)
    journalled: list[Any] = field(default_factory=list)
    _running: bool = False

    def watch(self, place: Any, name: str, step: str) -> None:
        """Takes the time of a function from now on; `place` is where its callers look it up."""
        function = getattr(place, name)

        def timed(*args: Any, **given: Any) -> Any:
            if self._running:
                return function(*args, **given)
            self._running = True
            started = time.perf_counter()
            try:
                return function(*args, **given)
            finally:
                self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - started
                self._running = False
                if name == "begin":
                    self.journalled.append(args[-1])

        setattr(place, name, timed)


# Where callers look a function up, and the step that its time belongs to.
WATCHED = {
    "signet_sync.sessions.operations:_clean": "sanitize",
    "signet_sync.sessions.operations:_index": "look at the token's files",
    "signet_sync.digest.outcome:outcome": "digest",
    "signet_sync.digest.summary:summary": "digest",
    "signet_sync.sessions.journal:begin": "journal",
    "signet_sync.sessions.journal:JournalledFlow.finish": "journal",
    "signet_sync.sessions.flow:choose_sentence": "sentence",
    "signet_sync.sessions.flow:_write_artifact": "artifacts",
    "signet_sync.sessions.flow:_write_manifest": "manifest",
    "signet_sync.sync.engine:index": "rows",
    "signet_sync.sync.engine:_derive": "rows that follow",
    "signet_sync.sync.engine:publish": "pages",
    "signet_sync.sessions.flow:_answer": "answer",
}


def place_of(watched: str) -> tuple[Any, str]:
    """Loads a module or class of ours; gives it and the name of its function."""
    module, _, names = watched.partition(":")
    *outer, name = names.split(".")
    place: Any = import_module(module)
    for one in outer:
        place = getattr(place, one)
    return place, name


def stopwatch() -> tuple[Stopwatch, list[str]]:
    """Watches every step of an ending; gives the names of the steps in their order, too."""
    watch = Stopwatch()
    for watched, step in WATCHED.items():
        watch.watch(*place_of(watched), step)
    return watch, list(dict.fromkeys(WATCHED.values()))


@dataclass(slots=True)
class Measured:
    """Endings of one size: seconds by step, of the whole, and of the baseline, one each a run."""

    steps: dict[str, list[float]] = field(default_factory=dict)
    whole: list[float] = field(default_factory=list)
    baseline: list[float] = field(default_factory=list)
    files: int = 0
    written: int = 0

    def ratio(self) -> float:
        """The median of the runs' ratios."""
        return statistics.median(ours / theirs for ours, theirs in zip(self.whole, self.baseline, strict=True))


def words(root: str, size: int) -> str:
    """A transcript of about so many bytes, made of those in a vault."""
    bodies: list[str] = []
    total = 0
    names = sorted(name for name in os.listdir(os.path.join(root, "memory")) if name.endswith("--transcript.md"))
    while total < size:
        for name in names:
            with open(os.path.join(root, "memory", name), encoding="utf-8") as handle:
                body = handle.read().split("\n---\n", 1)[1]
            bodies.append(body[: size - total])
            total += len(bodies[-1].encode())
            if total >= size:
                break
    return "\n".join(bodies)


def document(root: str, size: int, number: int) -> dict[str, Any]:
    """The input of an ending; no two say the same."""
    return {
        "session_id": f"benchmark-{size}-{number}",
        "project": "/home/ada/code/lantern",
        "harness": "claude-code",
        "transcript": f"# Run {number}\n\n{words(root, size)}",
    }


def durably(folder: str, contents: Sequence[bytes]) -> float:
    """Seconds to write files and make each of them durable, with its folder's entry."""
    os.makedirs(folder)
    started = time.perf_counter()
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, data in enumerate(contents):
            handle = os.open(os.path.join(folder, str(number)), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return time.perf_counter() - started


def files(root: str) -> dict[str, int]:
    """Inode of every file of a vault: one that was replaced has another."""
    found = {}
    for where, _, names in os.walk(root):
        for name in names:
            path = os.path.join(where, name)
            found[path] = os.stat(path).st_ino
    return found


def measure(watch: Stopwatch, root: str, size: int, runs: int) -> Iterator[Measured]:
    """Ends sessions of a size in this process; gives what was measured so far after each run, the first left out."""
    from signet_sync.app.workspace import open_to_write
    from signet_sync.sessions import operations as sessions_operations
    from signet_sync.sessions.input import session_input
    from signet_sync.settings.model import Settings

    found = Measured()
    for number in range(runs + 1):
        told = document(root, size, number)
        before = files(root)
        watch.seconds.clear()
        watch.journalled.clear()
        os.sync()
        started = time.perf_counter()
        with open_to_write(root, Settings()) as workspace:
            now_us = time.time_ns() // 1000
            sessions_operations.write(workspace, session_input(told, now_us=now_us), now_us=now_us)
            whole = time.perf_counter() - started
        contents = [json.dumps(journalled).encode() for journalled in watch.journalled]
        for path, inode in files(root).items():
            if before.get(path) != inode:
                with open(path, "rb") as handle:
                    contents.append(handle.read())
        os.sync()
        baseline = durably(os.path.join(os.path.dirname(root), f"baseline-{size}-{number}"), contents)
        if not number:
            continue  # imports, a first look at the vault
        for step, seconds in watch.seconds.items():
            found.steps.setdefault(step, []).append(seconds)
        found.steps.setdefault(REST, []).append(whole - sum(watch.seconds.values()))
        found.whole.append(whole)
        found.baseline.append(baseline)
        found.files, found.written = len(contents), sum(map(len, contents))
        yield found


def processes(root: str, size: int, runs: int) -> list[float]:
    """Seconds of `session end` as a process of its own."""
    seconds = []
    for number in range(runs + 1):
        told = json.dumps(document(root, size, 10_000 + number)).encode()
        command = [sys.executable, "-m", "signet_sync", "--workspace", root, "session", "end", "--json", "--input", "-"]
        started = time.perf_counter()
        subprocess.run(command, input=told, stdout=subprocess.PIPE, cwd=PROJECT, check=True)
        if number:
            seconds.append(time.perf_counter() - started)
    return seconds


def _row(what: str, seconds: Sequence[float], share: float | None) -> str:
    part = f"{share:.0%}" if share is not None else ""
    return f"| {what} | {percentile(seconds, 0.5) * 1000:.1f} | {percentile(seconds, 0.95) * 1000:.1f} | {part} |"


def table(size: int, found: Measured, whole_processes: Sequence[float], order: Sequence[str]) -> str:
    """A markdown table of one size: milliseconds, p50 and p95, and each step's share of the whole."""
    total = percentile(found.whole, 0.5)
    lines = [
        f"### A transcript of {size / 1024:,.0f} KB",
        "",
        "| step | p50 ms | p95 ms | share |",
        "|---|---|---|---|",
    ]
    for step in (*order, REST):
        if step in found.steps:
            seconds = found.steps[step]
            lines.append(_row(step, seconds, percentile(seconds, 0.5) / total))
    lines.append(_row("**all of it**", found.whole, 1.0))
    written = f"{found.written / 1024:,.0f} KB in {found.files} files"
    lines.append(_row(f"baseline: {written}, fsynced", found.baseline, None))
    lines.append(f"| **ratio** | {found.ratio():.1f} | | |")
    lines.append(_row("as a process of its own", whole_processes, None))
    return "\n".join(lines)


# ── many at once ──


@dataclass(frozen=True, slots=True)
class Crowd:
    """What so many sessions cost that end at once: seconds until the files of each, processes, memory, processor."""

    seconds: list[float]
    workers: int
    peak_mb: float
    processor: float


def crowd(root: str, count: int) -> Crowd:
    """Ends sessions of a few turns at once by their hooks, each a process as a harness starts it."""
    folder = os.path.join(os.path.dirname(root), f"transcripts-{time.time_ns()}")
    os.makedirs(folder)
    lacking, calls = {}, []
    for number in range(count):
        session, path = f"crowd-{time.time_ns()}", os.path.join(folder, f"{number}.jsonl")
        turns = (("user", f"Why does test {session} fail?"), ("assistant", "The lock is taken twice, in `open`."))
        at = {"sessionId": session, "cwd": "/home/ada/code/lantern", "isSidechain": False}
        with open(path, "w", encoding="utf-8") as file:
            for turn, (role, text) in enumerate(turns * 20):
                more = {"uuid": f"{session}-{turn}", "timestamp": f"2026-03-20T10:{turn:02}:{number:02}.000Z"}
                file.write(json.dumps(at | more | {"type": role, "message": {"role": role, "content": text}}) + "\n")
        event = {"session_id": session, "transcript_path": path, "cwd": at["cwd"], "hook_event_name": "SessionEnd"}
        calls.append(json.dumps(event | {"reason": "other"}).encode())
        lacking[session.encode()] = number
    memory, known = os.path.join(root, "memory"), set(files(root))
    first = {pid: spent for pid, _, spent in _pythons(root)}  # of the agent
    last = dict(first)
    seconds: list[float] = []
    peak = 0.0
    before, started = os.times(), time.perf_counter()
    hooks = []
    for call in calls:
        words = [sys.executable, "-m", "signet_sync", "--workspace", root, "hook", "claude-code"]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, cwd=PROJECT)
        assert process.stdin is not None
        process.stdin.write(call)
        process.stdin.close()
        hooks.append(process)
    while lacking and time.perf_counter() - started < 300:
        others = _others(root, hooks, last)
        peak = max(peak, others)
        for name in os.listdir(memory):
            path = os.path.join(memory, name)
            if name.endswith("--manifest.md") and path not in known:
                with open(path, "rb") as written:
                    manifest = written.read()
                known.add(path)
                for one in [one for one in lacking if one in manifest]:
                    del lacking[one]
                    seconds.append(time.perf_counter() - started)
        time.sleep(0.01)
    for hook in hooks:
        hook.wait()
    until = time.perf_counter() + 2.0
    while time.perf_counter() < until:  # pages follow
        peak = max(peak, _others(root, hooks, last))
        time.sleep(0.01)
    spent = sum(os.times()[2:4]) - sum(before[2:4]) + sum(last.values()) - sum(first.values())
    return Crowd(seconds, len(last), peak, spent)


def _others(root: str, hooks: Sequence[subprocess.Popen[bytes]], spent: dict[int, float]) -> float:
    """Notes what processes of ours besides the hooks have spent, by their ids; gives their memory in MB."""
    own = {hook.pid for hook in hooks}
    found = [one for one in _pythons(root) if one[0] not in own]
    spent |= {pid: seconds for pid, _, seconds in found}
    return sum(mb for _, mb, _ in found)


def _pythons(root: str) -> Iterator[tuple[int, float, float]]:
    """Yields the processes of ours on a workspace, their memory in MB, and their seconds of a processor."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                ours = root.encode() in line.read().split(b"\0")
            if ours:
                with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                    mb = next(int(one.split()[1]) / 1024 for one in rollup if one.startswith("Pss:"))
                with open(f"/proc/{pid}/stat", encoding="ascii") as status:
                    ticks = sum(map(int, status.read().rpartition(")")[2].split()[11:13]))
                yield int(pid), mb, ticks / os.sysconf("SC_CLK_TCK")


def crowds(root: str, counts: Sequence[int], runs: int) -> Iterator[tuple[str, int, Crowd]]:
    """Lets sessions end at once, without the agent and with it."""
    for agent in ("no agent", "agent"):
        beside = [sys.executable, "-m", "signet_sync", "--workspace", root, "run"]
        running = subprocess.Popen(beside, cwd=PROJECT, stderr=subprocess.DEVNULL) if agent == "agent" else None
        time.sleep(STILL / 2 if running else 0)
        for count in counts:
            for _ in range(runs):
                yield agent, count, crowd(root, count)
        if running is not None:
            running.terminate()
            running.wait()


def crowd_table(ended: Sequence[tuple[str, int, dict[str, Any]]]) -> str:
    """A markdown table of sessions that ended at once."""
    lines = ["| sessions at once | files p50 s | all s | processes besides hooks | MB | processor s |"]
    lines += ["|---|---|---|---|---|---|"]
    for agent, count, one in ended:
        took = f"{percentile(one['seconds'], 0.5):.2f} | {max(one['seconds']):.2f} | {one['workers']}"
        lines.append(f"| {count}, {agent} | {took} | {one['peak_mb']:.0f} | {one['processor']:.1f} |")
    return "\n".join([machine(), "", *lines])


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints one table a size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sizes", metavar="BYTES", type=int, nargs="+", default=[1024 * 1024, 4 * 1024])
    parser.add_argument("--runs", metavar="N", type=int, default=20, help="measured endings a size (default 20)")
    parser.add_argument("--sessions", metavar="N", type=int, default=500, help="in the vault before (default 500)")
    parser.add_argument("--at-once", metavar="N", type=int, nargs="+", help="instead: so many sessions end at once")
    parser.add_argument("--json", action="store_true", help="seconds of endings and baselines alone, by size")
    chosen = parser.parse_args(argv)
    if min(*chosen.sizes, chosen.runs, chosen.sessions) < 1:
        parser.error("--sizes, --runs and --sessions must be at least 1")
    with contextlib.ExitStack() as stack:
        ground = stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-flow-"))
        for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "no-settings.toml")):
            os.environ[name] = os.path.join(ground, place)
        root = os.path.join(ground, "vault")
        corpus.write_corpus(root, chosen.sessions)
        reindex = [sys.executable, "-m", "signet_sync", "--workspace", root, "reindex", "--json"]
        subprocess.run(reindex, stdout=subprocess.DEVNULL, cwd=PROJECT, check=True)
        if chosen.at_once:
            ended = [(agent, count, asdict(one)) for agent, count, one in crowds(root, chosen.at_once, chosen.runs)]
            print(json.dumps(ended) if chosen.json else crowd_table(ended))
            return 0
        watch, order = stopwatch()
        if chosen.json:
            measured = {size: _last(measure(watch, root, size, chosen.runs)) for size in chosen.sizes}
            print(json.dumps({size: [found.whole, found.baseline] for size, found in measured.items()}))
            return 0
        print(f"{machine()}; {chosen.sessions:,} sessions before, {chosen.runs} runs\n")
        for size in chosen.sizes:
            found = _last(measure(watch, root, size, chosen.runs))
            alone = processes(root, size, min(chosen.runs, 10))
            print(f"{table(size, found, alone, order)}\n")
    return 0


def _last(measured: Iterator[Measured]) -> Measured:
    found = Measured()
    for found in measured:
        if sys.stderr.isatty():
            print(f"\r{len(found.whole)}", end="", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
