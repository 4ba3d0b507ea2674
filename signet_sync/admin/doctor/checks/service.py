"""Checks the operating system's service: this workspace has one, it runs, and it outlives the login."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Iterator

from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.installation import Installation
from signet_sync.host import service as host_service
from signet_sync.host.service_manager import ServiceState


def service(target: Installation) -> list[Finding]:
    """Reports the unit of this workspace first, then those of other workspaces that have problems."""
    unit = target.unit
    return [*([_own(target, unit)] if unit is not None else _none(target)), *_others(target)]


def _none(target: Installation) -> Iterator[Finding]:
    if not host_service.is_here(target.environ):
        yield fine("service", "there is neither systemd nor launchd here; signet-sync run is started by hand")
    elif target.alive and target.chosen is None:  # otherwise another finding reports that none runs, with this remedy
        words = "no service is installed for this workspace: after the next start of the machine no agent runs"
        yield warning("service", words, target.command("service install"))


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
        return warning("service", f"{unit.name}: it is unknown whether it runs", target.command("service status"))
    if unit.enabled is False:
        words = f"{unit.name} runs, and will not after the next start of the machine"
        return warning("service", words, target.command("service install"))
    if "SSH_CONNECTION" in target.environ and host_service.lingering(target.environ) is False:
        words = f"{unit.name} ends when you log out"
        return warning("service", words, f"loginctl enable-linger {shlex.quote(getpass.getuser())}")
    return fine("service", unit.name)


def _others(target: Installation) -> Iterator[Finding]:
    for unit in target.units:
        if unit == target.unit:
            continue
        if unit.workspace is not None and not os.path.isdir(unit.workspace):
            remedy = _uninstall(unit)
            yield warning("service-astray", f"{unit.name} waits for {unit.workspace}, which does not exist", remedy)
        elif unit.active is False:
            words = f"{unit.name} (of {unit.workspace or 'another workspace'}) is not running"
            yield warning("service-other", words, host_service.restart_command(unit))


def _uninstall(unit: ServiceState) -> str:
    return f"signet-sync --workspace {shlex.quote(unit.workspace or '')} service uninstall"
