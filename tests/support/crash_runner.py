"""Ends the process at one of its durable steps, as kill -9 would; runs something in a fork."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path

import apsw

from benchmarks.index_rows import canonical_dump
from signet_sync.cli import main as cli_main
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import texts

NOW = "2026-03-29T12:00:00.000Z"
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


def dump(place: str) -> list[list[object]]:
    """The canonical dump of a database, after its own checks."""
    database = Database(place)
    try:
        assert database.problems() == [], database.problems()
        assert texts.is_in_step(database)
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
