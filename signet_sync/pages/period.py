"""Writes what happened on some days, by project, as Markdown: sessions, and what was first decided or blocked then."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_sync.formats.handle import short_handle
from signet_sync.formats.timestamps import local_day
from signet_sync.pages.sections import distinct_names, outcome_of, plain
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import basename, page_cell


class PeriodLine(NamedTuple):
    """A session (`kind` is its status, `id` the handle of its node), or what was stated first in the period.

    `project` is the identity of the thread, None without one.
    """

    id: str
    project: str | None
    at_us: int
    kind: str | None
    text: str


class Period(NamedTuple):
    """What happened from `from_us` up to, but not at, `to_us`, oldest first; days are those of this machine."""

    from_us: int
    to_us: int
    sessions: Sequence[PeriodLine] = ()
    statements: Sequence[PeriodLine] = ()


def text_of(seen: Period) -> str:
    """Returns the Markdown, the project of the newest session first; ends without a newline."""
    first, last = local_day(seen.from_us), local_day(seen.to_us - 1)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    lines = [f"# What happened {when}", "", count_noun(len(seen.sessions), "session")]
    projects = dict.fromkeys(one.project for some in (seen.sessions, seen.statements) for one in reversed(some))
    names = distinct_names(projects)
    for project in projects:
        name = names.get(project or "") or basename(project) or "Without a project"
        lines += ["", f"## {page_cell(name)}", ""]
        for one in (one for one in reversed(seen.sessions) if one.project == project):
            text = plain(outcome_of(one.text, name) or one.text)  # what blocks it has a line of its own
            status = f" ({one.kind})" if one.kind else ""
            lines.append(f"- {local_day(one.at_us)}{status}: {text} {short_handle(one.id)}")
        for one in (one for one in reversed(seen.statements) if one.project == project):
            lines.append(f"- {local_day(one.at_us)} {one.kind}: {plain(one.text)} {short_handle(one.id)}")
    return "\n".join(lines)


def document(agent_id: str, seen: Period) -> dict[str, Any]:
    """Returns the document of `digest --json`."""

    def about(one: PeriodLine, kind: str) -> dict[str, Any]:
        return {"id": one.id, "project": one.project, "day": local_day(one.at_us), kind: one.kind, "text": one.text}

    return {
        "agent_id": agent_id,
        "from": local_day(seen.from_us),
        "to": local_day(seen.to_us - 1),
        "sessions": [about(one, "status") for one in seen.sessions],
        "statements": [about(one, "type") for one in seen.statements],
    }
