"""Races between real processes: for the agent's locks, past a lease, between an editor and what we write.

`python races.py KIND FOLDER COUNT` runs one of them in FOLDER and prints what it counted as one line of JSON. Every
process is a fork of one that has all in memory, so that they begin within microseconds of each other.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import hand_edits

from signet_sync.app.workspace import opened
from signet_sync.errors import AnotherAgent, SignetSyncError
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import parse_instant
from signet_sync.pages import page_files
from signet_sync.pages.conflict_copies import keep_displaced
from signet_sync.settings.model import Settings
from signet_sync.storage import durable, files, state_dir, writing
from signet_sync.storage.database import connection
from signet_sync.sync import manifests
from signet_sync.sync.deriving import publish_pages

STARTERS = 8
LANES = 5  # rounds of a race that run beside each other: most of each is waiting
PAGE = "MEMORY.md"
EARLIER = [parse_instant(f"2026-03-{day}T12:00:00.000Z") or 0 for day in (26, 27, 28)]


def forked(work: Callable[[], int | None]) -> int:
    """Runs something in a fork, which ends with what it gives; the fork's id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        code = work() or 0
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """The exit code of a fork."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Gate:
    """A door that opens in one instant for all who wait at it."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()

    def wait(self) -> None:
        """Waits in a fork until the door opens."""
        os.read(self._out, 1)

    def is_open(self) -> bool:
        """Whether the one who asks may pass."""
        return bool(select.select([self._out], [], [], 0)[0])

    def open(self, waiting: int = 1) -> None:
        """Opens it for so many."""
        os.write(self._in, b"." * waiting)
        os.close(self._in)
        os.close(self._out)


# ── the agent's lock ──


def starts(place: Path, rounds: int) -> dict[str, int]:
    """Eight starters a round; whoever holds the lock keeps it until all have answered whether they do."""
    counted: Counter[str] = Counter()
    for first in range(0, rounds, LANES):
        lanes = [_Start(place / str(lane)) for lane in range(min(LANES, rounds - first))]
        for lane in lanes:
            lane.go.open(STARTERS)
        for lane in lanes:
            holders = lane.holders()
            counted["rounds"] += 1
            counted["with one holder"] += holders == 1
            counted["starters"] += STARTERS
    return counted


class _Start:
    """One round: eight forks at a gate."""

    def __init__(self, folder: Path) -> None:
        self.folder = state_dir.StateFolder(str(folder), "key")
        self.go, self.over = Gate(), Gate()
        self._read_end, self._write_end = os.pipe()
        self._pids = [forked(self._start) for _ in range(STARTERS)]
        os.close(self._write_end)

    def _start(self) -> None:
        self.go.wait()
        try:
            with state_dir.run_lock(self.folder):
                os.write(self._write_end, b"1")
                self.over.wait()
        except AnotherAgent:
            os.write(self._write_end, b"0")

    def holders(self) -> int:
        verdicts = b""
        while len(verdicts) < STARTERS and (more := os.read(self._read_end, STARTERS)):
            verdicts += more
        self.over.open(STARTERS)
        for pid in self._pids:
            ended(pid)
        os.close(self._read_end)
        assert len(verdicts) == STARTERS, verdicts
        return verdicts.count(b"1")


def takeovers(place: Path, rounds: int) -> dict[str, int]:
    """kill -9 to a holder while another one keeps trying: as often that one holds the lock."""
    folder = state_dir.StateFolder(str(place / "takeover"), "key")
    taken = 0
    for _ in range(rounds):
        read_end, write_end = os.pipe()

        def hold(write_end: int = write_end) -> None:
            while True:
                with suppress(AnotherAgent), state_dir.run_lock(folder):
                    os.write(write_end, b"1")
                    signal.pause()

        first = forked(hold)
        os.read(read_end, 1)
        second = forked(hold)
        time.sleep(0.02)
        os.kill(first, signal.SIGKILL)
        taken += os.read(read_end, 1) == b"1"
        os.kill(second, signal.SIGKILL)
        for pid in (first, second):
            ended(pid)
        os.close(read_end)
        os.close(write_end)
    return {"taken": taken}


LOCKS: dict[str, Callable[[state_dir.StateFolder], AbstractContextManager[None]]] = {
    "run": state_dir.run_lock,
    "workspace": state_dir.workspace_lock,
    "session": lambda folder: state_dir.session_lock(folder, "abcdefghijklmnop"),
    "history": state_dir.history_lock,
    "dream": state_dir.dream_lock,
    "intake": state_dir.intake_lock,
}
NOT_FREED_BY_DELETING = ("run", "workspace")  # each rests on a folder, too, that nobody deletes to get rid of a lock


def turns(place: Path, rounds: int, *, vandal: bool = False) -> dict[str, int]:
    """Four processes count up one number, each under the lock: as many as they counted, or somebody was inside twice.

    With a `vandal` somebody deletes the lock files, or puts them aside, all the time.
    """
    missed = {}
    for name, lock in LOCKS.items():
        if vandal and name not in NOT_FREED_BY_DELETING:
            continue
        folder = state_dir.StateFolder(str(place / f"turns-{name}"), "key")
        durable.private_folder(folder.locks)
        number = place / f"number-{name}"
        number.write_text("0")

        def count(lock: Any = lock, folder: Any = folder, number: Path = number) -> None:
            done = 0
            while done < rounds:
                with suppress(SignetSyncError), lock(folder):
                    before = int(number.read_text() or "0")
                    os.sched_yield()
                    number.write_text(str(before + 1))
                    done += 1

        gone = [forked(lambda folder=folder: _vandalise(Path(folder.locks)))] if vandal else []
        racers = [forked(count) for _ in range(4)]
        codes = [ended(pid) for pid in racers]
        for pid in gone:
            os.kill(pid, signal.SIGKILL)
            ended(pid)
        missed[name] = 4 * rounds - int(number.read_text()) + sum(codes)
    return {"locks": len(missed), "turns": 4 * rounds * len(missed), "missed": sum(missed.values())}


def _vandalise(locks: Path) -> None:
    while True:
        with suppress(OSError):
            for number, path in enumerate(locks.iterdir()):
                path.unlink() if number % 2 else path.rename(path.with_suffix(".old"))
        time.sleep(0.0005)


# ── a holder of a page's lease that sleeps ──


class Stops:
    """Counts the steps of a write, and stops its process at one of them; there is none before `at` is known."""

    def __init__(self) -> None:
        self.at = self.count = 0

    def __call__(self) -> None:
        self.count += self.at > 0
        if 0 < self.at == self.count:
            os.kill(os.getpid(), signal.SIGSTOP)

    def wrap(self, where: Any, name: str) -> None:
        """A stop before a call and one after it."""
        real = getattr(where, name)

        def stepped(*given: Any, **named: Any) -> Any:
            self()
            try:
                return real(*given, **named)
            finally:
                self()

        setattr(where, name, stepped)


def armed() -> Stops:
    """Puts a stop at every call by which a write can be seen, and around every transaction."""
    stops = Stops()
    for name in ("open", "write", "fsync", "link", "replace", "rename", "unlink"):
        stops.wrap(os, name)
    stops.wrap(writing, "_rename")

    class Connection(apsw.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> Any:
            if sql not in ("begin immediate", "commit"):
                return super().execute(sql, *given, **named)
            stops()
            try:
                return super().execute(sql, *given, **named)
            finally:
                stops()

    apsw.Connection = Connection  # type: ignore[misc]
    return stops


def fences(root: Path, races: int) -> dict[str, int]:
    """A writer of MEMORY.md stops at each step in turn, a second one takes its lease over, it wakes up.

    Counted as fenced is whoever held the lease when it stopped, and had it taken away; as `writes` whatever of the
    page, its row or the lease's row differs between the second one's end and the fenced one's.
    """
    counted: Counter[str] = Counter({"writes": 0, "fenced": 0})
    with _second(root) as ask:
        holding = _holding(root, ask, max(1, 90 // races))
        for number in range(races):
            sleeper = _stopped(root, holding[number % len(holding)])
            assert sleeper is not None
            answered = ask(f"take {sleeper}")
            os.kill(sleeper, signal.SIGCONT)
            code = ended(sleeper)
            assert answered["held"]
            if answered["taken"]:
                counted["fenced"] += 1
                counted["answered so"] += code == 1
                wrote = ask("look")["seen"] != answered["seen"]
                counted["writes"] += wrote
            else:
                counted["nobody could take it"] += 1
                wrote = True
            if wrote:
                ask("take 0")  # else the next one would find its page written
        counted["steps"] = len(holding)
    return counted


def _holding(root: Path, ask: Callable[[str], dict[str, Any]], stride: int) -> list[int]:
    """The steps of a write at which its writer holds the lease; with a stride some of them."""
    holding = []
    at = 1
    while (sleeper := _stopped(root, at)) is not None:
        time.sleep(0.002)
        held = ask(f"take {sleeper}")["held"]
        holding += [at] if held else []
        os.kill(sleeper, signal.SIGCONT)
        ended(sleeper)
        ask("take 0")
        at += stride
    ask("take 0")  # the last one wrote the page
    return holding


def _stopped(root: Path, at: int) -> int | None:
    """A writer that has stopped at this step; None where it came to its end before."""
    pid = forked(lambda: _write_page(root, at))
    _, status = os.waitpid(pid, os.WUNTRACED)
    return pid if os.WIFSTOPPED(status) else None


def _write_page(root: Path, at: int) -> int:
    stops = armed()
    with opened(str(root), Settings()) as workspace:
        stops.at = at
        outcome = publish_pages(workspace, agents={"default"}, now_us=EARLIER[0])
        return int(outcome.deferred)


@contextmanager
def _second(root: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    """The one that takes over: a process with a connection of its own, which obeys."""
    asked, ask = os.pipe()
    answers, answer = os.pipe()

    def obey() -> None:
        os.close(ask)
        connection.BUSY_MS = 30
        state_dir.session_lock = partial(state_dir.session_lock, timeout=0.03)
        with opened(str(root), Settings()) as workspace, os.fdopen(asked) as lines:
            turn = 0
            for line in lines:
                turn += line.startswith("take")
                seen = _taken(workspace, line.split()[1], EARLIER[1 + turn % 2]) if line.startswith("take") else {}
                seen["seen"] = _seen(workspace)
                os.write(answer, json.dumps(seen).encode() + b"\n")

    pid = forked(obey)
    os.close(asked)
    os.close(answer)
    with os.fdopen(answers) as lines:

        def put(line: str) -> dict[str, Any]:
            os.write(ask, f"{line}\n".encode())
            found: dict[str, Any] = json.loads(lines.readline())
            return found

        try:
            yield put
        finally:
            os.close(ask)
            ended(pid)


_LEASE = "select lease_owner, fence from memory_md_heads where lease_owner is not null"


def _taken(workspace: Any, pid: str, now_us: int) -> dict[str, Any]:
    """Writes the page anew; whether the one of this process id held the lease before, and lost it."""
    mine = [fence for owner, fence in workspace.database.execute(_LEASE) if owner.split(":")[1] == pid]
    publish_pages(workspace, agents={"default"}, now_us=now_us)
    fence = workspace.database.value("select fence from memory_md_heads")
    return {"held": bool(mine), "taken": mine != [] and fence > mine[0]}


def _seen(workspace: Any) -> list[Any]:
    """All that a fenced holder could have changed: the page's file, what is known of it, the lease."""
    page = Path(workspace.root) / PAGE
    found = [sha256(page.read_bytes()).hexdigest(), page.stat().st_ino, page.stat().st_mtime_ns]
    for table in ("pages", "memory_md_heads"):
        found += [list(row) for row in workspace.database.execute(f"select * from {table}")]
    return [*found, sorted(os.listdir(page.parent))]


# ── a person's editor ──


PATIENCE, ASIDE = 600.0, 3.0  # seconds until a save must be seen, in the file or beside it: ours may be held up
RESTS = (0.0, 0.004, 0.001, 0.0, 0.002)  # seconds between two saves: some are caught in the middle of ours
EDITORS = [hand_edits.EDITORS[how] for how in (*hand_edits.SAVINGS, "over it", "in halves", "in a hundred bits")]


def edits(root: Path, saves: int, *, what: str) -> dict[str, int]:
    """An editor saves a file again and again, in each of its ways, while we write it as fast as we can.

    Every save changes one line of the person's, `Mine: N.`. It was lost if it does not come to stand in the file, and
    is in no copy that we kept or keep, at the end, of what still lies aside.
    """
    begun, over = Gate(), Gate()
    read_end, write_end = os.pipe()
    target = root / what
    write = _writes_page if what == PAGE else _writes_manifest

    def agent() -> None:
        written = refused = 0
        with opened(str(root), Settings()) as workspace:
            while not over.is_open():
                try:
                    write(workspace, what, written)
                    written += 1
                except (SignetSyncError, OSError):
                    refused += 1
                if written + refused == 1:
                    begun.open()
        os.write(write_end, json.dumps([written, refused]).encode())

    pid = forked(agent)
    found = _Edited(target, saves)
    begun.wait()  # what the first write loads takes longer than some saves
    found.run()
    over.open()
    code = ended(pid)
    assert code == 0, code
    written, refused = json.loads(os.read(read_end, 1000))
    with opened(str(root), Settings()) as workspace:
        waiting = keep_displaced(workspace, time.time_ns() // 1000, rest=0.0)
    kept = b"".join(path.read_bytes() for path in root.glob("*.user-*.md"))
    lost = [number for number in found.aside if _line(number) not in kept]
    return {
        "saves": saves,
        "lost": len(lost) + found.lost + bool(waiting),
        "kept in a copy": len(found.aside) - len(lost),
        "writes of ours": written,
        "writes that gave way": refused,
    }


def _line(number: int) -> bytes:
    return b"Mine: %d.\n" % number


class _Edited:
    """A file that a person saves again and again."""

    def __init__(self, target: Path, saves: int) -> None:
        self.target, self.saves = target, saves
        self.lost = 0
        self.aside: list[int] = []

    def run(self) -> None:
        number = 0
        while number < self.saves:
            text = self._with(number)
            if text is None:
                text = self._read()
                text = text + _line(number) if _line(number) not in text else text
            save = EDITORS[number % len(EDITORS)]
            try:
                save(self.target, text.replace(_line(number), _line(number + 1)))
            except FileNotFoundError:
                continue  # it could not be opened: nothing was saved
            number += 1
            time.sleep(RESTS[number % len(RESTS)])
        self._with(number)

    def _read(self) -> bytes:
        while True:
            with suppress(FileNotFoundError):
                return self.target.read_bytes()

    def _with(self, number: int) -> bytes | None:
        """The file once it shows what was saved last; None where it does not come back."""
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE:
            text = self._read()
            if _line(number) in text:
                return text
            if time.monotonic() > began + ASIDE and self._is_aside(number):
                self.aside.append(number)
                return None
        self.lost += 1
        return None

    def _is_aside(self, number: int) -> bool:
        root = next(parent for parent in self.target.parents if (parent / ".signet").is_dir())
        for path in (*root.glob("*.user-*.md"), *(root / ".signet/tmp").glob("*-*-*-*-*.tmp")):
            with suppress(OSError):
                if _line(number) in path.read_bytes():
                    return True
        return False


def _writes_page(workspace: Any, path: str, number: int) -> None:
    page_files.write(workspace, path, f"# Working Memory\n\nRound {number}.\n", time.time_ns() // 1000, set())


def _writes_manifest(workspace: Any, path: str, number: int) -> None:
    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str]:
        return {**fields, "memory_md_refs": [f"Round {number}"]}, body

    token = path.split("--")[1]
    written = manifests.swap(
        workspace.root, path, change, lambda: state_dir.session_lock(workspace.state, token), limit=1 << 20
    )
    if written is None:
        raise OSError("half of it")


def begin_edits(root: Path, what: str) -> None:
    """Puts the person's line where the editor finds it."""
    found = files.read(str(root), what, 1 << 20)
    before = found.raw if isinstance(found, Found) else b""
    (root / what).write_bytes(before + _line(0))


KINDS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "starts": starts,
    "takeovers": takeovers,
    "turns": turns,
    "vandal": lambda place, rounds: turns(place, rounds, vandal=True),
    "fences": fences,
}


def main() -> None:
    kind, place, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if kind == "edits":
        what = sys.argv[4]
        begin_edits(place, what)
        print(json.dumps(edits(place, count, what=what)))
    else:
        print(json.dumps(KINDS[kind](place, count)))


if __name__ == "__main__":
    main()
