"""Writes what happened between two instants, by project, as Markdown: sessions, decisions, blockers, memories."""

from collections.abc import Sequence
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from signet_sync.formats.handle import short_handle
from signet_sync.formats.timestamps import day_of, instant_of, moment_of, short_day
from signet_sync.pages.board import Said
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


class PeriodMemory(NamedTuple):
    """A memory that was remembered in the period, or promoted in it."""

    id: str
    type: str
    at_us: int
    text: str
    is_private: bool
    is_promoted: bool = False


class PeriodInputs(NamedTuple):
    """What happened from `from_us` up to, but not at, `to_us`, oldest first; days are those of `zone`."""

    from_us: int
    to_us: int
    sessions: Sequence[PeriodLine] = ()
    statements: Sequence[PeriodLine] = ()
    memories: Sequence[PeriodMemory] = ()
    zone: tzinfo | None = UTC  # None: the machine's own


def text_of(seen: PeriodInputs) -> str:
    """Returns the Markdown; ends without a newline."""
    first, last = _date(seen.from_us, seen), _date(seen.to_us - 1, seen)
    counts = counts_of(seen)
    where = f" in {count_noun(counts['projects'], 'project')}" if counts["projects"] else ""
    said = [count_noun(counts["sessions"], "session") + where]
    said += [count_noun(counts["decisions"], "decision")] if counts["decisions"] else []
    said += [f"{count_noun(counts['blocked'], 'blocker')} open"] if counts["blocked"] else []
    said += [f"{count_noun(counts['remembered'], 'memory', 'memories')} kept"] if counts["remembered"] else []
    said += [f"{counts['promoted']} promoted"] if counts["promoted"] else []
    when = f"on {first}" if first == last else f"from {first} to {last}"
    lines = [f"# What happened {when}", "", " · ".join(said)]
    by_project: dict[str | None, list[PeriodLine]] = {}
    for session in seen.sessions:
        by_project.setdefault(session.project, []).append(session)
    names = distinct_names(by_project)
    # The project of the newest session first; what has no project last.
    for project, sessions in sorted(by_project.items(), key=lambda one: (not one[0], -one[1][-1].at_us, one[0] or "")):
        name = names.get(project or "") or basename(project) or "Without a project"
        told = []
        for one in reversed(sessions):
            text = plain(outcome_of(one.text, name) or one.text)  # what blocks it has a line of its own
            status = f" ({one.kind})" if one.kind else ""
            told.append(f"- {_day(one.at_us, seen)}{status}: {text} {short_handle(one.id)}")
        lines += ["", f"## {page_cell(name)}: {count_noun(len(sessions), 'session')}", "", *_cut(told)]
        lines += _statements([statement for statement in seen.statements if statement.project == project], seen, "{}:")
    lines += _statements(
        [statement for statement in seen.statements if statement.project not in by_project],
        seen,
        "## {} in other projects",
    )
    for heading, promoted in (("Remembered", False), ("Promoted", True)):
        told = []
        for memory in reversed([memory for memory in seen.memories if memory.is_promoted == promoted]):
            kind = f"{memory.type} (private)" if memory.is_private else memory.type
            told.append(f"- {kind}: {plain(memory.text)} ({_day(memory.at_us, seen)}) {short_handle(memory.id)}")
        lines += ["", f"## {heading}", "", *_cut(told)] if told else []
    return "\n".join(lines)


def document(agent_id: str, seen: PeriodInputs) -> dict[str, Any]:
    """Returns the document of `digest --json`."""

    def about(one: PeriodLine | PeriodMemory, **more: Any) -> dict[str, Any]:
        return {"id": one.id, "day": _date(one.at_us, seen), "text": one.text, **more}

    return {
        "agent_id": agent_id,
        "from": _date(seen.from_us, seen),
        "to": _date(seen.to_us - 1, seen),
        "counts": counts_of(seen),
        "sessions": [about(one, project=one.project, status=one.kind) for one in seen.sessions],
        "statements": [about(one, project=one.project, type=one.kind) for one in seen.statements],
        "memories": [
            about(one, type=one.type, private=bool(one.is_private), promoted=bool(one.is_promoted))
            for one in seen.memories
        ],
    }


def counts_of(seen: PeriodInputs) -> dict[str, int]:
    """Counts what the digest is about."""
    return {
        "sessions": len(seen.sessions),
        "projects": len({session.project for session in seen.sessions} - {None}),
        "decisions": sum(statement.kind != "blocker" for statement in seen.statements),
        "blocked": sum(statement.kind == "blocker" for statement in seen.statements),
        "remembered": sum(not memory.is_promoted for memory in seen.memories),
        "promoted": sum(memory.is_promoted for memory in seen.memories),
    }


def _statements(statements: Sequence[PeriodLine], seen: PeriodInputs, title: str) -> list[str]:
    """Returns the lines of statements below their headings, newest first; what others say already is left out."""
    lines: list[str] = []
    for heading, blocked in (("Blocked", True), ("Decided", False)):
        said, told = Said(), list[str]()
        for statement in sorted(statements, key=lambda one: (-one.at_us, one.id)):
            if (statement.kind == "blocker") == blocked and not said.holds(statement.text):
                said.add(statement.text)
                told.append(f"- {plain(statement.text)} ({_day(statement.at_us, seen)}) {short_handle(statement.id)}")
        lines += ["", title.format(heading), "", *_cut(told)] if told else []
    return lines


def _cut(lines: list[str]) -> list[str]:
    over = len(lines) - 6  # `--json` has all
    return lines if over <= 1 else [*lines[:6], f"- and {over} more (signet-sync digest --json)"]


def _day(at_us: int, seen: PeriodInputs) -> str:
    return short_day(_wall_clock(at_us, seen), _wall_clock(seen.to_us - 1, seen))


def _date(at_us: int, seen: PeriodInputs) -> str:
    return day_of(_wall_clock(at_us, seen))


def _wall_clock(at_us: int, seen: PeriodInputs) -> int:
    """Returns the instant at which a clock of UTC shows what one of the period's time zone shows at this one."""
    return instant_of(moment_of(at_us).astimezone(seen.zone).replace(tzinfo=UTC))
