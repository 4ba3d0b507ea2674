"""Machines that share a vault come to rest on the same bytes, whatever was done where and when; nothing is lost.

A walk is drawn from a seed: people and agents work on any machine, processes are killed, databases go, a service
carries files late and in any order. Every so often it is quiet: then all must agree soon, and stay so.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import crash_runner
import hand_edits
import pytest
from synced_machines import MINUTE, Machine, Service, conflict_copies

from benchmarks.index_rows import canonical_dump
from signet_sync.entities import operations, queries
from signet_sync.entities import store as entities_store
from signet_sync.entities.repository import EntityRepository
from signet_sync.errors import UsageError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import iso
from signet_sync.integrity import operations as integrity_operations
from signet_sync.memories import operations as memories_operations
from signet_sync.pages.stage import compose_page
from signet_sync.privacy import remove
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import compaction_input, session_input
from signet_sync.sync.store import violations

ME = "default"
ROUNDS = 5  # of passes and syncs until nothing moves
MORE = 2  # rounds after that in which no byte may move
SAID = "# Lantern {word}\n\nUser: what of src/{word}.py?\n\n## Decisions\n\n- src/{word}.py keeps its bound.\n"
HEADING = b"# Working Memory\n"
PARTS = ("Jo", "Sam", "The Critic")


class Walk:
    """Machines, a service between them, and what must be true of them in the end."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        count: int = 2,
        style: str = "syncthing",
        hidden: bool = False,
        alike: bool = True,
    ) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.alike = alike
        self.machines = [
            Machine(folder, name, self.random.randint(-5, 5) * MINUTE) for name in ("one", "two", "three")[:count]
        ]
        self.service = Service(self.random, style, hidden, keeps_mtime=self.random.random() < 0.7)
        self.off: dict[str, int] = {}
        self.count = 0
        self.words: set[str] = set()  # of people: they stand somewhere for ever
        self.said: dict[str, set[str]] = {}  # by session: gone when it is removed
        self.gone: set[str] = set()
        self.bytes: dict[str, str] = {}  # of each artifact that nobody changed since the last rest, its digest
        self.figures: Counter[str] = Counter()
        self.log = ["by hand:"]

    def close(self) -> None:
        for machine in self.machines:
            machine.close()

    # ── what happens ──

    def run(self, steps: int, every: int) -> None:
        for number in range(1, steps + 1):
            self.step()
            if number % every == 0 or number == steps:
                self.rest()

    def step(self) -> None:
        machine = self.random.choice(self.machines)
        name = self.random.choices(list(STEPS), [weight for weight, _ in STEPS.values()])[0]
        for each in self.machines:
            each.now_us += self.random.randint(1, 40) * MINUTE
        self.log.append(f"{machine.name}: {name}")
        with suppress(UsageError):
            STEPS[name][1](self, machine)
        for each in self.machines:
            if self.off.get(each.name, 0) > 0:
                self.off[each.name] -= 1
            elif self.random.random() < 0.5:
                self.carry(each, self.random.choice((0.3, 0.7, 1.0)))
            if self.random.random() < 0.3:
                each.passes()

    def carry(self, machine: Machine, share: float) -> None:
        arrived = self.service.sync(machine, share)
        if arrived and self.random.random() < 0.6:
            machine.passes(frozenset(arrived))

    def word(self) -> str:
        self.count += 1
        self.log[-1] += f" word{self.count:05}x"
        return f"word{self.count:05}x"

    # ── rest ──

    def rest(self) -> None:
        """Nobody does anything any more: soon no pass and no sync finds anything to do, and all is as it should be."""
        self.off.clear()
        self.settle()
        for _ in range(MORE):
            moved = self.round()
            assert not moved, self.story("bytes move again", moved)
        self.agree()

    def settle(self) -> None:
        """Passes and syncs until nothing moves."""
        moves: list[list[str]] = []
        while len(moves) <= ROUNDS and (moved := self.round()):
            moves.append(moved)
        rounds = len(moves)
        assert rounds <= ROUNDS, self.story("they do not come to rest", moves[-1])
        self.figures["rounds"] = max(self.figures["rounds"], rounds)

    def round(self) -> list[str]:
        """One of everybody's syncs and passes; what moved in it."""
        before = self.states()
        for machine in self.random.sample(self.machines, len(self.machines)):
            self.service.sync(machine)
            machine.passes()
        for machine in self.machines:
            self.service.sync(machine)
        after = self.states()
        return sorted(
            {
                path
                for one, two in zip(before, after, strict=True)
                for path in one.keys() | two.keys()
                if one.get(path) != two.get(path)
            }
        )

    def states(self) -> list[dict[str, bytes]]:
        return [machine.tree(hidden=self.service.hidden) for machine in self.machines]

    def differences(self) -> list[str]:
        first, *others = self.states()
        return sorted({p for other in others for p in first.keys() | other.keys() if first.get(p) != other.get(p)})

    def agree(self) -> None:
        first = self.machines[0].tree()
        assert not self.differences(), self.story("the copies differ", self.differences())
        for path in self.artifacts(self.machines[0], "summary", "transcript", "compaction"):
            digest = sha256(first[path]).hexdigest()
            assert self.bytes.setdefault(path, digest) == digest, self.story("an artifact was altered", [path])
        everything = b"\n".join(first.values()).decode("utf-8", "replace")
        lost = sorted(word for word in self.words if word not in everything)
        assert not lost, self.story("words are lost", lost)
        for machine in self.machines:
            state = machine.hold().decode("utf-8", "replace")
            back = sorted(word for word in self.gone if word in state or word in everything)
            where = [p for p, raw in first.items() if any(word.encode() in raw for word in back)]
            assert not back, self.story(f"what was removed stands on {machine.name}", [*back, *where])
            indexed = {path for (path,) in machine.work.database.execute("select source_path from memory_artifacts")}
            assert not indexed & set(conflict_copies(first))
            self.is_as_rebuilt(machine)
            self.garden_is_sound(machine)
            kept = [text for (text,) in machine.work.database.execute("select content from memories")]
            forgotten = sorted(word for word in machine.remembers if not any(word in text for text in kept))
            assert not forgotten, self.story(f"{machine.name} forgot", forgotten)
        self.pages_are_equal()
        for session, words in self.said.items():
            missing = [word for word in words if word not in everything]
            assert not missing, self.story(f"session {session} lost", missing)
        self.figures["conflict copies"] = self.service.copies

    def pages_are_equal(self) -> None:
        """At one instant equal rows make equal pages; seals of their own differ where a violation is open."""
        if not self.alike or any(
            machine.does(lambda work, now: violations.list_open(work.database)) for machine in self.machines
        ):
            return
        now = self.machines[0].now_us
        made = {machine.does(lambda work, _: compose_page(work, ME, now))[0].text for machine in self.machines}
        assert len(made) == 1, self.story("equal rows make two pages", sorted(made))

    def garden_is_sound(self, machine: Machine) -> None:
        """Every file is what its events tell, and the ledger is whole, or a person is told."""
        damage = machine.does(lambda work, now: queries.verify_log(EntityRepository(work, ME, now)))
        drift = [(one.path, one.code) for one in entities_store.drift(machine.work.database, ME)]
        assert not damage, self.story(f"{machine.name}: ledger", [str(one) for one in damage])
        assert not drift, self.story(f"{machine.name}: drift", [str(one) for one in drift])

    def is_as_rebuilt(self, machine: Machine) -> None:
        before = canonical_dump(machine.work.database)
        machine.passes(rebuild=True, project=False)
        after = canonical_dump(machine.work.database)
        other = [*(row for row in before if row not in after), *(row for row in after if row not in before)]
        assert not other, self.story(f"{machine.name}: not as its rebuild", [str(row) for row in other])

    def story(self, what: str, paths: list[str]) -> str:
        told = "\n".join(self.log[-60:])
        trees = [machine.tree(hidden=True) for machine in self.machines]
        shown = "\n".join(
            f"--- {path}\n"
            + "\n".join((tree.get(path) or b"(none)").decode("utf-8", "replace")[-3000:] for tree in trees)
            for path in paths[:3]
        )
        heard = [sorted(machine.events) for machine in self.machines]
        return f"seed {self.seed}: {what}: {paths}\n{told}\n{heard}\n{shown}"

    # ── who is there ──

    def artifacts(self, machine: Machine, *kinds: str) -> list[str]:
        found = []
        for path in sorted((machine.root / "memory").glob("*.md")):
            name = artifact_name(path.name)
            if name is not None and name.kind in kinds:
                found.append(f"memory/{path.name}")
        return found


# ── steps ──


def ends(walk: Walk, machine: Machine) -> None:
    ended(walk, machine, f"session-{walk.count + 1:05}")


def ended(walk: Walk, machine: Machine, session: str, key: str | None = None) -> None:
    word = walk.word()
    document = {
        "session_id": session,
        "project": "/home/jo/lantern",
        "session_key": key,
        "captured_at": iso(machine.now_us),
        "transcript": SAID.format(word=word),
        "transcript_is": "tail",
    }
    machine.does(lambda work, now: sessions_operations.write(work, session_input(document, now_us=now), now_us=now))
    walk.said.setdefault(session, set()).add(word)


def is_killed(walk: Walk, machine: Machine) -> None:
    """Something is done by a process that is killed at one of its durable steps; whoever asked for it asks again."""
    act, step = walk.random.choice(OURS), walk.random.randint(1, 90)
    machine.work.close()

    def dying() -> int:
        os.chdir(machine.home)
        machine.restart()
        crash_runner.arm(step)
        with suppress(UsageError):
            act(walk, machine)
        machine.close()
        return 0

    code = crash_runner.forked(dying)
    assert code in (0, crash_runner.KILLED), walk.story(f"it ended with {code}", [])
    walk.figures["killed"] += code != 0
    machine.restart()
    act(walk, machine)


def loses_its_index(walk: Walk, machine: Machine) -> None:
    """The database goes; what is in no file comes back from its backup."""
    machine.work.close()
    for path in (machine.home / "state").glob("*/signet-sync.db*"):
        path.unlink()
    machine.restart()
    machine.passes()


def ends_again(walk: Walk, machine: Machine) -> None:
    if walk.said:
        ended(walk, machine, walk.random.choice(sorted(walk.said)))


def ends_everywhere(walk: Walk, machine: Machine) -> None:
    """One session, ended on every machine before any of them has heard of the others."""
    session = f"session-{walk.count + 1:05}"
    for each in walk.machines:
        ended(walk, each, session)


def compacts(walk: Walk, machine: Machine) -> None:
    if not walk.said:
        return
    session, word = walk.random.choice(sorted(walk.said)), walk.word()
    document = {
        "session_id": session,
        "captured_at": iso(machine.now_us),
        "compaction": f"# Kept\n\n- src/{word}.py stays.\n",
    }
    machine.does(lambda work, now: sessions_operations.write(work, compaction_input(document, now_us=now), now_us=now))
    walk.said[session].add(word)


def types(change: Callable[[bytes, bytes], bytes]) -> Callable[[Walk, Machine], object]:
    """Somebody changes the page."""
    return lambda walk, machine: typed(walk, machine, "MEMORY.md", change)


def typed(walk: Walk, machine: Machine, path: str, change: Callable[[bytes, bytes], bytes]) -> bool:
    raw = machine.read(path)
    if raw is None:
        return False
    word = walk.word()
    changed = change(raw, f"A note of mine, {word}.".encode())
    if changed == raw:
        return False
    machine.save(path, changed)
    if word.encode() in changed:
        walk.words.add(word)
    return True


def types_in_manifest(walk: Walk, machine: Machine) -> None:
    manifests = walk.artifacts(machine, "manifest")
    if manifests:
        path = walk.random.choice(manifests)
        raw = machine.read(path) or b""
        session = next((s for s in walk.said if f'session_id: "{s}"'.encode() in raw), None)
        word = walk.word()
        if session is not None:
            machine.save(path, raw + f"My note: {word}\n".encode())
            walk.said[session].add(word)


def creates(walk: Walk, machine: Machine) -> None:
    name = walk.random.choice(PARTS)
    machine.does(lambda work, now: operations.create(work, ME, "part", name, now_us=now))


def appends(walk: Walk, machine: Machine) -> None:
    name, word = walk.random.choice(PARTS), walk.word()
    section = walk.random.choice(("role", "needs", "open-questions", "notes/focus"))
    machine.does(
        lambda work, now: operations.append(work, ME, name, section, f"Says {word}.", actor="person", now_us=now)
    )
    walk.words.add(word)


def edits_entity(walk: Walk, machine: Machine) -> None:
    profiles = sorted(machine.root.glob("entities/parts/*/profile.md"))
    if profiles:
        path = str(walk.random.choice(profiles).relative_to(machine.root))
        anchor = b"<!-- section identity -->\n"
        typed(walk, machine, path, lambda raw, said: raw.replace(anchor, anchor + b"\n" + said + b"\n", 1))


def remembers(walk: Walk, machine: Machine) -> None:
    if walk.alike:
        return
    word = walk.word()
    machine.remembers.add(word)
    machine.does(
        lambda work, now: memories_operations.remember(
            work, ME, f"Jo likes {word} in src/queue.py.", kind="fact", tags=(), private=False, session=None, now_us=now
        )
    )


def removes(walk: Walk, machine: Machine) -> None:
    if walk.said:
        removed(walk, machine, walk.random.choice(sorted(walk.said)))


def removed(walk: Walk, machine: Machine, session: str) -> None:
    try:
        for planned in machine.does(lambda work, now: remove.plan(work, ME, session)):
            machine.does(lambda work, now, planned=planned: remove.remove(work, planned, "asked for", now))
    except UsageError:
        if not list(machine.root.glob(f"memory/tombstones/*{token_of(ME, session)}*")):
            return  # nobody here has heard of it
    walk.gone |= walk.said.pop(session, set())
    walk.figures["removed"] += 1


def violates(walk: Walk, machine: Machine) -> None:
    files = walk.artifacts(machine, "summary", "transcript")
    if files:
        path = walk.random.choice(files)
        machine.save(path, (machine.read(path) or b"") + b"\nDamage.\n")
        walk.bytes.pop(path, None)


def saves_again(walk: Walk, machine: Machine) -> None:
    """No value of an artifact changes, but its bytes do."""
    files = walk.artifacts(machine, "summary", "transcript")
    if files:
        path, resave = walk.random.choice(files), walk.random.choice(list(hand_edits.RESAVINGS.values()))
        machine.save(path, resave(machine.read(path) or b""))
        walk.bytes.pop(path, None)


def restores(walk: Walk, machine: Machine) -> None:
    machine.passes()
    for one in machine.does(lambda work, now: violations.list_open(work.database)):
        with suppress(UsageError):
            machine.does(lambda work, _now, path=one.path: integrity_operations.restore_one(work, path))
            walk.bytes.pop(one.path, None)


def accepts(walk: Walk, machine: Machine) -> None:
    machine.passes()
    for one in machine.does(lambda work, now: violations.list_open(work.database))[:1]:
        with suppress(UsageError):
            machine.does(lambda work, now, path=one.path: integrity_operations.accept_one(work, path, "mine", now))
            machine.looks_again(one.path)
            walk.bytes.pop(one.path, None)


def renames(walk: Walk, machine: Machine) -> None:
    """A file gets another name, and its own one back at once or later."""
    files = walk.artifacts(machine, "summary", "transcript", "manifest")
    if files:
        path = walk.random.choice(files)
        away = path.replace(".md", ".old.md")
        raw = machine.read(path)
        machine.save(away, raw)
        machine.save(path, None)
        if walk.random.random() < 0.5:
            machine.passes()
        machine.save(path, raw)
        machine.save(away, None)


def copies(walk: Walk, machine: Machine) -> None:
    files = walk.artifacts(machine, "summary", "manifest")
    if files:
        path = walk.random.choice(files)
        machine.save(path.replace(".md", f" {walk.random.randint(2, 9)}.md"), machine.read(path))


def clears_copies(walk: Walk, machine: Machine) -> None:
    """A person who compares, and deletes what is equal."""
    for path in conflict_copies(machine.tree()):
        original = f"{path.rpartition(' ')[0]}.md"
        if machine.read(path) == machine.read(original):
            machine.save(path, None)


def hands_out_old(walk: Walk, machine: Machine) -> None:
    removed = [
        path
        for path, versions in walk.service.files.items()
        if versions[-1].raw is None and path.startswith("memory/2")
    ]
    for path in removed:
        walk.figures["brought back"] += walk.service.brings_back(path)


# What a process of ours does; done twice it is done once, or as a person would do it twice.
OURS = (
    ends, ends_again, compacts, creates, appends, remembers, removes, restores, accepts,
    lambda walk, machine: machine.passes(), lambda walk, machine: machine.passes(rebuild=True),
)  # fmt: skip
STEPS: dict[str, tuple[int, Callable[[Walk, Machine], object]]] = {
    "a session ends": (12, ends),
    "a session ends again": (6, ends_again),
    "a session ends everywhere": (2, ends_everywhere),
    "a compaction": (4, compacts),
    "types above the block": (4, types(lambda raw, said: said + b"\n\n" + raw)),
    "types below the block": (4, types(lambda raw, said: raw + b"\n" + said + b"\n")),
    "types inside the block": (1, types(lambda raw, said: raw.replace(HEADING, HEADING + said + b"\n", 1))),
    "types in a manifest": (3, types_in_manifest),
    "makes an entity": (2, creates),
    "adds to an entity": (4, appends),
    "edits an entity by hand": (4, edits_entity),
    "remembers": (2, remembers),
    "removes": (4, removes),
    "changes an artifact": (2, violates),
    "restores": (3, restores),
    "accepts": (1, accepts),
    "renames and back": (3, renames),
    "copies a file": (2, copies),
    "clears copies": (2, clears_copies),
    "goes off": (2, lambda walk, machine: walk.off.update({machine.name: walk.random.randint(5, 40)})),
    "hands out old files": (3, hands_out_old),
    "saves again": (3, saves_again),
    "is killed": (8, is_killed),
    "loses its index": (1, loses_its_index),
    "makes the index anew": (1, lambda walk, machine: machine.passes(rebuild=True)),
    "restarts": (2, lambda walk, machine: machine.restart()),
}


def walked(folder: Path, seed: int, steps: int, every: int, **given: Any) -> Walk:
    """A walk from its seed to its end."""
    walk = Walk(folder, seed, **given)
    try:
        walk.run(steps, every)
    finally:
        walk.close()
    return walk


def test_two_machines_come_to_rest(tmp_path: Path) -> None:
    assert walked(tmp_path, 1, 30, 15).figures["killed"]


@pytest.mark.slow
@pytest.mark.parametrize("style", ["syncthing", "dropbox", "icloud"])
@pytest.mark.parametrize("seed", [1, 2])
def test_two_machines_come_to_rest_over_hundreds_of_steps(tmp_path: Path, seed: int, style: str) -> None:
    walk = walked(tmp_path, seed, 300, 50, style=style, alike=style != "dropbox", hidden=style == "icloud")
    assert all(walk.figures[name] for name in ("killed", "removed", "brought back", "conflict copies"))


# ── one thing at a time ──


def makes_jo(machine: Machine) -> None:
    machine.does(lambda work, now: operations.create(work, ME, "part", "Jo", now_us=now))


def asks_of_jo(machine: Machine, said: str) -> None:
    machine.does(lambda work, now: operations.append(work, ME, "Jo", "open-questions", said, now_us=now))


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    """Two machines, and no chance in it."""
    made = Walk(tmp_path, 0)
    yield made
    made.close()


@pytest.mark.parametrize(
    "place", ["MEMORY.md", "memory/*--manifest.md", "entities/ledger/*.jsonl", "entities/parts/*/profile.md"]
)
def test_a_copy_that_arrives_before_what_displaced_its_original(walk: Walk, place: str) -> None:
    one, two = walk.machines
    makes_jo(one)
    ends(walk, one)
    walk.settle()
    (path,) = (str(found.relative_to(one.root)) for found in one.root.glob(place))
    if path.endswith(".jsonl"):
        asks_of_jo(two, "Call Sam.")
    else:
        two.save(path, (two.read(path) or b"") + b"\nCall Sam.\n")
        two.passes()
    stem, _, ending = path.rpartition(".")
    two.save(f"{stem}.sync-conflict-20261122-101500-ABCDEF1.{ending}", two.read(path))
    two.passes()
    two.save(path, one.read(path))
    two.passes()
    kept = b"\n".join(raw for found, raw in two.tree().items() if found.startswith(stem))
    assert b"Call Sam." in kept
    if path.endswith(".jsonl"):
        assert b'"op":"append' in kept


def test_machines_that_join_the_same_ledgers_write_the_same_bytes(walk: Walk) -> None:
    one, two = walk.machines
    makes_jo(one)
    walk.settle()
    two.now_us = one.now_us + 7 * MINUTE
    for machine, said in ((one, "Reads."), (two, "Writes.")):
        asks_of_jo(machine, said)
    for machine in (one, two, two, one):
        walk.service.sync(machine)
    assert not walk.differences() and list((one.root / "entities/ledger").glob("*conflict*"))
    for machine in walk.machines:
        machine.passes()
    ledger = one.read("entities/ledger/2026-03.jsonl") or b""
    assert ledger == two.read("entities/ledger/2026-03.jsonl")
    assert b"human_edit" not in ledger, "a version of ours is nobody's edit"
    (profile,) = one.root.glob("entities/parts/*/profile.md")
    assert all(said in profile.read_text() for said in ("Reads.", "Writes."))
    copies = walk.service.copies
    walk.rest()
    assert walk.service.copies == copies


def test_the_id_of_another_machine_takes_no_memory_away(tmp_path: Path) -> None:
    walk = Walk(tmp_path, 0, hidden=True, alike=False)
    for machine in walk.machines:
        remembers(walk, machine)
    walk.settle()
    assert len({machine.read(".signet/workspace-id") for machine in walk.machines}) == 1
    for machine in walk.machines:
        machine.restart()
    walk.rest()
    assert [len(list((machine.home / "state").glob("*-*"))) for machine in walk.machines] == [1, 1]
    walk.close()


def test_removals_of_one_key_on_two_machines_both_count(walk: Walk) -> None:
    one, two = walk.machines
    for session in ("first", "second"):
        ended(walk, one, session, key="agent:main:main")
        one.now_us += MINUTE
    walk.settle()
    removed(walk, one, "first")
    removed(walk, two, "second")
    walk.rest()
    assert not walk.artifacts(one, "summary", "transcript", "manifest") and not conflict_copies(one.tree())
    (stone,) = (one.root / "memory/tombstones").glob("*.md")
    assert all(name in stone.read_text() for name in ("first", "second"))
