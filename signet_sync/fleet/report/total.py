"""Adds up the reports on many workspaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from signet_sync import __version__
from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.report.workspace import KINDS, ReportRequest, report_one, shown, unreached
from signet_sync.formats.artifact_record import SENTENCE_VERSION
from signet_sync.formats.timestamps import iso
from signet_sync.text.sanitizer import SANITIZER_VERSION

_SUMMED = ("sessions", "artifacts", "bytes", "tombstones", *KINDS)
_CURRENT = {"memory_sentence_version": SENTENCE_VERSION, "sanitizer_version": SANITIZER_VERSION}


def report(
    named: Sequence[str],
    engine: Engine,
    now_us: int,
    *,
    with_index: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Returns the document of `fleet report --json`. `progress` gets how many workspaces are done, of how many.

    `with_index` compares with the seals of the indexes that a worker's machine has. Raises `UsageError`,
    `SignetSyncError` as `targets.workspaces` and `engines.run` do.
    """
    asked = [ReportRequest(workspace, now_us, with_index) for workspace in targets.workspaces(named)]
    counts, weeks = Counter(dict.fromkeys(_SUMMED, 0)), dict[str, Counter[str]]()
    rules, versions = dict[str, Counter[str]](), dict[tuple[str, str], Counter[str]]()
    findings, by_workspace, unreachable = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, str]]()
    for done, (item, result, failure) in enumerate(engines.run(report_one, asked, engine), 1):
        if progress is not None:
            progress(done, len(asked))
        found = result or unreached(item.workspace, failure)
        workspace = shown(found.workspace)
        if found.unreachable:
            unreachable.append({"workspace": workspace, "message": found.unreachable})
            continue
        counts.update({name: found.totals[name] for name in _SUMMED})
        by_workspace.append({"workspace": workspace, **found.totals})
        findings += [{"workspace": workspace, **one} for one in found.findings]
        for rule, files in found.rules.items():
            rules.setdefault(rule, Counter()).update(files=files, workspaces=1)
        for named_version, files in found.versions.items():
            versions.setdefault(named_version, Counter()).update(files=files, workspaces=1)
        for week, (sessions, size) in found.weeks.items():
            weeks.setdefault(week, Counter()).update(sessions=sessions, bytes=size)
    return {
        "now": iso(now_us),
        "version": __version__,
        "workspaces": len(asked),
        "counts": dict(counts),
        "by_rule": [{"rule": rule, **rules[rule]} for rule in sorted(rules)],
        "by_version": [
            {"field": field, "value": value, "current": value == _CURRENT[field], **versions[field, value]}
            for field, value in sorted(versions)
        ],
        "by_week": [{"week": week, **weeks[week]} for week in sorted(weeks)],
        "by_workspace": sorted(by_workspace, key=lambda one: one["workspace"]),
        "findings": sorted(findings, key=lambda one: (one["workspace"], one["path"], one["line"], one["code"])),
        "unreachable": sorted(unreachable, key=lambda one: one["workspace"]),
    }
