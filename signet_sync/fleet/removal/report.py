"""Makes the report of a removal from its plan and its journal: what, where, when, and what could not be reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from signet_sync.fleet.removal.plan import Approval, Plan
from signet_sync.formats.paths import display
from signet_sync.text.phrases import counted

_TITLES = {
    "removed": "Removed",
    "nothing-left": "Nothing was left",
    "pending": "Not done yet",
    "unreachable": "Not reached",
    "not-writable": "Cannot be removed there",
}


_OF_LINES = ("event", "plan_sha256", "prev", "hash")


def states(made: Plan, lines: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the last line of each workspace of a plan: its one state."""
    return {
        line["workspace"]: {name: value for name, value in line.items() if name not in _OF_LINES}
        for line in lines
        if line["event"] == "workspace" and line["plan_sha256"] == made.digest
    }


def document(made: Plan, approval: Approval, lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the report as values; each workspace of the plan is in it once."""
    lines = [line for line in lines if line["plan_sha256"] == made.digest]
    known = states(made, lines)
    rows = []
    for one in made.workspaces:
        ids = sorted({session_id for session in one.sessions for session_id in session.session_ids})
        nothing = {"workspace": one.workspace, "state": "pending", "message": "it was not begun", "session_ids": ids}
        nothing |= {"tombstones": [], "files": [], "left": [], "remains": [], "kept": [], "at": ""}
        rows.append(known.get(one.workspace, nothing))
    return {
        "plan_sha256": made.digest,
        "request": made.document["request"],
        "reason": made.document["reason"],
        "planned_at": made.document["made_at"],
        "approved_by": approval.by,
        "approved_at": approval.at,
        "begun_at": lines[0]["at"],
        "ended_at": lines[-1]["at"],
        "counts": dict(sorted(Counter(row["state"] for row in rows).items())),
        "workspaces": rows,
        "unreachable": made.document["unreachable"],
    }


def as_markdown(report: Mapping[str, Any]) -> str:
    """Returns the report for people."""
    rows = report["workspaces"]
    gone = [row for row in rows if row["state"] in ("removed", "nothing-left")]
    files = sum(len(row["files"]) for row in gone)
    lines = [
        "# Removal",
        "",
        f"- Reason: {_text(report['reason'])}",
        f"- Plan: {report['planned_at']}, SHA-256 `{report['plan_sha256']}`",
        f"- Approved by {_text(report['approved_by'])}, {report['approved_at']}",
        f"- Carried out from {report['begun_at']} to {report['ended_at']}",
        f"- Journal: last line `{report['journal_sha256']}`",
        f"- Done in {len(gone)} of {counted(len(rows), 'workspace')}: {counted(files, 'file')}",
    ]
    for state, title in _TITLES.items():
        some = [row for row in rows if row["state"] == state]
        lines += ["", f"## {title}", ""] if some else []
        for row in some:
            lines += _workspace(row)
    if report["unreachable"]:
        lines += ["", "## Not looked into", "", "These could not be read when the plan was made; plan again:", ""]
        lines += [f"- `{_text(one['workspace'])}`: {_text(one['message'])}" for one in report["unreachable"]]
    return "\n".join(lines) + "\n"


def _workspace(row: Mapping[str, Any]) -> list[str]:
    what = f"{counted(len(row['session_ids']), 'session')}, {counted(len(row['files']), 'file')} gone"
    lines = [f"- `{_text(row['workspace'])}`: {what}{', ' + row['at'] if row['at'] else ''}"]
    lines += [f"  - {_text(row['message'])}"] if row["message"] else []
    lines += [f"  - session `{_text(one)}`" for one in row["session_ids"]]
    lines += [f"  - tombstone `{one}`" for one in row["tombstones"]]
    lines += [f"  - still there: `{_text(one)}`" for one in row["left"]]
    lines += [f"  - remains: {_text(one)}" for one in row["remains"]]
    lines += [f"  - kept, as the plan says: `{_text(one)}` quotes it" for one in row["kept"]]
    return lines


def _text(text: str) -> str:
    return display(text).replace("`", "'")
