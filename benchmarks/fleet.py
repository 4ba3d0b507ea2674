"""Measures `fleet check` on its engines against a plain loop over `check`: `python -m benchmarks.fleet`.

Every run is a process of its own, from its start to the last workspace, and they take turns. Processor seconds are of
the process that checks, without what an engine needs besides: on a shared machine they say whether the work was the
same, and the clock, how well it was spread.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.corpus import write_corpus
from benchmarks.ground import BenchError, Ground, machine, python
from signet_sync.fleet import engines
from signet_sync.fleet.check import inspect
from signet_sync.fleet.engines import Engine

NOW_US = 1_774_785_600_000_000
LOOP = "loop"
RUNS = (LOOP, "local 1", "local 2", "ray 1", "ray 2")
GOALS = {1: "≤ 1.15 × the loop", 2: "≥ 1.7 × as fast as one"}


class Part(NamedTuple):
    """What a worker used for one workspace, and has used so far: files, its process, processor seconds, peak MB."""

    files: int
    process: int
    processor: float
    peak_mb: float


def inspected(asked: tuple[str, int]) -> Part:
    """Checks a workspace as `fleet check` does; returns what it used. Raises `BenchError` if something is wrong."""
    found = inspect(asked)
    if found.document is None or found.document["problems"]:
        raise BenchError(found.unreachable or str(found.document))
    unit = 1024**2 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return Part(found.document["counts"]["indexed"], os.getpid(), time.process_time(), peak)


def run(name: str, folder: str) -> dict[str, Any]:
    """Checks all workspaces of a folder in the way that is named; returns what it took."""
    items = [(os.path.join(folder, one), NOW_US) for one in sorted(os.listdir(folder))]
    kind, _, workers = name.partition(" ")
    began = time.perf_counter()
    parts = list(map(inspected, items) if kind == LOOP else _on_engine(items, Engine(kind, workers=int(workers))))
    processes = {part.process: part for part in parts}  # the last of each is what it has used in all
    return {
        "workspaces": len(parts),
        "files": sum(part.files for part in parts),
        "seconds": time.perf_counter() - began,
        "processor": sum(part.processor for part in processes.values()),
        "peak_mb": max(part.peak_mb for part in processes.values()),
    }


def _on_engine(items: Sequence[tuple[str, int]], engine: Engine) -> Iterator[Part]:
    for one in engines.run(inspected, items, engine):
        if one.result is None:
            raise BenchError(f"{one.item[0]}: {one.failure}")
        yield one.result


def check(ground: Ground, folder: str, rounds: int, runs: Sequence[str]) -> Iterator[str]:
    """Yields the lines of a table: every way in turn, `rounds` times."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in runs}
    for turn in range(rounds):
        for name in runs if turn % 2 == 0 else reversed(runs):
            ran = ground.run(*python("benchmarks.fleet", "--one", name, folder))
            found[name].append(ran.json() | {"whole": ran.seconds})
            print(f"  {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    yield "| | by the clock | workspaces a second | of processors | peak memory of a process | figure | goal |"
    yield "|---|---|---|---|---|---|---|"

    def middle(name: str, key: str) -> float:
        return float(statistics.median(one[key] for one in found[name]))

    for name in runs:
        kind, _, workers = name.partition(" ")
        first = LOOP if workers == "1" else f"{kind} 1"
        figure = ""
        if kind != LOOP and first in runs:
            ratio = statistics.median(a["whole"] / b["whole"] for a, b in zip(found[name], found[first], strict=True))
            figure = f"{ratio:.2f} × the loop" if workers == "1" else f"{1 / ratio:.2f} × as fast as one"
        rate = found[name][0]["workspaces"] / middle(name, "whole")
        yield (
            f"| {name} | {middle(name, 'whole'):.1f} s | {rate:.2f} | {middle(name, 'processor'):.1f} s"
            f" | {middle(name, 'peak_mb'):.0f} MB | {figure} | {GOALS.get(int(workers or 0), '')} |"
        )


def workspaces(folder: str, count: int, files: int) -> None:
    """Makes workspaces, each unlike the others, unless they are there."""
    for number in range(count):
        root = os.path.join(folder, f"{number:05d}")
        if not os.path.isdir(root):
            write_corpus(f"{root}.new", files // 3, agents=2, seed=number + 1)
            os.rename(f"{root}.new", root)


def main(argv: Sequence[str] | None = None) -> int:
    """Makes the workspaces, measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--workspaces", type=int, default=1000)
    parser.add_argument("--files", type=int, default=300, help="of each workspace")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=RUNS)
    parser.add_argument("--keep", metavar="DIR", help="keep the workspaces there for the next run")
    parser.add_argument("--one", nargs=2, metavar=("RUN", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.one:
        print(json.dumps(run(*given.one)))
        return 0
    with tempfile.TemporaryDirectory(prefix="signet-fleet-") as temporary:
        ground = Ground(given.keep or temporary, per_day=50, agents=2)
        folder = ground.path(f"fleet-{given.workspaces}-{given.files}")
        workspaces(folder, given.workspaces, given.files)
        print(f"{machine()}; {given.workspaces:,} workspaces × {given.files:,} files, {given.rounds} rounds\n")
        for line in check(ground, folder, given.rounds, given.runs):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
