"""What `recall` costs in one vault: processor time by words of the question, sizes of the full text, modules.

`python -m benchmarks.recall_speed WORKSPACE DATABASE` prints the milliseconds of each question of five words as JSON
(`benchmarks.bench` asks this).
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType

from benchmarks.bench import COUNTING
from benchmarks.ground import percentile
from benchmarks.labelled import Workspace
from signet_sync.recall.operations import recall
from signet_sync.recall.store.rows import Within
from signet_sync.storage.database.connection import Database

AGENT, LIMIT = "default", 10
ASKED = 300
# Ordinary tables that hold what is searched; those of FTS5 are known by their kind.
SEARCHED = ("texts", "passages")


def ours(database: Database, text: str) -> list[tuple[str | None, str, bool]]:
    """Asks the product as the command does: path and text of each hit in order, and whether it passes for known."""
    return [(hit.path, hit.text, hit.known) for hit in recall(database, text, Within(AGENT), limit=LIMIT)]


def questions(root: Path, words: int) -> list[str]:
    """So many words each of sentences all over a workspace, or of whole texts where sentences are shorter."""
    chance = random.Random(7)
    paths = [path for path in sorted((root / "memory").glob("*.md")) if not path.stem.endswith("manifest")]
    asked: list[str] = []
    for path in chance.sample(paths, len(paths)):
        body = path.read_text("utf-8").split("\n---\n", 1)[-1]
        told = sorted(set(re.findall(r"[A-Za-z]{4,}", chance.choice(body.split(".")) if words < 10 else body)))
        if len(told) >= words:
            asked.append(" ".join(chance.sample(told, words)))
        if len(asked) == ASKED:
            break
    return asked


def milliseconds(ask: Callable[[str], object], text: str) -> float:
    """Processor time, the best of three: what else the machine does is no part of it."""
    took = []
    for _ in range(3):
        started = time.process_time()
        ask(text)
        took.append(time.process_time() - started)
    return 1000 * min(took)


def times(ask: Callable[[str], object], asked: list[str]) -> str:
    """The middle and the 99th percentile of what questions take."""
    took = [milliseconds(ask, text) for text in asked]
    return f"{percentile(took, 0.5):.1f} / {percentile(took, 0.99):.1f}"


def sizes(database: Path) -> Iterator[tuple[str, int]]:
    """Bytes of the pages of each table that `recall` searches, its indexes included, and of the whole file."""
    with closing(Database(str(database), readonly=True)) as opened:
        kinds = "sql like 'create virtual table%using fts5(%'"
        full = [name for (name,) in opened.execute(f"select name from sqlite_master where {kinds} order by name")]
        for name in [*full, *SEARCHED]:
            parts = "m.tbl_name = ?1" if name in SEARCHED else "m.tbl_name glob ?1 || '_*'"
            held = opened.value(
                f"select sum(pgsize) from dbstat d join sqlite_master m on m.name = d.name where {parts}", (name,)
            )
            if held:
                yield name, held
    yield "the database", database.stat().st_size


def modules(made: Workspace) -> str:
    """How many modules of the product `recall` runs in a process of its own."""
    called = [sys.executable, "-c", COUNTING, "recall", "lease", "of", "the", "queue"]
    ran = subprocess.run(called, env=made.environment, check=True, capture_output=True, text=True)
    return ran.stderr.split()[-1]


def passed(ask: Callable[[str], object]) -> tuple[int, int]:
    """In how many modules of the product, and in how many functions, one question runs that was asked before."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, _event: str, _value: object) -> None:
        if "/signet_sync/" in frame.f_code.co_filename:
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    ask("lease of the queue")
    sys.setprofile(note)
    ask("lease of the queue")
    sys.setprofile(None)
    return len({place for place, _ in seen}), len(seen)


def main(root: Path, database: Path) -> None:
    """Prints what `benchmarks.bench` asks for."""
    with closing(Database(str(database), readonly=True)) as opened:
        took = [milliseconds(lambda text: ours(opened, text), text) for text in questions(root, 5)]
    print(json.dumps(took))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
