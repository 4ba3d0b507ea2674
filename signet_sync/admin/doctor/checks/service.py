"""Checks the operating system's service: this workspace has one, it runs, and it outlives the login."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Iterator

from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.target import Patient
from signet_sync.host import service as host_service
from signet_sync.host.service_manager import ServiceState


def service(patient: Patient) -> list[Finding]:
    """Reports the unit of this workspace first, then those of other workspaces that have problems."""
    unit = patient.unit
    return [*([_own(patient, unit)] if unit is not None else _none(patient)), *_others(patient)]


def _none(patient: Patient) -> Iterator[Finding]:
    if not host_service.is_here(patient.environ):
        yield fine("service", "there is neither systemd nor launchd here; signet-sync run is started by hand")
    elif patient.alive and patient.chosen is None:  # otherwise another finding reports that none runs, with this remedy
        words = "no service is installed for this workspace: after the next start of the machine no agent runs"
        yield warning("service", words, patient.command("service install"))


def _own(patient: Patient, unit: ServiceState) -> Finding:
    gone = host_service.missing_program(unit, patient.environ)
    if gone is not None:
        words = f"{unit.name} starts {gone}, which is not there any more"
        return problem("service-program", words, patient.command("service install"))
    if unit.active is False:
        why = patient.command("service install")
        return problem(
            "service", f"{unit.name} is not running", f"{host_service.restart_command(unit)}  # or {why}", fix=True
        )
    if unit.active is None:
        return warning("service", f"{unit.name}: nobody can say whether it runs", patient.command("service status"))
    if unit.enabled is False:
        words = f"{unit.name} runs, and will not after the next start of the machine"
        return warning("service", words, patient.command("service install"))
    if "SSH_CONNECTION" in patient.environ and host_service.outlives_login(unit, patient.environ) is False:
        words = f"{unit.name} ends when you log out"
        return warning("service", words, f"loginctl enable-linger {shlex.quote(getpass.getuser())}")
    return fine("service", unit.name)


def _others(patient: Patient) -> Iterator[Finding]:
    for unit in patient.units:
        if unit == patient.unit:
            continue
        if unit.workspace is not None and not os.path.isdir(unit.workspace):
            remedy = _uninstall(unit)
            yield warning("service-astray", f"{unit.name} waits for {unit.workspace}, which is not there", remedy)
        elif unit.active is False:
            words = f"{unit.name} (of {unit.workspace or 'another workspace'}) is not running"
            yield warning("service-other", words, host_service.restart_command(unit))


def _uninstall(unit: ServiceState) -> str:
    return f"signet-sync --workspace {shlex.quote(unit.workspace or '')} service uninstall"
