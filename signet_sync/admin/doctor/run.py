"""Runs all checks of an installation: each finding with its remedy; the safe remedies can be applied.

`examine` changes nothing. `apply` applies the remedies that are safe without asking: our own files, derived rows, our
service and hooks; what belongs to the user or the machine is only reported.
"""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from signet_sync.admin import hooks_install
from signet_sync.admin.doctor import index, programs, vault
from signet_sync.admin.doctor.installation import Finding as Finding
from signet_sync.admin.doctor.installation import Installation, problem
from signet_sync.app.workspace import opened
from signet_sync.capture import intake
from signet_sync.capture.due import due
from signet_sync.errors import Halted, SignetSyncError, WorkspaceError, reason
from signet_sync.formats.timestamps import iso
from signet_sync.host import service
from signet_sync.storage.database.connection import is_suspect, mark_suspect
from signet_sync.storage.locations import now_us
from signet_sync.sync.engine import run_pass_mending
from signet_sync.sync.workspace import Request

# Checks that need no workspace, and then those that need one.
_ALWAYS = (index.room, vault.workspace, vault.settings)
_CHECKS = (
    vault.file_system,
    index.modes,
    index.index,
    vault.pages,
    programs.agent,
    programs.service,
    vault.signet,
    index.waiting,
    programs.harness,
    programs.model,
    programs.meaning,
    programs.history,
)


def examine(root: str, database: str) -> list[Finding]:
    """Runs every check in order; none of them changes anything."""
    target = Installation(root, database)
    checks = (*_ALWAYS, *_CHECKS) if os.path.isdir(root) else _ALWAYS
    return [finding for check in checks for finding in _findings_of(check, target)]


def _findings_of(check: Callable[[Installation], list[Finding]], target: Installation) -> list[Finding]:
    """Returns the findings of a check; if a disk does not answer, that is the finding."""
    try:
        return check(target)
    except OSError as error:
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        words = f"cannot be examined: {where}{reason(error)}"
        return [problem(check.__name__, words, "check permissions and the disk, then run doctor again")]


# Seconds that a running agent gets to repair its own database.
PATIENCE = 30.0
_ROUNDS = 3  # opening a folder may reveal further problems


@dataclass(slots=True)
class Fixes:
    """What was done, and what could not be: sentences for the user."""

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def apply(root: str, database: str, names: Collection[str]) -> Fixes:
    """Fixes the findings of these names, each after those on which it depends."""
    fixes = Fixes()
    target = Installation(root, database)
    for wanted, fix in _FIXES:
        if wanted.isdisjoint(names):
            continue
        try:
            for sentence in fix(target):
                fixes.done.append(sentence)
        except SignetSyncError as error:
            fixes.failed.append(f"{', '.join(sorted(wanted & set(names)))}: {error.message} ({error.hint})")
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            fixes.failed.append(f"{', '.join(sorted(wanted & set(names)))}: {where}{reason(error)}")
        target = target.reread()
    return fixes


# ── our state folder ──


def _modes(target: Installation) -> Iterator[str]:
    folder = target.folder.path
    count = 0
    for _ in range(_ROUNDS):
        wrong = index.badly_kept(folder)
        for path in wrong:
            wanted = 0o700 if stat.S_ISDIR(os.lstat(path).st_mode) else 0o600
            os.chmod(path, wanted)
        count += len(wrong)
    if count:
        yield f"{folder} and its content are accessible to you alone again"
    for path in (target.database, f"{target.database}-wal", f"{target.database}-shm"):
        if index.is_open(path):
            os.chmod(path, 0o600)
            yield f"{path} can no longer be read by others"


def _heartbeat(target: Installation) -> Iterator[str]:
    if programs.delete_heartbeat(target):
        yield "the heartbeat of a dead agent was deleted"


# ── the index ──


def _database(target: Installation) -> Iterator[str]:
    if target.pid is not None and target.heartbeat.get("database") == target.database:
        yield _ask_agent(target, target.pid)
        return
    yield from _pass(target, rebuild=True)


def _ask_agent(target: Installation, pid: int) -> str:
    """Lets the running agent do it: exchanging the file under it could lose what it is just writing."""
    mark_suspect(target.database)
    os.kill(pid, signal.SIGHUP)  # a full pass, which checks every page of a suspect database
    end = time.monotonic() + PATIENCE
    while is_suspect(target.database) or _is_degraded(target):
        if time.monotonic() > end:
            raise WorkspaceError(
                f"the agent (pid {pid}) was asked to check every page and has not finished",
                hint=f"wait a moment, then run: {target.command('doctor')}",
            )
        time.sleep(0.1)
    return f"the agent (pid {pid}) checked every page of the database and rebuilt it where necessary"


def _is_degraded(target: Installation) -> bool:
    return str(target.reread().heartbeat.get("state")).startswith("degraded")


def _run_pass(target: Installation) -> Iterator[str]:
    yield from _pass(target, rebuild=False)


def _pass(target: Installation, *, rebuild: bool) -> Iterator[str]:
    """Makes the pass of `reindex`, including jobs and journalled flows that wait."""
    settings = target.settings
    with opened(target.root, settings, database=target.chosen) as workspace:
        outcome = run_pass_mending(workspace, Request(now_us=now_us(), rebuild=rebuild))
        if outcome.cliff is not None:
            raise Halted(outcome.cliff.message, hint="bring memory/ back")
        taken = intake.run_capture(workspace, now_us=now_us) if any(due(workspace, now_us())) else None
        if taken is not None:
            run_pass_mending(workspace, Request(now_us=now_us()))
        yield from workspace.events
    yield "the index was rebuilt from the files" if rebuild else "a full pass brought the index up to date"
    if taken is not None:
        written = sum(captured.wrote for captured in taken.captured)
        yield f"the spool was processed: {written} sessions captured, {len(taken.failed)} failed"


# ── service and hooks ──


def _hooks(target: Installation) -> Iterator[str]:
    for outcome in hooks_install.install(
        target.root, programs.broken(target), now=iso(now_us()), environ=target.environ
    ):
        if outcome.error is not None:
            raise outcome.error
        yield f"the hooks of {outcome.harness} were rewritten"
        yield from (f"{outcome.harness}, left to you: {line}" for line in outcome.plan.by_hand)


def _service(target: Installation) -> Iterator[str]:
    unit = target.unit
    if unit is None:
        return
    done = service.restart(unit, target.environ)
    if done.by_hand:
        raise WorkspaceError(f"{unit.name} could not be started", hint="; ".join(done.by_hand))
    yield from done.steps


_FIXES: tuple[tuple[frozenset[str], Callable[[Installation], Iterator[str]]], ...] = (
    (frozenset({"state-mode", "database-mode"}), _modes),
    (frozenset({"stale-heartbeat"}), _heartbeat),
    (frozenset({"database"}), _database),
    (frozenset({"database-behind", "full-text", "page", "spool", "unfinished"}), _run_pass),
    (frozenset({"hooks"}), _hooks),
    (frozenset({"service", "version-skew"}), _service),
)
