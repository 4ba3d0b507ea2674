"""Ends an operation early at one step after the other, each in a fork, recovers it, and reports what does not hold.

A step is a durable call of our own (a file made, a write, half of one, an fsync, a link, a rename, an unlink, a folder,
a commit, a checkpoint), one of SQLite's below it, or a statement that changes a row. A fault is a kill there, or the
call fails with EIO or ENOSPC. What follows is an ordinary pass, a pass and the caller who asks again, or he alone.
"""

from __future__ import annotations

import gc
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import invariants
import operations
from crash_runner import KILLED, Steps, arm, command, forked
from disk_state import state_of
from flow_runner import FAULTS, Failing, Ground, Judge, Sweep, spoken, strays, wanted
from invariants import Standing
from workbench import Vault, contents

CHANGES = ("insert", "update", "delete", "replace", "create", "drop", "alter")


# ── what goes wrong ──


def arm_statements(last: int) -> None:
    """Puts a step before every statement that changes a row or the schema: what a transaction has done is lost."""
    steps = Steps(last)

    class Connection(apsw.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> Any:
            if sql.lstrip().startswith(CHANGES):
                steps(f"before {' '.join(sql.split()[:4])}")
            return super().execute(sql, *given, **named)

        def executemany(self, sql: str, *given: Any, **named: Any) -> Any:
            steps(f"before {' '.join(sql.split()[:4])}")
            return super().executemany(sql, *given, **named)

    apsw.Connection = Connection


ARMS: dict[str, Callable[[int], object]] = {**FAULTS, "statement-kill": arm_statements}
# So many points there are from one at which all is asked for that equal bytes make superfluous, to the next.
THOROUGH = 20
KILLS = ("kill", "sqlite-kill", "statement-kill")


class Moment(NamedTuple):
    """One step of an operation: what is about to be done, and our functions in which it is, the innermost first."""

    label: str
    within: tuple[str, ...]


def moment(label: str) -> Moment:
    """The step at which the process is now."""
    within = []
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("signet_sync."):
            within.append(f"{name.removeprefix('signet_sync.')}.{frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return Moment(label, tuple(within))


# ── where it goes wrong ──


class Field(Ground):
    """The ground of an operation; what is kept of it lies beside it, so that nothing else moves there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kept = folder.parent / f"{folder.name}-kept"
        self.here = folder.parent / f"{folder.name}-run"
        for name in ("before", "state-before"):
            self.kept.mkdir(exist_ok=True)
            if (folder / name).exists():
                shutil.move(folder / name, self.kept / name)

    def put_back(self, name: str = "before") -> None:
        folder, self.folder = self.folder, self.kept
        try:
            super().put_back(name)
        finally:
            self.folder = folder

    def keep(self, name: str) -> None:
        folder, self.folder = self.folder, self.kept
        try:
            super().keep(name)
        finally:
            self.folder = folder


# ── what must hold ──


class Remembering(Vault):
    """A vault that indexes the same files from nothing only once: what comes of them hangs on their bytes alone."""

    def __init__(self, root: Path, notes: Path) -> None:
        super().__init__(root)
        self.notes = notes

    def dump_from_scratch(self, name: str = "scratch.db") -> list[tuple[Any, ...]]:
        files = json.dumps(contents(self.root, but=(".signet",)), sort_keys=True)
        note = self.notes / f"rows-{sha256(files.encode()).hexdigest()}.json"
        if not note.exists():
            note.write_text(json.dumps(super().dump_from_scratch(name)))
        return [tuple(row) for row in json.loads(note.read_text())]


class Strict(Judge):
    """The invariants, right after the fault and once it is recovered, besides what a flow promises its caller.

    `whole` are the digests that each file has before and after the operation, where all eight hold: what is equal to
    one of these, file by file and row by row, need not be asked again what equal things have answered. `thorough` asks.
    """

    def __init__(self, crashes: Crashes, *, thorough: bool) -> None:
        ground = crashes.ground
        super().__init__(ground.root, ground.here, crashes.aim, crashes.scenario)
        self.vault = Remembering(ground.root, ground.kept)
        self.standing = crashes.standing
        self.whole = crashes.whole
        self.thorough = thorough

    def begun(self) -> Standing:
        """What must stand now: the words of a removal are gone as soon as it has begun, and not before."""
        gone = any(self.root.glob("memory/tombstones/*.md"))
        return self.standing if gone else replace(self.standing, removed=())

    def recover(self, may_be_nothing: bool) -> int:
        self.wrong += [f"right after the fault: {fault}" for fault in self.torn()]
        return super().recover(may_be_nothing)

    def torn(self) -> list[str]:
        """What a reader sees before anybody recovers."""
        found = digests(self.root)
        lost = not self.standing.removed and self.standing.artifacts.keys() - found.keys()
        if self.thorough or lost or any(digest not in self.whole.get(name, ()) for name, digest in found.items()):
            return invariants.torn(self.vault, self.begun())
        return []

    def tidy(self) -> None:
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        if self.thorough or self.wrong or self.outcome == "part":
            self.wrong += invariants.broken(self.vault, self.begun(), now=self.now, settled=True)
        else:
            self.wrong += invariants.restless(self.vault, self.begun(), now=self.now)[0]


# ── one operation ──


class Crashes(Sweep):
    """One operation, ended at its steps by any of the faults."""

    def __init__(self, operation: operations.Operation, folder: Path) -> None:
        super().__init__(Field(folder), operation.scenario(operation.prepared(folder)), {}, "kill")
        self.ground: Field
        self.standing = Standing()
        self.whole: dict[str, set[str]] = {}
        self.thorough = True
        # What became of each state of the disk, by the ways of recovering from it.
        self.known: dict[tuple[str, int, bytes], list[tuple[str, dict[str, Any]]]] = {}

    def looked(self) -> Crashes:
        """The same, once it is known what stands before and after an undisturbed run, and that both are well."""
        self.ground.put_back()
        with redirect_stdout(io.StringIO()):
            words = [word.encode() for word in self.scenario.gone]
            self.standing = invariants.standing(Vault(self.ground.root), removed=words)
        self.know()
        self.aim = wanted(self.ground, self.scenario)
        if self.scenario.rewrites:
            now = invariants.artifacts(self.ground.root)
            both = {path: found | now.get(path, frozenset()) for path, found in self.standing.artifacts.items()}
            self.standing = replace(self.standing, artifacts=both)
        self.know()
        judge = self.judge()
        forked(spoken, lambda: judge.recover(may_be_nothing=False))
        assert (found := self.ground.judged())["wrong"] == [], found
        return self

    def know(self) -> None:
        """Takes the files of now for whole."""
        for name, digest in digests(self.ground.root).items():
            self.whole.setdefault(name, set()).add(digest)

    def judge(self) -> Judge:
        return Strict(self, thorough=self.thorough)

    def under(self, fault: str) -> Crashes:
        """The same under another fault."""
        self.arm = ARMS[fault]
        self.inside_sqlite = fault.startswith("sqlite")
        return self

    def moments(self) -> list[Moment]:
        """Every step of a run that nothing disturbs."""
        self.ground.put_back()
        code = forked(spoken, self.watched)
        assert code == 0, code
        moments = json.loads((self.ground.here / "moments.json").read_text())
        return [Moment(label, tuple(within)) for label, within in moments]

    def watched(self) -> int:
        """The run that nothing disturbs, and writes down what it meets."""
        met: list[Moment] = []

        def step(_: Steps, label: str) -> None:
            met.append(moment(label))

        def call(_: Failing, label: str, *, takes_space: bool) -> bool:
            met.append(moment(label))
            return False

        Steps.__call__ = step  # type: ignore[method-assign]
        Failing.__call__ = call  # type: ignore[method-assign]
        code = self.struck(0)
        moments = list(met)
        (self.ground.here / "moments.json").write_text(json.dumps(moments))
        return code

    def at(self, points: Iterable[int], ways: int = 3) -> Iterator[dict[str, Any]]:
        """What became of these points, in so many ways each, until one lies behind the end of the operation.

        Points that leave the same state are recovered from once; every `THOROUGH`th is in any case.
        """
        for point in points:
            self.ground.put_back()
            code = forked(spoken, lambda point=point: self.struck(point))
            met = (self.ground.here / "killed-at").exists()
            self.thorough = point % THOROUGH == 1 or not met
            state = self.state(code)
            if self.thorough or len(self.known.get(state, ())) < ways:
                self.ground.keep("struck")
                self.known[state] = list(self.ways_of(ways))
            for way, found in self.known[state][:ways]:
                if code not in (0, KILLED, 3):
                    found["wrong"].append(f"it ended badly: {code}")
                yield {"point": point, "met": met, "killed": code == KILLED, "way": way, **found}
            if not met:
                return

    def state(self, code: int) -> tuple[str, int, bytes]:
        """What all that follows hangs on: the disk, how the run ended, and what it had answered."""
        answer = self.ground.here / "answer.json"
        words = [word.encode() for word in self.scenario.gone]
        disk = state_of(self.ground.root, self.ground.state, words, self.ground.kept)
        return disk, code, answer.read_bytes() if answer.exists() else b""

    def ways_of(self, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """The first ways of recovering."""
        for number, found in enumerate(self.ways(), 1):
            yield found
            if number == count:
                return

    def killed_over_and_over(self, first: int, times: int, chance: random.Random | None) -> dict[str, Any]:
        """A kill, then so many kills of the pass that recovers it, then a pass that is left alone.

        Each is killed a step later than the one before, or with `chance` at any of its first steps. Where one comes
        through all the same, the next is killed earlier.
        """
        self.ground.put_back()
        forked(spoken, lambda: self.under("kill").struck(first))
        kills, step, most = 0, 0, 40
        for _ in range(2 * times):
            step = chance.randint(1, most) if chance else step + 1
            if forked(spoken, lambda step=step: self.pass_killed(step)) == KILLED:
                kills += 1
            else:
                step, most = 0, max(1, step - 1)
            if kills == times:
                break
        self.thorough = True
        forked(spoken, lambda: self.judge().recover(self.flow))
        return {"first": first, "kills": kills, **self.ground.judged()}

    def pass_killed(self, step: int) -> int:
        """The pass that is killed."""
        arm(step)
        return command(str(self.ground.root), "reindex", "--now", self.scenario.now)


def digests(root: Path) -> dict[str, str]:
    """Every file of a workspace with its digest, but for temporaries."""
    return {path: digest for path, digest in contents(root).items() if not path.startswith(invariants.TEMPORARY)}


def prepared(name: str, folder: Path) -> Crashes:
    """An operation on a ground of its own in FOLDER; the process works there from now on, and syncs nothing."""
    ground = folder / name.replace(" ", "-")
    places = {"HOME": "home", "XDG_STATE_HOME": "home/state", "XDG_CONFIG_HOME": "home/config"}
    places |= {"SIGNET_STATE": "machine/state", "SIGNET_CONFIG": "home/config.toml"}
    os.environ.update({name: str(ground / place) for name, place in places.items()})
    # A killed process leaves to the kernel what it has written: nothing here depends on the disk itself.
    os.fsync = lambda descriptor: None
    # Every point is a fork that lives for a tenth of a second: none has anything to collect.
    gc.disable()
    return Crashes(operations.prepare(name, ground), ground)


def visited(name: str, folder: Path, faults: Iterable[str], every: int = 1) -> dict[str, Any]:
    """What became of an operation at each of its steps (or some) under each of these faults; run in a fork."""
    crashes = prepared(name, folder).looked()
    results = {}
    for fault in faults:
        steps = len(crashes.under(fault).moments())
        # Whoever asks again finds the same in each case: that is tried at our own steps.
        ways = 3 if fault == "kill" else 1
        results[fault] = {"steps": steps, "lines": list(crashes.at(range(1, steps + 2, every), ways))}
    return results


def apart(folder: Path, jobs: dict[str, Callable[[Path], Any]], at_once: int = 1) -> dict[str, Any]:
    """Runs jobs, each in a fork with a folder of its own, so many at once; gives their results, by their names."""
    context, running = get_context("fork"), []
    places = {name: folder / name.replace(" ", "-").replace("/", "-") for name in jobs}
    for name, place in places.items():
        place.mkdir()
        running.append(context.Process(target=_job, args=(jobs[name], place)))
        running[-1].start()
        if len(running) >= at_once:
            running.pop(0).join()
    for process in running:
        process.join()
    return {name: json.loads((place / "result.json").read_text()) for name, place in places.items()}


def _job(job: Callable[[Path], Any], place: Path) -> None:
    """Leaves a job's result; where it raises there is none."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    (place / "result.json").write_text(json.dumps(job(place)))
