"""How long the event log of two hundred entities takes to be told again, and one edit of a section among them.

`python -m benchmarks.entities` makes 200 entities with 50 events each over a year (seeded), and measures the replay of
all of them, the check of the chain, and edits of one section, each in a workspace that is opened for it. Beside the
first two stands what they cannot be below: the same lines read as JSON and hashed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.ground import machine, percentile
from signet_sync.app.workspace import opened
from signet_sync.entities import document as documents
from signet_sync.entities import operations, replay
from signet_sync.entities.agent_text import fit, fit_item
from signet_sync.entities.document import EntityDocument, blank, render
from signet_sync.entities.events import GENESIS, Event, encode, seal, ulid_at, verify
from signet_sync.entities.repository import EventLog
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import EntityPlace, ledger_page, new_id
from signet_sync.formats.timestamps import DAY, iso, parse_instant
from signet_sync.settings.model import Settings

AGENT = "default"
NOW = parse_instant("2026-11-20T10:00:00.000Z") or 0
WORDS = "guards opens closes the gate lamp keeper draft every morning before anyone asks twice".split()
SECTIONS = ("identity", "role", "concerns", "needs", "highlights", "open-questions")


def plant(root: Path, entities: int, events: int, chance: random.Random) -> list[EntityPlace]:
    """Writes entities and their events as operations would have, at random instants of a year."""
    told, places = list[Event](), list[EntityPlace]()
    for number in range(entities):
        place = EntityPlace(AGENT, "part", f"part-{number}", new_id("part", AGENT, str(number)))
        at = NOW - 365 * DAY + number
        given: dict[str, Any] = {
            "title": f"Part {number}",
            "entity_id": place.id,
            "agent_id": AGENT,
            "created_at": iso(at),
        }
        for file in ("profile", "notes"):
            document = blank("part", file=file, **given)
            before: EntityDocument | None = None
            for step in range(events if file == "profile" else 1):
                after = document
                section, words = chance.choice(SECTIONS), " ".join(chance.choices(WORDS, k=12)).capitalize() + "."
                if step and section in SECTIONS[:4]:
                    after = documents.replace(document, section, fit(words)[0])
                elif step:
                    after = documents.append_item(document, section, fit_item(words))
                at += chance.randint(1, 300 * DAY // events)
                after = documents.with_fields(after, {"updated_at": iso(at)})
                text = replay.change(before, after) | ({} if step else {"slug": place.slug})
                found = None if before is None else text_sha256(render(before))
                told.append(
                    Event(
                        id=ulid_at(at, chance.randbytes(10)), at=iso(at), agent_id=AGENT, actor="agent",
                        op="set" if step else "create", entity_id=place.id, file=file, found=found,
                        left=text_sha256(render(after)), text=text,
                    )
                )  # fmt: skip
                document = before = after
            path = root / place._replace(file=file).path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(document))
        places.append(place)
    prev, pages = GENESIS, defaultdict[str, list[str]](list)
    for event in sorted(told, key=lambda one: one.id):
        sealed = seal(event, prev)
        prev = sealed.hash
        pages[event.at[:7]].append(encode(sealed))
    for month, lines in pages.items():
        path = root / ledger_page(AGENT, month)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
    return places


@contextmanager
def timed(into: list[tuple[float, float]]) -> Iterator[None]:
    """Appends how long it takes: milliseconds of a processor, and by the clock."""
    processor, clock = time.process_time(), time.perf_counter()
    yield
    into.append(((time.process_time() - processor) * 1000, (time.perf_counter() - clock) * 1000))


def measure(root: Path, chosen: argparse.Namespace) -> Iterator[str]:
    """The lines of a report."""
    (root / "memory").mkdir(parents=True)
    places = plant(root, chosen.entities, chosen.events, random.Random(chosen.seed))
    raw = [path.read_bytes() for path in sorted((root / "entities/ledger").iterdir())]
    yield f"{len(places):,} entities; {sum(map(len, raw)) / 1e6:.1f} MB of events"
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(chosen.rounds):
        with timed(taken["all entities told again (goal: ≤ 5 s)"]):
            log = EventLog(str(root), AGENT)
            for place in places:
                state = replay.fold(log.of(place.id)).files["profile"]
                if state.text != (root / place.path).read_text():
                    raise ValueError(f"{place.path} is not as it was planted")
        with timed(taken["the chain checked"]):
            if found := verify(EventLog(str(root), AGENT).lines(), known_last=None, agent_id=AGENT):
                raise ValueError(f"the log is not as it was planted: {found[0]}")
        with timed(taken["baseline: lines read as JSON, and hashed"]):
            for page in raw:
                for line in page.splitlines():
                    json.loads(line)
                    hashlib.sha256(line).hexdigest()
    for number in range(chosen.edits):
        with (
            timed(taken["one section set (goal: ≤ 50 ms)"]),
            opened(str(root), Settings()) as work,
        ):
            one = places[number * 7 % len(places)].id
            operations.set_section(work, AGENT, one, "role", f"It is number {number}.", now_us=NOW + number)
    yield "\n| | of a processor, p50 | by the clock, p50 | by the clock, p99 |\n|---|---|---|---|"
    for name, some in taken.items():
        processor, clock = ([one[at] for one in some] for at in (0, 1))
        cells = [percentile(processor, 0.5), percentile(clock, 0.5), percentile(clock, 0.99)]
        yield f"| {name} | {' | '.join(f'{cell:,.1f} ms' for cell in cells)} |"


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
        for line in measure(Path(ground) / "vault", chosen):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
