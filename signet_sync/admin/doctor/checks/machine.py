"""Checks the machine: Python, SQLite, disk space, watches for changes."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress

import apsw

from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.installation import Installation, mount_of
from signet_sync.formats.paths import MEMORY
from signet_sync.storage.database.connection import MINIMUM_SQLITE
from signet_sync.sync.watcher import Watcher

LOW_SPACE = 100 * 1024 * 1024
LOW_INODES = 1000
_LIMITS = {"max_user_watches": 524_288, "max_user_instances": 1024}


def python() -> Finding:
    """Reports which Python runs this."""
    return fine("python", f"Python {platform.python_version()} ({sys.executable})")


def sqlite() -> Finding:
    """Checks SQLite's version, and that it has full-text search."""
    wanted = ".".join(map(str, MINIMUM_SQLITE))
    if "ENABLE_FTS5" not in apsw.compile_options:
        return problem("sqlite", "SQLite without FTS5", f"{shlex.quote(sys.executable)} -m pip install -U apsw")
    return fine("sqlite", f"SQLite {apsw.sqlite_lib_version()} with FTS5 (at least {wanted})")


# ── disk space ──


def room(target: Installation) -> list[Finding]:
    """Checks free bytes and inodes on the disks of workspace and database."""
    found = []
    for what, path in (("workspace", target.root), ("state folder", os.path.dirname(target.database))):
        try:
            place = _existing(path)
            left = os.statvfs(place)
        except OSError:
            continue
        remedy = f"du -xh --max-depth=1 {shlex.quote(mount_of(place))} | sort -h  # shows what is large; make room"
        free = left.f_bavail * left.f_frsize
        if free < LOW_SPACE:
            found.append(problem("disk-space", f"{free // 1_000_000} MB left for the {what}", remedy))
        elif left.f_files and left.f_favail < LOW_INODES:
            words = f"only {left.f_favail} more files can be made on the disk of the {what}"
            found.append(problem("disk-space", words, remedy.replace("du -xh", "du -x --inodes")))
    return found or [fine("disk-space", "enough")]


def _existing(path: str) -> str:
    while path and not os.path.exists(path):
        path = os.path.dirname(path)
    return path or "/"


# ── watches ──


def watches(target: Installation) -> list[Finding]:
    """Checks that changes can be watched, by a watch set as the agent sets it."""
    if not os.path.isdir(target.root):
        return []  # reported by another check
    if target.settings.watch_mode != "auto":
        return [fine("watches", f"watch.mode is {target.settings.watch_mode}")]
    if not _can_watch(target.root):
        consequence = "the agent polls" if target.alive else "an agent would poll"
        return [warning("watches", f"the system has no watches left: {consequence}, which is slower", _more_watches())]
    if target.alive and target.heartbeat.get("watch") == "polling":
        return [fine("watches", "none were left when the agent tried; it tries again within a minute")]
    return [fine("watches", "enough for this vault; the agent watches a handful of folders")]


def _can_watch(root: str) -> bool:
    watcher = Watcher(root, lambda: ["", MEMORY])
    try:
        watcher.start()
        return watcher.kind != "polling"
    finally:
        watcher.stop()


def _limits() -> Iterator[tuple[str, int]]:
    for name in _LIMITS:
        with suppress(OSError, ValueError), open(f"/proc/sys/fs/inotify/{name}", encoding="ascii") as handle:
            yield name, int(handle.read())


def _more_watches() -> str:
    more = [f"fs.inotify.{name}={max(2 * value, _LIMITS[name])}" for name, value in _limits()]
    if not more:
        return "watch.mode = 'polling' in signet-sync.toml says that this is meant"
    return f"sudo sysctl {' '.join(more)}  # until the next start; for good: a file in /etc/sysctl.d"
