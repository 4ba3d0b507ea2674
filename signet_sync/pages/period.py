"""Writes what happened between two instants, by project, as Markdown: sessions, decisions, blockers, memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from signet_sync.formats.handle import short_handle
from signet_sync.formats.timestamps import day_of, instant_of, moment_of, short_day
from signet_sync.pages.sections import distinct_names, plain, without_blocker, without_name
from signet_sync.pages.statements import Said
from signet_sync.text.phrases import counted
from signet_sync.text.sentences import basename, flatten_cell

_MOST = 6  # lines below a heading; `--json` has all
_ELSEWHERE = "Without a project"


class PeriodSession(NamedTuple):
    """A session of the period: `project` is its thread's identity, None without one; `id` is the handle of its node."""

    id: str
    project: str | None
    at_us: int
    status: str | None
    sentence: str


class PeriodFact(NamedTuple):
    """A decision, constraint or blocker stated first in the period."""

    id: str
    project: str | None
    at_us: int
    aspect: str
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
    """What happened from `from_us` up to, but not at, `to_us` (microseconds since 1970 UTC), oldest first.

    Days are those of `zone`; None is the machine's own time zone.
    """

    from_us: int
    to_us: int
    sessions: Sequence[PeriodSession] = ()
    facts: Sequence[PeriodFact] = ()
    memories: Sequence[PeriodMemory] = ()
    zone: tzinfo | None = UTC


class _Told(NamedTuple):
    """A fact that other lines do not say already, or a count of those that are left out."""

    heading: str
    facts: list[PeriodFact]


def text_of(seen: PeriodInputs) -> str:
    """Returns the Markdown; ends without a newline."""
    lines = [f"# {_title(seen)}", "", _counts(seen)]
    names = distinct_names(session.project for session in seen.sessions)
    for project, sessions in _by_project(seen.sessions):
        name = names.get(project or "") or basename(project) or _ELSEWHERE
        heading = f"## {flatten_cell(name)}"
        lines += ["", f"{heading}: {counted(len(sessions), 'session')}", "", *_sessions(sessions, name, seen)]
        for told in _told(fact for fact in seen.facts if fact.project == project):
            lines += ["", f"{told.heading}:", "", *_cut([_fact(fact, seen) for fact in told.facts])]
    shown = {session.project for session in seen.sessions}
    for told in _told(fact for fact in seen.facts if fact.project not in shown):
        lines += [
            "",
            f"## {told.heading} in other projects",
            "",
            *_cut([_fact(fact, seen) for fact in told.facts]),
        ]
    for heading, promoted in (("Remembered", False), ("Promoted", True)):
        some = [memory for memory in seen.memories if memory.is_promoted == promoted]
        if some:
            lines += ["", f"## {heading}", "", *_cut([_memory(memory, seen) for memory in reversed(some)])]
    return "\n".join(lines)


def document(agent_id: str, seen: PeriodInputs) -> dict[str, Any]:
    """Returns the document of `digest --json`."""
    return {
        "agent_id": agent_id,
        "from": _date(seen.from_us, seen),
        "to": _date(seen.to_us - 1, seen),
        "counts": counts_of(seen),
        "sessions": [
            {
                "id": one.id,
                "project": one.project,
                "day": _date(one.at_us, seen),
                "status": one.status,
                "text": one.sentence,
            }
            for one in seen.sessions
        ],
        "facts": [{**_about(one, seen), "project": one.project, "aspect": one.aspect} for one in seen.facts],
        "memories": [
            {**_about(one, seen), "type": one.type, "private": bool(one.is_private), "promoted": bool(one.is_promoted)}
            for one in seen.memories
        ],
    }


def _about(one: PeriodFact | PeriodMemory, seen: PeriodInputs) -> dict[str, Any]:
    return {"id": one.id, "day": _date(one.at_us, seen), "text": one.text}


def counts_of(seen: PeriodInputs) -> dict[str, int]:
    """Counts what the digest is about."""
    return {
        "sessions": len(seen.sessions),
        "projects": len({session.project for session in seen.sessions} - {None}),
        "decisions": sum(fact.aspect != "blocker" for fact in seen.facts),
        "blocked": sum(fact.aspect == "blocker" for fact in seen.facts),
        "remembered": sum(not memory.is_promoted for memory in seen.memories),
        "promoted": sum(memory.is_promoted for memory in seen.memories),
    }


def _title(seen: PeriodInputs) -> str:
    first, last = _date(seen.from_us, seen), _date(seen.to_us - 1, seen)
    return f"What happened on {first}" if first == last else f"What happened from {first} to {last}"


def _counts(seen: PeriodInputs) -> str:
    """Returns one line; what is zero is left out, except sessions."""
    counts = counts_of(seen)
    said = [
        counted(counts["sessions"], "session")
        + (f" in {counted(counts['projects'], 'project')}" if counts["projects"] else ""),
        counted(counts["decisions"], "decision") if counts["decisions"] else "",
        f"{counted(counts['blocked'], 'blocker')} open" if counts["blocked"] else "",
        f"{counted(counts['remembered'], 'memory', 'memories')} kept" if counts["remembered"] else "",
        f"{counts['promoted']} promoted" if counts["promoted"] else "",
    ]
    return " · ".join(filter(None, said))


def _by_project(sessions: Iterable[PeriodSession]) -> list[tuple[str | None, list[PeriodSession]]]:
    """Returns the sessions of each project, the project of the newest first; those without a project come last."""
    found: dict[str | None, list[PeriodSession]] = {}
    for session in sessions:
        found.setdefault(session.project, []).append(session)
    return sorted(found.items(), key=lambda item: (item[0] is None, -item[1][-1].at_us, item[0] or ""))


def _sessions(sessions: Sequence[PeriodSession], name: str, seen: PeriodInputs) -> list[str]:
    lines = []
    for one in reversed(sessions):
        outcome, blocker = without_blocker(one.sentence)  # what blocks it has a line of its own
        said = plain(without_name(outcome, name)) + ("." if blocker else "")
        status = f" ({one.status})" if one.status else ""
        lines.append(f"- {_day(one.at_us, seen)}{status}: {said} {short_handle(one.id)}")
    return _cut(lines)


def _told(facts: Iterable[PeriodFact]) -> Iterator[_Told]:
    """Yields the facts of one project by heading, newest first; what others say already is left out."""
    by_heading: dict[str, list[PeriodFact]] = {"Blocked": [], "Decided": []}
    said = Said()
    for fact in sorted(facts, key=lambda one: (-one.at_us, one.id)):
        heading = "Decided" if fact.aspect != "blocker" else "Blocked"
        if not said.holds(fact.text, heading, rule=heading == "Decided"):
            said.add(fact.text, heading, rule=heading == "Decided")
            by_heading[heading].append(fact)
    yield from (_Told(heading, some) for heading, some in by_heading.items() if some)


def _fact(fact: PeriodFact, seen: PeriodInputs) -> str:
    return f"- {plain(fact.text)} ({_day(fact.at_us, seen)}) {short_handle(fact.id)}"


def _memory(memory: PeriodMemory, seen: PeriodInputs) -> str:
    kind = f"{memory.type} (private)" if memory.is_private else memory.type
    return f"- {kind}: {plain(memory.text)} ({_day(memory.at_us, seen)}) {short_handle(memory.id)}"


def _cut(lines: list[str]) -> list[str]:
    over = len(lines) - _MOST
    return lines if over <= 1 else [*lines[:_MOST], f"- and {over} more (signet-sync digest --json)"]


def _day(at_us: int, seen: PeriodInputs) -> str:
    return short_day(_wall_clock(at_us, seen), _wall_clock(seen.to_us - 1, seen))


def _date(at_us: int, seen: PeriodInputs) -> str:
    return day_of(_wall_clock(at_us, seen))


def _wall_clock(at_us: int, seen: PeriodInputs) -> int:
    """Returns the instant at which a clock of UTC shows what one of the period's time zone shows at this one."""
    return instant_of(moment_of(at_us).astimezone(seen.zone).replace(tzinfo=UTC))
