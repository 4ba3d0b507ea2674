"""Writes what happened between two instants, by project, as Markdown: sessions, decisions, blockers, memories."""

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from signet_sync.formats.handle import short_handle
from signet_sync.formats.timestamps import day_of, instant_of, moment_of, short_day
from signet_sync.pages.board import Said
from signet_sync.pages.sections import distinct_names, outcome_of, plain
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import basename, page_cell

_MOST = 6  # lines below a heading; `--json` has all


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
    first, last, counts = _date(seen.from_us, seen), _date(seen.to_us - 1, seen), counts_of(seen)
    where = f" in {count_noun(counts['projects'], 'project')}" if counts["projects"] else ""
    said = [
        count_noun(counts["sessions"], "session") + where,
        count_noun(counts["decisions"], "decision") if counts["decisions"] else "",
        f"{count_noun(counts['blocked'], 'blocker')} open" if counts["blocked"] else "",
        f"{count_noun(counts['remembered'], 'memory', 'memories')} kept" if counts["remembered"] else "",
        f"{counts['promoted']} promoted" if counts["promoted"] else "",
    ]
    when = f"on {first}" if first == last else f"from {first} to {last}"
    lines = [f"# What happened {when}", "", " · ".join(filter(None, said))]
    by_project: dict[str | None, list[PeriodLine]] = {}
    for session in seen.sessions:
        by_project.setdefault(session.project, []).append(session)
    names = distinct_names(by_project)

    def tell(heading: str, text: Iterable[str]) -> None:
        told = [*text]
        over = len(told) - _MOST
        kept = told if over <= 1 else [*told[:_MOST], f"- and {over} more (signet-sync digest --json)"]
        lines.extend(["", heading, "", *kept] if told else [])

    def tell_statements(statements: Sequence[PeriodLine], title: str) -> None:
        """Adds statements, newest first; what others say already is left out."""
        for heading, blocked in (("Blocked", True), ("Decided", False)):
            before, some = Said(), list[str]()
            for one in sorted(statements, key=lambda one: (-one.at_us, one.id)):
                if (one.kind == "blocker") == blocked and not before.holds(one.text):
                    before.add(one.text)
                    some.append(f"- {plain(one.text)} ({_day(one.at_us, seen)}) {short_handle(one.id)}")
            tell(title.format(heading), some)

    # The project of the newest session first; what has no project last.
    for project, sessions in sorted(by_project.items(), key=lambda one: (not one[0], -one[1][-1].at_us, one[0] or "")):
        name = names.get(project or "") or basename(project) or "Without a project"
        told = []
        for one in reversed(sessions):
            text = plain(outcome_of(one.text, name) or one.text)  # what blocks it has a line of its own
            status = f" ({one.kind})" if one.kind else ""
            told.append(f"- {_day(one.at_us, seen)}{status}: {text} {short_handle(one.id)}")
        tell(f"## {page_cell(name)}: {count_noun(len(sessions), 'session')}", told)
        tell_statements([one for one in seen.statements if one.project == project], "{}:")
    tell_statements([one for one in seen.statements if one.project not in by_project], "## {} in other projects")
    for heading, promoted in (("Remembered", False), ("Promoted", True)):
        told = []
        for memory in reversed([memory for memory in seen.memories if memory.is_promoted == promoted]):
            kind = f"{memory.type} (private)" if memory.is_private else memory.type
            told.append(f"- {kind}: {plain(memory.text)} ({_day(memory.at_us, seen)}) {short_handle(memory.id)}")
        tell(f"## {heading}", told)
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


def _day(at_us: int, seen: PeriodInputs) -> str:
    return short_day(_wall_clock(at_us, seen), _wall_clock(seen.to_us - 1, seen))


def _date(at_us: int, seen: PeriodInputs) -> str:
    return day_of(_wall_clock(at_us, seen))


def _wall_clock(at_us: int, seen: PeriodInputs) -> int:
    """Returns the instant at which a clock of UTC shows what one of the period's time zone shows at this one."""
    return instant_of(moment_of(at_us).astimezone(seen.zone).replace(tzinfo=UTC))
