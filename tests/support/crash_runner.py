"""Ends the process at one of its durable steps as kill -9 would, or lets the call there fail; runs things in forks.

A step is a durable call of our own (a file made, a write, half of one, an fsync, a link, a rename, an unlink, a folder,
a commit, a checkpoint), one of SQLite's below it, or a statement that changes a row.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from workbench import Vault

from benchmarks.index_rows import canonical_dump
from signet_sync.cli import main as cli_main
from signet_sync.storage import writing
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import texts

NOW = "2026-03-29T12:00:00.000Z"
KILLED = 137
CHANGES = ("insert", "update", "delete", "replace", "create", "drop", "alter")


class Steps:
    """Counts steps; the last one is a kill, or where there is a code a call that fails. A full disk stays full."""

    def __init__(self, last: int, code: int | None = None) -> None:
        self.last = last
        self.code = code
        self.count = 0

    def __call__(self, label: str, *, takes_space: bool = False) -> bool:
        """Whether the call fails now; a kill does not come back."""
        self.count += 1
        if self.count == self.last:
            Path("killed-at").write_text(label, encoding="utf-8")
            if self.code is None:
                os._exit(KILLED)
            return True
        return self.code == errno.ENOSPC and takes_space and 0 < self.last < self.count

    def error(self) -> OSError:
        assert self.code is not None
        return OSError(self.code, os.strerror(self.code))

    def wrap(
        self,
        where: object,
        name: str,
        *,
        label: str = "",
        takes_space: bool = False,
        concerns: Callable[..., bool] = lambda *_, **__: True,
        after: bool = True,
    ) -> None:
        """A failure of the call; or a kill before it, and one after it: in between lies what the call does at once."""
        real, label = getattr(where, name), label or name

        def stepped(*given: Any, **named: Any) -> Any:
            if not concerns(*given, **named):
                return real(*given, **named)
            if self(f"before {label}", takes_space=takes_space):
                raise self.error()
            result = real(*given, **named)
            if after and self.code is None:
                self(f"after {label}")
            return result

        setattr(where, name, stepped)

    def wrap_write(self) -> None:
        """Writes to files, of which half is done where it ends."""
        real = os.write

        def write(descriptor: int, data: Any) -> int:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return real(descriptor, data)
            half = bytes(data)[: len(data) // 2]
            if self.code is None:
                self("before write")
                if self.count + 1 == self.last:
                    real(descriptor, half)
                self("half a write")
            elif self("before write", takes_space=True):
                real(descriptor, half)
                raise self.error()
            return real(descriptor, data)

        os.write = write


def creates(_path: object, flags: int, *_given: object, **_named: object) -> bool:
    """Whether an `os.open` may make a file."""
    return bool(flags & os.O_CREAT)


def arm(last: int, code: int | None = None) -> Steps:
    """Puts a step at every durable call of ours: files, folders, renames, SQLite's commits and checkpoints."""
    steps = Steps(last, code)
    steps.wrap(os, "open", label="create", takes_space=True, concerns=creates)
    steps.wrap_write()
    steps.wrap(os, "fsync", after=False)
    for name in ("link", "mkdir"):
        steps.wrap(os, name, takes_space=True)
    for name in ("rename", "replace", "unlink", "rmdir", "ftruncate"):
        steps.wrap(os, name)
    steps.wrap(writing, "_rename")

    def stepped(label: str, real: Callable[[], Any]) -> Any:
        if steps(f"before {label}", takes_space=True):
            raise broken(code)
        result = real()
        if code is None:
            steps(f"after {label}")
        return result

    class Connection(apsw.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> Any:
            real = partial(super().execute, sql, *given, **named)
            return stepped("commit", real) if sql == "commit" else real()

        def wal_checkpoint(self, *given: Any, **named: Any) -> Any:
            return stepped("checkpoint", partial(super().wal_checkpoint, *given, **named))

    apsw.Connection = Connection  # type: ignore[misc]
    return steps


def broken(code: int | None) -> apsw.Error:
    """What SQLite raises where a call of its own fails so."""
    kinds = {errno.ENOSPC: apsw.FullError, errno.ENOENT: apsw.CantOpenError}
    return kinds.get(code or 0, apsw.IOError)("broken")


def arm_statements(last: int) -> Steps:
    """Puts a step before every statement that changes a row or the schema: what a transaction has done is lost."""
    steps = Steps(last)

    class Connection(apsw.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> Any:
            if sql.lstrip().startswith(CHANGES):
                steps(f"before {sql.split()[0]}")
            return super().execute(sql, *given, **named)

        def executemany(self, sql: str, *given: Any, **named: Any) -> Any:
            steps(f"before {sql.split()[0]}")
            return super().executemany(sql, *given, **named)

    apsw.Connection = Connection  # type: ignore[misc]
    return steps


WRITES, READS = ("xWrite", "xSync", "xTruncate"), ("xRead", "xOpen", "xDelete")


def arm_below(
    last: int, code: int | None, calls: Sequence[str] = WRITES, watch: Callable[[str], object] | None = None
) -> Steps:
    """Puts a step at SQLite's own calls; `watch` is told every file that is opened, while it is in `KEPT`."""
    steps, usual = Steps(last, code), apsw.vfs_names()[0]

    def stepped(name: str) -> Callable[..., Any]:
        def call(self: Any, *given: Any) -> Any:
            if steps(name, takes_space=name == "xWrite"):
                raise broken(code)
            return getattr(apsw.VFSFile, name)(self, *given)

        return call

    def lock(self: Any, level: int) -> None:
        # Whoever only reads may not lock for writing; SQLite asks all the same when it closes.
        try:
            apsw.VFSFile.xLock(self, level)
        except apsw.IOError:
            raise apsw.BusyError("not to be written") from None

    own = {name: stepped(name) for name in calls if name in (*WRITES, "xRead")}
    file = type("File", (apsw.VFSFile,), {"xLock": lock, **own})

    class System(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("faulty", usual, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> Any:
            if "xOpen" in calls and steps("xOpen"):
                raise broken(code)
            if watch is not None:
                watch(str(name.filename() if isinstance(name, apsw.URIFilename) else name))
            return file(usual, name, flags)

        def xDelete(self, name: str, sync: bool) -> None:
            if "xDelete" in calls and steps("xDelete"):
                raise broken(code)
            super().xDelete(name, sync)

    KEPT.append(System())  # it is there for as long as somebody holds it
    return steps


KEPT: list[apsw.VFS] = []
FAULTS: dict[str, Callable[[int], Steps]] = {
    "kill": arm,
    "EIO": partial(arm, code=errno.EIO),
    "ENOSPC": partial(arm, code=errno.ENOSPC),
    "sqlite-kill": partial(arm_below, code=None),
    "sqlite-EIO": partial(arm_below, code=errno.EIO),
    "sqlite-ENOSPC": partial(arm_below, code=errno.ENOSPC),
    "sqlite-read-EIO": partial(arm_below, code=errno.EIO, calls=READS),
    "statement-kill": arm_statements,
}


def command(root: str, *arguments: str) -> int:
    """One command line, quietly."""
    return cli_main.run(["--quiet", "--workspace", root, *arguments])


def forked(work: Callable[..., int], *given: Any) -> int:
    """Runs something in a fork; gives its exit code."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = work(*given)
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_after_its_swap(vault: Vault, path: str, saved: str, ours: str) -> None:
    """Ends a process after it swapped `ours` in for a page, where an editor saved something in the moment before."""
    before, real = (vault / path).read_bytes(), writing._rename

    def rename(*given: Any) -> bool:
        if saved:
            (vault / path).write_text(saved)
        real(*given)
        os._exit(KILLED)

    def swap() -> int:
        writing._rename = rename
        writing.replace(str(vault.root), path, ours.encode(), before)
        return 0

    assert forked(swap) == KILLED and (vault / path).read_text() == ours


def dump(place: str) -> list[list[object]]:
    """The canonical dump of a database, after its own checks."""
    database = Database(place)
    try:
        assert database.problems() == [], database.problems()
        assert texts.is_in_step(database)
        return [list(row) for row in canonical_dump(database)]
    finally:
        database.close()
