"""The installation looked over end to end: each finding with its remedy, and the safe remedies applied.

`examine` changes nothing. `healing.heal` does what findings with `fix` ask for; what is a person's, or of the whole
machine, is only told of.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from signet_sync.admin.doctor.checks import agent, harness, index, machine, pages, service, settings, storage, vault
from signet_sync.admin.doctor.finding import Finding as Finding
from signet_sync.admin.doctor.finding import problem
from signet_sync.admin.doctor.target import Patient
from signet_sync.errors import reason

# What can be said where there is no workspace, and then what else can be said where there is one.
_ALWAYS = (machine.room, vault.workspace, vault.settings)
_CHECKS = (
    vault.whereabouts,
    vault.file_system,
    storage.modes,
    index.index,
    pages.pages,
    machine.clock,
    machine.watches,
    agent.agent,
    service.service,
    vault.signet,
    storage.waiting,
    harness.harness,
    vault.obsidian,
    settings.model,
    settings.history,
)


def examine(root: str, database: str) -> list[Finding]:
    """Every check in order; none of them changes anything."""
    patient = Patient(root, database)
    checks = (*_ALWAYS, *_CHECKS) if os.path.isdir(root) else _ALWAYS
    return [machine.python(), machine.sqlite(), *(finding for check in checks for finding in _looked(check, patient))]


def _looked(check: Callable[[Patient], list[Finding]], patient: Patient) -> list[Finding]:
    """What a check finds; where it meets a disk that does not answer, that is what it found."""
    try:
        return check(patient)
    except OSError as error:
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        words = f"could not be looked at: {where}{reason(error)}"
        return [problem(check.__name__, words, "check permissions and the disk, then look again")]
