"""Measures signet-sync as whole processes, each beside its baseline in the same round, and prints ratios.

`python -m benchmarks.bench` makes its workspaces in a temporary folder and points everything that signet-sync
might touch (`HOME`, state, settings) into it. Seconds differ by a factor of two between identical runs on a
busy machine; ratios within a round hardly do, so a goal is held against the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks import corpus
from benchmarks.gate import FEW, passes
from benchmarks.ground import PROJECT, BenchError, Ground, Ran, Usage, machine, percentile, python

README = os.path.join(PROJECT, "benchmarks", "README.md")
BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"


class Measure(NamedTuple):
    """What a line of the table says, in which unit, and what it may be at most."""

    what: str
    unit: str
    most: float | None = None


MEASURES = {
    "cold small": Measure("cold, all derived", "×", 1.5),
    "cold large": Measure("cold, all derived", "×", 1.25),
    "cost": Measure("· of a processor a file: reading, rows, each deriver, pages", "ms"),
    "cold page": Measure("cold, until `recall --words` answers and MEMORY.md stands", "×", 0.75),
    "cold memory": Measure("· peak memory of all processes", "MB"),
    "cold database": Measure("· database", "×", 1.2),
    "unchanged large": Measure("nothing changed, whole process", "ms", 120),
    "unchanged larger": Measure("nothing changed, whole process", "ms", 250),
    "pass": Measure("a pass of a small vault, processor over bare Python", "ms", 120),
    "help": Measure("`--help`, the same", "ms", 45),
    "status": Measure("`status`, the same", "ms", 60),
    "words": Measure("`recall --words`, the same", "ms", 60),
    "recall": Measure("`recall`, the same", "ms", 60),
    "hook start": Measure("a start's hook without an agent, the same", "ms", 70),
    "hook prompt": Measure("a prompt's hook without an agent, the same", "ms", 70),
    "hook moment": Measure("a command's hook without an agent, the same", "ms", 20),
    "modules": Measure("own modules that run code", ""),
    "recall p50": Measure("`recall` among 15,000 artifacts, warm, p50 of a processor", "ms", 15),
    "recall p99": Measure("· p99", "ms", 40),
    "recall shell": Measure("· from the shell, over bare Python", "ms"),
    "change": Measure("one change, a pass in a warm process, of a processor", "ms", 15),
    "change p50": Measure("one change → row and page, less quiet time, p50", "ms", 12),
    "change p99": Measure("· p99", "ms", 45),
    "change growth": Measure("· p50, growth with the vault", "×", 1.1),
    "three files": Measure("three files moved in → MEMORY.md, p50", "ms", 100),
    "agent start": Measure("a start's hook with the agent, processor over bare Python", "ms", 30),
    "agent prompt": Measure("a prompt's hook with the agent, the same", "ms", 30),
    "agent stop": Measure("a stop's hook with the agent, the same", "ms", 30),
    "agent moment": Measure("a command's hook with the agent, the same", "ms", 30),
    "idle memory": Measure("idle, resident memory", "MB", 70),
    "idle processor": Measure("idle, processor", "%", 0.01),
    "idle wake-ups": Measure("idle, wake-ups", "a second"),
    "end long": Measure("a session's end, 1 MB", "ms", 150),
    "end short": Measure("a session's end, 4 KB", "ms", 15),
    "end 1": Measure("a session's end by its hook, to its files, p50", "ms", 250),
    "end 20": Measure("20 at once, the same", "ms", 1000),
    "import": Measure("import, 8 × 1 MB, of a processor a MB", "ms", 250),
    "mcp": Measure("MCP server, to the first answer", "ms", 350),
    "huge cold": Measure("cold, all derived", "×"),
    "huge growth": Measure("· time a file, growth from 15,000", "×", 1.15),
    "huge memory": Measure("· peak memory of all processes", "MB", 200),
    "huge database": Measure("· database", "×", 1.2),
    "huge killed": Measure("· killed midway, both runs together by one", "×"),
    "huge unchanged": Measure("nothing changed, whole process", "ms", 600),
    "huge unchanged memory": Measure("· peak memory", "MB", 120),
    "huge recall": Measure("`recall` from the shell, over bare Python", "ms"),
}
"""Every line of the table, and all goals."""

STARTS: tuple[tuple[str, tuple[str, ...], bytes], ...] = (
    ("help", ("--help",), b""),
    ("status", ("status",), b""),
    ("words", ("recall", "--words", "heartbeat"), b""),
    ("recall", ("recall", "heartbeat"), b""),
    (
        "hook start",
        ("hook", "claude-code"),
        b'{"session_id":"TURN","hook_event_name":"SessionStart","source":"startup"}',
    ),
    (
        "hook prompt",
        ("hook", "claude-code"),
        b'{"session_id":"TURN","hook_event_name":"UserPromptSubmit","prompt":"What was decided about the heartbeat?"}',
    ),
    (
        "hook moment",
        ("hook", "claude-code"),
        b'{"session_id":"TURN","hook_event_name":"PreToolUse","cwd":"/home/rowan/src/harbor-sync",'
        b'"tool_input":{"command":"make test"}}',
    ),
)
# What a harness's hooks say under an agent.
EVENTS: tuple[tuple[str, bytes], ...] = (
    ("agent start", STARTS[-3][2]),
    ("agent prompt", STARTS[-2][2]),
    ("agent moment", STARTS[-1][2]),
    ("agent stop", b'{"session_id":"TURN","hook_event_name":"Stop"}'),
)
QUESTION = ("recall", "Which decision about the retry of the queue was kept?")
# Enough of them that the slowest in a hundred is one of several.
TRIPLES = 20


class Row(NamedTuple):
    """One line of the table; `value` is held against what the measure allows."""

    name: str
    files: str
    ours: str
    reference: str
    value: float


class Sizes(NamedTuple):
    """Sessions of each vault, three files each."""

    small: int = 500
    large: int = 5_000
    larger: int = 15_000
    huge: int = 50_000


def _seconds(runs: Sequence[Ran]) -> str:
    """The median by the clock, the best in brackets, and the median of a processor."""
    clock = [ran.seconds for ran in runs]
    processor = statistics.median(ran.processor for ran in runs)
    return f"{statistics.median(clock):.2f} s ({min(clock):.2f}), {processor:.2f} of processors"


def _ms(values: Sequence[float]) -> str:
    return f"{statistics.median(values) * 1000:.0f} ms ({min(values) * 1000:.0f})"


def _mb(value: float) -> str:
    return f"{value:.0f} MB"


def _count(sessions: int) -> str:
    return f"{3 * sessions:,}"


def _over(ours: Sequence[float], bare: Sequence[float]) -> float:
    """Milliseconds from the median of one to that of the other."""
    return (statistics.median(ours) - statistics.median(bare)) * 1000


@dataclass(slots=True)
class Bench:
    """Measures part by part; what a later part compares with is kept from the earlier ones."""

    ground: Ground
    sizes: Sizes
    rounds: int
    changes: int
    idle_seconds: float

    # ── a vault that was never indexed ──

    def cold(self) -> Iterator[Row]:
        """First pass against the baseline: whole processes, start-up included."""
        for name, sessions in (("cold small", self.sizes.small), ("cold large", self.sizes.large)):
            ours, theirs = self._cold(sessions, self.rounds)
            yield self._ratio(name, sessions, ours, theirs)
            yield from self._sizes("cold", sessions, ours, theirs)
        self.ground.fresh_state()
        where = self.ground.workspace(self.sizes.small)
        steps = self.ground.run(*python("benchmarks.bench", "--steps-of", where, self.ground.path("ours.db"))).json()
        each = {step: seconds * 1000 / (3 * self.sizes.small) for step, seconds in steps.items()}
        shown = ", ".join(f"{step} {value:.2f}" for step, value in each.items())
        yield Row("cost", _count(self.sizes.small), shown, "", sum(each.values()))
        yield self._page(self.sizes.large)

    def _cold(self, sessions: int, rounds: int) -> tuple[list[Ran], list[Ran]]:
        """First passes and baselines; which goes first alternates."""
        ours: list[Ran] = []
        theirs: list[Ran] = []
        for turn in range(rounds):
            self.ground.fresh_state()
            where = self.ground.workspace(sessions)
            for is_ours in (False, True) if turn % 2 == 0 else (True, False):
                os.sync()
                if is_ours:
                    ours.append(self.ground.index(where, 3 * sessions)[0])
                else:
                    theirs.append(self.ground.baseline(where, 3 * sessions))
        return ours, theirs

    def _ratio(self, name: str, sessions: int, ours: Sequence[Ran], theirs: Sequence[Ran]) -> Row:
        ratio = statistics.median(a.seconds / b.seconds for a, b in zip(ours, theirs, strict=True))
        return Row(name, _count(sessions), _seconds(ours), _seconds(theirs), ratio)

    def _sizes(self, part: str, sessions: int, ours: Sequence[Ran], theirs: Sequence[Ran]) -> Iterator[Row]:
        """Peak memory, and the databases of the last round."""
        peak, base = (max(ran.peak_mb for ran in runs) for runs in (ours, theirs))
        yield Row(f"{part} memory", _count(sessions), _mb(peak), _mb(base), peak)
        size, small = (os.path.getsize(self.ground.path(name)) / 1e6 for name in ("ours.db", "baseline.db"))
        yield Row(f"{part} database", _count(sessions), _mb(size), _mb(small), size / small)

    def _page(self, sessions: int) -> Row:
        """From the start of `run` to a page and to the end of a search that finds something."""
        ours: list[float] = []
        theirs: list[Ran] = []
        for _ in range(self.rounds):
            self.ground.fresh_state()
            where = self.ground.workspace(sessions)
            theirs.append(self.ground.baseline(where, 3 * sessions))
            os.sync()
            began = time.perf_counter()
            with self.ground.agent(where) as process:
                _until(lambda where=where: os.path.exists(os.path.join(where, "MEMORY.md")), process, 0.005)  # type: ignore[misc]
                found = self.ground.run(*self.ground.signet(where, "recall", "--words", "--json", "heartbeat")).json()
                ours.append(time.perf_counter() - began)
            if not found["files"]:
                raise BenchError("the page stands, but `recall --words heartbeat` finds nothing")
        ratio = statistics.median(a / b.seconds for a, b in zip(ours, theirs, strict=True))
        shown = f"{statistics.median(ours):.2f} s ({min(ours):.2f})"
        return Row("cold page", _count(sessions), shown, _seconds(theirs), ratio)

    # ── a vault in which nothing changed ──

    def unchanged(self) -> Iterator[Row]:
        """A pass when nothing changed, beside a bare look at all files; and `recall`, in the larger vault."""
        for name, sessions in (("unchanged large", self.sizes.large), ("unchanged larger", self.sizes.larger)):
            self.ground.fresh_state()
            where = self.ground.workspace(sessions)
            yield self._unchanged(name, where, sessions)[0]
        yield from self._recall(where, self.sizes.larger)

    def _unchanged(self, name: str, where: str, sessions: int) -> tuple[Row, float]:
        """The row, and the peak memory."""
        scan = [sys.executable, "-c", "import sys; from benchmarks.baseline import bare; bare(sys.argv[1])", where]
        ours: list[Ran] = []
        bare: list[Ran] = []
        # The first makes the index; files as young as a pass may be read again by the next one.
        for _ in range(3):
            self.ground.index(where, 3 * sessions)
            time.sleep(1)
        for _ in range(4 * self.rounds):
            bare.append(self.ground.run(*scan))
            ran, answer = self.ground.index(where, 3 * sessions)
            if answer["counts"]["read"]:
                raise BenchError(f"nothing changed, but {answer['counts']['read']} files were read")
            ours.append(ran)
        clock = [ran.seconds for ran in ours]
        shown = f"{_ms(clock)}, {statistics.median(ran.processor for ran in ours) * 1000:.0f} of a processor"
        row = Row(name, _count(sessions), shown, _ms([ran.seconds for ran in bare]), statistics.median(clock) * 1000)
        return row, max(ran.peak_mb for ran in ours)

    # ── what people and agents ask ──

    def commands(self) -> Iterator[Row]:
        """What the commands that people wait for cost over bare Python, in a vault with next to no work."""
        yield self._later("pass", FEW, *zip(*passes(self.ground, 3 * self.rounds), strict=True))
        where = self.ground.path("workspace")
        for name, words, given in STARTS:
            yield self._asked(name, where, FEW, words, given)
        sessions = self.sizes.large
        self.ground.fresh_state()
        where = self.ground.workspace(sessions)
        self.ground.index(where, 3 * sessions)
        yield Row("modules", _count(sessions), self._loaded(where), "", 0)

    def _asked(self, name: str, where: str, sessions: int, words: Sequence[str], given: bytes = b"") -> Row:
        return self._over_bare(name, sessions, self.ground.signet(where, *words), given)

    def _over_bare(self, name: str, sessions: int, argv: Sequence[str], given: bytes = b"") -> Row:
        """A command as a whole process, over bare Python in turn with it."""
        runs = {"ours": argv, "bare": [sys.executable, "-c", "pass"]}
        spent: dict[str, list[float]] = {key: [] for key in runs}
        for turn in range(3 * self.rounds + 1):
            for key, argv in runs.items():
                seconds = self.ground.run(*argv, given=given.replace(b"TURN", b"s%d" % turn)).processor
                if turn:  # the first compiles modules and fills caches
                    spent[key].append(seconds)
        return self._later(name, sessions, spent["ours"], spent["bare"])

    def _later(self, name: str, sessions: int, ours: Sequence[float], bare: Sequence[float]) -> Row:
        return Row(name, _count(sessions), _ms(ours), _ms(bare), _over(ours, bare))

    def _recall(self, where: str, sessions: int) -> Iterator[Row]:
        """`recall`, of the agent that has a third of the vault: where the index is open already, and as a process."""
        asked = self.ground.run(*python("benchmarks.recall_speed", where, self.ground.path("ours.db"))).json()
        shown = f"{len(asked)} questions"
        for name, part in (("recall p50", 0.5), ("recall p99", 0.99)):
            took = percentile(asked, part)
            yield Row(name, _count(sessions), f"{took:.1f} ms", shown, took)
        yield self._asked("recall shell", where, sessions, QUESTION)

    def _loaded(self, where: str) -> str:
        """How many modules of ours each command runs, those left out in which nothing stands but a docstring."""
        counted = []
        for what, words, given in (
            ("nothing changed", ("reindex",), b""),
            ("one change", ("reindex",), b""),
            *STARTS,
            ("mcp", ("mcp",), b""),
        ):
            if what == "nothing changed":
                for _ in range(2):
                    time.sleep(0.5)
                    self.ground.run(*self.ground.signet(where, *words))
            elif what == "one change":
                self._arrivals(where, self.sizes.large, 1, 3)[0].move(where)
            argv = self.ground.signet(where, *words)[3:]
            ran = self.ground.run(sys.executable, "-c", COUNTING, *argv, given=given)
            counted.append(f"{what} {ran.stderr.split()[-1]}")
        return ", ".join(counted)

    # ── one change ──

    def change(self) -> Iterator[Row]:
        """A pass over one new summary, beside what the straight line takes for a file."""
        for sessions in (self.sizes.small, self.sizes.large):
            self.ground.fresh_state()
            where = self.ground.workspace(sessions)
            self.ground.index(where, 3 * sessions)
            timed = self.ground.run(
                *python("benchmarks.gate", "--changes-of", where, self.ground.path("ours.db"))
            ).json()
            ours, straight = zip(*timed, strict=True)
            shown = f"{statistics.median(straight) * 1000:.2f} ms a file"
            yield Row("change", _count(sessions), _ms(ours), shown, statistics.median(ours) * 1000)

    # ── under `run` ──

    def under_run(self) -> Iterator[Row]:
        """What `run` costs while nothing happens, and how soon it follows what does."""
        middles: dict[int, float] = {}
        for sessions in (self.sizes.small, self.sizes.large):
            yield from self._under_run(sessions, middles, with_idle=sessions == self.sizes.large)
        yield self._growth(middles)

    def _under_run(self, sessions: int, middles: dict[int, float], *, with_idle: bool) -> Iterator[Row]:
        self.ground.fresh_state()
        where = self.ground.workspace(sessions)
        single = self._arrivals(where, sessions, self.changes, 1)
        triple = self._arrivals(where, sessions, min(TRIPLES, self.changes), 3)
        with self.ground.agent(where) as process:
            self.ground.until_idle(where, process)
            if with_idle:
                yield from self._idle(process.pid, sessions)
            watch = Watch(where, self.ground.path("ours.db"), process)
            yield from self._changes(watch, single, sessions, middles)
            if with_idle:
                pages = [watch.latency(one).page for one in triple]
                yield Row("three files", _count(sessions), _ms(pages), "", statistics.median(pages) * 1000)
            watch.close()

    def answered(self) -> Iterator[Row]:
        """Hooks that an agent answers, as whole processes."""
        self.ground.fresh_state()
        where = self.ground.workspace(self.sizes.large)
        with self.ground.agent(where, apart=False) as process:
            self.ground.until_idle(where, process, apart=False)
            for name, event in EVENTS:
                hook = self.ground.signet(where, "hook", "claude-code", apart=False)
                yield self._over_bare(name, self.sizes.large, hook, event)

    def _idle(self, pid: int, sessions: int) -> Iterator[Row]:
        before = Usage.of(pid)
        time.sleep(self.idle_seconds)
        after = Usage.of(pid)
        span, files = f"over {self.idle_seconds:.0f} s", _count(sessions)
        resident = after.resident_mb
        yield Row("idle memory", files, _mb(resident), "", resident)
        share = 100 * (after.processor - before.processor) / self.idle_seconds
        yield Row("idle processor", files, f"{share:.3f} %", span, share)
        rate = (after.switches - before.switches) / self.idle_seconds
        yield Row("idle wake-ups", files, f"{rate:.1f} a second", span, rate)

    def _changes(
        self, watch: Watch, arrivals: Sequence[Arrival], sessions: int, middles: dict[int, float]
    ) -> Iterator[Row]:
        from signet_sync.app.scheduler import LEAD

        found = [watch.latency(one) for one in arrivals]
        both = [(max(one.row, one.page) - LEAD) * 1000 for one in found]
        middles[sessions] = percentile(both, 0.5)
        row = percentile([(one.row - LEAD) * 1000 for one in found], 0.5)
        how = f"{len(arrivals)} changes, less {LEAD * 1000:.0f} ms"
        shown = f"{middles[sessions]:.1f} ms, the row {row:.1f}"
        yield Row("change p50", _count(sessions), shown, how, middles[sessions])
        slow = percentile(both, 0.99)
        yield Row("change p99", _count(sessions), f"{slow:.1f} ms", how, slow)

    def _growth(self, middles: dict[int, float]) -> Row:
        small, large = min(middles), max(middles)
        span = f"{_count(small)} → {_count(large)}"
        shown = f"{middles[large]:.1f} ms", f"{middles[small]:.1f} ms"
        return Row("change growth", span, *shown, middles[large] / middles[small])

    def _arrivals(self, where: str, sessions: int, count: int, files: int) -> list[Arrival]:
        """Prepares sessions that are still to come: of one file (the summary), or of three.

        The manifest of a single summary lies there already, so that one arrival is one changed file, and nothing has to
        be written for it but rows and pages.
        """
        made = corpus.Corpus(agents=1, seed=1 + files)
        step = 3_000_000 // (TRIPLES + self.changes + 1)
        prepared = []
        for number in range(count):
            word = f"arrival{files}x{number:05d}q"
            # Between the last session of the corpus and now; those of three files after all the others.
            place = number + 1 + (self.changes if files == 3 else 0)
            ended = self.ground.end_ms(sessions) + place * step
            session, texts = made.compose(number, ended_ms=ended, slack_ms=step // 2, word=word)
            summary = session["paths"]["summary"]
            if files == 1:
                manifest = session["paths"]["manifest"]
                corpus.write_files(where, {manifest: texts[manifest]})
                texts = {summary: texts[summary]}
            waiting = self.ground.path("waiting", word)
            shutil.rmtree(waiting, ignore_errors=True)
            os.makedirs(os.path.join(waiting, "memory"))
            corpus.write_files(waiting, texts)
            prepared.append(Arrival(waiting, tuple(texts), summary, word))
        return prepared

    # ── a session's end ──

    def ending(self) -> Iterator[Row]:
        """The end of a session of one megabyte and of a few kilobytes, in a process that has everything loaded."""
        runs = 4 * self.rounds
        command = python("benchmarks.flow", "--json", "--runs", str(runs), "--sessions", str(self.sizes.small))
        found = self.ground.run(*command).json()
        for name, size in (("end long", 1024 * 1024), ("end short", 4 * 1024)):
            ours, theirs = found[str(size)]
            yield Row(name, _count(self.sizes.small), _ms(ours), _ms(theirs), statistics.median(ours) * 1000)
        crowds = python("benchmarks.flow", "--json", "--sessions", str(self.sizes.small), "--at-once", "1", "20")
        several: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for agent, count, one in self.ground.run(*crowds, "--runs", str(self.rounds)).json():
            several.setdefault((agent, count), []).append(one)
        for (agent, count), crowd in several.items():
            middle = statistics.median(percentile(one["seconds"], 0.5) for one in crowd) * 1000
            most = max(crowd, key=lambda one: one["peak_mb"])
            shown = f"{middle:.0f} ms, {agent}, {most['workers']} processes, {most['peak_mb']:.0f} MB"
            yield Row(f"end {count}", _count(self.sizes.small), shown, "", middle)

    # ── what is read and served elsewhere ──

    def others(self) -> Iterator[Row]:
        """Past sessions of a harness, and what an agent's client waits for."""
        from benchmarks.flow import words

        self.ground.fresh_state()
        where = self.ground.workspace(self.sizes.small)
        self.ground.index(where, 3 * self.sizes.small)
        folder, megabytes = self.ground.path("transcripts"), 8
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        said = words(where, 1_000_000).split("\n")
        for number in range(megabytes):
            with open(os.path.join(folder, f"{number}.jsonl"), "w", encoding="utf-8") as file:
                for turn in range(0, len(said), 20):
                    role = ("user", "assistant")[turn // 20 % 2]
                    message = {"role": role, "content": f"{number}: " + "\n".join(said[turn : turn + 20])}
                    at = {"sessionId": f"import-{number}", "uuid": f"{number}-{turn}", "type": role, "message": message}
                    at["timestamp"] = "2026-03-20T10:00:00.000Z"
                    file.write(json.dumps(at) + "\n")
        ran = self.ground.run(*self.ground.signet(where, "import", "claude-code", folder))
        yield Row("import", str(megabytes), _seconds([ran]), "", ran.processor / megabytes * 1000)
        hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
        answers = []
        for _ in range(3 * self.rounds):
            began = time.perf_counter()
            argv = self.ground.signet(where, "mcp")
            with subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.ground.env
            ) as server:
                assert server.stdin is not None and server.stdout is not None
                server.stdin.write(line)
                server.stdin.flush()
                if b'"result"' not in server.stdout.readline():
                    raise BenchError("the MCP server answers nothing")
                answers.append(time.perf_counter() - began)
                server.stdin.close()
        yield Row("mcp", _count(self.sizes.small), _ms(answers), "", statistics.median(answers) * 1000)

    # ── ten times as large as the large one ──

    def huge(self) -> Iterator[Row]:
        """Everything that must not grow with the vault, or no faster than it."""
        sessions = self.sizes.huge
        ours, theirs = self._cold(self.sizes.large, 1)
        a_file = ours[0].seconds / self.sizes.large
        ours, theirs = self._cold(sessions, 1)
        yield self._ratio("huge cold", sessions, ours, theirs)
        each, before = ours[0].seconds / sessions, a_file
        shown = f"{each / 3 * 1e6:.0f} µs", f"{before / 3 * 1e6:.0f} µs"
        yield Row("huge growth", _count(sessions), *shown, each / before)
        yield from self._sizes("huge", sessions, ours, theirs)
        row, peak = self._unchanged("huge unchanged", self.ground.path("workspace"), sessions)
        yield row
        yield Row("huge unchanged memory", _count(sessions), _mb(peak), "", peak)
        yield self._asked("huge recall", self.ground.path("workspace"), sessions, QUESTION)
        yield self._killed(sessions, ours[0].seconds)
        middles: dict[int, float] = {}
        for size in (self.sizes.small, sessions):
            for row in self._under_run(size, middles, with_idle=False):
                if size == sessions:
                    yield row
        yield self._growth(middles)

    def _killed(self, sessions: int, whole: float) -> Row:
        """A first pass that is killed half way, and the one that goes on."""
        self.ground.fresh_state()
        where = self.ground.workspace(sessions)
        killed = self.ground.run(*self.ground.signet(where, "reindex", "--json"), kill_after=whole / 2)
        ran, answer = self.ground.index(where, 3 * sessions)
        again = answer["counts"]["read"]
        shown = f"{killed.seconds:.1f} + {ran.seconds:.1f} s; {again:,} files read again"
        return Row("huge killed", _count(sessions), shown, f"{whole:.1f} s", (killed.seconds + ran.seconds) / whole)


def time_steps(where: str, database: str) -> dict[str, float]:
    """Makes a first pass in this process; returns what its steps took of a processor, by name."""
    from signet_sync.app.workspace import open_to_write
    from signet_sync.settings.model import Settings
    from signet_sync.storage.locations import now_us
    from signet_sync.sync import engine, reading
    from signet_sync.sync.workspace import Request

    spent: dict[str, float] = collections.defaultdict(float)

    def time_in(owner: Any, name: str, step: str) -> None:
        function = getattr(owner, name)

        def timed(*given: Any) -> Any:
            spent[step] -= time.process_time()
            found = function(*given)
            spent[step] += time.process_time()
            return found

        setattr(owner, name, timed)

    time_in(reading, "judge_and_pack", "reading")
    time_in(reading, "write_verdicts", "rows and full text")
    with open_to_write(where, Settings(), database=database) as workspace:
        for deriver in workspace.pipeline.derivers:
            time_in(deriver, "prepare", deriver.name)
            time_in(deriver, "update", deriver.name)
        time_in(engine, "_show", "pages")
        engine.run_pass(workspace, Request(now_us=now_us()))
    return spent


COUNTING = """
import atexit, runpy, sys, types

def runs(module):
    if type(module) is not types.ModuleType:  # one that is loaded when it is first used
        return False
    named = ((name, what) for name, what in vars(module).items() if not name.startswith("__"))
    return any(not isinstance(what, types.ModuleType) for _, what in named)

def told():
    ours = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "signet_sync"]
    print(1 + sum(map(runs, ours)), file=sys.stderr)  # 1: what runs as __main__

atexit.register(told)
runpy.run_module("signet_sync", run_name="__main__", alter_sys=True)
"""


class Arrival(NamedTuple):
    """Files of a session still to come: where they wait, their paths, the summary's, a word that only it holds."""

    waiting: str
    paths: tuple[str, ...]
    summary: str
    word: str

    def move(self, workspace: str) -> None:
        """Moves all of them into place."""
        for path in self.paths:
            os.replace(os.path.join(self.waiting, path), os.path.join(workspace, path))


class Latency(NamedTuple):
    """Seconds from a file's arrival to its row and to its line in MEMORY.md."""

    row: float
    page: float


class Watch:
    """Looks at the database and at MEMORY.md until a change shows in them."""

    def __init__(self, workspace: str, database: str, process: subprocess.Popen[bytes]) -> None:
        import apsw

        self.workspace = workspace
        self.process = process
        self.connection = apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY)
        self.connection.set_busy_timeout(1000)
        self.chance = random.Random(3)

    def latency(self, arrival: Arrival) -> Latency:
        """Moves files into place after some quiet, and times the summary's row and its line."""
        from signet_sync.sync.watcher import QUIET_BEFORE

        # What comes after so much quiet is answered at once; our own pages are heard of half a second late. By chance,
        # because what is done in idle time is done some seconds after a change.
        time.sleep(QUIET_BEFORE + self.chance.uniform(0.7, 2.2))
        began = time.perf_counter()
        arrival.move(self.workspace)
        row = _until(lambda: self._in_database(arrival.summary), self.process, 0.0005) - began
        page = _until(lambda: self._in_page(arrival.word.encode()), self.process, 0.0005) - began
        return Latency(row, page)

    def close(self) -> None:
        """Lets go of the database."""
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


def _until(seen: Callable[[], bool], process: subprocess.Popen[bytes], pause: float) -> float:
    """Gives the moment at which something was seen; `BenchError` when `run` ends before, or after ten minutes."""
    deadline = time.perf_counter() + 600
    while not seen():
        if process.poll() is not None or time.perf_counter() > deadline:
            raise BenchError(f"`run` (exit code {process.returncode}) did not do what it was to do")
        time.sleep(pause)
    return time.perf_counter()


# ── the table ──


def table(rows: Sequence[Row], *, judged: bool) -> str:
    """A markdown table; the mark says whether the goal was met."""
    lines = ["| measured | files | signet-sync | baseline | figure | goal | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        what, unit, most = MEASURES[row.name]
        goal = "" if most is None else f"≤ {most:g} {unit}"
        mark = "" if most is None or not judged else "met" if row.value <= most else "**missed**"
        cells = (what, row.files, row.ours, row.reference, figure(row), goal, mark)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(row: Row) -> str:
    """What is held against the goal, as people write it."""
    unit = MEASURES[row.name].unit
    digits = {"×": 2, "%": 3, "a second": 1}.get(unit, 0)
    return f"{row.value:.{digits}f} {unit}" if unit else ""


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


PARTS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "cold": Bench.cold,
    "unchanged": Bench.unchanged,
    "commands": Bench.commands,
    "change": Bench.change,
    "run": Bench.under_run,
    "answered": Bench.answered,
    "ending": Bench.ending,
    "others": Bench.others,
    "huge": Bench.huge,
}


def measure(bench: Bench, parts: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Runs the chosen parts, each as far as it gets; the rows, and the names of parts that failed."""
    rows: list[Row] = []
    failed: list[str] = []
    for name in parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            for row in PARTS[name](bench):
                rows.append(row)
                told = (MEASURES[row.name].what, row.files, row.ours, row.reference, figure(row))
                print("  " + " | ".join(filter(None, told)), file=sys.stderr, flush=True)
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
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each measurement")
    parser.add_argument("--changes", type=int, default=100, help="arrivals under `run`")
    parser.add_argument("--idle-seconds", type=float, default=60.0, help="how long `run` is watched while idle")
    parser.add_argument("--per-day", type=float, default=50, help="sessions in 24 hours")
    parser.add_argument("--agents", type=int, default=3, help="agents that share the workspace")
    parser.add_argument("--only", type=_only, help="comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--huge", action="store_true", help="a vault of 150,000 files as well: half an hour, 5 GB")
    parser.add_argument("--quick", action="store_true", help="tiny vaults, one round: does it run at all?")
    parser.add_argument("--keep", metavar="DIR", help="work in DIR/signet-bench and keep it")
    parser.add_argument("--steps-of", nargs=2, metavar=("WORKSPACE", "DB"), help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    chosen = parser.parse_args(argv)
    if chosen.steps_of:
        print(json.dumps(time_steps(*chosen.steps_of)))
        return 0
    sizes = Sizes()
    if chosen.quick:
        sizes = Sizes(20, 60, 100, 200)
        chosen.rounds, chosen.changes, chosen.idle_seconds = 1, 3, 3.0
    if min(chosen.rounds, chosen.changes, chosen.agents) < 1:
        parser.error("--rounds, --changes and --agents must be at least 1")
    if not os.path.isdir("/proc/self/task"):
        parser.error("memory and processor time of processes are read from /proc, which is not here")
    parts = chosen.only or [name for name in PARTS if name != "huge" or chosen.huge]
    with contextlib.ExitStack() as stack:
        if chosen.keep:
            # A folder of its own, because old workspaces are removed from it.
            root = os.path.abspath(os.path.join(chosen.keep, "signet-bench"))
            os.makedirs(root, exist_ok=True)
        else:
            root = stack.enter_context(tempfile.TemporaryDirectory(prefix="signet-bench-"))
        ground = Ground(root, chosen.per_day, chosen.agents)
        rows, failed = measure(Bench(ground, sizes, chosen.rounds, chosen.changes, chosen.idle_seconds), parts)
    how = f"rounds: {chosen.rounds}; medians, the best in brackets"
    text = f"{machine()}; {how}.\n\n{table(rows, judged=not chosen.quick)}"
    print(text)
    if failed:
        print(f"\nfailed: {', '.join(failed)}; nothing is written", file=sys.stderr)
    elif chosen.write:
        write_readme(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
