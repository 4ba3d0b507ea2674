"""Checks many workspaces and adds up what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.inspection import Inspection, InspectionRequest, inspect


def check(named: Sequence[str], engine: Engine, now_us: int) -> dict[str, Any]:
    """Returns the document of `fleet check --json`."""
    asked = [InspectionRequest(workspace, now_us) for workspace in targets.workspaces(named)]
    counts: Counter[str] = Counter()
    problems: list[dict[str, Any]] = []
    unreachable: list[dict[str, str]] = []
    for item, result, failure in engines.run(inspect, asked, engine):
        found = result or Inspection(item.workspace, None, failure)
        if found.document is None:
            unreachable.append({"workspace": found.workspace, "message": found.unreachable})
            continue
        counts.update(found.document["counts"])
        problems += [{"workspace": found.workspace, **problem} for problem in found.document["problems"]]
    return {
        "workspaces": len(asked),
        "counts": dict(counts),
        "problems": sorted(problems, key=lambda one: (one["workspace"], one["path"])),
        "unreachable": sorted(unreachable, key=lambda one: one["workspace"]),
    }
