"""A file system under SQLite that fails at the n-th call of a kind, and every operation run over it; see `main`.

`python faulty_database.py FOLDER OPERATION FAULT [EVERY [FIRST]]` makes a vault in FOLDER and runs the operation's
command line over it with the fault at call 1, 2, 3 … until a run meets none, each in a fork. Then, without a fault, it
is asked for again, and all that must hold is looked at. One JSON line a point: what was struck, how the run ended, and
what is wrong; nothing is an empty list.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.extend(map(str, Path(__file__).resolve().parents[1].iterdir()))

import apsw
import artifacts_fixture as made
from crash_runner import KILLED, forked
from invariants import Standing, broken, standing
from workbench import NOW, Answer, Vault, numbered, to_another_version

from signet_sync.app.daemon import Daemon, Options
from signet_sync.errors import DatabaseError
from signet_sync.storage.database import tables

MEMORY = "Lantern wicks are trimmed on Mondays by the keeper of src/queue.py."
NEW = "Oil for the lantern is bought in the harbour before the first of May."
TURNS = [
    {"turn": number, "role": "user", "text": f"Turn {number} of what still runs.", "at": NOW} for number in range(4)
]
ENDING = {"session_id": "fa017000-0000-4000-8000-000000000009", "transcript": "User: Trim it.\n\nAssistant: Trimmed."}


# ── what goes wrong ──


class Faults:
    """Counts calls of a kind and strikes at one of them; where the disk is full, at all that follow, too."""

    def __init__(self, fault: str, point: int) -> None:
        self.call, self.how = FAULTS[fault]
        self.point = point
        self.count = 0
        self.struck = ""

    def __call__(self, call: str) -> str:
        """How this call fails; empty where it does not."""
        if call not in self.call:
            return ""
        self.count += 1
        if self.count < self.point or (self.count > self.point and self.how != "full"):
            return ""
        if not self.struck:
            self.struck = call
            Path("struck").write_text(call)
        if self.how == "kill":
            os._exit(KILLED)
        if self.how == "full":
            raise apsw.FullError("full")
        if self.how == "error":
            raise apsw.CantOpenError("no") if call == "open" else apsw.IOError("broken")
        return self.how


# By name: the calls that it may be, and what becomes of the call.
FAULTS: dict[str, tuple[tuple[str, ...], str]] = {
    "read fails": (("read",), "error"),
    "read is short": (("read",), "short"),
    "read flips a bit": (("read",), "flip"),
    "write fails": (("write",), "error"),
    "sync fails": (("sync",), "error"),
    "truncate fails": (("truncate",), "error"),
    "delete fails": (("delete",), "error"),
    "open fails": (("open",), "error"),
    "disk full": (("write", "truncate"), "full"),
    "killed": (("write", "sync", "truncate", "delete"), "kill"),
}


def plant(faults: Faults) -> apsw.VFS:
    """Puts a file system over the usual one, for every connection that is opened from now on."""
    usual = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def xRead(self, amount: int, offset: int) -> bytes:
            how = faults("read")
            data = super().xRead(amount, offset)
            if how == "short":
                return data[: amount // 2]
            if how == "flip" and data:
                place = faults.point * 7919 % len(data)
                return data[:place] + bytes([data[place] ^ 1 << faults.point % 8]) + data[place + 1 :]
            return data

        def xLock(self, level: int) -> None:
            # Whoever only reads may not lock for writing; SQLite asks all the same when it closes.
            try:
                super().xLock(level)
            except apsw.IOError:
                raise apsw.BusyError("not to be written") from None

        def xWrite(self, data: bytes, offset: int) -> None:
            faults("write")
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            faults("sync")
            super().xSync(flags)

        def xTruncate(self, size: int) -> None:
            faults("truncate")
            super().xTruncate(size)

    class System(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("faulty", usual, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
            faults("open")
            return File(usual, name, flags)

        def xDelete(self, name: str, sync: bool) -> None:
            faults("delete")
            super().xDelete(name, sync)

    return System()


# ── what is run ──


def remembered(text: str) -> Callable[[Vault], bool]:
    return lambda vault: vault.rows("select count(*) from memories where content = ?", text) == [(1,)]


def ended(vault: Vault) -> bool:
    return len(list(vault.memory.glob("*--transcript.md"))) == 3 and bool(vault.hits("trimmed"))


def removed(vault: Vault) -> bool:
    return vault.hits("number2x") == [] and len(list(vault.memory.glob("tombstones/*"))) == 2


def same(vault: Vault) -> bool:
    """Nothing was asked for that could be missing."""
    return True


@dataclass(frozen=True)
class Operation:
    """A command line, what happens to the vault before it, and whether what it was asked for is there."""

    words: tuple[str, ...]
    done: Callable[[Vault], bool] = same
    before: Callable[[Vault], None] = lambda vault: None
    gone: tuple[bytes, ...] = ()  # words that no file holds any more once it is done

    def run(self, vault: Vault) -> Answer:
        """Runs it in this process."""
        return vault.call(*self.words)


@dataclass(frozen=True)
class Start(Operation):
    """The agent, which starts, looks at everything and is asked to end."""

    def run(self, vault: Vault) -> Answer:
        agent = Daemon(Options(str(vault.root), None, {"watch_mode": "off"}))
        threading.Timer(0.8, agent.stop).start()
        try:
            return Answer(agent.run(), "", "")
        except DatabaseError as error:
            # What does not pass by itself ends it, as it ends any command.
            return Answer(error.exit_code, "", f"{error.message} (hint: {error.hint})")


def lose_the_database(vault: Vault) -> None:
    """As in a workspace that is seen for the first time."""
    for path in vault.state.glob("signet-sync.db*"):
        path.unlink()


def another_session(vault: Vault) -> None:
    vault.session(4)


NOW_IS = ("--now", NOW)
OPERATIONS: dict[str, Operation] = {
    "first reindex": Operation(("reindex", *NOW_IS), before=lose_the_database),
    "reindex of what changed": Operation(("reindex", *NOW_IS), before=another_session),
    "full reindex": Operation(("reindex", "--full", *NOW_IS)),
    "migration": Operation(("reindex", *NOW_IS), before=to_another_version),
    "search": Operation(("search", "--json", "number1x")),
    "recall": Operation(("recall", "--json", "wicks")),
    "status": Operation(("status", "--json")),
    "doctor": Operation(("doctor", "--json")),
    "remember": Operation(("remember", NEW), remembered(NEW)),
    "session end": Operation(("session", "end", "--input", "ending.json"), ended),
    "remove": Operation(
        ("remove", numbered(2)["session_id"], "--reason", "asked for", "--yes", *NOW_IS), removed, gone=(b"number2x",)
    ),
    "start of the agent": Start(("run",), before=another_session),
}


# ── the vault ──


def prepare(folder: Path) -> Vault:
    """Sessions, one of them removed, and native rows of every kind that people make; FOLDER/before holds it."""
    vault = Vault(folder / "vault")
    for number in (1, 2, 3):
        vault.session(number)
    vault.put(made.compaction(**numbered(1)))
    vault.reindex()
    assert vault.call("remove", numbered(3)["session_id"], "--reason", "asked for", "--yes", *NOW_IS).code == 0
    kept = vault.call("remember", MEMORY, "--tag", "oil", "--json")
    assert vault.call("pin", kept.json["id"]).code == 0
    (folder / "turns").write_text("".join(json.dumps(turn) + "\n" for turn in TURNS))
    stream(vault, folder / "turns")
    vault.reindex()
    newer_than_the_backup(vault)
    with vault.database(readonly=False) as database:
        database.close()  # as between two commands: the log is written back
    keep(folder)
    return vault


def newer_than_the_backup(vault: Vault) -> None:
    """Hits and accesses, which no command backs up by itself."""
    assert vault.call("recall", "wicks", "--json").code == 0
    assert vault.hits("number2x") and vault.hits("number1x")


def stream(vault: Vault, turns: Path) -> None:
    """Live turns, from a file as stdin."""
    with turns.open() as given:
        before, sys.stdin = sys.stdin, given
        try:
            assert vault.call("transcript", "append", "--session-key", "live-one").code == 0
        finally:
            sys.stdin = before


def keep(folder: Path) -> None:
    """Keeps the ground, so that `put_back` finds it."""
    for place, kept in ((folder / "vault", "before"), (Path(os.environ["SIGNET_STATE"]), "state-before")):
        shutil.rmtree(folder / kept, ignore_errors=True)
        shutil.copytree(place, folder / kept)


def put_back(folder: Path) -> Vault:
    """The ground as it was kept; they stay where their state knows them."""
    for place, kept in ((folder / "vault", "before"), (Path(os.environ["SIGNET_STATE"]), "state-before")):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder / kept, place)
    return Vault(folder / "vault")


def set_up(folder: Path) -> Vault:
    """The ground, and an empty folder to work in."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    os.chdir(run)
    Path("ending.json").write_text(json.dumps(ENDING))
    return put_back(folder)


# Marks of the moment, counters' values and what a pass finds again are no loss.
PASSING = ("passes", "backups", "history_told", "live_files", "memory_md_heads", "violations", "garden_drift")
KEYS = {
    "artifact_telemetry": "agent_id, source_path",
    "node_telemetry": "agent_id, id",
    "seals": "path, digest, body_sha256",
    "memory_artifact_tombstones": "agent_id, session_token, reason",
    "recall_events": "agent_id, memory_id, query, at_us",
    "memories": "agent_id, id, type, content, tags, private, created_at",
}


def native(place: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Every native row by what makes it one, whatever the version of the schema."""
    found: dict[str, set[tuple[Any, ...]]] = {}
    connection = apsw.Connection(str(place), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        there = {name for (name,) in connection.execute("select name from sqlite_schema")}
        for table in tables.native_tables():
            if table not in PASSING:
                columns = KEYS.get(table) or ", ".join(tables.TABLES[table].columns or ("*",))
                found[table] = set(connection.execute(f"select {columns} from {table}")) if table in there else set()
    finally:
        connection.close()
    return found


def lost(before: Mapping[str, set[tuple[Any, ...]]], now: Mapping[str, set[tuple[Any, ...]]]) -> dict[str, int]:
    """How many rows of each table are not there any more."""
    return {table: len(rows - now[table]) for table, rows in before.items() if rows - now[table]}


# ── one point after the other ──


@dataclass(frozen=True)
class Aim:
    """What must hold after a point: what stood before, and the native rows that an undisturbed run leaves."""

    before: Standing
    native: Mapping[str, set[tuple[Any, ...]]]


def aim(folder: Path, operation: Operation) -> Aim:
    """Runs the operation without a fault."""
    vault = set_up(folder)
    stood, rows = standing(vault), native(vault.db) if vault.db.exists() else None
    answer = operation.run(vault)
    assert answer.code == 0, answer
    assert operation.done(vault)
    assert vault.call("reindex", *NOW_IS).code == 0
    after = native(vault.db)
    stays = {table: found & after[table] for table, found in (rows or after).items()}
    gone = Standing(
        {path: digests for path, digests in stood.artifacts.items() if (vault / path).exists()},
        operation.gone,
        stood.mine,
        stood.invalid,
    )
    assert broken(vault, gone) == []
    return Aim(gone, stays)


def points(folder: Path, operation: Operation, fault: str, every: int, first: int) -> Iterator[dict[str, Any]]:
    """What became of every point."""
    wanted = aim(folder, operation)
    point = first
    while True:
        set_up(folder)
        code = forked(struck, folder, operation, fault, point)
        if not Path("struck").exists():
            yield {"point": point, "struck": "", "ended": code, "wrong": said_badly(code)}
            return
        found = {"point": point, "struck": Path("struck").read_text(), "ended": code, "wrong": said_badly(code)}
        if forked(recovered, folder, operation, wanted, code) != 0:
            found["wrong"].append("the recovery died")
        else:
            found["wrong"] += json.loads(Path("wrong").read_text())
        yield found
        point += every


def struck(folder: Path, operation: Operation, fault: str, point: int) -> int:
    """The run that meets the fault; what it said stands in `said`."""
    sys.unraisablehook = lambda _raised: None  # of what is raised inside a file system where SQLite asks for no answer
    system = plant(Faults(fault, point))
    answer = operation.run(Vault(folder / "vault"))
    Path("said").write_text(answer.out + answer.err)
    return answer.code if system else 0


def said_badly(code: int) -> list[str]:
    """What is wrong with how a run ended: 0, 1 of `doctor`, or an error of ours in plain words, and exit code 3."""
    said = Path("said").read_text() if Path("said").exists() else ""
    wrong = [] if code in (0, 1, 3, KILLED) else [f"ended with {code}"]
    wrong += [f"said {word}: {said[-300:]}" for word in ("Traceback", "unexpected") if word in said]
    if code == 3 and not ("hint" in said or "—" in said):
        wrong.append(f"no remedy: {said[-300:]}")
    return wrong


def recovered(folder: Path, operation: Operation, wanted: Aim, code: int) -> int:
    """Asks again where the run did not say that it was done; then everything must be well."""
    vault = Vault(folder / "vault")
    wrong = []
    if code != 0:
        again = operation.run(vault)
        if again.code != 0 and not operation.done(vault):
            wrong.append(f"asked again it ends with {again.code}: {(again.out + again.err)[-300:]}")
    wrong += broken(vault, wanted.before)
    if not operation.done(vault):
        wrong.append("what was asked for is not there")
    wrong += [f"{count} rows of {table} are lost" for table, count in lost(wanted.native, native(vault.db)).items()]
    Path("wrong").write_text(json.dumps(wrong))
    return 0


def main() -> int:
    """See the module."""
    folder, operation, fault = Path(sys.argv[1]), OPERATIONS[sys.argv[2]], sys.argv[3]
    every, first = (int(word) for word in (*sys.argv[4:], "1", "1")[:2])
    os.fsync = lambda descriptor: None  # a killed process leaves to the kernel what it has written
    if not (folder / "before").exists():
        prepare(folder)
    vault = put_back(folder)
    operation.before(vault)
    for line in in_a_copy(folder, operation, fault, every, first):
        print(json.dumps(line), flush=True)
    return 0


def in_a_copy(folder: Path, operation: Operation, fault: str, every: int, first: int) -> Iterator[dict[str, Any]]:
    """The points over the ground as the operation wants it, which is kept in place of the common one."""
    common = [(folder / name, folder / f"common-{name}") for name in ("before", "state-before")]
    for kept, aside in common:
        shutil.copytree(kept, aside)
    try:
        keep(folder)
        yield from points(folder, operation, fault, every, first)
    finally:
        for kept, aside in common:
            shutil.rmtree(kept)
            aside.rename(kept)


if __name__ == "__main__":
    sys.exit(main())
