"""Checks the running agent: that there is one, it responds and is of this version; and the service that starts it."""

from __future__ import annotations

import getpass
import os
import shlex

from signet_sync import __version__
from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, warning
from signet_sync.host import service as host_service
from signet_sync.host.service_manager import ServiceState
from signet_sync.storage import state_dir
from signet_sync.storage.durable import unlink


def agent(target: Installation) -> list[Finding]:
    """Checks what holds the workspace, and what its heartbeat reports."""
    if target.is_unreadable:
        return []  # unknown; another finding names the reason
    if not target.alive and target.heartbeat:
        words = f"an agent (pid {target.heartbeat.get('pid')}) did not end normally; its heartbeat is still there"
        return [warning("stale-heartbeat", words, target.start_command(), fix=True)]
    if not target.alive:
        return [warning("agent", "no agent runs on this workspace", target.start_command())]
    if target.pid is None:
        held = shlex.quote(os.path.join(target.folder.locks, "run.lock"))
        words = "the lock of the agent is held, but no agent sends a heartbeat"
        return [problem("stale-lock", words, f"fuser -v {held}  # shows who holds it; end that")]
    name = f"{target.heartbeat.get('state')} (pid {target.heartbeat.get('pid')})"
    if target.heartbeat_age is None or target.heartbeat_age > state_dir.SILENCE:
        age = "none" if target.heartbeat_age is None else f"{target.heartbeat_age:.0f} s old"
        words = f"{name} does not respond: its last heartbeat is {age}"
        return [problem("agent", words, f"{target.start_command()}  # {target.command('logs')} may say why")]
    trouble = target.heartbeat.get("trouble")
    found = [fine("agent", name)]
    if trouble or name.startswith("degraded"):
        found = [warning("agent", f"{name}: {trouble}" if trouble else name, target.command("logs"))]
    version = target.heartbeat.get("version")
    if version != __version__:
        words = f"the agent is signet-sync {version}, this is {__version__}; a service restarts it once it notices"
        found.append(warning("version-skew", words, target.start_command(), fix=target.unit is not None))
    return found


def delete_heartbeat(target: Installation) -> bool:
    """Deletes the heartbeat that a dead agent left. Raises `AnotherAgent` if an agent has started meanwhile."""
    with state_dir.run_lock(target.folder):
        return unlink(target.folder.heartbeat)


# ── the service of the system ──


def service(target: Installation) -> list[Finding]:
    """Reports the unit of this workspace: that it runs, and outlives the login."""
    unit = target.unit
    if unit is not None:
        return [_own(target, unit)]
    if not host_service.answers(target.environ):
        return [fine("service", "neither systemd nor launchd answers here; signet-sync run is started by hand")]
    if target.alive and target.chosen is None:  # otherwise another finding reports that none runs, with this remedy
        words = "no service is installed for this workspace: after the next start of the machine no agent runs"
        return [warning("service", words, target.command("service install"))]
    return []


def _own(target: Installation, unit: ServiceState) -> Finding:
    gone = host_service.missing_program(unit, target.environ)
    if gone is not None:
        words = f"{unit.name} starts {gone}, which no longer exists"
        return problem("service-program", words, target.command("service install"))
    if unit.active is False:
        why = target.command("service install")
        return problem(
            "service", f"{unit.name} is not running", f"{host_service.restart_command(unit)}  # or {why}", fix=True
        )
    if unit.active is None:
        return warning("service", f"{unit.name}: it is unknown whether it runs", host_service.restart_command(unit))
    if unit.enabled is False:
        words = f"{unit.name} runs, and will not after the next start of the machine"
        return warning("service", words, target.command("service install"))
    if "SSH_CONNECTION" in target.environ and host_service.lingering(target.environ) is False:
        words = f"{unit.name} ends when you log out"
        return warning("service", words, f"loginctl enable-linger {shlex.quote(getpass.getuser())}")
    return fine("service", unit.name)
