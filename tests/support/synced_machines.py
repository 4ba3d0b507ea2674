"""Machines that share a vault: each with a copy and a state of its own, and a service that keeps the copies equal.

The service works as Syncthing, Dropbox and iCloud do: file by file, in any order, late, under temporary names, and with
a copy of what was changed on two sides. Its clock, its choices and those of the people are drawn from one seed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from signet_sync.app.workspace import open_workspace
from signet_sync.formats.filename import has_conflict_mark
from signet_sync.formats.timestamps import SECOND, parse_instant
from signet_sync.settings.model import Settings
from signet_sync.sync import engine
from signet_sync.sync.workspace import Outcome, Request, Workspace

MINUTE = 60 * SECOND
START = parse_instant("2026-03-20T08:00:00.000Z") or 0
# What services leave out by themselves: their own temporary files.
PASSING = re.compile(r"(?:^|/)\.syncthing\.[^/]*\.tmp$")
# A hair: a pass is an agent's and not a command's, without anybody waiting for files to come to rest.
AGENTS = 1e-9


class Machine:
    """A copy of the vault, a home and a clock of its own, and an agent whose passes are asked for."""

    def __init__(self, folder: Path, name: str, skew_us: int = 0) -> None:
        self.name = name
        self.root = folder / name / "vault"
        self.home = folder / name / "home"
        (self.root / "memory").mkdir(parents=True)
        self.home.mkdir()
        self.environ = {"HOME": str(self.home), "SIGNET_STATE": str(self.home / "state")}
        self.environ["SIGNET_CONFIG"] = str(self.home / "config.toml")
        self.now_us = START + skew_us
        self.events: set[str] = set()
        self.remembers: set[str] = set()
        with self.at():
            self.work: Workspace = open_workspace(str(self.root), Settings())

    def tree(self, *, hidden: bool = False) -> dict[str, bytes]:
        """Every file of the copy; `.signet` only where it is asked for."""
        found = {}
        for where, folders, names in os.walk(self.root):
            base = os.path.relpath(where, self.root)
            if base == "." and not hidden:
                folders[:] = [name for name in folders if name != ".signet"]
            for name in names:
                path = name if base == "." else f"{base}/{name}"
                found[path] = Path(where, name).read_bytes()
        return found

    def read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def save(self, path: str, raw: bytes | None, mtime_ns: int | None = None) -> None:
        """A save as editors and services do it: under another name first. None deletes, and empty folders with it."""
        place = self.root / path
        if raw is None:
            place.unlink(missing_ok=True)
            parent = place.parent
            while parent not in (self.root, self.root / "memory") and parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
                parent = parent.parent
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".syncthing.{place.name}.tmp")
        temporary.write_bytes(raw)
        if mtime_ns is not None:
            os.utime(temporary, ns=(mtime_ns, mtime_ns))
        temporary.replace(place)

    def hold(self) -> bytes:
        """Every byte in the machine's state folder, databases and logs included."""
        return b"\n".join(path.read_bytes() for path in sorted(self.home.rglob("*")) if path.is_file())

    @contextmanager
    def at(self) -> Iterator[None]:
        """The environment of this machine."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environ.items():
                patch.setenv(name, value)
            yield

    def close(self) -> None:
        self.work.close()

    def restart(self) -> None:
        """The agent ends and begins again, and finds its state where it finds it."""
        self.work.close()
        with self.at():
            self.work = open_workspace(str(self.root), Settings())

    def passes(self, paths: frozenset[str] | None = None, *, rebuild: bool = False, project: bool = True) -> Outcome:
        """What the agent does after an event or on its timer: a pass, and another look at what was not at rest."""
        outcome = self._pass(Request(self.now_us, paths, rebuild, settle_seconds=AGENTS, project=project))
        if outcome.unsettled:
            again = frozenset(outcome.unsettled)
            outcome = self._pass(Request(self.now_us, again, settle_seconds=AGENTS, confirmed=again, project=project))
        return outcome

    def looks_again(self, path: str) -> None:
        """The pass of a command that has settled what a file is."""
        with self.at():
            engine.run_pass(self.work, Request(self.now_us, reread=frozenset({path})))

    def _pass(self, request: Request) -> Outcome:
        with self.at():
            outcome = engine.run_pass(self.work, request)
        self.events.update((*outcome.trouble, *self.work.events))
        self.work.events.clear()
        return outcome

    def does(self, act: Callable[[Workspace, int], Any]) -> Any:
        """A command on this machine."""
        with self.at():
            return act(self.work, self.now_us)


@dataclass(slots=True)
class Version:
    """What a file was at some time; None: it was deleted."""

    raw: bytes | None
    mtime_ns: int


@dataclass(slots=True)
class Service:
    """Keeps copies equal by what it saw of each file last; `style` is whose habits it has.

    `syncthing`: the newer of two changes wins, the other becomes a copy. `dropbox`, `icloud`: what came first wins.
    `hidden`: whether `.signet/` is carried too. `keeps_mtime`: whether files arrive with the time of their writing.
    """

    random: Random
    style: str = "syncthing"
    hidden: bool = False
    keeps_mtime: bool = True
    files: dict[str, list[Version]] = field(default_factory=dict)
    seen: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)
    copies: int = 0
    # Of the machine that is served now: what was seen of each file last, and what changed there.
    base: dict[str, tuple[int, str]] = field(default_factory=dict)
    arrived: set[str] = field(default_factory=set)

    def sync(self, machine: Machine, share: float = 1.0) -> set[str]:
        """Carries a share of what differs, in any order. Gives the paths that changed on the machine."""
        local = {p: raw for p, raw in machine.tree(hidden=self.hidden).items() if self._carries(p)}
        self.base, self.arrived = self.seen.setdefault(machine.name, {}), set()
        paths = sorted(local.keys() | self.files.keys() | self.base.keys())
        self.random.shuffle(paths)
        for path in paths:
            if share < 1.0 and self.random.random() > share:
                continue
            self._carry(machine, path, local.get(path), late=share < 1.0)
        return self.arrived

    def _carries(self, path: str) -> bool:
        return PASSING.search(path) is None and not path.startswith(".signet/tmp/")

    def _carry(self, machine: Machine, path: str, raw: bytes | None, *, late: bool) -> None:
        versions = self.files.get(path, [])
        newest = len(versions) - 1
        known, digest = self.base.get(path, (-1, _digest(None)))
        moved = _digest(raw) != digest
        if newest == known:
            if moved:
                self._take(machine, path, raw)
            return
        there = versions[newest]
        if not moved:
            # A slow line delivers what is old already, and the rest later.
            at = self.random.randint(known + 1, newest) if late and self.random.random() < 0.3 else newest
            self._give(machine, path, at)
        elif _digest(raw) == _digest(there.raw):
            self.base[path] = (newest, _digest(raw))
        elif raw is None:
            self._give(machine, path, newest)  # a change beats a deletion
        elif there.raw is None:
            self._take(machine, path, raw)
        else:
            self._conflict(machine, path, raw, there)

    def _take(self, machine: Machine, path: str, raw: bytes | None) -> None:
        mtime = (machine.root / path).stat().st_mtime_ns if raw is not None else 0
        self.files.setdefault(path, []).append(Version(raw, mtime))
        self.base[path] = (len(self.files[path]) - 1, _digest(raw))

    def _give(self, machine: Machine, path: str, at: int) -> None:
        version = self.files[path][at]
        machine.save(path, version.raw, version.mtime_ns if self.keeps_mtime else None)
        self.base[path] = (at, _digest(version.raw))
        self.arrived.add(path)

    def _conflict(self, machine: Machine, path: str, raw: bytes, there: Version) -> None:
        self.copies += 1
        copy = self._copy_name(path)
        newer = (machine.root / path).stat().st_mtime_ns > there.mtime_ns
        if self.style == "syncthing" and newer:
            machine.save(copy, there.raw)
            self._take(machine, path, raw)
        else:
            machine.save(copy, raw)
            self._give(machine, path, len(self.files[path]) - 1)
        self.arrived.add(copy)

    def _copy_name(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        stem, dot, ending = name.rpartition(".")
        if not stem:
            stem, dot, ending = name, "", ""
        number = self.copies
        mark = {
            "syncthing": f".sync-conflict-20261122-{100000 + number:06d}-ABCDEF{number % 10}",
            "dropbox": f" (machine's conflicted copy 2026-11-22 {number})",
            "icloud": f" {number % 998 + 2}",
        }[self.style]
        return f"{folder}{slash}{stem}{mark}{dot}{ending}"

    def brings_back(self, path: str) -> bool:
        """A machine that was off for long still has a file that the others have deleted, and hands it out again."""
        versions = self.files.get(path, [])
        old = [version for version in versions if version.raw is not None]
        if not old or versions[-1].raw is not None:
            return False
        versions.append(old[-1])
        return True


def _digest(raw: bytes | None) -> str:
    return "" if raw is None else sha256(raw).hexdigest()


def conflict_copies(tree: Iterable[str]) -> list[str]:
    """The paths that a service has marked as copies."""
    return sorted(p for p in tree if has_conflict_mark(p.rpartition("/")[2].rpartition(".")[0]))
