"""Ends an operation at one step after the other, by a kill or a failing call, and tells what a pass makes of it.

What is judged: files, rows, answers and buffers are those of a run that nothing disturbed, or nothing was done; nothing
is left over, no secret is anywhere, and a second pass writes nothing.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
from crash_runner import KILLED, NOW, arm, command, dump, everything, forked
from statement_rows import orphans

from signet_sync.app.workspace import opened
from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.formats.timestamps import parse_instant
from signet_sync.formats.turn import Turn
from signet_sync.memories import operations as memories_operations
from signet_sync.memories import promotion
from signet_sync.privacy import remove
from signet_sync.sessions import live
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import compaction_input, session_input
from signet_sync.settings.model import Settings
from signet_sync.storage import files, state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace, backups

# Made up, and never to be found in a byte that we write.
SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
NOW_US = parse_instant(NOW) or 0
LATER = "2026-04-28T11:00:00.000Z"
REFUSED = 3

# ── what is run ──


def asked(document: dict[str, Any], limit: int | None = None) -> Callable[[Path], int]:
    """A session end or compaction; what it answers is written to `answer.json`, as for a caller.

    With `limit` no file is longer than so many bytes, and the transcript is kept in several segments.
    """
    settings = Settings() if limit is None else Settings(max_file_bytes=limit)

    def work(root: Path) -> int:
        with opened(str(root), settings) as workspace:
            if "transcript" in document:
                answer = sessions_operations.end(workspace, session_input(document, now_us=NOW_US), now_us=NOW_US)
            else:
                answer = sessions_operations.compact(
                    workspace, compaction_input(document, now_us=NOW_US), now_us=NOW_US
                )
        Path("answer.json").write_text(json.dumps(answer))
        return 0

    return work


def passed(*arguments: str) -> Callable[[Path], int]:
    """A command line."""
    return lambda root: command(str(root), *arguments)


def told_to(*arguments: str, then: tuple[str, ...] = ()) -> Callable[[Path], int]:
    """A command line, and another one after it, whose caller is told that it is done."""

    def work(root: Path) -> int:
        for each in filter(None, (arguments, then)):
            if code := command(str(root), *each):
                return REFUSED if code == 1 else code  # some of it could not be done
        Path("answer.json").write_text("{}")
        return 0

    return work


def removed(name: str) -> Callable[[Path], int]:
    """A removal; one that has been made already has nothing to remove."""

    def work(root: Path) -> int:
        with opened(str(root), Settings()) as workspace:
            try:
                for part in remove.plan(workspace, "default", name):
                    remove.remove(workspace, part, "asked for", NOW_US)
            except UsageError as error:
                if error.code != "unknown-session":
                    raise
        return 0

    return work


def done(
    ask: Callable[[Workspace], object], settings: Settings | None = None, *, answers: bool = True
) -> Callable[[Path], int]:
    """What a person asks for by hand; what was forgotten already is."""

    def work(root: Path) -> int:
        with opened(str(root), settings or Settings()) as workspace:
            try:
                ask(workspace)
            except UsageError as error:
                if error.code != "unknown-memory":
                    raise
        if answers:
            Path("answer.json").write_text("{}")
        return 0

    return work


def stream(workspace: Workspace) -> None:
    """More turns of a session of which some stand already."""
    words = ("Bound it.", "Done.", f"The key was {SECRET} then.")
    turns = [Turn(number, "user", text, NOW) for number, text in enumerate(words, 1)]
    live.append(workspace, turns, agent_id="default", session_key="agent:main/third")


def remember(workspace: Workspace) -> None:
    """A word of one's own, with a secret in it."""
    given = {"kind": "decision", "tags": ("queue",), "private": False, "session": None, "now_us": NOW_US}
    memories_operations.remember(workspace, "default", f"Drain the lantern before {SECRET} is turned.", **given)


def sweep(workspace: Workspace) -> None:
    """Has what was recalled often rise."""
    promotion.dream(workspace, "default", NOW_US)


@dataclass(frozen=True)
class Scenario:
    """What is run, and what may be left where it was ended early.

    `flow`: it may never have begun, and is asked for again; else it is a pass, which the next one finishes.
    `piecemeal`: some of it may stand until it is asked for again. `tidies`: pages may be put in order before it begins.
    `gone` are words that no file may hold once it is done. `rewrites`: sealed files are written again. `heals`: until
    it is done, `check` finds something. `lifts`: tombstones stand before it, and say nothing of how far it came.
    """

    work: Callable[[Path], int]
    flow: bool = True
    piecemeal: bool = False
    tidies: bool = False
    gone: tuple[str, ...] = ()
    now: str = NOW
    rewrites: bool = False
    heals: bool = False
    lifts: bool = False


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


def is_file(descriptor: int) -> bool:
    """Whether a descriptor is that of a file, and no pipe's."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def failing(point: int, code: int) -> Failing:
    """Puts the fault at every durable call: files, folders, renames, SQLite's commits and checkpoints."""
    faults = Failing(point, code)
    faults.wrap(os, "open", takes_space=True, concerns=creates)
    faults.wrap(os, "write", takes_space=True, concerns=lambda descriptor, _: is_file(descriptor))
    for name in ("fsync", "link", "mkdir"):
        faults.wrap(os, name, takes_space=name != "fsync")
    for name in ("rename", "replace", "unlink", "rmdir", "ftruncate"):
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


def failing_inside_sqlite(point: int, code: int | None, *, reads: bool = False) -> None:
    """Puts the fault (None: a kill) into SQLite's own writes, syncs and truncations, or into what reads and opens."""
    faults = Failing(point, code or 0)
    usual = apsw.vfs_names()[0]

    def strike(label: str, *, takes_space: bool = True) -> None:
        if faults(label, takes_space=takes_space):
            if code is None:
                os._exit(KILLED)
            raise apsw.FullError("full") if code == errno.ENOSPC else apsw.IOError("broken")

    class Reading(apsw.VFSFile):
        def xRead(self, amount, offset):
            strike("xRead", takes_space=False)
            return super().xRead(amount, offset)

    class Writing(apsw.VFSFile):
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
            if reads:
                strike("xOpen", takes_space=False)
            return (Reading if reads else Writing)(usual, name, flags)

        def xDelete(self, name, sync):
            if reads:
                strike("xDelete", takes_space=False)
            super().xDelete(name, sync)

    failing_inside_sqlite.vfs = Vfs()


FAULTS: dict[str, Callable[[int], object]] = {
    "kill": arm,
    "EIO": lambda point: failing(point, errno.EIO),
    "ENOSPC": lambda point: failing(point, errno.ENOSPC),
    "sqlite-kill": lambda point: failing_inside_sqlite(point, None),
    "sqlite-EIO": lambda point: failing_inside_sqlite(point, errno.EIO),
    "sqlite-ENOSPC": lambda point: failing_inside_sqlite(point, errno.ENOSPC),
    "sqlite-read-EIO": lambda point: failing_inside_sqlite(point, errno.EIO, reads=True),
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
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".signet/tmp/" not in path.as_posix():
            name, digest = path.relative_to(root).as_posix(), sha256(content(path)).hexdigest()
            # What was kept of a page stands there once or, where keeping it was cut short, twice.
            found[f"kept {digest}" if ".user-" in name else name] = digest
    return found


def content(path: Path) -> bytes:
    """The bytes of a file; of an entity ledger what was done, whatever ids were drawn and however it came to pass."""
    raw = path.read_bytes()
    if path.suffix != ".jsonl" or path.parent.name != "ledger":
        return raw
    lines = []
    for line in raw.splitlines():
        with suppress(ValueError):  # one that a crash has cut short
            lines.append(json.loads(line))
    ended = {line["of"]: line["state"] for line in lines if "of" in line}
    done = [line for line in lines if "op" in line and ended.get(line["id"]) == "committed"]
    return json.dumps([[(key, line[key]) for key in line if key not in DRAWN] for line in done]).encode()


DRAWN = ("id", "token", "prev", "hash")
NATIVE = {
    "answers": "flow_results order by agent_id, flow_key",
    "live": "session_transcripts order by 1, 2, 3, 4",
    "running": "live_sessions order by 1, 2, 3",
    "tombstones": "memory_artifact_tombstones order by 1, 2",
    "events": "recall_events order by id",
}
KEPT = (
    "memories", "memory_sources", "node_telemetry", "dream_sweeps", "memory_promotions", "undone_promotions",
)  # fmt: skip
BACKED_UP = (
    "memories",
    "memory_sources",
    "recall_events",
    "dream_sweeps",
    "memory_promotions",
    "undone_promotions",
)


def portrait(root: Path) -> dict[str, Any]:
    """All that must be equal in two workspaces after the same things have been done: files, rows, answers, buffers.

    What is in a backup and nowhere else but in the database is listed twice.
    """
    place = state_dir.locate(str(root))
    found: dict[str, Any] = {"files": contents(root), "rows": dump(place.database)}
    database = Database(place.database, readonly=True)
    try:
        for name, table in NATIVE.items():
            found[name] = list(database.execute(f"select * from {table}"))
        for name in KEPT:
            found[name] = list(database.execute(f"select * from {name} order by 1, 2"))
        found["lines"] = list(database.execute("select agent_id, tier, name, text from texts order by 1, 3"))
        assert orphans(database) == 0
        for rowid, text in list(database.execute("select first, text from texts where artifact is null")):
            word = max(re.findall(r"[^\W_]+", text), key=len)
            hits = database.execute("select rowid from said where said match ?", (f'"{word}"',))
            assert (rowid,) in list(hits), f"{text!r} is not found by {word}"
    finally:
        database.close()
    found["live files"] = live_files(place.live)
    found["backup"] = backed_up(backups(place)[0])
    return json.loads(json.dumps(found))


def live_files(folder: str) -> dict[str, str]:
    """What the files of live turns hold, by name; a torn line at the end of one counts for nothing."""
    texts = {path.name: path.read_text().rpartition("\n")[0] for path in Path(folder).glob("*.jsonl")}
    return dict(sorted(texts.items()))


def backed_up(place: str) -> dict[str, list[Any]]:
    """What people asked for, as a backup has it."""
    connection = apsw.Connection(f"file:{place}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        return {name: list(connection.execute(f"select * from {name} order by 1, 2, 3")) for name in BACKED_UP}
    finally:
        connection.close()


def unlike(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs, in words."""
    differences = []
    for part, values in wanted.items():
        if found[part] == values:
            continue
        if part in ("files", "backup"):
            names = found[part].keys() | values.keys()
            differences.append(f"{part}: " + ", ".join(sorted(n for n in names if found[part].get(n) != values.get(n))))
        else:
            differences.append(f"{part}: {[r for r in found[part] if r not in values]} for "
                        f"{[r for r in values if r not in found[part]]}"[:600])  # fmt: skip
    return differences


def without_kept(found: dict[str, Any]) -> dict[str, Any]:
    """A portrait without what was kept of pages."""
    return found | {"files": {name: digest for name, digest in found["files"].items() if not name.startswith("kept ")}}


def journals(root: Path) -> list[str]:
    """The flows that are not finished."""
    return sorted(path.name for path in Path(state_dir.locate(str(root)).journal).glob("*.json"))


def strays(root: Path) -> list[str]:
    """Temporary files and unfinished flows."""
    folder = Path(state_dir.locate(str(root)).path)
    return [path.name for place in (root, folder) for path in place.rglob("*.tmp*")] + journals(root)


def holding(root: Path, words: Iterable[str]) -> list[str]:
    """Files of workspace and state that hold one of the words."""
    folder = Path(state_dir.locate(str(root)).path)
    paths = [path for place in (root, folder) for path in place.rglob("*") if path.is_file()]
    raw = {path.name: path.read_bytes().lower() for path in paths}
    return [f"{word} in {name}" for word in words for name, held in raw.items() if word.lower().encode() in held]


def is_begun(root: Path, scenario: Scenario) -> bool:
    """Whether the next pass has to go on.

    By the inputs of a flow, a tombstone, the mark of what was forgotten, the sweep or undone promotion of this moment.
    """
    connection = apsw.Connection(state_dir.locate(str(root)).database)
    try:
        marks = list(connection.execute("select * from unscrubbed_memories"))
        for table in ("dream_sweeps", "undone_promotions"):
            marks += list(connection.execute(f"select * from {table} where at_us = ?", (NOW_US,)))
    finally:
        connection.close()
    removes = not scenario.lifts and any(root.glob("memory/tombstones/*.md"))
    return bool(journals(root) or marks) or removes


class Judge:
    """What must hold after a run was ended early: `wrong` says what does not."""

    def __init__(self, root: Path, here: Path, wanted: dict[str, Any], scenario: Scenario) -> None:
        self.root = root
        self.here = here
        self.before = wanted["before"]
        self.after = wanted["after"]
        self.scenario = scenario
        self.now = scenario.now
        self.wrong: list[str] = []
        self.outcome = "all"

    def check(self, name: str, held: object) -> None:
        if not held:
            self.wrong.append(name)

    def recover(self, may_be_nothing: bool) -> int:
        """One ordinary pass, and all that must hold then."""
        acknowledged = (self.here / "answer.json").exists()
        found = contents(self.root)
        said, before = (
            {name: digest for name, digest in files.items() if name.startswith("memory/words/")}
            for files in (found, self.before.get("files", {}))
        )
        begun = may_be_nothing and (said != before or is_begun(self.root, self.scenario))
        if may_be_nothing and not begun and not acknowledged:
            whole = found in (self.before["files"], self.after["files"])
            loose = self.scenario.piecemeal or self.scenario.tidies
            self.check("written before it was journalled", whole or loose)
        self.check(f"a secret: {holding(self.root, [SECRET])}", not holding(self.root, [SECRET]))
        self.check("the pass failed", command(str(self.root), "reindex", "--now", self.now) == 0)
        try:
            there = portrait(self.root)
            different = unlike(there, self.after)
            if different and may_be_nothing and not begun and not acknowledged and self.is_as_before(there):
                self.outcome, different = "nothing", []
            elif different and self.scenario.piecemeal and not acknowledged:
                self.outcome, different = "part", []
            self.wrong += different
        except AssertionError as error:
            self.wrong.append(f"database: {error}")
        self.tidy()
        if self.outcome == "all":
            self.nothing_left()
        self.save()
        return 0

    def is_as_before(self, there: dict[str, Any]) -> bool:
        """Whether nothing was done; what was kept of a page may be clean already."""
        if self.scenario.tidies:
            there, before = without_kept(there), without_kept(self.before)
            return not unlike(there, before)
        return not unlike(there, self.before)

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
        self.nothing_left()
        self.save()
        return 0

    def nothing_left(self) -> None:
        """No byte of what had to go."""
        left = holding(self.root, self.scenario.gone)
        self.check(f"left: {left}", not left)

    def said(self) -> str:
        return (self.here / "refused").read_text() if (self.here / "refused").exists() else ""

    def tidy(self) -> None:
        """Nothing is left over, `check` finds nothing, and a second pass writes nothing."""
        self.check(f"left over: {strays(self.root)}", not strays(self.root))
        healed = not self.scenario.heals or self.outcome == "all"
        self.check("check is not clean", not healed or command(str(self.root), "check", "--now", self.now) == 0)
        folder = Path(state_dir.locate(str(self.root)).path)
        before = everything(self.root, folder)
        command(str(self.root), "reindex", "--now", self.now)
        after = everything(self.root, folder)
        # SQLite's log and its index come and go with readers; what is written ends up in the database.
        names = [p for p in before.keys() | after.keys() if not p.endswith(("-wal", "-shm"))]
        moved = [os.path.basename(p) for p in names if before.get(p) != after.get(p)]
        self.check(f"a second pass writes {moved}", not moved)

    def save(self) -> None:
        (self.here / "judged.json").write_text(json.dumps({"outcome": self.outcome, "wrong": self.wrong}))


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
    """Runs something in a fork that must not raise; prints where it does."""
    try:
        return work()
    except BaseException:
        traceback.print_exc()
        raise


def wanted(ground: Ground, scenario: Scenario) -> dict[str, Any]:
    """Before and after of a run that nothing disturbs."""
    with redirect_stdout(io.StringIO()):
        ground.put_back()
        if scenario.tidies:
            assert command(str(ground.root), "reindex", "--now", scenario.now) == 0
        before = portrait(ground.root) if scenario.flow else {}
        ground.put_back()
        assert scenario.work(ground.root) == 0
        aim = {"before": before, "after": portrait(ground.root)}
        # A pass finds nothing to do, but for a backup of what is new.
        judge = Judge(ground.root, ground.here, aim, scenario)
        judge.recover(may_be_nothing=False)
        assert judge.wrong == [], judge.wrong
    return aim


class Sweep:
    """One scenario under one fault, at one point after the other."""

    def __init__(self, ground: Ground, scenario: Scenario, aim: dict[str, Any], fault: str) -> None:
        self.ground = ground
        self.scenario = scenario
        self.aim = aim
        self.work = scenario.work
        self.arm = FAULTS[fault]
        self.inside_sqlite = fault.startswith("sqlite")
        # A flow that was never begun leaves nothing; a pass is only ever cut short.
        self.flow = scenario.flow

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
        return Judge(self.ground.root, self.ground.here, self.aim, self.scenario)

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
