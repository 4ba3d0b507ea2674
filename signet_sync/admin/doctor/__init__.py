"""Runs all checks of an installation: each finding with its remedy. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from signet_sync.admin.doctor import programs, vault
from signet_sync.admin.doctor.installation import Finding, Installation, problem
from signet_sync.errors import reason

# Checks that need no workspace, and then those that need one.
_ALWAYS = (vault.workspace, vault.settings)
_CHECKS = (
    vault.file_system,
    vault.modes,
    vault.index,
    vault.pages,
    programs.agent,
    programs.service,
    vault.signet,
    vault.jobs,
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


def _findings_of(check: Callable[[Installation], Iterable[Finding]], target: Installation) -> list[Finding]:
    """Returns the findings of a check; if a disk does not answer, that is the finding."""
    try:
        return list(check(target))
    except OSError as error:
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        words = f"cannot be examined: {where}{reason(error)}"
        return [problem(check.__name__, words, "check permissions and the disk, then run doctor again")]
