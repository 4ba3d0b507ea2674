"""Formats the report on a fleet: lines for a person, and SARIF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from signet_sync.cli.formats.check import ReportEntry, sarif_log
from signet_sync.text.phrases import counted, human

# A URL to which the path of a file can be added; others end in a fragment, or name an archive within.
_FOLDER = re.compile(r"[a-z][a-z0-9+.-]*://[^?#!\s]*")


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Yields the numbers of a report, a line each."""
    counts = document["counts"]
    lost = f" · {len(document['unreachable'])} not reached" if document["unreachable"] else ""
    yield f"{counted(document['workspaces'], 'workspace')}{lost}"
    yield (
        f"{counted(counts['sessions'], 'session')} · {counted(counts['artifacts'], 'file')} · {human(counts['bytes'])}"
        f" · {counts['tombstones']} removed"
    )
    yield (
        f"{counted(counts['secret'], 'file')} with a suspected secret · {counts['changed']} changed"
        f" · {counts['came-back']} came back · {counts['unreadable']} unreadable · {counts['invalid']} invalid"
    )
    for one in document["by_rule"]:
        yield f"  {one['rule']}: {counted(one['files'], 'file')} in {counted(one['workspaces'], 'workspace')}"
    for lost_one in document["unreachable"]:
        yield f"  not reached: {lost_one['workspace']}: {lost_one['message']}"


def sarif(document: dict[str, Any]) -> str:
    """Returns a SARIF 2.1.0 log: one base for each workspace with findings, a notification for each not reached."""
    named = sorted({one["workspace"] for one in document["findings"]})
    ids = {workspace: f"WORKSPACE{number}" for number, workspace in enumerate(named, 1)}
    found = [
        (
            ReportEntry("warning" if one["kind"] == "secret" else "error", one["code"], one["path"], one["line"], text),
            ids[one["workspace"]],
        )
        for one in document["findings"]
        if (text := one["message"] + (f" → {one['hint']}" if one["hint"] else ""))
    ]
    failures = [f"{one['workspace']}: {one['message']}" for one in document["unreachable"]]
    return sarif_log(found, {ids[workspace]: _base(workspace) for workspace in named}, failures)


def _base(workspace: str) -> dict[str, Any]:
    """Describes a workspace as a base; its URI, where it has one that ends in `/`, is what paths are added to."""
    described = {"description": {"text": workspace}}
    if workspace.startswith("/"):
        return {"uri": f"file://{quote(workspace.rstrip('/'))}/", **described}
    if _FOLDER.fullmatch(workspace) and "::" not in workspace and "@" not in workspace:
        return {"uri": f"{quote(workspace.rstrip('/'), safe=':/%+')}/", **described}
    return described
