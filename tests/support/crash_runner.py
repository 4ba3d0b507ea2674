"""Kills a command at every labelled step, one after the other, each in a fork of a process that has all in memory.

`python crash_runner.py FOLDER SCENARIO [EVERY]` wants FOLDER/before (workspace) and FOLDER/state (its state), runs the
scenario's command in copies of both, killed at step 1, 2, 3 … until a run ends by itself, and prints one JSON line a
step: the step's label, what an ordinary pass made of it afterwards, and what is wrong; nothing wrong is an empty list.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import apsw

from benchmarks.index_rows import canonical_dump
from signet_sync.cli import main as cli_main
from signet_sync.storage import files, state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.artifacts import text_in_step

NOW = "2026-03-29T12:00:00.000Z"
MINE = b"# What I wrote myself\n"
KILLED = 137


class Steps:
    """Counts the steps that change something durable, and ends the process at one of them as kill -9 would."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.count = 0

    def __call__(self, label: str) -> None:
        self.count += 1
        if self.count == self.last:
            with open("killed-at", "w", encoding="ascii") as handle:
                handle.write(label)
            os._exit(KILLED)

    def wrap(self, where: object, name: str, *, after: bool = True) -> None:
        """A kill before the call, and one after it: in between lies what the call does at once."""
        real = getattr(where, name)

        def stepped(*given, **named):
            self(f"before {name}")
            result = real(*given, **named)
            if after:
                self(f"after {name}")
            return result

        setattr(where, name, stepped)


def arm(last: int) -> None:
    """Puts a step at every durable call: files, folders, renames, and SQLite's commits and checkpoints."""
    steps = Steps(last)
    for name in ("link", "replace", "rename", "unlink", "mkdir", "rmdir", "ftruncate"):
        steps.wrap(os, name)
    steps.wrap(os, "fsync", after=False)
    real_open = os.open

    def created(path, flags, *given, **named):
        if not flags & os.O_CREAT:
            return real_open(path, flags, *given, **named)
        steps("before create")
        descriptor = real_open(path, flags, *given, **named)
        steps("after create")
        return descriptor

    os.open = created
    steps.wrap(files, "_rename")
    real_write = os.write

    def half_written(descriptor, data):
        steps("before write")
        if steps.count + 1 == steps.last and len(data) > 1:
            real_write(descriptor, bytes(data)[: len(data) // 2])
        steps("half a write")
        return real_write(descriptor, data)

    os.write = half_written

    class Connection(apsw.Connection):
        def execute(self, sql, *given, **named):
            if sql != "commit":
                return super().execute(sql, *given, **named)
            steps("before commit")
            result = super().execute(sql, *given, **named)
            steps("after commit")
            return result

        def wal_checkpoint(self, *given, **named):
            steps("before checkpoint")
            result = super().wal_checkpoint(*given, **named)
            steps("after checkpoint")
            return result

    apsw.Connection = Connection


def command(root: str, *arguments: str) -> int:
    """One command line, quietly."""
    return cli_main.run(["--quiet", "--workspace", root, *arguments])


def scenarios(before: Path) -> dict[str, list[list[str]]]:
    """The commands that are killed, by name; the last argument lists are run in order."""
    prepared = json.loads((before.parent / "prepared.json").read_text())
    now = ["--now", NOW]
    return {
        "first": [["reindex", *now]],
        "index-only": [["reindex", "--index-only", *now]],
        "changed": [["reindex", *now]],
        "full": [["reindex", "--full", *now]],
        "remove": [["remove", prepared["remove"], "--reason", "asked for", "--yes", *now]],
        "restore": [["violations", "restore", "--all", "--yes", *now]],
        "accept": [
            ["violations", "accept", prepared["accept"], "--reason", "mine", *now],
            ["violations", "accept", "--vanished", "--reason", "mine", "--yes", *now],
        ],
    }


def forked(work, *given) -> int:
    """Runs something in a fork; gives its exit code."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            for descriptor in (1,):
                os.dup2(quiet, descriptor)
            code = work(*given)
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def artifacts(root: Path) -> dict[str, str]:
    """Every immutable artifact of a workspace by name."""
    return {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in (root / "memory").glob("*.md")
        if path.is_file() and not path.name.endswith("--manifest.md")
    }


def dump(place: str) -> list[list[object]]:
    """The canonical dump of a database, after its own checks."""
    database = Database(place)
    try:
        assert database.problems() == [], database.problems()
        assert text_in_step(database)
        return [list(row) for row in canonical_dump(database)]
    finally:
        database.close()


def everything(root: Path, folder: Path) -> dict[str, tuple[object, ...]]:
    """Content, times and inodes of workspace and state, but for the note of the last pass."""
    found = {}
    for place in (root, folder):
        for where, _, names in os.walk(place):
            for name in names:
                if name not in ("last-pass.json", "signet-sync.db.snapshot", "killed-at"):
                    path = os.path.join(where, name)
                    status = os.stat(path)
                    found[path] = (status.st_ino, status.st_mtime_ns, sha256(Path(path).read_bytes()).hexdigest())
    return found


def recover(root: Path, wanted: dict[str, object], removed: list[str], heal: str) -> int:
    """An ordinary pass after the crash, and all that must hold then. Writes what is wrong to `wrong.json`."""
    wrong: list[str] = []

    def check(name: str, held: object) -> None:
        if not held:
            wrong.append(name)

    present = artifacts(root)
    for name, digests in wanted.items():
        check(f"lost {name}", name in present or name in removed)
        check(f"altered {name}", present.get(name) in (None, *digests))
    text = (root / "MEMORY.md").read_bytes()
    generated = text.startswith(MINE + b"\n<!-- signet:begin -->\n") and text.endswith(b" -->\n")
    check("torn page", text == MINE or generated)
    check("reindex failed", command(str(root), "reindex", "--now", NOW) == 0)
    folder = Path(state_dir.locate(str(root)).path)
    if heal:
        check("not healed", command(str(root), "violations", "restore", "--all", "--yes", "--now", NOW) == 0)
        check("what stood there is lost", heal == "accept" or len(list(root.rglob("in-its-place.txt"))) == 1)
    try:
        left = dump(str(folder / "signet-sync.db"))
        scratch = str(root.parent / "scratch.db")
        check("scratch failed", command(str(root), "--db", scratch, "reindex", "--index-only", "--now", NOW) == 0)
        check("not what the files give", left == dump(scratch))
    except AssertionError as error:
        wrong.append(f"database: {error}")
    strays = [str(p) for place in (root, folder.parent) for p in place.rglob("*.tmp")]
    check(f"left over: {strays}", not strays)
    stones = [p.name for p in root.glob("memory/tombstones/*")]
    check(f"tombstones: {stones}", bool(stones) == bool(removed) and len(stones) <= 1)
    if removed:
        present = artifacts(root)
        check("removed files are there", not set(removed) & set(present))
        for place in (root, folder):
            for path in place.rglob("*"):
                if path.is_file() and b"zxvcanary" in path.read_bytes():
                    wrong.append(f"removed text in {path.name}")
    before = everything(root, folder)
    command(str(root), "reindex", "--now", NOW)
    after = everything(root, folder)
    moved = [os.path.basename(p) for p in before.keys() | after.keys() if before.get(p) != after.get(p)]
    check(f"a second pass writes {moved}", not moved)
    (root.parent / "wrong.json").write_text(json.dumps(wrong))
    return 0


def main() -> int:
    """See the module."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for module in ("reindex", "remove", "violations"):
        import_module(f"signet_sync.cli.{module}")
    for module in ("privacy.scrub", "privacy.remove", "integrity.operations", "integrity.report"):
        import_module(f"signet_sync.{module}")
    prepared = json.loads((folder / "prepared.json").read_text())
    commands = scenarios(folder / "before")[name]
    step = 0
    while True:
        step += 1 if step == 0 else every
        here = folder / "run"
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        # The workspace stays where its state knows it, so that a copy is no copy to it.
        root = folder / "vault"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(folder / "before", root)
        shutil.rmtree(os.environ["SIGNET_STATE"], ignore_errors=True)
        shutil.copytree(folder / "state-before", os.environ["SIGNET_STATE"])
        os.chdir(here)

        def killed(last: int = step, root: Path = root) -> int:
            arm(last)
            for arguments in commands:
                code = command(str(root), *arguments)
                if code:
                    return code
            return 0

        code = forked(killed)
        if code not in (0, KILLED):
            print(json.dumps({"step": step, "label": "ended badly", "wrong": [f"exit {code}"]}), flush=True)
            return 1
        label = (here / "killed-at").read_text() if code == KILLED else "end"
        removed = prepared.get("removed", []) if name == "remove" else []
        if removed and not list(root.glob("memory/tombstones/*.md")):
            removed = []
        (folder / "wrong.json").unlink(missing_ok=True)
        code_after = forked(
            recover, root, prepared["artifacts"], removed, name if name in ("restore", "accept") else ""
        )
        wrong = json.loads((folder / "wrong.json").read_text()) if code_after == 0 else [f"recovery: {code_after}"]
        for leftover in folder.glob("scratch.db*"):
            leftover.unlink()
        print(json.dumps({"step": step, "label": label, "wrong": wrong}), flush=True)
        if code == 0:
            return 0


if __name__ == "__main__":
    sys.exit(main())
