"""Counts what the end of a session reads and writes in the database, in a small vault and in a large one.

`python -m benchmarks.graph` ends the same sessions in vaults of 500 and of 15,000 sessions and counts, for the whole
ending and for the temporal graph's part of it, rows that statements gave, rows that were written, and the steps of
SQLite's machine (which also tell of rows that were looked at and passed over). Cost follows the session and its thread:
the figures of the two vaults should be alike.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import apsw

from benchmarks import corpus
from benchmarks.ground import PROJECT, machine


@dataclass(slots=True)
class Count:
    """Rows given, rows written (full text's own tables included), steps of SQLite's machine."""

    read: int = 0
    written: int = 0
    steps: int = 0


class Meter:
    """What a connection did since it is listened to."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._read = self._steps = 0
        self._seen: dict[int, int] = {}
        connection.trace_v2(apsw.SQLITE_TRACE_ROW | apsw.SQLITE_TRACE_PROFILE, self._take)

    def _take(self, event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_ROW:
            self._read += 1
            return
        steps = event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
        if "'main'." in event["sql"]:  # a statement of full text's own, which goes on counting from run to run
            steps, self._seen[event["id"]] = steps - self._seen.get(event["id"], 0), steps
        self._steps += steps

    @contextlib.contextmanager
    def counting(self, into: list[Count]) -> Iterator[None]:
        """Appends what is done meanwhile."""
        read, written, steps = self._read, self._connection.total_changes(), self._steps
        yield
        into.append(Count(self._read - read, self._connection.total_changes() - written, self._steps - steps))


@dataclass(slots=True)
class Ledger:
    """The counts of several endings: of the whole, and of the graph's part."""

    whole: list[Count] = field(default_factory=list)
    graph: list[Count] = field(default_factory=list)


def document(number: int) -> dict[str, Any]:
    """The input of an ending in a thread of the corpus."""
    turns = "\n\n".join(
        f"## {'Assistant' if turn % 2 else 'User'}\n\nTurn {turn} of run {number}: the retry loop of src/queue.py."
        for turn in range(20)
    )
    return {
        "session_id": f"benchmark-{number}",
        "project": "/home/rowan/src/lantern-web",
        "harness": "claude-code",
        "transcript": turns,
        "summary": f"# Run {number}\n\n## Decisions\n\n- Bound the retry loop of src/queue.py after run {number}.\n",
    }


def measure(root: str, runs: int) -> Ledger:
    """Ends sessions in a vault and counts; the first ending, which fills caches, is left out."""
    from signet_sync.app.workspace import opened
    from signet_sync.sessions import operations as sessions_operations
    from signet_sync.sessions.input import session_input
    from signet_sync.settings.model import Settings
    from signet_sync.sync import deriving
    from signet_sync.sync.index_records import Change

    ledger, drain = Ledger(), deriving.drain
    for number in range(runs + 1):
        now_us = time.time_ns() // 1000
        given = session_input(document(number), now_us=now_us)
        parts: list[Count] = []
        with opened(root, Settings()) as workspace:
            meter = Meter(workspace.database.connection)

            def counted(*args: Any, meter: Meter = meter, parts: list[Count] = parts, **given: Any) -> Change:
                with meter.counting(parts):
                    return drain(*args, **given)

            deriving.drain = counted
            try:
                with meter.counting(ledger.whole):
                    sessions_operations.end(workspace, given, now_us=now_us)
            finally:
                deriving.drain = drain
        # One ending makes several passes: the graph's parts of them count together.
        ledger.graph.append(Count(*(sum(numbers) for numbers in zip(*map(astuple, parts), strict=True))))
    return Ledger(ledger.whole[1:], ledger.graph[1:])


def _medians(counts: Sequence[Count]) -> tuple[float, float, float]:
    return (
        statistics.median(count.read for count in counts),
        statistics.median(count.written for count in counts),
        statistics.median(count.steps for count in counts),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sessions", metavar="N", type=int, nargs="+", default=[500, 15_000])
    parser.add_argument("--runs", metavar="N", type=int, default=10, help="measured endings a vault (default 10)")
    chosen = parser.parse_args(argv)
    print(f"{machine()}; medians of {chosen.runs} endings\n")
    print("| sessions in the vault | part | rows read | rows written | steps of SQLite |")
    print("|---|---|---|---|---|")
    for sessions in chosen.sessions:
        with tempfile.TemporaryDirectory(prefix="signet-graph-") as ground:
            for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "no-settings.toml")):
                os.environ[name] = os.path.join(ground, place)
            root = os.path.join(ground, "vault")
            corpus.write_corpus(root, sessions)
            reindex = [sys.executable, "-m", "signet_sync", "--workspace", root, "reindex", "--json"]
            subprocess.run(reindex, stdout=subprocess.DEVNULL, cwd=PROJECT, check=True)
            ledger = measure(root, chosen.runs)
        for part, counts in (("the whole ending", ledger.whole), ("the graph", ledger.graph)):
            read, written, steps = _medians(counts)
            print(f"| {sessions:,} | {part} | {read:,.0f} | {written:,.0f} | {steps:,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
