"""The installation looked over end to end; each finding with its remedy."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import apsw

from signet_sync import config, llm, state
from signet_sync.agent import hooks, synthesis
from signet_sync.contracts.places import MEMORY
from signet_sync.errors import DatabaseError, SignetSyncError
from signet_sync.host.settings import HARNESSES
from signet_sync.index import artifacts, lines, overview, salvage
from signet_sync.index.database import (
    LARGE_LOG,
    MINIMUM_SQLITE,
    Database,
    log_size,
    noted,
    set_aside_before,
    suspect,
)
from signet_sync.index.schema import TABLES
from signet_sync.vault.git import repository

Level = Literal["ok", "warning", "problem"]
LOW_SPACE = 100 * 1024 * 1024
_REBUILD = "signet-sync reindex --full looks at every page, moves it aside and rebuilds it"
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "fuse.rclone"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    level: Level
    message: str
    remedy: str = ""


def examine(root: str, database_path: str) -> list[Finding]:
    """Every check in order; none of them changes anything."""
    findings = [_python(), _sqlite(), *_workspace(root), *_settings(root), *_database(database_path)]
    findings += [*_watches(), *_space(root, database_path), *_agent(root), *_signet(root), *_service()]
    findings += [*_hooks(root), *_model(root), *_history(root)]
    return findings


def _python() -> Finding:
    return Finding("python", "ok", f"Python {platform.python_version()} ({sys.executable})")


def _sqlite() -> Finding:
    wanted = ".".join(map(str, MINIMUM_SQLITE))
    options = set(apsw.compile_options)
    if "ENABLE_FTS5" not in options:
        return Finding("sqlite", "problem", "SQLite without FTS5", "pip install -U apsw")
    return Finding("sqlite", "ok", f"SQLite {apsw.sqlite_lib_version()} with FTS5 (at least {wanted})")


def _workspace(root: str) -> list[Finding]:
    if not os.path.isdir(root):
        return [Finding("workspace", "problem", f"{root} does not exist", "signet-sync init, or give --workspace")]
    found = [Finding("workspace", "ok", root)]
    if not os.access(root, os.W_OK | os.X_OK):
        found.append(
            Finding(
                "permissions",
                "problem",
                "the workspace cannot be written",
                f"chown or chmod {root}; check works read-only",
            )
        )
    memory = os.path.join(root, MEMORY)
    try:
        status = os.lstat(memory)
    except FileNotFoundError:
        found.append(
            Finding("memory", "warning", "there is no memory/ yet", "signet-sync init, or let a harness write one")
        )
        return found
    if not stat.S_ISDIR(status.st_mode):
        found.append(
            Finding(
                "memory", "problem", "memory/ is not a real folder", "replace the link or file by the folder itself"
            )
        )
        return found
    kind = _file_system(memory)
    if kind in _NETWORK:
        found.append(
            Finding(
                "file system",
                "warning",
                f"memory/ is on {kind}: changes of other machines raise no events",
                "set watch.mode = 'polling' in signet-sync.toml",
            )
        )
    return found


def _file_system(path: str) -> str:
    best = ("", "")
    real = os.path.realpath(path)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as handle:
            for line in handle:
                parts = line.split()
                point = parts[1].replace("\\040", " ")
                if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) > len(best[0]):
                    best = (point, parts[2])
    except OSError:
        return ""
    return best[1]


def _settings(root: str) -> list[Finding]:
    try:
        _, warnings = config.load(root)
    except SignetSyncError as error:
        where = f"{error.path}: " if error.path else ""
        return [Finding("settings", "problem", f"{where}{error.message}", error.hint)]
    if warnings:
        return [Finding("settings", "warning", warning, "move it to your own config.toml") for warning in warnings]
    return [Finding("settings", "ok", "every setting is known and in range")]


def _database(path: str) -> list[Finding]:
    try:
        database = Database(path, readonly=True)
    except FileNotFoundError:
        return [Finding("database", "warning", "there is no index yet", "signet-sync reindex")]
    except DatabaseError as error:
        return [Finding("database", "problem", f"{path}: {error.message}", error.hint)]
    try:
        return [*_bytes(database), *_rows(database), *_log(path), *_set_aside(path)]
    except (apsw.Error, DatabaseError) as error:
        return [Finding("database", "problem", noted(error, path).message, _REBUILD), *_set_aside(path)]
    finally:
        database.connection.close()


def _bytes(database: Database) -> list[Finding]:
    found = []
    problems = database.problems(closely=TABLES) or salvage.doubtful(database)
    if problems:
        if database.problems():
            # No pass need ever read these pages: the next one looks at all of them. Mere values a rebuild makes anew.
            suspect(database.path)
        found.append(Finding("database", "problem", f"damaged: {problems[0]}", _REBUILD))
    elif not (artifacts.text_in_step(database) and lines.in_step(database)):
        found.append(Finding("full text", "problem", "out of step with its rows", "signet-sync reindex"))
    else:
        found.append(Finding("database", "ok", database.path))
    if stat.S_IMODE(os.stat(database.path).st_mode) & 0o077:
        found.append(Finding("database mode", "warning", "others may read the database", f"chmod 600 {database.path}"))
    return found


def _rows(database: Database) -> list[Finding]:
    found = []
    counts = overview.verdict_counts(database)
    if counts.get("violation"):
        found.append(
            Finding("vault", "problem", f"{counts['violation']} open violations", "signet-sync violations list")
        )
    if counts.get("invalid"):
        found.append(Finding("vault", "warning", f"invalid files: {counts['invalid']}", "signet-sync check"))
    if database.meta("halted"):
        found.append(
            Finding("halt", "problem", "halted: cliff", "bring memory/ back, or signet-sync reindex --accept-removals")
        )
    return found


def _log(path: str) -> list[Finding]:
    """The write-ahead log cannot be emptied while somebody reads what was before it."""
    size = log_size(path)
    if size <= LARGE_LOG:
        return []
    words = f"its log has grown to {size // 1_000_000} MB: a program keeps a read transaction open"
    return [Finding("database log", "warning", words, f"close the program that reads {path}")]


def _set_aside(path: str) -> list[Finding]:
    return [
        Finding(
            "database",
            "warning",
            f"a damaged one was moved aside: {name}",
            "its readable rows were taken over; delete it, and look whether the disk is well",
        )
        for name in set_aside_before(path)
    ]


def _watches() -> list[Finding]:
    found = []
    for name, least in (("max_user_watches", 1024), ("max_user_instances", 16)):
        try:
            with open(f"/proc/sys/fs/inotify/{name}", encoding="ascii") as handle:
                value = int(handle.read())
        except (OSError, ValueError):
            continue
        if value < least:
            found.append(
                Finding(
                    "watch limits", "warning", f"fs.inotify.{name} is {value}", f"sysctl fs.inotify.{name}={least * 8}"
                )
            )
    return found or [Finding("watch limits", "ok", "enough for this vault; the agent watches a handful of folders")]


def _space(root: str, database_path: str) -> list[Finding]:
    found = []
    for what, path in (("workspace", root), ("state folder", os.path.dirname(database_path))):
        probe = path
        while probe and not os.path.exists(probe):
            probe = os.path.dirname(probe)
        try:
            free = shutil.disk_usage(probe or "/").free
        except OSError:
            continue
        if free < LOW_SPACE:
            found.append(
                Finding("disk space", "problem", f"{free // 1_000_000} MB left for the {what}", "free some space")
            )
    return found or [Finding("disk space", "ok", "enough")]


def _agent(root: str) -> list[Finding]:
    folder = state.locate(root)
    beat = state.read_heartbeat(folder)
    if not state.run_lock_holder(folder):
        if beat is not None:
            return [
                Finding("agent", "warning", "an agent ended without saying so", "signet-sync run, or service install")
            ]
        remedy = "signet-sync service install; without systemd or launchd, signet-sync run"
        return [Finding("agent", "warning", "no agent runs on this workspace", remedy)]
    age = time.time() - _number(beat, "beat_at", 0.0)
    interval = _number(beat, "interval", 300.0)
    if age > 3 * interval + 60:
        return [
            Finding("agent", "problem", f"its last sign of life is {age:.0f} s old", "restart it; see signet-sync logs")
        ]
    return [Finding("agent", "ok", f"alive (pid {(beat or {}).get('pid')}), {(beat or {}).get('state')}")]


def _number(beat: Mapping[str, object] | None, name: str, otherwise: float) -> float:
    value = (beat or {}).get(name)
    return float(value) if isinstance(value, int | float) else otherwise


def _signet(root: str) -> list[Finding]:
    from signet_sync.agent.signet import daemon_pid

    try:
        pid = daemon_pid(root)
    except (OSError, SignetSyncError):
        pid = None
    if pid is None:
        return []
    return [
        Finding(
            "signet daemon",
            "warning",
            f"a Signet daemon (pid {pid}) is alive on this workspace; pages are held back",
            "stop it, or set projection.takeover = true",
        )
    ]


def _service() -> list[Finding]:
    from signet_sync.host import service

    units = service.installed()
    if not units:
        return [Finding("service", "warning", "no service is installed", "signet-sync service install")]
    broken = [unit for unit in units if unit.active is False]
    if broken:
        return [
            Finding("service", "problem", f"{unit.name} is not running", f"systemctl --user start {unit.name}")
            for unit in broken
        ]
    names = ", ".join(unit.name for unit in units)
    if any(unit.active is None for unit in units):
        return [Finding("service", "warning", f"{names}: nobody can say whether it runs", "signet-sync service status")]
    return [Finding("service", "ok", names)]


def _hooks(root: str) -> list[Finding]:
    try:
        found = hooks.conditions(root, HARNESSES)
    except SignetSyncError as error:
        return [Finding("hooks", "problem", error.message, error.hint)]
    feeding = [condition.harness for condition in found if condition.events]
    troubles = [
        Finding("hooks", "warning", f"{condition.harness}: {problem.message}", problem.hint)
        for condition in found
        if condition.events
        for problem in condition.problems
    ]
    if feeding:
        return troubles or [Finding("hooks", "ok", ", ".join(feeding))]
    if any(condition.found for condition in found):
        return [Finding("hooks", "warning", "no harness hands its sessions over", "signet-sync hooks install auto")]
    return [Finding("hooks", "ok", "no harness is on this machine")]


def _model(root: str) -> list[Finding]:
    """Whether the language model that the settings name can be asked at all; nothing is sent to it."""
    try:
        settings, _ = config.load(root)
    except SignetSyncError:
        return []  # which was said already
    try:
        provider = synthesis.provider_for(settings, root, os.environ)
    except SignetSyncError as error:
        return [Finding("language model", "warning", f"none is asked: {error.message}", error.hint)]
    if isinstance(provider, llm.CommandProvider) and shutil.which(provider.command[0]) is None:
        return [
            Finding(
                "language model",
                "warning",
                f"the program {provider.command[0]} is not there, or may not be run",
                "name it by its full path in synthesis.command",
            )
        ]
    if isinstance(provider, llm.NullProvider):
        return [Finding("language model", "ok", "none; summaries are made by rules")]
    return [Finding("language model", "ok", provider.name)]


def _history(root: str) -> list[Finding]:
    """Whether the history can be written where it is wanted; the repository is looked at, not opened."""
    try:
        settings, _ = config.load(root)
    except SignetSyncError:
        return []  # which was said already
    if not settings.history_enabled:
        return [Finding("history", "ok", "off")]
    if find_spec("pygit2") is None:
        return [
            Finding("history", "problem", "it is on, but the extra `git` is missing", "pip install 'signet-sync[git]'")
        ]
    standing = repository.look(root, state.locate(root).key)
    if standing.state == "unsafe":
        return [Finding("history", "problem", f"it is not written: {standing.reason}", standing.hint)]
    if settings.history_adopt or standing.state == "ours" or (standing.state == "none" and not standing.outer):
        return [Finding("history", "ok", "on")]
    return [Finding("history", "warning", f"it is not written: {standing.reason}", standing.hint)]
