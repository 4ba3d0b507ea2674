"""Checks the running agent: whether there is one, is ours, responds, and is of this version."""

from __future__ import annotations

import os
import shlex

from signet_sync import __version__
from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.installation import Installation
from signet_sync.storage import state_dir
from signet_sync.storage.durable import unlink


def agent(target: Installation) -> list[Finding]:
    """Checks what holds the workspace, and what its heartbeat reports."""
    if target.is_unreadable:
        return []  # unknown; another finding names the reason
    if not target.alive:
        return [_missing_agent(target)]
    other_holder = _other_holder(target)
    if other_holder is not None:
        return [other_holder]
    name = f"{target.heartbeat.get('state')} (pid {target.heartbeat.get('pid')})"
    if target.heartbeat_age is None or target.heartbeat_age > state_dir.SILENCE:
        age = "none" if target.heartbeat_age is None else f"{target.heartbeat_age:.0f} s old"
        words = f"{name} does not respond: its last heartbeat is {age}"
        return [problem("agent", words, f"{target.start_command()}  # {target.command('logs')} may say why")]
    trouble = target.heartbeat.get("trouble")
    found = [fine("agent", name)]
    if trouble or name.startswith("degraded"):
        found = [warning("agent", f"{name}: {trouble}" if trouble else name, target.command("logs"))]
    return [*found, *_version_skew(target)]


def _missing_agent(target: Installation) -> Finding:
    if target.heartbeat:
        words = f"an agent (pid {target.heartbeat.get('pid')}) did not end normally; its heartbeat is still there"
        return warning("stale-heartbeat", words, target.start_command(), fix=True)
    return warning("agent", "no agent runs on this workspace", target.start_command())


def _other_holder(target: Installation) -> Finding | None:
    """Reports a process that holds the workspace's lock and is not the agent of the heartbeat."""
    if target.pid is not None:
        return None
    path = os.path.join(target.folder.locks, "run.lock")
    for place in (path, target.folder.path):
        holder = state_dir.lock_holder(place)
        if holder is not None:
            words = f"the lock of the agent is held by process {holder}, which is no agent"
            return problem("stale-lock", words, f"ps -p {holder} -o args=; kill {holder}")
    words = "the lock of the agent is held, but no agent sends a heartbeat"
    return problem("stale-lock", words, f"fuser -v {shlex.quote(path)}  # shows who holds it; end that")


def _version_skew(target: Installation) -> list[Finding]:
    version = target.heartbeat.get("version")
    if version == __version__:
        return []
    words = f"the agent is signet-sync {version}, this is {__version__}; a service restarts it once it notices"
    return [warning("version-skew", words, target.start_command(), fix=target.unit is not None)]


def delete_heartbeat(target: Installation) -> bool:
    """Deletes the heartbeat that a dead agent left. Raises `AnotherAgent` if an agent has started meanwhile."""
    with state_dir.run_lock(target.folder):
        return unlink(target.folder.heartbeat)
