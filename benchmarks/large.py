"""Measures one large vault: what passes, hooks and questions cost, how large the database becomes, and what follows.

`python -m benchmarks.large --files 15000 150000 500000` makes each vault in a temporary folder, indexes it (killed once
midway, and resumed), and prints a table with one column a size. `--figures FILE` keeps the figures, and what is there
already is not measured again; `--project 1500000` adds a column that is computed from the others. Work is given in
seconds of processors, those of child processes included: the clock also tells what else the machine does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from benchmarks import corpus
from benchmarks.bench import QUESTION, Arrival, Watch
from benchmarks.ground import BenchError, Ground, Ran, Usage, machine, percentile, python, watched

PROJECT = "/home/rowan/src/harbor-sync"  # one of the corpus
HOOK = {"transcript_path": "/nowhere.jsonl", "cwd": PROJECT}
END = {"project": PROJECT, "harness": "claude-code"}

MEASURES = {
    "vault": ("files of the vault", "MB"),
    "first": ("first index, all derived, killed once and resumed", "s"),
    "first clock": ("· by the clock", "s"),
    "first kept": ("· files that the killed pass had made durable after a third of the time", "%"),
    "first memory": ("· peak memory of all processes", "MB"),
    "first wal": ("· peak of the write-ahead log", "MB"),
    "unchanged": ("nothing changed, `reindex`", "s"),
    "unchanged memory": ("· peak memory", "MB"),
    "change": ("three new files, `reindex`", "s"),
    "change memory": ("· peak memory (as of a full pass of `run`)", "MB"),
    "end": ("`session end`", "s"),
    "start": ("hook at a session's start, with context", "s"),
    "prompt": ("hook at a prompt", "s"),
    "status": ("`status`", "s"),
    "render": ("`render`", "s"),
    "words": ("`recall --words`", "s"),
    "recall": ("`recall`", "s"),
    "recall cold": ("· nothing of the database in memory, by the clock", "s"),
    "recall read": ("· read from disk", "MB"),
    "recall p50": ("· in a process that is there, p50", "ms"),
    "recall p95": ("· p95", "ms"),
    "words p50": ("`recall --words` in a process that is there, p50", "ms"),
    "words p95": ("· p95", "ms"),
    "run start": ("`run` until it watches", "s"),
    "run memory": ("· memory at rest", "MB"),
    "run peak": ("· peak memory", "MB"),
    "run row": ("· a new file until its row, by the clock, p50", "ms"),
    "run page": ("· until its line in MEMORY.md, p50", "ms"),
    "run change": ("· a change, all that follows in a minute", "s"),
    "database": ("database", "MB"),
    "artifacts": ("· rows of artifacts", "MB"),
    "seals": ("· seals (the compressed files)", "MB"),
    "text": ("· full text", "MB"),
    "lines": ("· places and lines of recall", "MB"),
    "graph": ("· nodes, threads, statements", "MB"),
    "rest": ("· the rest", "MB"),
    "segments": ("segments of full text", ""),
    "backup": ("`backup create`", "s"),
    "backup size": ("· its size", "MB"),
    "examine": ("all checks of the database (`run` makes them once a day)", "s"),
    "check": ("`check`: every file is read again", "s"),
    "check memory": ("· peak memory of all processes", "MB"),
    "rebuild": ("`reindex --full`", "s"),
    "rebuild wal": ("· peak of the write-ahead log", "MB"),
    "merge": ("merging full text, longest step", "ms"),
    "merges": ("· all steps until one segment is left", "s"),
    "salvage": ("native rows saved from a damaged database", "s"),
}
"""What each figure says, in the order of the table, and its unit."""

GROUPS = {
    "text": ("said", "printed"),
    "artifacts": ("memory_artifacts",),
    "seals": ("seals",),
    "lines": ("text", "passages"),
    "graph": ("session_", "thread", "memory_thread", "entit", "attribute", "sessions"),
}
"""Beginnings of the names of tables and indexes."""

ASKED = 120
"""Questions in a process that is there."""


class Figure(NamedTuple):
    """One measured value; `name` is a key of `MEASURES`."""

    name: str
    value: float


@dataclass(slots=True)
class Large:
    """Measures one vault; `expected` are seconds of its first index, after a third of which it is killed."""

    ground: Ground
    where: str
    files: int
    expected: float | None
    rounds: int
    brief: bool

    def all(self) -> Iterator[Figure]:
        """Measures everything, in an order in which nothing disturbs what comes later."""
        memory = os.path.join(self.where, "memory")
        yield Figure("vault", sum(entry.stat().st_size for entry in os.scandir(memory)) / 1e6)
        yield from self.first()
        yield from self.parts()
        yield from self.unchanged()
        yield from self.commands()
        yield from self.questions()
        yield from self.care()
        yield from self.changes()
        yield from self.under_run()
        if not self.brief:
            yield from self.repairs()

    @property
    def database(self) -> str:
        """The database, which hooks open, too."""
        return self.ground.path("ours.db")

    def _signet(self, *words: str, kill_after: float | None = None, given: bytes = b"") -> Ran:
        return self.ground.run(*self.ground.signet(self.where, *words), kill_after=kill_after, given=given)

    # ── the first index ──

    def first(self) -> Iterator[Figure]:
        """A first index that is killed and resumed; without an expectation one that is not killed comes before it."""
        if self.expected is None:
            self.expected = self.ground.index(self.where, self.files)[0].seconds
            self.ground.fresh_state()
        with _log_peak(self.database) as peaks:
            began = time.perf_counter()
            killed = self._signet("reindex", "--json", kill_after=self.expected / 3)
            ran, answer = self.ground.index(self.where, self.files)
            self.expected = time.perf_counter() - began
        # What the workers of a killed process had done is in no figure: their time is lost with it.
        yield Figure("first", killed.processor + ran.processor)
        yield Figure("first clock", self.expected)
        yield Figure("first kept", 100 * (1 - answer["counts"]["read"] / self.files))
        yield Figure("first memory", max(killed.peak_mb, ran.peak_mb))
        yield Figure("first wal", max(peaks) / 1e6)

    def parts(self) -> Iterator[Figure]:
        """What the database consists of."""
        with closing(apsw.Connection(self.database, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            sizes: dict[str, int] = {}
            for name, size in connection.execute("select name, sum(pgsize) from dbstat group by name"):
                owner = connection.execute("select tbl_name from sqlite_schema where name = ?", (name,)).get or name
                group = next((g for g, starts in GROUPS.items() if owner.startswith(starts)), "rest")
                sizes[group] = sizes.get(group, 0) + size
            yield Figure("database", sum(sizes.values()) / 1e6)
            yield from (Figure(name, sizes.get(name, 0) / 1e6) for name in (*GROUPS, "rest"))
            pieces = (
                "select (select count(distinct segid) from said_idx) + (select count(distinct segid) from printed_idx)"
            )
            yield Figure("segments", connection.execute(pieces).get)

    # ── whole processes ──

    def unchanged(self) -> Iterator[Figure]:
        """Passes that find nothing changed."""
        for _ in range(3):  # files as young as a pass may be read again by the next one
            self.ground.index(self.where, self.files)
            time.sleep(1)
        runs = [self.ground.index(self.where, self.files)[0] for _ in range(self.rounds)]
        yield from self._told("unchanged", runs, memory=True)

    def commands(self) -> Iterator[Figure]:
        """What people and harnesses wait for."""
        named = (("status", ("status",)), ("words", ("recall", "--words", "heartbeat")), ("recall", QUESTION))
        for name, words in (*named, ("render", ("render",))):
            yield from self._told(name, [self._signet(*words) for _ in range(self.rounds)])
        start = {"hook_event_name": "SessionStart", "source": "startup"}
        prompt = {"hook_event_name": "UserPromptSubmit", "prompt": QUESTION[1]}
        for name, event in (("start", start), ("prompt", prompt)):
            runs = []
            for number in range(self.rounds):
                given = json.dumps({**HOOK, **event, "session_id": f"large-{name}-{number}"}).encode()
                runs.append(self.ground.run(*self._hook(), given=given))
                if name == "start" and "additionalContext" not in runs[-1].stdout:
                    raise BenchError(f"a session's start got no context: {runs[-1].stdout[:500]}")
            yield from self._told(name, runs)

    def _hook(self) -> list[str]:
        return python("signet_sync", "--workspace", self.where, "hook", "claude-code", "--strict")

    def questions(self) -> Iterator[Figure]:
        """Questions in a process that has the index open; and one for which everything is read from disk."""
        asked = self.ground.run(*python("benchmarks.large", "--ask", self.database)).json()
        for name in ("recall", "words"):
            for part in (50, 95):
                yield Figure(f"{name} p{part}", percentile(asked[name], part / 100))
        clocks, read = [], []
        for _ in range(self.rounds):
            descriptor = os.open(self.database, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
            ran = self._signet(*QUESTION)
            clocks.append(ran.seconds)
            read.append(ran.read_mb)
        yield Figure("recall cold", statistics.median(clocks))
        yield Figure("recall read", statistics.median(read))

    def care(self) -> Iterator[Figure]:
        """What keeps the database well: backup, checks, merges."""
        place = self.ground.path("copy.backup")
        yield from self._told("backup", [self._signet("backup", "create", place)])
        yield Figure("backup size", os.path.getsize(place) / 1e6)
        yield Figure("examine", self.ground.run(*python("benchmarks.large", "--examine", self.database)).processor)

    def _told(self, name: str, runs: Sequence[Ran], *, memory: bool = False) -> Iterator[Figure]:
        yield Figure(name, statistics.median(ran.processor for ran in runs))
        if memory:
            yield Figure(f"{name} memory", max(ran.peak_mb for ran in runs))

    # ── changes ──

    def changes(self) -> Iterator[Figure]:
        """New files that a pass finds, and the end of a session."""
        runs = []
        for arrival in self._arrivals("pass", self.rounds):
            arrival.move(self.where)
            runs.append(self.ground.index(self.where, self._grown(3))[0])
        yield from self._told("change", runs, memory=True)
        ends = []
        for number in range(self.rounds):
            told = {**END, "session_id": f"large-{number}", "transcript": f"# Run {number}\n\n{_SAID * 30}"}
            ends.append(self._signet("session", "end", "--json", "--input", "-", given=json.dumps(told).encode()))
            self._grown(len(os.listdir(os.path.join(self.where, "memory"))) - self.files)
        yield from self._told("end", ends)

    def _grown(self, by: int) -> int:
        self.files += by
        return self.files

    def _arrivals(self, name: str, count: int) -> list[Arrival]:
        """Sessions still to come, each of three files, that wait beside the workspace."""
        made, found = corpus.Corpus(agents=1, seed=len(name)), []
        now_ms = int(time.time() * 1000)
        for number in range(count):
            word = f"{name}x{number:05d}q"
            session, texts = made.compose(number, ended_ms=now_ms - 600_000 + number * 1_000, slack_ms=10, word=word)
            waiting = self.ground.path("waiting", word)
            shutil.rmtree(waiting, ignore_errors=True)
            os.makedirs(os.path.join(waiting, "memory"))
            corpus.write_files(waiting, texts)
            found.append(Arrival(waiting, tuple(texts), session["paths"]["summary"], word))
        return found

    # ── under `run` ──

    def under_run(self) -> Iterator[Figure]:
        """What `run` costs from its start on, and how soon it follows a change."""
        arrivals = self._arrivals("agent", 4 * self.rounds)
        with self.ground.agent(self.where) as process:
            self.ground.until_idle(self.where, process)
            start = Usage.of(process.pid)
            yield Figure("run start", start.processor)
            yield Figure("run memory", start.resident_mb)
            watch = Watch(self.where, self.database, process)
            found = [watch.latency(one) for one in arrivals]
            watch.close()
            time.sleep(60)
            yield Figure("run row", percentile([one.row for one in found], 0.5) * 1000)
            yield Figure("run page", percentile([one.page for one in found], 0.5) * 1000)
            yield Figure("run change", (Usage.of(process.pid).processor - start.processor) / len(arrivals))
            yield Figure("run peak", Usage.of(process.pid).peak_mb)
        self._grown(3 * len(arrivals))

    # ── what is rarely needed ──

    def repairs(self) -> Iterator[Figure]:
        """Everything read again, rebuilt, merged and saved."""
        yield from self._told("check", [ran := self._signet("check", "--json")])
        yield Figure("check memory", ran.peak_mb)
        with _log_peak(self.database) as peaks:
            yield from self._told("rebuild", [self._signet("reindex", "--full", "--json")])
        yield Figure("rebuild wal", max(peaks) / 1e6)
        asked = self.ground.run(*python("benchmarks.large", "--merge", self.database)).json()
        yield Figure("merge", asked["step"] * 1000)
        yield Figure("merges", asked["all"])
        yield Figure("salvage", self.ground.run(*python("benchmarks.large", "--salvage", self.database)).processor)


_SAID = (
    "The dispatcher waits for the beacon, because the cache of the broker was full. We decided to keep the retry.\n\n"
)


def _log_peak(database: str) -> contextlib.AbstractContextManager[list[float]]:
    """Fills in sizes of the write-ahead log, twenty times a second."""
    return watched(lambda: os.path.getsize(database + "-wal"), 0.05)


# ── work in a process of its own, on a database ──


def asked(place: str) -> dict[str, list[float]]:
    """Milliseconds of a processor of `recall` and `recall --words` for four words each of texts all over a database."""
    from signet_sync.recall.operations import recall
    from signet_sync.recall.store.rows import Within
    from signet_sync.recall.store.session_list import files_with
    from signet_sync.storage.database.connection import Database
    from signet_sync.sync.store.texts import text_of

    chance, took = random.Random(7), {"recall": list[float](), "words": list[float]()}
    with closing(Database(place, readonly=True)) as database:
        most = database.value("select max(id) from memory_artifacts")
        while len(took["recall"]) < ASKED:
            text = database.value(
                f"select {text_of()} from memory_artifacts where id >= ? and agent_id = 'default'"
                " and source_kind <> 'manifest' limit 1",
                (chance.randrange(most),),
            )
            words = re.findall(r"[A-Za-z]{4,}", chance.choice((text or "").split(".")))
            if len(words) < 5:
                continue
            query = " ".join(chance.sample(words, 4))
            started = time.process_time()
            recall(database, query, Within("default"))
            found = time.process_time()
            files_with(database, query, Within("default"))
            took["recall"].append((found - started) * 1000)
            took["words"].append((time.process_time() - found) * 1000)
    return took


def examine(place: str) -> None:
    """Makes the checks that `run` makes once a day; `BenchError` if something is wrong."""
    from signet_sync.storage.database.connection import Database
    from signet_sync.storage.database.tables import native_tables

    with closing(Database(place)) as database:
        if found := database.problems(closely=native_tables()):
            raise BenchError(found[0])


def merged(place: str) -> dict[str, float]:
    """Seconds of the longest step of an idle agent's merging, and of a processor for all steps to one segment."""
    from signet_sync.storage.database import batches
    from signet_sync.storage.database.connection import Database
    from signet_sync.storage.database.tables import full_text

    longest = 0.0
    with closing(Database(place)) as database:
        for table in full_text():  # so that there is something to merge
            database.execute(f"insert into {table}({table}, rank) values('usermerge', 2)")
        going = True
        while going:
            started = time.perf_counter()
            going = batches.merge_step(database)
            longest = max(longest, time.perf_counter() - started)
        return {"step": longest, "all": time.process_time()}


def salvaged(place: str) -> None:
    """Takes the native rows of a database over into a new one, as after damage."""
    from signet_sync.storage.database.connection import Database
    from signet_sync.storage.database.native_backup import salvage

    with closing(Database(place + ".salvaged")) as database:
        salvage(database, place)


INSIDE: dict[str, Callable[[str], object]] = {
    "ask": asked,
    "examine": examine,
    "merge": merged,
    "salvage": salvaged,
}
"""What a process of its own does with a database, by option."""


# ── figures ──


LAWS: dict[str, Callable[[int], float]] = {"linear": float, "n log n": lambda n: n * math.log(n)}


def fitted(points: Mapping[int, float], at: int) -> tuple[str, float]:
    """The law that figures by number of files follow best, and what it gives for another number.

    Constant if they differ by less than a quarter; otherwise `a + b·n` or `a + b·n·log n`, whichever is closer, in
    relation to the figures; the first if there are only two.
    """
    if len(points) < 2 or max(points.values()) <= 1.25 * min(points.values()):
        return "constant", max(points.values(), default=0.0)
    found = []
    for law, shape in LAWS.items():
        start, slope = _line({shape(n): value for n, value in points.items()})
        if slope <= 0:
            return "constant", max(points.values())
        error = max(abs(start + slope * shape(n) - value) / max(abs(value), 1e-9) for n, value in points.items())
        found.append((round(error, 2), law, start + slope * shape(at)))
    _, law, value = min(found, key=lambda one: one[0])
    return law, value


def _line(points: Mapping[float, float]) -> tuple[float, float]:
    """The line with the smallest relative errors (least squares)."""
    weights = {x: 1 / max(abs(y), 1e-9) ** 2 for x, y in points.items()}
    whole = sum(weights.values())
    middle_x = sum(w * x for x, w in weights.items()) / whole
    middle_y = sum(weights[x] * y for x, y in points.items()) / whole
    spread = sum(w * (x - middle_x) ** 2 for x, w in weights.items())
    slope = sum(weights[x] * (x - middle_x) * (y - middle_y) for x, y in points.items()) / spread
    return middle_y - slope * middle_x, slope


LIMITS = {
    "first": 86_400.0,
    "unchanged": 10.0,
    "change memory": 2_000.0,
    "prompt": 1.0,
    "recall p95": 1_000.0,
    "database": 100_000.0,
    "rebuild wal": 50_000.0,
    "examine": 600.0,
    "backup size": 50_000.0,
    "salvage": 600.0,
}
"""What a person would notice on a laptop: where one file ends."""


def ends(found: Mapping[int, Mapping[str, float]]) -> str:
    """A Markdown list: from how many files on figures are beyond their limits, the smallest first."""
    lines = []
    for name, limit in LIMITS.items():
        points = {size: figures[name] for size, figures in found.items() if name in figures}
        law = fitted(points, 1)[0]
        if law != "constant":
            least, most = 1, 10**9
            while least < most:
                middle = (least + most) // 2
                least, most = (least, middle) if fitted(points, middle)[1] >= limit else (middle + 1, most)
            shown = _shown(limit, MEASURES[name][1])
            lines.append((least, f"- {least / 1e6:,.1f} million files: {_named(name)}: {shown} ({law})"))
    return "\n".join(line for _, line in sorted(lines))


def _named(name: str) -> str:
    """What a figure says, after what it belongs to."""
    before = ""
    for other, (what, _) in MEASURES.items():
        before = before if what.startswith("· ") else what
        if other == name:
            return what if what == before else f"{before}, {what[2:]}"
    raise KeyError(name)


def table(found: Mapping[int, Mapping[str, float]], project: int | None) -> str:
    """A Markdown table with a column for each number of files, and one for what follows for another number."""
    sizes = sorted(found)
    heads = [f"{size:,}" for size in sizes] + ([f"{project:,}, projected", "grows"] if project else [])
    lines = ["| files | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, (what, unit) in MEASURES.items():
        points = {size: found[size][name] for size in sizes if name in found[size]}
        if points:
            cells = [_shown(points[size], unit) if size in points else "" for size in sizes]
            if project:
                law, value = fitted(points, project)
                cells += [_shown(value, unit), law]
            lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _shown(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def _kept(place: str | None) -> dict[int, dict[str, float]]:
    if place is None or not os.path.exists(place):
        return {}
    with open(place, encoding="utf-8") as file:
        return {int(files): figures for files, figures in json.load(file).items()}


def measured(chosen: argparse.Namespace, root: str, kept: dict[int, dict[str, float]]) -> None:
    """Measures the sizes that are not there yet, and adds their figures, each as soon as it is known."""
    for files in sorted(set(chosen.files) - kept.keys()):
        sessions = round(files / 3)
        ground = Ground(os.path.join(root, f"{files}"), chosen.per_day, 3)
        ground.env["SIGNET_DB"] = ground.path("ours.db")
        ground.fresh_state()
        where = ground.path("workspace")
        shutil.rmtree(where, ignore_errors=True)
        end = corpus.iso(int(time.time() * 1000) - 3_600_000)
        options = ["--sessions", str(sessions), "--per-day", str(chosen.per_day), "--end", end]
        ground.run(*python("benchmarks.corpus", where, *options))
        before = [each / n for n, figures in kept.items() if (each := figures.get("first clock"))]
        expected = before[-1] * files if before else None
        kept[files] = {}
        for figure in Large(ground, where, 3 * sessions, expected, chosen.rounds, chosen.brief).all():
            kept[files][figure.name] = figure.value
            what, unit = MEASURES[figure.name]
            print(f"{files:,}: {what}: {_shown(figure.value, unit)}", file=sys.stderr, flush=True)
            if chosen.figures is not None:
                with open(chosen.figures, "w", encoding="utf-8") as file:
                    json.dump(kept, file, indent=1)
        shutil.rmtree(ground.root)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m benchmarks.large`: prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--files", type=int, nargs="+", default=[15_000, 150_000], help="sizes of the vaults")
    parser.add_argument("--project", type=int, metavar="N", help="also say what follows for so many files")
    parser.add_argument("--figures", metavar="FILE", help="keep figures here, and do not measure again what it holds")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of what is short (default 5)")
    parser.add_argument(
        "--per-day", type=float, default=150, help="sessions in 24 hours, of three agents (default 150)"
    )
    parser.add_argument("--brief", action="store_true", help="without rebuild, check, merges and salvage")
    for name in INSIDE:
        parser.add_argument(f"--{name}", metavar="DATABASE", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    for name, work in INSIDE.items():
        if place := getattr(chosen, name):
            print(json.dumps(work(place)))
            return 0
    if min(*chosen.files, chosen.rounds) < 1:
        parser.error("--files and --rounds must be at least 1")
    kept = _kept(chosen.figures)
    try:
        with tempfile.TemporaryDirectory(prefix="signet-large-") as root:
            measured(chosen, root, kept)
    except BenchError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    print(f"{machine()}; rounds: {chosen.rounds}; {chosen.per_day:g} sessions a day.\n\n{table(kept, chosen.project)}")
    if chosen.project:
        print(f"\n{ends(kept)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
