"""Whether `recall` finds what answers: forty questions, each with the artifacts that do, and the time that it takes.

`python -m benchmarks.recall PATH_TO_VAULTS` copies the workspaces, indexes the copies and prints where the first hit
stands that leads to an answer. `--index DATABASE` puts five words each of sentences from an index to it in place of
that, and prints as JSON how long each took (`benchmarks.bench` asks this).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.ground import PROJECT
from signet_sync.recall.operations import RankedHit, recall
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import SOURCES
from signet_sync.sync.store.bodies import text_of

NOW = "2026-03-29T12:00:00.000Z"
FIRST = 5
ASKED = 300  # questions by which pace is measured, nearly
QUESTIONS = Path(__file__).with_name("recall_questions.toml")


class Question(NamedTuple):
    """A question to an agent of a workspace, and the artifacts (`memory/…`) that answer it."""

    vault: str
    agent: str
    about: str
    ask: str
    answers: tuple[str, ...]


class Outcome(NamedTuple):
    """The place of the first hit that leads to an answer, from 1, and its tier; None where none does."""

    question: Question
    place: int | None
    tier: str | None
    milliseconds: float

    @property
    def good(self) -> bool:
        """Whether the answer stands within the first hits."""
        return self.place is not None and self.place <= FIRST


def questions() -> list[Question]:
    """All that are asked."""
    with QUESTIONS.open("rb") as file:
        asked = tomllib.load(file)["question"]
    return [
        Question(one["vault"], one["agent"], one["about"], one["ask"], tuple(f"memory/{a}.md" for a in one["answers"]))
        for one in asked
    ]


@contextmanager
def indexed(vault: Path) -> Iterator[Database]:
    """The index of a copy of a workspace, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="signet-sync-recall-") as folder:
        copy = Path(folder) / "workspace"
        shutil.copytree(vault, copy)
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        with _index_of(copy, folder) as database:
            yield database


@contextmanager
def _index_of(workspace: Path, folder: str) -> Iterator[Database]:
    place = f"{folder}/index.db"
    options = ["-q", "--workspace", str(workspace), "--db", place]
    environ = {"HOME": folder, "SIGNET_STATE": f"{folder}/state", "SIGNET_CONFIG": f"{folder}/none.toml"}
    subprocess.run(
        [sys.executable, "-m", "signet_sync", *options, "reindex", "--index-only", "--json", "--now", NOW],
        env={**os.environ, **environ},
        stdout=subprocess.DEVNULL,
        cwd=PROJECT,
        check=True,
    )
    with closing(Database(place, readonly=True)) as database:
        yield database


def ask(database: Database, question: Question) -> Outcome:
    """Puts one question."""
    started = time.perf_counter()
    hits = recall(database, question.ask, agent_id=question.agent)
    took = (time.perf_counter() - started) * 1000
    for place, hit in enumerate(hits, 1):
        if set(question.answers) & leads_to(database, question.agent, hit):
            return Outcome(question, place, hit.tier, took)
    return Outcome(question, None, None, took)


def leads_to(database: Database, agent: str, hit: RankedHit) -> set[str]:
    """The artifacts that a hit names: its own, for a fact all that state it."""
    if hit.tier != "fact":
        return {hit.path} if hit.path else set()
    return {
        path
        for (path,) in database.execute(
            f"select source_path from {SOURCES} where agent_id = ? and attribute_id = ?", (agent, hit.id)
        )
    }


def measure(vaults: Path) -> list[Outcome]:
    """All questions, put to the workspaces below a folder."""
    asked = questions()
    found: dict[Question, Outcome] = {}
    for vault in dict.fromkeys(question.vault for question in asked):
        with indexed(vaults / vault) as database:
            found.update({q: ask(database, q) for q in asked if q.vault == vault})
    return [found[question] for question in asked]


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as Markdown."""
    rows = [_row(outcome) for outcome in outcomes]
    good = sum(outcome.good for outcome in outcomes)
    share = 100 * good / len(outcomes)
    middle = sorted(outcome.milliseconds for outcome in outcomes)[len(outcomes) // 2]
    return "\n".join(
        [
            f"{good} of {len(outcomes)} within the first {FIRST} hits ({share:.1f} %; goal ≥ 90 %); "
            f"{middle:.0f} ms at the median.",
            "",
            "| question | asked of | about | place | tier | |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def _row(outcome: Outcome) -> str:
    asked = outcome.question
    cells = (
        asked.ask.replace("|", "\\|"),
        f"{asked.vault.removeprefix('signet-')}, {asked.agent}",
        asked.about,
        str(outcome.place or "–"),
        outcome.tier or "",
        "" if outcome.good else "**missed**",
    )
    return f"| {' | '.join(cells)} |"


def speed(place: str) -> list[float]:
    """How long recall takes for the agent `default` of an index, question by question, in milliseconds."""
    with closing(Database(place, readonly=True)) as database:
        return [_milliseconds(database, text) for text in _asked(database)]


def _asked(database: Database) -> list[str]:
    """Five words each of sentences all over an index."""
    chance = random.Random(7)
    of_agent = "from memory_artifacts where agent_id = 'default' and source_kind <> 'manifest'"
    share = ASKED / database.value(f"select count(*) {of_agent}")
    asked = []
    for (content,) in database.execute(f"select {text_of()} {of_agent}"):
        words = re.findall(r"[A-Za-z]{4,}", chance.choice(content.split(".")))
        if len(words) >= 5 and chance.random() < share:
            asked.append(" ".join(chance.sample(words, 5)))
    return asked


def _milliseconds(database: Database, text: str) -> float:
    """Processor time, the best of three: what else the machine does is no part of it."""
    took = []
    for _ in range(3):
        started = time.process_time()
        recall(database, text, agent_id="default")
        took.append(time.process_time() - started)
    return min(took) * 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("vaults", type=Path, nargs="?", help="the folder that holds the workspaces")
    asked.add_argument("--index", metavar="DATABASE", help="how long it takes in an index, as JSON")
    given = parser.parse_args(arguments)
    print(table(measure(given.vaults)) if given.index is None else json.dumps(speed(given.index)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
