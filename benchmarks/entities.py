"""How long the ledger of two hundred entities takes to be told again, and one edit of a section among them.

`python -m benchmarks.entities` makes 200 entities with 50 events each, over a year (seeded), and measures
the replay of all of them, the check of the chain, and edits of one section, each in a workspace that is opened for it.
Beside them stands what anyone would write first, measured in the same round: for the replay the same lines read as
JSON and hashed; for the edit the file read, changed and put in place durably, one durable line in a log and one row.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks import corpus
from benchmarks.ground import PROJECT, machine, percentile
from signet_sync.app.workspace import opened
from signet_sync.entities import operations, reports
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.document import EntityDocument, blank, render
from signet_sync.entities.documents.escaping import fit, fit_item
from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log.agent_log import EventLog, outcome
from signet_sync.entities.event_log.events import GENESIS, Event, LogEntry, Operation, encode
from signet_sync.entities.event_log.replay import fold
from signet_sync.entities.evidence import ENTROPY, ulid_at
from signet_sync.entities.repository import Entity, EntityRepository, FileContent, path_of
from signet_sync.entities.write_ahead import EditPlan, EventStamp, event_of
from signet_sync.formats.entity_paths import KINDS, EntityPlace, File, Kind, ledger_page, new_id, parse_path
from signet_sync.formats.timestamps import DAY, SECOND, iso, parse_instant
from signet_sync.settings.model import Settings
from signet_sync.sync.workspace import Workspace

AGENT = "default"
NOW = parse_instant(corpus.DEFAULT_END) or 0
YEAR = 365 * DAY
NARRATIVES, LISTS = {"user": "overview", "part": "role", "relationship": "dynamics"}, ("highlights", "open-questions")


class Made(NamedTuple):
    """What stands in a repo: entities by id and path of the profile, lines and bytes of its ledger."""

    paths: dict[str, str]
    events: int
    lines: int
    size: int


# ── the entities ──


def plant(place: Workspace, entities: int, events: int, seed: int) -> Made:
    """Writes entities as its operations would leave it: their lines, in the order of time, and their files."""
    chance = random.Random(seed)
    repo = EntityRepository(place, AGENT, NOW)
    told: list[tuple[int, list[LogEntry]]] = []
    files: dict[str, str] = {}
    for number in range(entities):
        for at_us, entries, path, text in _life(repo, number, events, chance):
            told.append((at_us, entries))
            files[path] = text
    told.sort(key=lambda one: one[0])
    sealed = chain.follow([entry for _, entries in told for entry in entries], GENESIS)
    pages: dict[str, list[str]] = {}
    for entry in sealed:
        pages.setdefault(ledger_page(AGENT, entry.at[:7]), []).append(f"{encode(entry)}\n")
    for path, text in [*files.items(), *((path, "".join(lines)) for path, lines in pages.items())]:
        file = Path(place.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    profiles = {found.id: path for path in files if (found := parse_path(path)) and found.file == "profile"}
    size = sum(len(line.encode()) for lines in pages.values() for line in lines)
    return Made(profiles, len(told), len(sealed), size)


def _life(
    repo: EntityRepository, number: int, events: int, chance: random.Random
) -> Iterator[tuple[int, list[LogEntry], str, str]]:
    """The events of one entity with their outcomes, and the file that each leaves."""
    kind = KINDS[number % 20 // 9]
    entity_id = new_id(kind, str(number))
    begun = NOW - YEAR + chance.randrange(DAY)
    title = f"{kind.capitalize()} {number}"
    documents: dict[File, EntityDocument] = {}
    for step in range(events):
        repo.now_us = begun + step * (YEAR - DAY) // events
        file: File = "notes" if step == 1 else "profile"
        at = EntityPlace(AGENT, kind, f"{kind}-{number}", entity_id, file)
        op: Operation = "create"
        section = None
        if step < 2:
            document = blank(
                kind, title=title, entity_id=entity_id, agent_id=AGENT, created_at=iso(repo.now_us), file=file
            )
        else:
            document, op, section = _edit(documents["profile"], kind, step, chance)
            document = edits.with_fields(document, {"updated_at": iso(repo.now_us)})
        known = documents.get(file)
        seen = FileContent(path_of(at), at, text=render(known) if known is not None else None)
        entity = Entity(entity_id, kind, at.slug, {file: seen}, {file: known} if known is not None else {})
        plan = EditPlan(op=op, file=file, section=section, after=document, stated=step < 2)
        event = event_of(repo, entity, plan, EventStamp(ulid=_ulid(repo.now_us, chance), actor="agent"))
        if step < 2:
            event = replace(event, payload={"whole": render(document), "slug": at.slug})
            event = replace(event, file_after=hashlib.sha256(render(document).encode()).hexdigest())
        ended = replace(outcome(event, "committed", repo.now_us), id=_ulid(repo.now_us, chance))
        documents[file] = document
        yield repo.now_us, [event, ended], path_of(at), render(document)


def _edit(
    document: EntityDocument, kind: Kind, step: int, chance: random.Random
) -> tuple[EntityDocument, Operation, str]:
    words = " ".join(chance.choices(["It", "guards", "the", "gate", "at", "night", "and", "worries", "a lot"], k=30))
    if step % 3:
        name = LISTS[step % 2]
        return edits.append_item(document, name, fit_item(f"{words} {step}.")), "append_item", name
    name = NARRATIVES[kind]
    return edits.replace(document, name, fit(f"{words}.\n\n{words} {step}.")[0]), "set", name


def _ulid(at_us: int, chance: random.Random) -> str:
    return ulid_at(at_us, chance.randbytes(ENTROPY))


# ── replay ──


def by_entity(entries: Iterable[LogEntry]) -> dict[str, list[LogEntry]]:
    """Groups entries by entity, in order; entries without an entity are left out."""
    owners: dict[str, str] = {}
    groups: dict[str, list[LogEntry]] = {}
    for entry in entries:
        owner = entry.entity_id if isinstance(entry, Event) else owners.get(entry.of)
        if owner is not None:
            owners[entry.id] = owner
            groups.setdefault(owner, []).append(entry)
    return groups


def retold(root: str, made: Made) -> None:
    """Tells every entity again from the ledger's pages, and compares both of its files."""
    for entity_id, entries in by_entity(EventLog(root, AGENT).entries()).items():
        for file, text in fold(entries).texts.items():
            place = parse_path(made.paths[entity_id])
            if place is None:
                raise ValueError(entity_id)
            path = path_of(place._replace(file=file))
            if Path(root, path).read_bytes().decode() != text:
                raise ValueError(path)


def chained(root: str) -> None:
    """Checks every line of the ledger, and that none is missing."""
    if chain.verify(EventLog(root, AGENT).lines(), known_last=None, agent_id=AGENT):
        raise ValueError("the chain is broken")


def lines_read(root: str) -> None:
    """The baseline: every line as JSON, and its hash."""
    for path in EventLog(root, AGENT).pages().values():
        for line in Path(root, path).read_bytes().splitlines():
            json.loads(line)
            hashlib.sha256(line).digest()


# ── one edit ──


def edited(root: str, entity_id: str, kind: str, number: int) -> None:
    """Sets a section, in a workspace that is opened for it."""
    with opened(root, Settings()) as place:
        text = f"It guards the gate since edit {number}."
        operations.set_section(place, AGENT, entity_id, NARRATIVES[kind], text, now_us=NOW + number * SECOND)


def written(ground: str, source: str, number: int) -> None:
    """The baseline: the file with other words, a line in a log, a row; each durable, nothing checked."""
    text = Path(source).read_text(encoding="utf-8").replace("guards", f"watched{number}")
    target, log = os.path.join(ground, "plain.md"), os.path.join(ground, "plain.jsonl")
    with open(f"{target}.new", "w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(f"{target}.new", target)
    folder = os.open(ground, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    with open(log, "a", encoding="utf-8") as handle:
        handle.write(json.dumps({"at": number, "text": text}) + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    with closing(sqlite3.connect(os.path.join(ground, "plain.sqlite3"))) as database, database:
        database.execute("create table if not exists files(path text primary key, sha256 text)")
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        database.execute("insert or replace into files values(?, ?)", (source, sha256))


# ── all of it ──


@contextmanager
def timed(into: list[tuple[float, float]]) -> Iterator[None]:
    """Appends how long it takes: milliseconds of a processor, and by the clock."""
    processor, clock = time.process_time(), time.perf_counter()
    yield
    into.append(((time.process_time() - processor) * 1000, (time.perf_counter() - clock) * 1000))


def row(name: str, taken: Sequence[tuple[float, float]]) -> str:
    """One row of the table."""
    processor, clock = ([one[place] for one in taken] for place in (0, 1))
    cells = [percentile(processor, 0.5), percentile(clock, 0.5), percentile(clock, 0.99)]
    return f"| {name} | {' | '.join(f'{cell:,.1f} ms' for cell in cells)} |"


def measure(ground: str, chosen: argparse.Namespace) -> Iterator[str]:
    """The lines of a report."""
    root = os.path.join(ground, "vault")
    os.makedirs(os.path.join(root, "memory"))
    with opened(root, Settings()) as place:
        made = plant(place, chosen.entities, chosen.events, chosen.seed)
    yield f"{chosen.entities:,} entities; {made.events:,} events in {made.lines:,} lines of {made.size / 1e6:.1f} MB"
    command = [sys.executable, "-m", "signet_sync", "--workspace", root, "reindex", "--json", "--now", iso(NOW)]
    subprocess.run(command, stdout=subprocess.DEVNULL, cwd=PROJECT, check=True)
    with opened(root, Settings()) as place:
        trouble = [*reports.verify(place, AGENT), *reports.drift(place, AGENT)]
    if trouble:
        raise ValueError(f"the repo is not as it was planted: {trouble[0]}")
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(chosen.rounds):
        with timed(taken["all entities told again (goal: ≤ 5 s)"]):
            retold(root, made)
        with timed(taken["the chain checked"]):
            chained(root)
        with timed(taken["baseline: lines read as JSON, and hashed"]):
            lines_read(root)
    ids = sorted(made.paths)
    for number in range(chosen.edits):
        entity_id = ids[number * 7 % len(ids)]
        kind = parse_path(made.paths[entity_id])
        with timed(taken["one section set (goal: ≤ 50 ms)"]):
            edited(root, entity_id, kind.kind if kind else "part", number)
        with timed(taken["baseline: file, line and row"]):
            written(ground, os.path.join(root, made.paths[entity_id]), number)
    yield "\n| | of a processor, p50 | by the clock, p50 | by the clock, p99 |\n|---|---|---|---|"
    yield from (row(name, some) for name, some in taken.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entities", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--entities", metavar="N", type=int, default=200)
    parser.add_argument("--events", metavar="N", type=int, default=50, help="of each entity (default 50)")
    parser.add_argument("--edits", metavar="N", type=int, default=100, help="measured edits (default 100)")
    parser.add_argument("--rounds", metavar="N", type=int, default=5, help="measured replays (default 5)")
    parser.add_argument("--seed", type=int, default=6)
    chosen = parser.parse_args(argv)
    print(f"{machine()}; {chosen.edits} edits, {chosen.rounds} replays; ", end="")
    with tempfile.TemporaryDirectory(prefix="signet-entities-") as ground:
        for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "no-settings.toml")):
            os.environ[name] = os.path.join(ground, place)
        for line in measure(ground, chosen):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
