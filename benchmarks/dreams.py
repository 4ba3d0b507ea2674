"""How long `recall` and the dream sweep take among ten thousand memories with a hundred thousand hits.

`python -m benchmarks.dreams` fills a vault (seeded), puts mixed questions to it, and sweeps it: when nothing has risen
before, when 2,000 memories have, and after a year of a full sweep a night. Beside each stands what anyone would write
first, measured in the same round: for recall the same words put to the same full text in one statement, ranked by
bm25; for the sweep all events read and counted in Python.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from benchmarks import corpus
from benchmarks.flow import REST, Stopwatch
from benchmarks.ground import PROJECT, machine, percentile
from benchmarks.remembered import Question, RecallEvent, Said, hits, memories, questions
from signet_sync.app.workspace import opened
from signet_sync.formats.timestamps import DAY, SECOND, iso, parse_instant
from signet_sync.memories import operations as memories_operations
from signet_sync.memories import promotion
from signet_sync.memories.promotion_score import Promotion, Totals, sweep_id
from signet_sync.memories.store import memories as memories_store
from signet_sync.memories.store import promotions
from signet_sync.pages import dreams_page, stage
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.search import Within
from signet_sync.settings.model import Settings
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace
from signet_sync.text.memory import memory_id
from signet_sync.text.tags import derive

AGENT = "default"
NOW = parse_instant(corpus.DEFAULT_END) or 0
DAYS = 60  # in which the hits were


class Times(NamedTuple):
    """Milliseconds of one run: of a processor, and by the clock."""

    processor: float
    clock: float


class Asked(NamedTuple):
    """One question of a sort: the time of recall, of noting its hits, and of the baseline."""

    sort: str
    ours: Times
    noting: Times
    plain: Times


@contextmanager
def timed(into: list[Times]) -> Iterator[None]:
    """Appends how long it takes."""
    processor, clock = time.process_time(), time.perf_counter()
    yield
    into.append(Times((time.process_time() - processor) * 1000, (time.perf_counter() - clock) * 1000))


# ── the vault ──


def fill(place: Workspace, said: Sequence[Said], events_in_all: int) -> tuple[float, list[str]]:
    """Writes memories and their hits; gives milliseconds for the concept tags of one, and the ids."""
    tags, seconds = [], time.process_time()
    for one in said:
        tags.append(derive(one.content))
    seconds = time.process_time() - seconds
    ids = [memory_id(AGENT, one.kind, one.content) for one in said]
    database = place.database
    for start in range(0, len(said), 500):
        with database.transaction():
            for number in range(start, min(start + 500, len(said))):
                at = iso(NOW - (len(said) - number) * 300 * SECOND)
                memory = memories_store.Memory(
                    AGENT, ids[number], said[number].kind, said[number].content, (), False, at
                )
                memories_store.store(database, memory._replace(concepts=tags[number]), memories_store.OWN_WORD)
    with database.transaction():
        database.executemany(
            "insert into recall_events(agent_id, memory_id, query, score, at_us) values(?, ?, ?, ?, ?)",
            [(AGENT, ids[one.memory], *one[1:]) for one in hits(len(said), events_in_all, NOW, DAYS)],
        )
    return seconds * 1000 / len(said), ids


def rise(place: Workspace, ids: Sequence[str], sweeps: int, each: int) -> None:
    """Puts so many sweeps before the first hit into the ledger, each with so many promotions of what has not risen."""
    database = place.database
    risen = {row[0] for row in database.execute("select memory_id from memory_promotions where agent_id = ?", (AGENT,))}
    waiting = iter([one for one in ids if one not in risen])
    begun = NOW - (400 + sweeps) * DAY
    for number in range(sweeps):
        at_us = begun + number * DAY
        chosen = [one for _, one in zip(range(each), waiting, strict=False)]
        promoted = [Promotion(one, 0.5, 5, 0.9, 0.5, 0.5, 0.6, 3, 3, at_us - DAY) for one in chosen]
        with database.transaction():
            promotions.store(database, AGENT, (sweep_id(at_us), at_us, 900, len(promoted), 0), promoted)


# ── recall ──


def ask(path: str, asked: Sequence[Question], rounds: int) -> Iterator[Asked]:
    """Puts every question, in every round."""
    with closing(Database(path, readonly=True)) as database, closing(Database(path)) as noting:
        database.execute(
            "create virtual table temp.plain using fts5(name unindexed, text, tokenize='porter unicode61')"
        )
        database.execute("insert into temp.plain select name, text from texts where artifact is null")
        for turn in range(rounds + 1):
            for question in asked:
                taken: list[Times] = []
                with timed(taken):
                    found = recall_operations.recall(database, question.text, Within(AGENT), limit=10)
                with timed(taken):
                    recall_operations.record(noting, AGENT, question.text, found, NOW)
                with timed(taken):
                    straight(database, question.text)
                if turn:  # the first round fills caches
                    yield Asked(question.sort, *taken)
        with noting.transaction():
            noting.execute("delete from recall_events where at_us = ?", (NOW,))


def straight(database: Database, text: str) -> list[tuple[str, ...]]:
    """The baseline: lines that hold any of the words, by bm25."""
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
    return list(
        database.execute(
            "select name, text from temp.plain where plain match ? order by rank limit 10",
            (words,),
        )
    )


def recall_table(taken: Sequence[Asked]) -> Iterator[str]:
    """One row for each sort of question, and one for all."""
    yield "| question | p50 | p99 | p99 by the clock | plain full text p50 | p99 |"
    yield "|---|---|---|---|---|---|"
    for sort in (*dict.fromkeys(one.sort for one in taken), "all"):
        some = [one for one in taken if sort in (one.sort, "all")]
        ours, clock = [one.ours.processor for one in some], [one.ours.clock for one in some]
        theirs = [one.plain.processor for one in some]
        cells = [percentile(ours, 0.5), percentile(ours, 0.99), percentile(clock, 0.99)]
        cells += [percentile(theirs, 0.5), percentile(theirs, 0.99)]
        yield f"| {sort} | {' | '.join(f'{cell:.1f} ms' for cell in cells)} |"
    noted = [one.noting.processor for one in taken]
    yield f"| noting the hits | {percentile(noted, 0.5):.1f} ms | {percentile(noted, 0.99):.1f} ms | | | |"


# ── the sweep ──


def stopwatch() -> tuple[Stopwatch, list[str]]:
    """A watch on the steps of a sweep and of `remember`, and their names."""
    watched = [
        (promotion, "tag_memories", "concept tags of older memories"),
        (promotion, "_weigh", "counting and choosing"),
        (promotions, "store", "ledger"),
        (stage, "compose_page", "MEMORY.md, its text"),
        (dreams_page, "update", "DREAMS.md"),
        (stage, "_write", "MEMORY.md, written"),
        (native_backup, "fingerprint", "backup: is it due?"),
        (native_backup, "write", "backup: written"),
    ]
    watch = Stopwatch()
    for place, name, step in watched:
        watch.watch(place, name, step)
    return watch, [*(step for _, _, step in watched), REST]


def swept(root: str, watch: Stopwatch, settings: Settings, runs: int, after: int) -> Iterator[dict[str, float]]:
    """Milliseconds by step, `whole` and `processor` of some sweeps, `after` hours behind the last hit."""
    for number in range(runs):
        with opened(root, settings) as place:
            watch.seconds.clear()
            taken: list[Times] = []
            with timed(taken):
                promotion.dream(place, AGENT, NOW + (after + number) * 3600 * SECOND)
        yield _steps(watch, taken[0])


def _steps(watch: Stopwatch, took: Times) -> dict[str, float]:
    steps = {step: seconds * 1000 for step, seconds in watch.seconds.items()}
    return {**steps, REST: took.clock - sum(steps.values()), "whole": took.clock, "processor": took.processor}


def told(root: str, watch: Stopwatch, settings: Settings, runs: int) -> Iterator[dict[str, float]]:
    """The same for remembering one more."""
    for number in range(runs):
        with opened(root, settings) as place:
            watch.seconds.clear()
            taken: list[Times] = []
            text = f"The lease of shard {number} is strict."
            given: dict[str, Any] = {
                "kind": "note",
                "tags": (),
                "private": False,
                "session": None,
                "now_us": NOW + number,
            }
            with timed(taken):
                memories_operations.remember(place, AGENT, text, **given)
        yield _steps(watch, taken[0])


def counted(database: Database) -> None:
    """The baseline: every event, counted in Python."""
    found = defaultdict(list)
    for one, *event in database.execute(
        "select memory_id, query, score, at_us from recall_events where agent_id = ?", (AGENT,)
    ):
        found[one].append(RecallEvent(*event))
    for some in found.values():
        days = {event.at_us // DAY for event in some}
        last_us = max(event.at_us for event in some)
        Totals(len(some), sum(event.score for event in some), last_us, len({event.query for event in some}), len(days))


def sweep_table(columns: dict[str, list[dict[str, float]]], names: Sequence[str]) -> Iterator[str]:
    """Medians, a row a step and a column a state of the ledger."""
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for name in (*names, "whole", "processor"):
        cells = [statistics.median(run.get(name, 0.0) for run in runs) for runs in columns.values()]
        yield f"| {_LABELS.get(name, name)} | {' | '.join(f'{cell:.0f} ms' for cell in cells)} |"


_LABELS = {"whole": "all of it, by the clock", "processor": "· of a processor"}


# ── all of it ──


def measure(ground: str, sessions: int, chosen: argparse.Namespace) -> Iterator[str]:
    """The lines of a report on one vault."""
    root, settings = os.path.join(ground, "vault"), Settings()
    said = memories(chosen.memories)
    if sessions:
        corpus.write_corpus(root, sessions, agents=1)
    os.makedirs(os.path.join(root, "memory"), exist_ok=True)
    reindex = [sys.executable, "-m", "signet_sync", "--workspace", root, "reindex", "--json", "--now", iso(NOW)]
    subprocess.run(reindex, stdout=subprocess.DEVNULL, cwd=PROJECT, check=True)
    with opened(root, settings) as place:
        tagging, ids = fill(place, said, chosen.events)
        path = place.database.path
    yield f"### {chosen.memories:,} memories, {chosen.events:,} hits, {sessions * 3:,} artifacts\n"
    taken = list(ask(path, questions(said, chosen.questions), chosen.rounds))
    yield from recall_table(taken)
    yield ""
    watch, names = stopwatch()
    columns = {"nothing risen before": list(swept(root, watch, settings, chosen.rounds, 0))}
    for heading, sweeps, each, after in (("2,000 risen", 100, 20, 24), ("a year of full sweeps", 365, 20, 48)):
        with opened(root, settings) as place:
            rise(place, ids, sweeps, each)
        columns[heading] = list(swept(root, watch, settings, chosen.rounds, after))
    columns["`remember`, a year on"] = list(told(root, watch, settings, chosen.rounds))
    yield from sweep_table(columns, names)
    with closing(Database(path, readonly=True)) as database:
        plain: list[Times] = []
        with timed(plain):
            counted(database)
    yield f"\nBaseline of counting, every hit read by Python: {plain[0].processor:.0f} ms of a processor."
    yield f"Concept tags of one memory: {tagging:.2f} ms.\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints two tables a vault."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dreams", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--memories", metavar="N", type=int, default=10_000)
    parser.add_argument("--events", metavar="N", type=int, default=100_000, help="hits of recall that are on record")
    parser.add_argument("--sessions", metavar="N", type=int, nargs="+", default=[0, 500], help="beside the memories")
    parser.add_argument("--questions", metavar="N", type=int, default=560)
    parser.add_argument("--rounds", metavar="N", type=int, default=3)
    chosen = parser.parse_args(argv)
    print(f"{machine()}; {chosen.questions} questions, {chosen.rounds} rounds\n")
    for sessions in chosen.sessions:
        with tempfile.TemporaryDirectory(prefix="signet-dreams-") as ground:
            for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "no-settings.toml")):
                os.environ[name] = os.path.join(ground, place)
            for line in measure(ground, sessions, chosen):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
