"""Ends every scenario of the crash matrix at every step, by a kill or a failing call, each in a fork; see `main`.

`python flow_runner.py FOLDER SCENARIO FAULTS [EVERY [AGAIN]]` wants FOLDER/before (workspace) and FOLDER/state-before.
It runs the scenario once to its end, which gives what is wanted, then again and again with a fault at step 1, 2, 3 …
until a run meets none, for each of FAULTS (with commas between). It prints one JSON line a point: the step's number and
label, how the run ended (`killed`, `refused`, `answered`), what was made of it then (`all`, `nothing`), and what is
wrong: nothing is an empty list. With AGAIN the pass after each kill is killed too, at every so many steps of its own.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import apsw
from crash_runner import KILLED, NOW, arm, command, dump, everything, forked

from signet_sync import state
from signet_sync.agent import removal, sessions
from signet_sync.agent.workspace import opened
from signet_sync.config import Settings
from signet_sync.contracts.inputs import compaction_input, session_input
from signet_sync.contracts.timestamps import parse_instant
from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.index.database import Database
from signet_sync.vault import files

# Made up, and never to be found in a byte that we write.
SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
NOW_US = parse_instant(NOW) or 0
LATER = "2026-04-28T11:00:00.000Z"
REFUSED = 3

# ── what is run ──


def asked(document: dict[str, Any], limit: int | None = None) -> Callable[[Path], int]:
    """A session end or compaction; what it answers is written to `answer.json`, as a caller would be told.

    With `limit` no file is longer than so many bytes, and the transcript is kept in several segments.
    """
    settings = Settings() if limit is None else replace(Settings(), max_file_bytes=limit)

    def work(root: Path) -> int:
        with opened(str(root), settings) as workspace:
            if "transcript" in document:
                answer = sessions.end(workspace, session_input(document, now_us=NOW_US), now_us=NOW_US)
            else:
                answer = sessions.compact(workspace, compaction_input(document, now_us=NOW_US), now_us=NOW_US)
        Path("answer.json").write_text(json.dumps(answer))
        return 0

    return work


def passed(*arguments: str) -> Callable[[Path], int]:
    """A command line."""
    return lambda root: command(str(root), *arguments)


def removed(name: str) -> Callable[[Path], int]:
    """A removal; one that has been made already has nothing to remove."""

    def work(root: Path) -> int:
        with opened(str(root), Settings()) as workspace:
            try:
                for part in removal.plan(workspace, "default", name):
                    removal.remove(workspace, part, "asked for", NOW_US)
            except UsageError as error:
                if error.code != "unknown-session":
                    raise
        return 0

    return work


def scenarios(told: dict[str, Any]) -> dict[str, Callable[[Path], int]]:
    """What is run, by name."""
    return {
        **{name: asked(given, 6_000 if name == "parts" else None) for name, given in told["documents"].items()},
        "removal": removed(told["remove"]),
        "manifests": passed("reindex", "--now", LATER),
        "projection": passed("reindex", "--now", NOW),
        "full": passed("reindex", "--full", "--now", NOW),
    }


# ── what goes wrong ──


class Failing:
    """Lets the n-th durable call of our own doors fail; a full disk stays full until the process ends."""

    def __init__(self, point: int, code: int) -> None:
        self.point = point
        self.code = code
        self.count = 0

    def __call__(self, label: str, *, takes_space: bool) -> bool:
        """Whether this call fails now."""
        self.count += 1
        if self.count == self.point:
            with open("killed-at", "w", encoding="ascii") as handle:
                handle.write(label)
            return True
        return self.code == errno.ENOSPC and takes_space and 0 < self.point < self.count

    def error(self) -> OSError:
        return OSError(self.code, os.strerror(self.code))

    def wrap(self, where: object, name: str, *, takes_space: bool, concerns: Callable[..., bool] | None = None) -> None:
        real = getattr(where, name)

        def failing(*given, **named):
            if (concerns is None or concerns(*given, **named)) and self(name, takes_space=takes_space):
                if name == "write" and len(given[1]) > 1:
                    real(given[0], bytes(given[1])[: len(given[1]) // 2])
                raise self.error()
            return real(*given, **named)

        setattr(where, name, failing)


def creates(_path: object, flags: int, *_given: object, **_named: object) -> bool:
    """Whether an `os.open` may make a file."""
    return bool(flags & os.O_CREAT)


def failing(point: int, code: int) -> Failing:
    """Puts the fault at every durable call: files, folders, renames, SQLite's commits and checkpoints."""
    faults = Failing(point, code)
    faults.wrap(os, "open", takes_space=True, concerns=creates)
    for name in ("write", "fsync", "link", "mkdir"):
        faults.wrap(os, name, takes_space=name != "fsync")
    for name in ("rename", "replace", "unlink"):
        faults.wrap(os, name, takes_space=False)
    faults.wrap(files, "_rename", takes_space=False)
    broken = apsw.FullError if code == errno.ENOSPC else apsw.IOError

    class Connection(apsw.Connection):
        def execute(self, sql, *given, **named):
            if sql == "commit" and faults("commit", takes_space=True):
                raise broken(os.strerror(code))
            return super().execute(sql, *given, **named)

        def wal_checkpoint(self, *given, **named):
            if faults("checkpoint", takes_space=True):
                raise broken(os.strerror(code))
            return super().wal_checkpoint(*given, **named)

    apsw.Connection = Connection
    return faults


def failing_inside_sqlite(point: int, code: int | None) -> None:
    """Puts the fault (None: a kill) into SQLite's own writes, syncs, truncations and deletions."""
    faults = Failing(point, code or 0)
    usual = apsw.vfs_names()[0]

    def strike(label: str, *, takes_space: bool = True) -> None:
        if faults(label, takes_space=takes_space):
            if code is None:
                os._exit(KILLED)
            raise apsw.FullError("full") if code == errno.ENOSPC else apsw.IOError("broken")

    class File(apsw.VFSFile):
        def xWrite(self, data, offset):
            strike("xWrite")
            super().xWrite(data, offset)

        def xSync(self, flags):
            strike("xSync", takes_space=False)
            super().xSync(flags)

        def xTruncate(self, size):
            strike("xTruncate", takes_space=False)
            super().xTruncate(size)

    class Vfs(apsw.VFS):
        def __init__(self):
            super().__init__("faulty", usual, makedefault=True)

        def xOpen(self, name, flags):
            return File(usual, name, flags)

    failing_inside_sqlite.vfs = Vfs()


FAULTS: dict[str, Callable[[int], object]] = {
    "kill": arm,
    "EIO": lambda point: failing(point, errno.EIO),
    "ENOSPC": lambda point: failing(point, errno.ENOSPC),
    "sqlite-kill": lambda point: failing_inside_sqlite(point, None),
    "sqlite-EIO": lambda point: failing_inside_sqlite(point, errno.EIO),
    "sqlite-ENOSPC": lambda point: failing_inside_sqlite(point, errno.ENOSPC),
}


def refused(work: Callable[[Path], int], root: Path) -> int:
    """Runs something that may be refused with an error of ours; any other exception is not expected."""
    try:
        return work(root)
    except (SignetSyncError, OSError) as error:
        Path("refused").write_text(repr(error))
        return REFUSED


# ── what is left ──


def contents(root: Path) -> dict[str, str]:
    """Every file of a workspace by path, but for temporaries."""
    return {
        path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".signet/tmp/" not in path.as_posix()
    }


def portrait(root: Path) -> dict[str, Any]:
    """All that must be equal in two workspaces after the same things have been done: files, rows, answers, buffers."""
    place = state.locate(str(root)).database
    rows = dump(place)
    database = Database(place, readonly=True)
    try:
        answers = [list(row) for row in database.execute("select * from flow_results order by agent_id, flow_key")]
        live = [list(row) for row in database.execute("select * from session_transcripts order by 1, 2, 3")]
        stones = [list(row) for row in database.execute("select * from memory_artifact_tombstones order by 1, 2")]
    finally:
        database.close()
    found = {"files": contents(root), "rows": rows, "answers": answers, "live": live, "tombstones": stones}
    return json.loads(json.dumps(found))


def unlike(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs, in words."""
    told = []
    for part, values in wanted.items():
        if found[part] == values:
            continue
        if part == "files":
            names = found[part].keys() | values.keys()
            told.append("files: " + ", ".join(sorted(n for n in names if found[part].get(n) != values.get(n))))
        else:
            told.append(f"{part}: {[r for r in found[part] if r not in values]} for "
                        f"{[r for r in values if r not in found[part]]}"[:600])  # fmt: skip
    return told


def journals(root: Path) -> list[str]:
    """The flows that are not finished."""
    return sorted(path.name for path in Path(state.locate(str(root)).journal).glob("*.json"))


def strays(root: Path) -> list[str]:
    """Temporary files and unfinished flows."""
    folder = Path(state.locate(str(root)).path)
    return [path.name for place in (root, folder) for path in place.rglob("*.tmp*")] + journals(root)


def secrets(root: Path) -> list[str]:
    """Files that hold the secret."""
    folder = Path(state.locate(str(root)).path)
    return [
        path.name
        for place in (root, folder)
        for path in place.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


class Judge:
    """What must hold after a run was ended early: `wrong` says what does not."""

    def __init__(self, root: Path, here: Path, wanted: dict[str, Any], now: str, *, piecemeal: bool = False) -> None:
        self.root = root
        self.here = here
        self.before = wanted["before"]
        self.after = wanted["after"]
        self.now = now
        # What is too long for one file is as many endings, each whole; until the answer some of them may be missing.
        self.piecemeal = piecemeal
        self.wrong: list[str] = []

    def check(self, name: str, held: object) -> None:
        if not held:
            self.wrong.append(name)

    def recover(self, may_be_nothing: bool) -> int:
        """One ordinary pass, and all that must hold then."""
        # What tells the next pass to go on: the inputs of a flow, the tombstone of a removal.
        begun = bool(journals(self.root)) or any(self.root.glob("memory/tombstones/*.md"))
        acknowledged = (self.here / "answer.json").exists()
        found = contents(self.root)
        if may_be_nothing and not begun and not acknowledged:
            whole = found in (self.before["files"], self.after["files"])
            self.check("written before it was journalled", whole or self.piecemeal)
        self.check(f"a secret stands in {secrets(self.root)}", not secrets(self.root))
        self.check("the pass failed", command(str(self.root), "reindex", "--now", self.now) == 0)
        outcome = "all"
        try:
            there = portrait(self.root)
            different = unlike(there, self.after)
            if different and may_be_nothing and not begun and not acknowledged and not unlike(there, self.before):
                outcome, different = "nothing", []
            elif different and self.piecemeal and not acknowledged:
                outcome, different = "part", []
            self.wrong += different
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.tidy()
        self.save(outcome)
        return 0

    def retry(self, work: Callable[[Path], int]) -> int:
        """The caller asks again: the same result, and nothing twice."""
        code = refused(work, self.root)
        self.check(f"a retry gives {code}: {self.said()}", code == 0)
        self.check("the pass failed", command(str(self.root), "reindex", "--now", self.now) == 0)
        try:
            self.wrong += [f"after a retry {what}" for what in unlike(portrait(self.root), self.after)]
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.tidy()
        self.save("all")
        return 0

    def said(self) -> str:
        return (self.here / "refused").read_text() if (self.here / "refused").exists() else ""

    def tidy(self) -> None:
        """Nothing is left over, `check` finds nothing, and a second pass writes nothing."""
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        self.check("check is not clean", command(str(self.root), "check", "--now", self.now) == 0)
        folder = Path(state.locate(str(self.root)).path)
        before = everything(self.root, folder)
        command(str(self.root), "reindex", "--now", self.now)
        after = everything(self.root, folder)
        # SQLite's log and its index come and go with readers; what is written ends up in the database.
        names = [p for p in before.keys() | after.keys() if not p.endswith(("-wal", "-shm"))]
        moved = [os.path.basename(p) for p in names if before.get(p) != after.get(p)]
        self.check(f"a second pass writes {moved}", not moved)

    def save(self, outcome: str) -> None:
        (self.here / "judged.json").write_text(json.dumps({"outcome": outcome, "wrong": self.wrong}))


class Ground:
    """Workspace and state where every point begins, put back by copying; they stay where their state knows them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "vault"
        self.state = Path(os.environ["SIGNET_STATE"])
        self.here = folder / "run"

    def put_back(self, name: str = "before") -> None:
        """The ground as it was kept under a name."""
        for place, kept in ((self.root, self.folder / name), (self.state, self.folder / f"state-{name}")):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(kept, place)
        if name == "before":
            shutil.rmtree(self.here, ignore_errors=True)
            self.here.mkdir()
            os.chdir(self.here)

    def keep(self, name: str) -> None:
        """Keeps the ground as it is now under a name."""
        for place, kept in ((self.root, self.folder / name), (self.state, self.folder / f"state-{name}")):
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(place, kept)

    def judged(self) -> dict[str, Any]:
        """What a judge in a fork has written."""
        place = self.here / "judged.json"
        if not place.exists():
            return {"outcome": "none", "wrong": ["the recovery died"]}
        found = json.loads(place.read_text())
        place.unlink()
        return found


def spoken(work: Callable[[], int]) -> int:
    """Runs something in a fork that must not raise; tells where it does."""
    try:
        return work()
    except BaseException:
        traceback.print_exc()
        raise


def wanted(ground: Ground, work: Callable[[Path], int], now: str) -> dict[str, Any]:
    """Before and after of a run that nothing disturbs."""
    ground.put_back()
    before = portrait(ground.root)
    ground.put_back()
    with redirect_stdout(io.StringIO()):
        assert work(ground.root) == 0
        aim = {"before": before, "after": portrait(ground.root)}
        # A pass finds nothing to do, but for a backup of what is new.
        judge = Judge(ground.root, ground.here, aim, now)
        judge.recover(may_be_nothing=False)
        assert judge.wrong == [], judge.wrong
    return aim


class Sweep:
    """One scenario under one fault, at one point after the other."""

    def __init__(self, folder: Path, name: str, fault: str, again: int) -> None:
        told = json.loads((folder / "told.json").read_text())
        self.ground = Ground(folder)
        self.work = scenarios(told)[name]
        self.arm = FAULTS[fault]
        self.inside_sqlite = fault.startswith("sqlite")
        self.again = again
        self.now = LATER if name == "manifests" else NOW
        # A flow that was never begun leaves nothing; a pass is only ever cut short.
        self.flow = name not in ("manifests", "projection", "full")
        self.piecemeal = name == "parts"
        self.aim = wanted(self.ground, self.work, self.now)

    def points(self, every: int) -> Iterator[dict[str, Any]]:
        """What became of every point."""
        point = 1
        while True:
            self.ground.put_back()
            code = forked(spoken, lambda point=point: self.struck(point))
            ended = {0: "answered", KILLED: "killed", REFUSED: "refused"}.get(code, "")
            place = self.ground.here / "killed-at"
            met = place.exists()
            told = {"point": point, "label": place.read_text() if met else "end", "ended": ended or f"exit {code}"}
            self.ground.keep("struck")
            for way, found in self.killed_again(point) if self.again else self.ways():
                if not ended:
                    found["wrong"].append("it ended badly")
                yield {**told, "way": way, **found}
            if not met:
                return
            point += every

    def struck(self, point: int) -> int:
        """The run that meets the fault."""
        self.arm(point)
        try:
            return refused(self.work, self.ground.root)
        except apsw.Error:
            # What is raised inside a VFS comes out of `close`, too, which keeps quiet about errors of the system.
            if not self.inside_sqlite:
                raise
            return REFUSED

    def judge(self) -> Judge:
        return Judge(self.ground.root, self.ground.here, self.aim, self.now, piecemeal=self.piecemeal)

    def ways(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What becomes of a point: by a pass, by a pass and a retry, by a retry alone."""
        forked(spoken, lambda: self.judge().recover(self.flow))
        yield "pass", self.ground.judged()
        if not self.flow:
            return
        forked(spoken, lambda: self.judge().retry(self.work))
        yield "pass and retry", self.ground.judged()
        self.ground.put_back("struck")
        forked(spoken, lambda: self.judge().retry(self.work))
        yield "retry", self.ground.judged()

    def killed_again(self, point: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """What becomes of a point by a pass after a pass that was killed, at every so many steps of its own."""
        step = 1 + point % self.again
        while forked(spoken, lambda step=step: self.pass_killed(step)) == KILLED:
            forked(spoken, lambda: self.judge().recover(self.flow))
            yield f"killed again at {step}", self.ground.judged()
            self.ground.put_back("struck")
            step += self.again

    def pass_killed(self, step: int) -> int:
        """The pass that is killed."""
        arm(step)
        return command(str(self.ground.root), "reindex", "--now", self.now)


def main() -> int:
    """See the module."""
    folder, name, faults = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
    every = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    again = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    # A killed process leaves to the kernel what it has written: nothing here depends on the disk itself.
    os.fsync = lambda descriptor: None
    for fault in faults:
        for line in Sweep(folder, name, fault, again).points(every):
            print(json.dumps({"fault": fault, **line}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
