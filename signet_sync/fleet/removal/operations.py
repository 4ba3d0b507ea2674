"""Plans a removal in many workspaces, and carries out an approved plan; called again, it does what is left to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.removal import journal, plan, report
from signet_sync.fleet.removal.finding import Findings, FindRequest, find_one
from signet_sync.fleet.removal.plan import Approval, Plan
from signet_sync.fleet.removal.removing import DONE, Removal, RemoveRequest, remove_one, undone
from signet_sync.fleet.removal.request import RemovalRequest
from signet_sync.formats.timestamps import iso

Progress = Callable[[int, int], None] | None


def find(
    named: Sequence[str], request: RemovalRequest, engine: Engine, now_us: int, progress: Progress
) -> list[Findings]:
    """Returns what is found in each workspace, by name; writes nothing. Raises `UsageError`."""
    asked = [FindRequest(workspace, request, now_us) for workspace in targets.workspaces(named)]
    found = []
    for item, result, failure in engines.run(find_one, asked, engine):
        found.append(result or Findings(item.workspace, unreachable=failure))
        if progress is not None:
            progress(len(found), len(asked))
    return sorted(found)


def apply(path: str, engine: Engine, now_us: int, progress: Progress) -> dict[str, Any]:
    """Carries out an approved plan; returns the report, which is written beside it. Raises `UsageError`.

    What a killed run has done is in the journal, and is not done again; what was pending is tried again.
    """
    made = plan.read(path)
    place = plan.journal_path(path)
    with journal.opened(place) as lines:
        begun = any(line["plan_sha256"] == made.digest for line in lines.lines)
        approval = plan.approved(path, made, now_us, begun=begun)
        if not begun:
            lines.add(_line("begun", made, now_us, approved_by=approval.by, approved_at=approval.at))
        try:
            states = report.states(made, lines.lines)
            for done in _removed(made, states, engine, now_us):
                lines.add(_line("workspace", made, now_us, **done._asdict()))
                states[done.workspace] = lines.lines[-1]
                if progress is not None:
                    progress(len(states), len(made.workspaces))
        finally:
            document = _report(path, made, approval, lines, now_us)
    return document


def _removed(made: Plan, states: dict[str, dict[str, Any]], engine: Engine, now_us: int) -> Iterator[Removal]:
    """Yields what becomes of the workspaces that are not done yet."""
    asked = (
        RemoveRequest(
            one.workspace,
            one.sessions,
            made.document["reason"],
            made.document["quoting"],
            one.quoted_in,
            one.elsewhere,
            one.obstacle,
            now_us,
        )
        for one in made.workspaces
        if states.get(one.workspace, {}).get("state") not in DONE
    )
    for item, result, failure in engines.run(remove_one, asked, engine):
        yield result or undone(item, "pending", failure)


def _report(path: str, made: Plan, approval: Approval, lines: journal.Journal, now_us: int) -> dict[str, Any]:
    """Writes the report of a journal; a last line of the journal says what it amounts to."""
    document = report.document(made, approval, lines.lines)
    if lines.lines[-1]["event"] != "ended":
        lines.add(_line("ended", made, now_us, counts=document["counts"]))
    document["journal_sha256"] = lines.last
    plan.write_report(path, document, report.as_markdown(document))
    return document


def _line(event: str, made: Plan, now_us: int, **more: Any) -> dict[str, Any]:
    return {"event": event, "at": iso(now_us), "plan_sha256": made.digest, **more}


def is_everything_gone(document: dict[str, Any]) -> bool:
    """Returns whether a report says that nothing is left anywhere."""
    return not document["unreachable"] and all(
        one["state"] in DONE and not one["remains"] for one in document["workspaces"]
    )
