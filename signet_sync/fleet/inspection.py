"""Checks one workspace of a fleet: the same verdicts as `check`, as plain values."""

from __future__ import annotations

from typing import Any, NamedTuple

from signet_sync.errors import SignetSyncError
from signet_sync.fleet import workspaces
from signet_sync.integrity import check


class InspectionRequest(NamedTuple):
    """A workspace and the time of the check, in microseconds since 1970 UTC."""

    workspace: str
    now_us: int


class Inspection(NamedTuple):
    """What a check found: the document of `check --json`, or why the workspace could not be reached."""

    workspace: str
    document: dict[str, Any] | None
    unreachable: str = ""


def inspect(asked: InspectionRequest) -> Inspection:
    """Checks one workspace; writes nothing. A workspace that cannot be read is a result, not an error."""
    try:
        with workspaces.opened(asked.workspace) as root:
            # The engine has a process for every core.
            checked = check.check(root, now_us=asked.now_us, workers=0)
            return Inspection(asked.workspace, check.document(root, checked, asked.now_us, strict=False))
    except (SignetSyncError, OSError) as error:
        return Inspection(asked.workspace, None, workspaces.why_not(error))
