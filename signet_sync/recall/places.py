"""Says what a hit is and where it was found, for the user."""

from __future__ import annotations

from signet_sync.formats.paths import running_session
from signet_sync.formats.timestamps import local_day
from signet_sync.recall.rank import Tier
from signet_sync.recall.store.hits import MatchedLine
from signet_sync.text.sentences import basename, flatten

WHAT = {
    "next": "a next step", "question": "an open question", "person": "a note on people", "blocker": "a blocker",
    "decision": "a decision", "constraint": "a constraint", "preference": "a preference", "note": "a note",
    "arc": "a week", "epoch": "a quarter", "summary": "a summary", "compaction": "a compaction",
}  # fmt: skip


def of_line(tier: Tier, line: MatchedLine) -> str:
    """Returns what a line is, and its day."""
    day = local_day(line.at_us)
    if tier == "memory":
        return f"a remembered {line.kind}, {day}"
    if tier in ("curated", "thread"):
        return f"the {line.kind} {line.about}, {day}"
    running = " in a running session" if running_session(line.path) is not None else ""
    return f"{WHAT[line.kind]}{of_project(line.about)}{running}, {day}"


def of_project(project: str | None) -> str:
    """Returns a project's name as the end of a phrase; "" without one."""
    name = flatten(basename(project))
    return f" of {name}" if name else ""


def with_turn(role: str, where: str, at_us: int) -> str:
    """Adds to a place who speaks there, and the day."""
    return f"{where}: {role}, {local_day(at_us)}" if role else f"{where}, {local_day(at_us)}"
