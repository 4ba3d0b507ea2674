"""Fills page sections within a budget: best first, each statement once, lines of one project below its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from signet_sync.formats.filename import segment_of
from signet_sync.formats.handle import handle, sharing_short, short_handle
from signet_sync.memories.score import rank
from signet_sync.pages.sections import SECTIONS, SectionCandidate, SectionLine, link_to
from signet_sync.pages.statements import Said
from signet_sync.text.sentences import basename, page_cell
from signet_sync.text.token_estimate import estimate_tokens, page_tokens

# How the rest of a section is found.
_SEARCH = "signet-sync recall WORDS"
_MANY = 100_000


class FilledSections(NamedTuple):
    """Lines by section, the ids that they show, and the tokens that they and their headings cost.

    `told` are the segments of whose sessions a thread's line says what they were about, `linked` those with a link.
    """

    lines: dict[str, list[str]]
    shown: frozenset[str]
    tokens: int
    told: frozenset[str] = frozenset()
    linked: frozenset[str] = frozenset()


class _Line(NamedTuple):
    """A chosen line: its text, the same below its project's name, and the artifact to link ("" if it is linked)."""

    entry: SectionCandidate
    text: str
    grouped: str
    handle: str
    link: str


class _Filling:
    """Lines chosen so far."""

    def __init__(self, named: Collection[str], whole: Collection[str]) -> None:
        self.chosen: dict[str, list[_Line]] = {key: [] for key, _ in SECTIONS}
        self.left: Counter[str] = Counter()
        self.used = 0
        self.shown: set[str] = set()
        self.named = set(named)
        self._in_rows = frozenset(named)
        self._whole = whole  # ids that are shown whole
        self._groups: set[str] = set()
        self._projects: Counter[tuple[str, str]] = Counter()
        self._said = Said()

    def add(self, entries: Iterable[SectionCandidate], budget: int) -> None:
        """Chooses from ranked entries; counts those that do not fit."""
        full = False
        for entry in entries:
            if entry.id in self.shown:
                continue
            line, scope = entry.make_line(), entry.project.casefold()
            if self._said.holds(line.own, scope):
                continue
            if full:
                self.left[entry.section] += 1
                continue
            made, alone = self._made(entry, line, scope)
            heading = _HEADING_COSTS[entry.section]
            if heading + alone > budget:
                self.left[entry.section] += 1
                continue
            cost = alone + (0 if self.chosen[entry.section] else heading)
            if self.used + cost > budget:
                full = True
                self.left[entry.section] += 1
                continue
            self.used += cost
            self._keep(entry, line, made, scope)

    def _made(self, entry: SectionCandidate, line: SectionLine, scope: str) -> tuple[_Line, int]:
        """Returns a line and its cost, without that of its section's heading."""
        more = "".join(text for own, text in line.parts if not self._said.holds(own, scope))
        ending = handle(entry.id) if entry.id in self._whole else short_handle(entry.id)
        stem = "" if entry.path is None else segment_of(entry.path)
        named_by_handle = stem in self._in_rows and entry.newest != ""
        if named_by_handle:
            more += f" {short_handle(entry.newest)}"
        linked = named_by_handle or (stem in self.named and not _keeps_link(entry))
        link = "" if entry.path is None or linked else entry.path
        made = _Line(entry, f"{entry.bullet}{line.text}{more}", "", ending, link)
        cost = 0
        if _is_grouped(entry) and line.grouped:
            made = made._replace(grouped=f"{entry.bullet}{line.grouped}{more}")
            before = self._projects[entry.section, entry.project]
            cost = _group_cost(f"### {_name(entry)}") if before == 1 else 0
        elif entry.group and entry.group not in self._groups:
            cost = _group_cost(entry.group)
        cost += page_tokens(f"{made.text} {ending}") + 1
        return made, cost + (page_tokens(f" {link_to(link)}") if link else 0)

    def _keep(self, entry: SectionCandidate, line: SectionLine, made: _Line, scope: str) -> None:
        if made.link and _keeps_link(entry):
            self._unlink(segment_of(made.link))
        self.chosen[entry.section].append(made)
        self.shown.add(entry.id)
        self._groups.add(entry.group)
        if made.grouped:
            self._projects[entry.section, entry.project] += 1
        if made.link:
            self.named.add(segment_of(made.link))
        self._said.add(line.own, scope)
        for own, _ in line.parts:
            self._said.add(own, scope, sentence=True)
        if line.sentence:
            self._said.add(line.sentence, scope, sentence=True)

    def _unlink(self, segment: str) -> None:
        """Takes a segment's link from the line that has it, if that need not keep it."""
        for lines in self.chosen.values():
            for place, line in enumerate(lines):
                if line.link and segment_of(line.link) == segment and not _keeps_link(line.entry):
                    lines[place] = line._replace(link="")
                    self.used -= page_tokens(f" {link_to(line.link)}")


def _keeps_link(entry: SectionCandidate) -> bool:
    """Returns whether a line must show which session its words are from: its handle stays when that is removed.

    It has that session's link, or its handle if a row of the session log has the link.
    """
    return entry.id.startswith(("t-", "a-", "e-"))


def fill(
    entries: Iterable[SectionCandidate],
    budget: int,
    named: Collection[str] = (),
    unread: Mapping[str, int] | None = None,
    cut: Collection[str] = (),
) -> FilledSections:
    """Returns lines within a budget of tokens: best first, each statement once, and how many more there are.

    Pins come first, then the highest score, then the newest, then ids. A line that alone exceeds the budget is skipped;
    the first that no longer fits ends the selection, so that nothing of lower score takes its place. Each line has a
    handle, and one of each session a link, unless the page has one (`named`): that of its thread, which always has one,
    else the first. `unread` and `cut` are those of
    `SectionInputs`.
    """
    ranked = sorted(entries, key=lambda e: rank(e.score, e.at_us, e.id, pinned=e.pinned))
    whole = sharing_short(entry.id for entry in ranked)
    rest = Counter(unread or {})
    filling = _Filling(named, whole)
    filling.add(ranked, budget)
    if filling.left or rest:
        filling = _Filling(named, whole)
        filling.add(ranked, budget - len({entry.section for entry in ranked}) * _more_cost(_MANY))
    lines: dict[str, list[str]] = {}
    for key, chosen in filling.chosen.items():
        lines[key] = _listed(key, chosen)
        count = filling.left[key] + rest[key]
        if chosen and count:
            lines[key] += ["", _more(count, at_least=key in cut)]
            filling.used += _more_cost(count)
    threads = (line.entry for line in filling.chosen["projects"] if line.entry.id.startswith("t-"))
    told = frozenset(segment_of(entry.path) for entry in threads if entry.path is not None)
    return FilledSections(lines, frozenset(filling.shown), filling.used, told, frozenset(filling.named))


def _more(count: int, *, at_least: bool) -> str:
    return f"… and {'more than ' if at_least else ''}{count} more: {_SEARCH}"


def _more_cost(count: int) -> int:
    return estimate_tokens(_more(count, at_least=True)) + 2


def _listed(section: str, chosen: Sequence[_Line]) -> list[str]:
    """Returns the lines of a section in order, each session's link in its thread's line or the first that is its."""
    if section == "projects":
        blocks = [("", _threads_first(chosen))]
    elif any(line.entry.group for line in chosen):
        by_place = sorted(chosen, key=lambda line: (not line.entry.pinned, line.entry.place))
        newest = sorted(by_place, key=lambda line: line.entry.group, reverse=True)
        blocks = [(group, list(lines)) for group, lines in groupby(newest, lambda line: line.entry.group)]
    else:
        blocks = _by_project(chosen)
    links = {segment_of(line.link): line.link for line in chosen if line.link and not _keeps_link(line.entry)}
    shown: list[str] = []
    for heading, lines in blocks:
        if heading:
            shown += [*([""] if shown else []), heading, ""]
        for line in lines:
            path = line.entry.path
            link: str | None = line.link
            if path is not None and not _keeps_link(line.entry):
                link = links.pop(segment_of(path), None)
            text = line.grouped if heading and line.grouped else line.text
            shown.append(" ".join(filter(None, (text, link and link_to(link), line.handle))))
    return shown


def _threads_first(chosen: Sequence[_Line]) -> list[_Line]:
    """Returns pins, then each thread with the next steps of its project, then the rest."""
    order: dict[str, int] = {}
    for line in chosen:
        if line.entry.id.startswith("t-") and not line.entry.pinned:
            order.setdefault(line.entry.project, len(order))
    return sorted(
        chosen,
        key=lambda line: (
            not line.entry.pinned,
            order.get(line.entry.project, len(order)),
            not line.entry.id.startswith("t-"),
        ),
    )


def _by_project(chosen: Sequence[_Line]) -> list[tuple[str, list[_Line]]]:
    """Returns lines that stand alone in their project, or in none, then each project with several, best first."""
    of_project: dict[str, list[_Line]] = {}
    for line in chosen:
        if line.grouped:
            of_project.setdefault(line.entry.project, []).append(line)
    several = {project: lines for project, lines in of_project.items() if len(lines) > 1}
    alone = [line for line in chosen if not line.grouped or line.entry.project not in several]
    alone.sort(key=lambda line: not line.entry.pinned)
    return [("", alone), *((f"### {_name(lines[0].entry)}", lines) for lines in several.values())]


def _is_grouped(entry: SectionCandidate) -> bool:
    return bool(_name(entry)) and not entry.pinned and entry.section not in ("projects", "dreamed")


def _name(entry: SectionCandidate) -> str:
    return page_cell(entry.name or basename(entry.project), 60)


def _group_cost(heading: str) -> int:
    return estimate_tokens(heading) + 3


_HEADING_COSTS = {key: estimate_tokens(heading) + 3 for key, heading in SECTIONS}
