"""Measures the open tables of many workspaces: `python -m benchmarks.fleet_tables --workspaces 200 --files 300`.

A first run, a second one in which nothing changed, and one in which 1 % of the workspaces did; then searches over as
many sessions as asked for, in tables that are written without workspaces. Processor seconds are of this process and its
children: on a shared machine they say more than the time that passed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import Any

from benchmarks.corpus import Corpus, milliseconds, write_corpus, write_files
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.index import index
from signet_sync.fleet.search import search
from signet_sync.fleet.tables import text_index
from signet_sync.fleet.tables.parquet import ParquetTables
from signet_sync.fleet.tables.rows import TableRow, WorkspaceState
from signet_sync.fleet.tables.schema import OPEN_TABLES
from signet_sync.fleet.tables.selection import Selection
from signet_sync.formats.timestamps import day_of

NOW_US = 1_774_785_600_000_000
QUERIES = 200


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Runs something; returns the seconds that passed, the processor seconds, and what it returned."""
    began, used = time.perf_counter(), _processor()
    result = work()
    return time.perf_counter() - began, _processor() - used, result


def _processor() -> float:
    return sum(
        one.ru_utime + one.ru_stime for one in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def indexing(folder: str, workspaces: int, files: int, engine: Engine) -> dict[str, Any]:
    """Indexes many workspaces: all of them, none, and 1 % that changed."""
    roots = [os.path.join(folder, f"w{number:05d}") for number in range(workspaces)]
    for number, root in enumerate(roots):
        write_corpus(root, files // 3, agents=2, seed=number + 1)
    place = os.path.join(folder, "tables")

    def run() -> dict[str, Any]:
        return index(roots, engine, NOW_US, places=[place])

    told: dict[str, Any] = {"workspaces": workspaces, "files": files, "engine": engine._asdict()}
    for name in ("first", "unchanged", "changed"):
        if name == "changed":
            for number in range(0, workspaces, 100):
                _, made = Corpus(agents=2, seed=99).compose(number, ended_ms=milliseconds("2026-03-29T11:00:00.000Z"))
                write_files(roots[number], made)
        seconds, processor, document = timed(run)
        told[name] = {"seconds": seconds, "processor": processor, **{k: document[k] for k in ("indexed", "unchanged")}}
        assert document["unreachable"] == [] and document["workspaces"] == workspaces
    told["of the first, with 1 % changed"] = told["changed"]["processor"] / told["first"]["processor"]
    told["peak megabytes of a process"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    told["megabytes of tables"] = _size(place) / 1e6
    return told


def _size(place: str) -> int:
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(place) for name in names)


def searching(folder: str, workspaces: int, sessions: int) -> dict[str, Any]:
    """Searches sessions that are written as an index writes them, `sessions` in all."""
    place, words = os.path.join(folder, "made"), _written(os.path.join(folder, "made"), workspaces, sessions)
    os.environ["SIGNET_STATE"] = os.path.join(folder, "state")

    def ask(query: str) -> Callable[[], dict[str, Any]]:
        return lambda: search(query, [], place, Selection())

    seconds, processor, _ = timed(ask("retry"))
    told: dict[str, Any] = {
        "sessions": sessions,
        "workspaces": workspaces,
        "made": {"seconds": seconds, "processor": processor, "megabytes": _size(os.environ["SIGNET_STATE"]) / 1e6},
    }
    with text_index.opened(ParquetTables(place)) as connection:
        told["opened"] = _asked(words, lambda query: text_index.found(connection, query, Selection()))
    told["with opening"] = _asked(words, lambda query: ask(query)()["hits"])
    return told


def _asked(words: Sequence[str], found: Callable[[str], Sequence[Any]]) -> dict[str, Any]:
    """Asks for one to three words, which occur as often as they are written."""
    rng = random.Random(5)
    taken, used = [], []
    for _ in range(QUERIES):
        query = " ".join(rng.sample(words, rng.choice((1, 2, 3))))
        seconds, processor, hits = timed(lambda query=query: found(query))  # type: ignore[misc]
        assert hits
        taken.append(seconds * 1000)
        used.append(processor * 1000)
    told = {}
    for name, values in (("milliseconds", taken), ("processor milliseconds", used)):
        cuts = quantiles(values, n=20)
        told[name] = {"p50": round(cuts[9], 1), "p95": round(cuts[18], 1)}
    return told


def _written(place: str, workspaces: int, sessions: int) -> list[str]:
    """Writes the tables; returns words of the sessions, as often as they are there."""
    tables, corpus, words, commits = ParquetTables(place), Corpus(agents=2, seed=3), list[str](), {}
    rng = random.Random(3)
    each = sessions // workspaces
    lines = [
        line.strip("-# ")
        for number in range(3000)
        for line in corpus.compose(number, ended_ms=0)[1].popitem()[1].split("\n")
        if len(line) > 40
    ]
    lines += [corpus.compose(number, ended_ms=0)[0]["sentence"] for number in range(3000)]
    for number in range(workspaces):
        rows: list[TableRow] = []
        for one in range(each):
            us = NOW_US - (number * each + one) * 60_000_000
            said = rng.sample(lines, 3)  # some hundred words, as sessions of the demo have
            if one % 50 == 0:
                words += [word for word in said[1].split() if word.isalnum() and len(word) > 3]
            rows.append(_row(number, one, us, said))
        name = f"/srv/agents/{number:05d}"
        made = {table.name: rows if table.name == "sessions" else [] for table in OPEN_TABLES}
        commits[name] = tables.write(WorkspaceState(name, "", "", NOW_US), made, None)
    tables.publish(commits, (), NOW_US)
    return words


def _row(workspace: int, session: int, us: int, said: Sequence[str]) -> TableRow:
    who: TableRow = ("default", f"{session:016x}", f"{workspace:08d}-{session:08d}", None, "/srv/lantern", "codex")
    path = f"memory/{session}--summary.md"
    return (*who, us - 1, us, day_of(us), said[0], path, True, 3, 9000, 7, "\n".join(said))


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, and prints one JSON document."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet_tables", description=(__doc__ or "").split(":")[0]
    )
    parser.add_argument("--workspaces", type=int, default=200)
    parser.add_argument("--files", type=int, default=300, help="of each workspace")
    parser.add_argument("--sessions", type=int, default=300_000, help="to search")
    parser.add_argument("--engine", choices=("ray", "local"), default="local")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--only", choices=("index", "search"))
    given = parser.parse_args(argv)
    folder = tempfile.mkdtemp(prefix="signet-fleet-")
    os.environ["SIGNET_STATE"] = os.path.join(folder, "state")
    told = {}
    try:
        if given.only != "search":
            engine = Engine(given.engine, workers=given.workers)
            told["index"] = indexing(folder, given.workspaces, given.files, engine)
        if given.only != "index":
            told["search"] = searching(folder, given.workspaces, given.sessions)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
