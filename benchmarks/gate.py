"""Holds what indexing costs: ratios of processor time that must not grow unnoticed.

`python -m benchmarks.gate` measures and exits with 1 when a figure is 15 % worse than the one that stands in
`gate.json`. A commit that means to change a figure changes the file (`--write`). Processor time, each of ours beside
a yardstick in the same round, and the smallest of the rounds: what else the machine does hardly shows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import corpus
from benchmarks.ground import PROJECT, Ground, python

FIGURES = os.path.join(PROJECT, "benchmarks", "gate.json")
ALLOWED = 1.15
SESSIONS, FEW = 500, 2
# The middle of three rounds of a cold index differs by a fifth within a quarter of an hour, that of seven by 6 %.
COLD_ROUNDS, CHANGES, STARTS = 7, 40, 9
# Processors change their speed by the second: yardsticks stand before and after what is measured.
YARDSTICKS = 3

WHAT = {
    "cold": f"a cold index of {3 * SESSIONS:,} files, over the straight line",
    "change": "a pass over one changed file of them, over the straight line's time for a file",
    "start": f"`reindex` of {3 * FEW} files and a new one, over bare Python",
}


def measure(ground: Ground) -> dict[str, float]:
    """Returns the three ratios, by the names of `WHAT`."""
    return {"cold": _cold(ground), "change": _change(ground), "start": _start(ground)}


def _cold(ground: Ground) -> float:
    where = ground.workspace(SESSIONS)

    def straight() -> float:
        return statistics.mean(ground.baseline(where, 3 * SESSIONS).processor for _ in range(YARDSTICKS))

    ratios, before = [], straight()
    for _ in range(COLD_ROUNDS):
        ground.fresh_state()
        where = ground.workspace(SESSIONS)
        ours, after = ground.index(where, 3 * SESSIONS)[0].processor, straight()
        ratios.append(2 * ours / (before + after))
        before = after
    return _middle("cold", ratios)


def _change(ground: Ground) -> float:
    """In a process of its own, on the vault that the cold index has left."""
    command = python("benchmarks.gate", "--changes-of", ground.path("workspace"), ground.path("ours.db"))
    return _middle("change", [ours / straight for ours, straight in ground.run(*command).json()])


def _start(ground: Ground) -> float:
    return _middle("start", [ours / bare for ours, bare in passes(ground, STARTS)])


def passes(ground: Ground, count: int) -> list[tuple[float, float]]:
    """Times passes of a small vault, each beside bare Python, in seconds of a processor.

    Every pass finds a new summary: one that finds nothing changed does not load what a pass loads.
    """
    ground.fresh_state()
    where = ground.workspace(FEW)
    found = []
    for files in _summaries(count + 1, ground.end_ms(FEW)):
        corpus.write_files(where, files)
        bare = statistics.mean(ground.run(sys.executable, "-c", "pass").processor for _ in range(YARDSTICKS))
        found.append((ground.run(*ground.signet(where, "reindex", "--json")).processor, bare))
    return found[1:]  # the first one makes the database


def _middle(name: str, ratios: Sequence[float]) -> float:
    print(f"{name}: " + " ".join(f"{one:.2f}" for one in ratios), file=sys.stderr)
    return statistics.median(ratios)


def _summaries(count: int, after_ms: int) -> list[dict[str, str]]:
    """Composes sessions of which a summary and its manifest are there: `{path: text}` of each."""
    made = corpus.Corpus(agents=1, seed=7)
    found = []
    for number in range(count):
        session, texts = made.compose(
            number, ended_ms=after_ms + (number + 1) * 60_000, slack_ms=30_000, word=f"gate{number:05d}q"
        )
        found.append({session["paths"][kind]: texts[session["paths"][kind]] for kind in ("manifest", "summary")})
    return found


def time_changes(where: str, database: str) -> list[tuple[float, float]]:
    """Times passes over one new summary, in a process that is there, each beside the straight line for a file."""
    from benchmarks.baseline import index
    from signet_sync.app.workspace import open_to_write
    from signet_sync.settings.model import Settings
    from signet_sync.storage.locations import now_us
    from signet_sync.sync.engine import run_pass
    from signet_sync.sync.workspace import Request

    few, found = tempfile.mkdtemp(prefix="few-", dir=os.path.dirname(database)), []
    summaries = _summaries(CHANGES, now_us() // 1000 - 3_000_000)
    os.mkdir(os.path.join(few, "memory"))
    for files in summaries:
        corpus.write_files(few, files)
    with open_to_write(where, Settings(), database=database) as workspace:
        run_pass(workspace, Request(now_us=now_us()))
        for number, files in enumerate(summaries):
            began = time.process_time()
            count = index(few, f"{few}/{number}.db")
            straight = (time.process_time() - began) / count
            corpus.write_files(where, files)
            began = time.process_time()
            run_pass(workspace, Request(now_us=now_us(), paths=frozenset(files)))
            found.append((time.process_time() - began, straight))
    return found[4:]  # the first ones load what they need


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each figure beside the one that is held; exit code 1 when one is too large."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="hold what is measured now")
    parser.add_argument("--changes-of", nargs=2, metavar=("WORKSPACE", "DB"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.changes_of:
        print(json.dumps(time_changes(*chosen.changes_of)))
        return 0
    with tempfile.TemporaryDirectory(prefix="signet-gate-") as root:
        ground = Ground(root, per_day=50, agents=1)
        found = measure(ground)
        if chosen.write:
            with open(FIGURES, "w", encoding="ascii") as handle:
                handle.write(json.dumps({name: round(value, 2) for name, value in found.items()}, indent=2) + "\n")
        with open(FIGURES, encoding="ascii") as handle:
            held: dict[str, float] = json.load(handle)
        worse = [name for name in WHAT if found[name] > ALLOWED * held[name]]
        if worse:  # what is dearer is so twice; a neighbour's work on the same machine hardly is
            again = measure(ground)
            found = {name: min(found[name], again[name]) for name in WHAT}
            worse = [name for name in worse if found[name] > ALLOWED * held[name]]
    for name, what in WHAT.items():
        mark = " TOO DEAR" if name in worse else ""
        print(f"{name:6} {found[name]:7.2f} × (held: {held[name]:.2f}): {what}{mark}")
    if worse:
        print(f"15 % or more over {os.path.relpath(FIGURES, PROJECT)}: {', '.join(worse)}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
