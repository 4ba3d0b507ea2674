"""Checks many workspaces and adds up what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.inspection import Inspection, InspectionRequest, inspect
from signet_sync.integrity.check import BAD, CheckResult
from signet_sync.integrity.check import counts as counts_of


def check(
    named: Sequence[str], engine: Engine, now_us: int, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Returns the document of `fleet check --json`. `progress` gets the workspaces that are done, and all.

    Raises `UsageError`, `SignetSyncError` as `targets.workspaces` and `engines.run` do.
    """
    asked = [InspectionRequest(workspace, now_us) for workspace in targets.workspaces(named)]
    counts = Counter(counts_of(CheckResult()))
    problems: list[dict[str, Any]] = []
    unreachable: list[dict[str, str]] = []
    for done, (item, result, failure) in enumerate(engines.run(inspect, asked, engine), 1):
        found = result or Inspection(item.workspace, None, failure)
        if found.document is None:
            unreachable.append({"workspace": found.workspace, "message": found.unreachable})
        else:
            counts.update(found.document["counts"])
            problems += [{"workspace": found.workspace, **problem} for problem in found.document["problems"]]
        if progress is not None:
            progress(done, len(asked))
    return {
        "workspaces": len(asked),
        "counts": dict(counts),
        "problems": sorted(problems, key=lambda one: (one["workspace"], one["path"], one.get("line", 0))),
        "unreachable": sorted(unreachable, key=lambda one: one["workspace"]),
    }


def is_ok(document: dict[str, Any]) -> bool:
    """Returns whether every workspace of a document could be read, and nothing in it is wrong."""
    return not document["unreachable"] and all(problem["verdict"] not in BAD for problem in document["problems"])
