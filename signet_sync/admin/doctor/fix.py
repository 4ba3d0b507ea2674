"""Applies the remedies that are safe without asking: our own files, derived rows, our service and hooks."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from signet_sync.admin import hooks_install
from signet_sync.admin.doctor.checks import agent, harness, storage
from signet_sync.admin.doctor.target import Patient
from signet_sync.app.workspace import establish, opened
from signet_sync.capture import intake
from signet_sync.capture.worker import due
from signet_sync.errors import Halted, SignetSyncError, WorkspaceError, reason
from signet_sync.formats.timestamps import iso
from signet_sync.host import service
from signet_sync.storage.clock import now_us
from signet_sync.storage.database.connection import is_suspect, suspect
from signet_sync.sync.damage import run_pass_mending
from signet_sync.sync.request import Request

# Seconds that a running agent gets to repair its own database.
PATIENCE = 30.0
_ROUNDS = 3  # opening a folder may reveal further problems


@dataclass(slots=True)
class Healed:
    """What was done, and what could not be: sentences for the user."""

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def heal(root: str, database: str, names: Collection[str]) -> Healed:
    """Fixes the findings of these names, each after those on which it depends."""
    healed = Healed()
    patient = Patient(root, database)
    for wanted, mend in _HEALERS:
        if wanted.isdisjoint(names):
            continue
        try:
            for sentence in mend(patient):
                healed.done.append(sentence)
        except SignetSyncError as error:
            healed.failed.append(f"{', '.join(sorted(wanted & set(names)))}: {error.message} ({error.hint})")
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            healed.failed.append(f"{', '.join(sorted(wanted & set(names)))}: {where}{reason(error)}")
        patient = patient.again()
    return healed


# ── our state folder ──


def _modes(patient: Patient) -> Iterator[str]:
    folder = patient.folder.path
    count = 0
    for _ in range(_ROUNDS):
        wrong = storage.badly_kept(folder)
        for path in wrong:
            wanted = 0o700 if stat.S_ISDIR(os.lstat(path).st_mode) else 0o600
            os.chmod(path, wanted)
        count += len(wrong)
    if count:
        yield f"{folder} and what is in it is yours alone again"
    for path in (patient.database, f"{patient.database}-wal", f"{patient.database}-shm"):
        if storage.is_open(path):
            os.chmod(path, 0o600)
            yield f"{path} is read by nobody else any more"


def _place(patient: Patient) -> Iterator[str]:
    folder = establish(patient.root)
    yield f"the state folder {folder.path} knows now that its workspace is {os.path.realpath(patient.root)}"


def _heartbeat(patient: Patient) -> Iterator[str]:
    if agent.forget(patient):
        yield "the heartbeat of an agent that is dead was taken away"


# ── the index ──


def _database(patient: Patient) -> Iterator[str]:
    if patient.pid is not None and patient.beat.get("database") == patient.database:
        yield _by_the_agent(patient, patient.pid)
        return
    yield from _pass(patient, rebuild=True)


def _by_the_agent(patient: Patient, pid: int) -> str:
    """Lets the running agent do it: exchanging the file under it could lose what it is just writing."""
    suspect(patient.database)
    os.kill(pid, signal.SIGHUP)  # a full pass, which checks every page of a suspect database
    end = time.monotonic() + PATIENCE
    while is_suspect(patient.database) or _is_degraded(patient):
        if time.monotonic() > end:
            raise WorkspaceError(
                f"the agent (pid {pid}) was told to look at every page, and has not yet",
                hint=f"look again in a moment: {patient.command('doctor')}",
            )
        time.sleep(0.1)
    return f"the agent (pid {pid}) looked at every page of the database and made it anew where it had to"


def _is_degraded(patient: Patient) -> bool:
    return str(patient.again().beat.get("state")).startswith("degraded")


def _look_again(patient: Patient) -> Iterator[str]:
    yield from _pass(patient, rebuild=False)


def _pass(patient: Patient, *, rebuild: bool) -> Iterator[str]:
    """Makes the pass of `reindex`, including jobs and journalled flows that wait."""
    settings = patient.settings
    with opened(patient.root, settings, database=patient.chosen) as workspace:
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
        yield f"the spool was worked off: {written} sessions taken in, {len(taken.failed)} failed"


# ── service and hooks ──


def _hooks(patient: Patient) -> Iterator[str]:
    for outcome in hooks_install.install(
        patient.root, harness.broken(patient), now=iso(now_us()), environ=patient.environ
    ):
        if outcome.error is not None:
            raise outcome.error
        yield f"the hooks of {outcome.harness} were written anew"
        yield from (f"{outcome.harness}, left to you: {line}" for line in outcome.plan.by_hand)


def _service(patient: Patient) -> Iterator[str]:
    unit = patient.unit
    if unit is None:
        return
    done = service.restart(unit, patient.environ)
    if done.by_hand:
        raise WorkspaceError(f"{unit.name} could not be started", hint="; ".join(done.by_hand))
    yield from done.steps


_HEALERS: tuple[tuple[frozenset[str], Callable[[Patient], Iterator[str]]], ...] = (
    (frozenset({"state-mode", "database-mode"}), _modes),
    (frozenset({"moved", "copied"}), _place),
    (frozenset({"stale-heartbeat"}), _heartbeat),
    (frozenset({"database"}), _database),
    (frozenset({"database-behind", "full-text", "page", "spool", "unfinished"}), _look_again),
    (frozenset({"hooks"}), _hooks),
    (frozenset({"service", "version-skew"}), _service),
)
