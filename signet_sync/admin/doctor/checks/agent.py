"""Checks the running agent: whether there is one, is ours, responds, and is of this version."""

from __future__ import annotations

import os
import shlex

from signet_sync import __version__
from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.target import Patient
from signet_sync.storage import state_dir
from signet_sync.storage.durable import unlink


def agent(patient: Patient) -> list[Finding]:
    """Checks what holds the workspace, and what its heartbeat reports."""
    if patient.is_shut_out:
        return []  # unknown; another finding names the reason
    if not patient.alive:
        return [_nobody(patient)]
    stranger = _stranger(patient)
    if stranger is not None:
        return [stranger]
    name = f"{patient.beat.get('state')} (pid {patient.beat.get('pid')})"
    if patient.silence is None or patient.silence > state_dir.SILENCE:
        age = "none" if patient.silence is None else f"{patient.silence:.0f} s old"
        words = f"{name} hangs: its last sign of life is {age}"
        return [problem("agent", words, f"{patient.to_start()}  # {patient.command('logs')} may say why")]
    trouble = patient.beat.get("trouble")
    found = [fine("agent", name)]
    if trouble or name.startswith("degraded"):
        found = [warning("agent", f"{name}: {trouble}" if trouble else name, patient.command("logs"))]
    return [*found, *_skew(patient)]


def _nobody(patient: Patient) -> Finding:
    if patient.beat:
        words = f"an agent (pid {patient.beat.get('pid')}) ended without saying so; its heartbeat is still there"
        return warning("stale-heartbeat", words, patient.to_start(), fix=True)
    return warning("agent", "no agent runs on this workspace", patient.to_start())


def _stranger(patient: Patient) -> Finding | None:
    """Reports a process that holds the workspace's lock and is not the agent of the heartbeat."""
    if patient.pid is not None:
        return None
    path = os.path.join(patient.folder.locks, "run.lock")
    for place in (path, patient.folder.path):
        holder = state_dir.lock_holder(place)
        if holder is not None:
            words = f"the lock of the agent is held by process {holder}, which is no agent"
            return problem("stale-lock", words, f"ps -p {holder} -o args=; kill {holder}")
    words = "the lock of the agent is held, and no agent gives a sign of life"
    return problem("stale-lock", words, f"fuser -v {shlex.quote(path)}  # shows who holds it; end that")


def _skew(patient: Patient) -> list[Finding]:
    version = patient.beat.get("version")
    if version == __version__:
        return []
    words = f"the agent is signet-sync {version}, this is {__version__}; once it notices, it starts anew by itself"
    return [warning("version-skew", words, patient.to_start(), fix=patient.unit is not None)]


def forget(patient: Patient) -> bool:
    """Deletes the heartbeat that a dead agent left. Raises `AnotherAgent` if an agent has started meanwhile."""
    with state_dir.run_lock(patient.folder):
        return unlink(patient.folder.heartbeat)
