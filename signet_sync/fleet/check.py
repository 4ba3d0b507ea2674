"""Checks many workspaces and adds up what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.inspection import Inspection, InspectionRequest, inspect
from signet_sync.integrity.check import BAD, CheckResult
from signet_sync.integrity.check import counts as counts_of


class FleetCheck(NamedTuple):
    """The document of `fleet check --json`, and the workspaces in which nothing was found to check."""

    document: dict[str, Any]
    empty: list[str]

    @property
    def ok(self) -> bool:
        """Returns whether every workspace could be read, and nothing in it is wrong."""
        bad = any(problem["verdict"] in BAD for problem in self.document["problems"])
        return not bad and not self.document["unreachable"]


def check(
    named: Sequence[str], engine: Engine, now_us: int, progress: Callable[[int, int], None] | None = None
) -> FleetCheck:
    """Checks the workspaces of targets. `progress` gets how many are done, of how many.

    Raises `UsageError`, `SignetSyncError` as `targets.workspaces` and `engines.run` do.
    """
    asked = [InspectionRequest(workspace, now_us) for workspace in targets.workspaces(named)]
    counts = Counter(counts_of(CheckResult()))
    problems: list[dict[str, Any]] = []
    unreachable: list[dict[str, str]] = []
    empty: list[str] = []
    for done, (item, result, failure) in enumerate(engines.run(inspect, asked, engine), 1):
        found = result or Inspection(item.workspace, None, failure)
        if found.document is None:
            unreachable.append({"workspace": found.workspace, "message": found.unreachable})
        else:
            counts.update(found.document["counts"])
            if not found.document["counts"]["scanned"]:
                empty.append(found.workspace)
            problems += [{"workspace": found.workspace, **problem} for problem in found.document["problems"]]
        if progress is not None:
            progress(done, len(asked))
    document = {
        "workspaces": len(asked),
        "counts": dict(counts),
        "problems": sorted(problems, key=lambda one: (one["workspace"], one["path"], one.get("line", 0))),
        "unreachable": sorted(unreachable, key=lambda one: one["workspace"]),
    }
    return FleetCheck(document, sorted(empty))
