"""Ends an operation early at one step after the other, each in a fork, recovers it, and reports what does not hold.

A fault is a kill at a step of `crash_runner`, or the call there fails with EIO or ENOSPC. What follows is an ordinary
pass, a pass and the caller who asks again, or he alone. Then files, rows, answers and buffers are those of a run that
nothing disturbed, or nothing was done; and the invariants hold.
"""

from __future__ import annotations

import gc
import io
import json
import os
import random
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import invariants
import operations
from crash_runner import FAULTS, KILLED, Steps, arm, command, forked
from invariants import Standing
from operation_vaults import SECRET
from operations import REFUSED, Operation, refused
from portraits import contents, is_begun, portrait, strays, unlike, without_kept
from workbench import Vault, holding
from workbench import contents as all_contents

from signet_sync.storage import state_dir

TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.\d+\.tmp")
# How long a run took; what SQLite makes again from the log.
SIGNS = re.compile(r"\b\d{19}\b|\b\d{13}(?:\.\d+)?\b|\b\d{6,9}\b")
BUT = ("-shm", "last-pass.json")


def state_of(root: Path, state: Path, words: Sequence[bytes], scratch: Path) -> str:
    """A digest of names, modes, contents and rows; and where some words are, in whatever part of a file."""
    found, signs = sha256(), signs_of(root, state)
    for place in (root, state):
        for path, status in below(place):
            name = TEMPORARY.sub(".tmp", os.path.relpath(path, place))
            if name.endswith(BUT):
                continue
            found.update(f"{name} {status.st_mode} ".encode())
            if os.path.islink(path):
                found.update(os.readlink(path).encode())
            elif os.path.isfile(path):
                raw = Path(path).read_bytes()
                found.update(repr([word for word in words if word in raw]).encode())
                if ".tmp-" in name or name.endswith("-wal"):
                    continue
                if raw.startswith(b"SQLite format 3") and ".tmp" not in name:
                    for row in rows(Path(path), scratch):
                        found.update(
                            SIGNS.sub(
                                lambda sign: signs.get(
                                    sign[0].partition(".")[0], "stale" if len(sign[0]) == 19 else sign[0]
                                ),
                                repr(row),
                            ).encode()
                        )
                else:
                    found.update(sha256(raw).digest())
    return found.hexdigest()


def below(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(folders + names):
            path = os.path.join(folder, name)
            yield path, os.lstat(path)


def signs_of(*places: Path) -> dict[str, str]:
    """What stands for the times and inodes of files: no two runs have the same."""
    found = {}
    for place in places:
        for path, status in below(place):
            found[str(status.st_ino)] = f"inode of {TEMPORARY.sub('', os.path.relpath(path, place))}"
            for time in (status.st_mtime_ns, status.st_ctime_ns):
                found[str(time)] = found[str(time // 1_000_000)] = "a time of a file"
    return found


def rows(database: Path, scratch: Path) -> Iterator[tuple[Any, ...]]:
    """Every row of a copy; the bytes of one that is damaged."""
    copy = scratch / "copy.db"
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        if suffix != "-shm" and Path(f"{database}{suffix}").exists():
            shutil.copyfile(f"{database}{suffix}", f"{copy}{suffix}")
    connection = apsw.Connection(str(copy))
    try:
        yield (connection.pragma("user_version"), connection.pragma("application_id"))
        for name, sql in list(connection.execute("select name, sql from sqlite_master order by 1")):
            yield (name, sql)
            if sql and sql.startswith("CREATE TABLE") and not name.endswith("_fts"):
                yield from connection.execute(f"select * from {name}")
    except apsw.Error as error:
        yield (str(error), sha256(database.read_bytes()).hexdigest())
    finally:
        connection.close()


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


class Ground:
    """Workspace and state where every point begins, put back by copying; they stay where their state knows them.

    What is kept of them lies beside their folder, so that nothing else moves in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "vault"
        self.state = Path(os.environ["SIGNET_STATE"])
        self.kept = folder.parent / f"{folder.name}-kept"
        self.here = folder.parent / f"{folder.name}-run"
        self.kept.mkdir(exist_ok=True)
        for name in ("before", "state-before"):
            shutil.move(folder / name, self.kept / name)

    def put_back(self, name: str = "before") -> None:
        """The ground as it was kept under a name."""
        for place, kept in ((self.root, name), (self.state, f"state-{name}")):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.kept / kept, place)
        if name == "before":
            self.clear()

    def clear(self) -> None:
        """An empty working folder."""
        shutil.rmtree(self.here, ignore_errors=True)
        self.here.mkdir()
        os.chdir(self.here)

    def keep(self, name: str) -> None:
        """Keeps the ground as it is now under a name."""
        for place, kept in ((self.root, name), (self.state, f"state-{name}")):
            shutil.rmtree(self.kept / kept, ignore_errors=True)
            shutil.copytree(place, self.kept / kept)

    def judged(self, act: Callable[[], int]) -> dict[str, Any]:
        """What a judge in a fork has written."""
        forked(spoken, act)
        place = self.here / "judged.json"
        if not place.exists():
            return {"outcome": "none", "wrong": ["the recovery died"]}
        found: dict[str, Any] = json.loads(place.read_text())
        place.unlink()
        return found


def spoken(work: Callable[[], int]) -> int:
    """Runs something in a fork that must not raise; prints where it does."""
    try:
        return work()
    except BaseException:
        traceback.print_exc()
        raise


# ── what must hold ──


class Remembering(Vault):
    """A vault that indexes the same files from nothing only once: what comes of them hangs on their bytes alone."""

    def __init__(self, root: Path, notes: Path) -> None:
        super().__init__(root)
        self.notes = notes

    def dump_from_scratch(self, name: str = "scratch.db") -> list[tuple[Any, ...]]:
        files = json.dumps(all_contents(self.root, but=(".signet",)), sort_keys=True)
        note = self.notes / f"rows-{sha256(files.encode()).hexdigest()}.json"
        if not note.exists():
            note.write_text(json.dumps(super().dump_from_scratch(name)))
        return [tuple(row) for row in json.loads(note.read_text())]


class Judge:
    """What must hold after an operation was ended early, and once it is recovered: `wrong` says what does not."""

    def __init__(self, ground: Ground, operation: Operation, aim: dict[str, Any]) -> None:
        self.ground, self.root, self.operation = ground, ground.root, operation
        self.before, self.after = aim["before"], aim["after"]
        self.wrong: list[str] = []
        self.outcome = "all"

    def check(self, name: str, held: object) -> None:
        if not held:
            self.wrong.append(name)

    def passes(self) -> None:
        """One ordinary pass."""
        self.check("the pass failed", command(str(self.root), "reindex", "--now", self.operation.now) == 0)

    def nothing_left(self) -> None:
        """No byte of what had to go."""
        left = holding([word.encode() for word in self.operation.gone], self.root, self.state)
        self.check(f"left: {left}", not left)

    @property
    def state(self) -> Path:
        return Path(state_dir.locate(str(self.root)).path)

    def save(self, **more: object) -> int:
        found = {"outcome": self.outcome, "wrong": self.wrong, **more}
        (self.ground.here / "judged.json").write_text(json.dumps(found))
        return 0


class Strict(Judge):
    """The judge of a crash.

    `whole` are the digests that each file has before and after the operation, where all invariants hold: what is equal
    to one of these, file by file and row by row, need not be asked again what equal things have answered. `thorough`
    asks.
    """

    def __init__(self, crashes: Crashes) -> None:
        super().__init__(crashes.ground, crashes.operation, crashes.aim)
        self.vault = Remembering(self.root, self.ground.kept)
        self.standing, self.whole, self.thorough = crashes.standing, crashes.whole, crashes.thorough

    def begun(self) -> Standing:
        """What must stand now: the words of a removal are gone as soon as it has begun, and not before."""
        gone = any(self.root.glob("memory/tombstones/*.md"))
        return self.standing if gone else replace(self.standing, removed=())

    def torn(self) -> list[str]:
        """What a reader sees before anybody recovers."""
        found = digests(self.root)
        lost = not self.standing.removed and self.standing.artifacts.keys() - found.keys()
        if self.thorough or lost or any(digest not in self.whole.get(name, ()) for name, digest in found.items()):
            return invariants.torn(self.vault, self.begun())
        return []

    def recover(self, may_be_nothing: bool) -> int:
        """One ordinary pass, and all that must hold then."""
        self.wrong += [f"right after the fault: {fault}" for fault in self.torn()]
        acknowledged = (self.ground.here / "answer.json").exists()
        found = contents(self.root)
        said, before = (
            {name: digest for name, digest in files.items() if name.startswith("memory/words/")}
            for files in (found, self.before.get("files", {}))
        )
        may_be_nothing = may_be_nothing and not acknowledged
        if may_be_nothing and said == before and not is_begun(self.root, self.operation):
            whole = found in (self.before["files"], self.after["files"])
            loose = self.operation.piecemeal or self.operation.tidies
            self.check("written before it was journalled", whole or loose)
        else:
            may_be_nothing = False
        secrets = holding([SECRET.encode()], self.root, self.state)
        self.check(f"a secret: {secrets}", not secrets)
        self.passes()
        try:
            there = portrait(self.root)
            different = unlike(there, self.after)
            if different and may_be_nothing and self.is_as_before(there):
                self.outcome, different = "nothing", []
            elif different and self.operation.piecemeal and not acknowledged:
                self.outcome, different = "part", []
            self.wrong += different
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.tidy()
        return self.save()

    def is_as_before(self, there: dict[str, Any]) -> bool:
        """Whether nothing was done; what was kept of a page may be clean already."""
        if self.operation.tidies:
            return not unlike(without_kept(there), without_kept(self.before))
        return not unlike(there, self.before)

    def retry(self) -> int:
        """The caller asks again: the same result, and nothing twice."""
        code, told = refused(self.operation.work, self.root), self.ground.here / "refused"
        self.check(f"a retry gives {code}: {told.read_text() if told.exists() else ''}", code == 0)
        self.passes()
        try:
            self.wrong += [f"after a retry {what}" for what in unlike(portrait(self.root), self.after)]
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.tidy()
        return self.save()

    def tidy(self) -> None:
        """Nothing is left over, the invariants hold, and a second pass writes nothing."""
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        if self.thorough or self.wrong or self.outcome == "part":
            self.wrong += invariants.broken(self.vault, self.begun(), now=self.operation.now, settled=True)
        else:
            self.wrong += invariants.restless(self.vault, self.begun(), now=self.operation.now)[0]
        if self.outcome == "all":
            self.nothing_left()


# ── one operation ──


class Crashes:
    """One operation, ended at its steps by any of the faults."""

    def __init__(self, operation: Operation, folder: Path) -> None:
        self.operation = operation
        self.ground = Ground(folder)
        self.aim: dict[str, Any] = {}
        self.standing = Standing()
        self.whole: dict[str, set[str]] = {}
        self.thorough = True
        self.fault = "kill"
        # What became of each state of the disk, by the ways of recovering from it.
        self.known: dict[tuple[str, int, bytes], list[tuple[str, dict[str, Any]]]] = {}

    def looked(self) -> Crashes:
        """The same, once it is known what stands before and after an undisturbed run, and that both are well."""
        operation, ground = self.operation, self.ground
        with redirect_stdout(io.StringIO()):
            ground.put_back()
            gone = [word.encode() for word in operation.gone]
            self.standing = invariants.standing(Vault(ground.root), removed=gone)
            self.know()
            ground.put_back()
            if operation.tidies:
                assert command(str(ground.root), "reindex", "--now", operation.now) == 0
            before = portrait(ground.root) if operation.flow else {}
            ground.put_back()
            assert operation.work(ground.root) == 0
            self.aim = {"before": before, "after": portrait(ground.root)}
            if operation.rewrites:
                now = invariants.artifacts(ground.root)
                both = {path: found | now.get(path, frozenset()) for path, found in self.standing.artifacts.items()}
                self.standing = replace(self.standing, artifacts=both)
            # A pass finds nothing to do, but for a backup of what is new.
            found = ground.judged(lambda: Strict(self).recover(may_be_nothing=False))
            assert found["wrong"] == [], found
            assert command(str(ground.root), "check", "--now", operation.now) == 0
            self.know()
        return self

    def know(self) -> None:
        """Takes the files of now for whole."""
        for name, digest in digests(self.ground.root).items():
            self.whole.setdefault(name, set()).add(digest)

    def under(self, fault: str) -> Crashes:
        """The same under another fault."""
        self.fault = fault
        return self

    def struck(self, point: int) -> int:
        """The run that meets the fault."""
        FAULTS[self.fault](point)
        try:
            return refused(self.operation.work, self.ground.root)
        except apsw.Error:
            # What is raised inside a VFS comes out of `close`, too, which keeps quiet about errors of the system.
            if not self.fault.startswith("sqlite"):
                raise
            return REFUSED

    def moments(self) -> list[Moment]:
        """Every step of a run that nothing disturbs."""
        place = self.ground.here / "moments.json"

        def watched() -> int:
            met: list[Moment] = []

            def step(_: Steps, label: str, *, takes_space: bool = False) -> bool:
                met.append(moment(label))
                return False

            Steps.__call__ = step  # type: ignore[method-assign]
            code = self.struck(0)
            place.write_text(json.dumps(list(met)))
            return code

        self.ground.put_back()
        code = forked(spoken, watched)
        assert code == 0, code
        return [Moment(label, tuple(within)) for label, within in json.loads(place.read_text())]

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
                self.known[state] = list(self.ways(ways))
            for way, found in self.known[state][:ways]:
                if code not in (0, KILLED, REFUSED):
                    found["wrong"].append(f"it ended badly: {code}")
                yield {"point": point, "met": met, "killed": code == KILLED, "way": way, **found}
            if not met:
                return

    def state(self, code: int) -> tuple[str, int, bytes]:
        """What all that follows hangs on: the disk, how the run ended, and what it had answered."""
        answer = self.ground.here / "answer.json"
        words = [word.encode() for word in self.operation.gone]
        disk = state_of(self.ground.root, self.ground.state, words, self.ground.kept)
        return disk, code, answer.read_bytes() if answer.exists() else b""

    def ways(self, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """What becomes of a point: by a pass; where more is asked for by a pass and a retry, and by a retry alone."""
        yield "pass", self.ground.judged(lambda: Strict(self).recover(self.operation.flow))
        if self.operation.flow and count > 1:
            yield "pass and retry", self.ground.judged(lambda: Strict(self).retry())
            self.ground.put_back("struck")
            yield "retry", self.ground.judged(lambda: Strict(self).retry())

    def killed_over_and_over(self, first: int, times: int, chance: random.Random | None) -> dict[str, Any]:
        """A kill, then so many kills of the pass that recovers it, then a pass that is left alone.

        Each is killed a step later than the one before, or with `chance` at any of its first steps. Where one comes
        through all the same, the next is killed earlier.
        """

        def pass_killed(step: int) -> int:
            arm(step)
            return command(str(self.ground.root), "reindex", "--now", self.operation.now)

        self.ground.put_back()
        forked(spoken, lambda: self.under("kill").struck(first))
        kills, step, most = 0, 0, 40
        for _ in range(2 * times):
            step = chance.randint(1, most) if chance else step + 1
            if forked(spoken, lambda step=step: pass_killed(step)) == KILLED:
                kills += 1
            else:
                step, most = 0, max(1, step - 1)
            if kills == times:
                break
        self.thorough = True
        found = self.ground.judged(lambda: Strict(self).recover(self.operation.flow))
        return {"first": first, "kills": kills, **found}


def digests(root: Path) -> dict[str, str]:
    """Every file of a workspace with its digest, but for temporaries."""
    return {path: digest for path, digest in all_contents(root).items() if not path.startswith(invariants.TEMPORARY)}


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
