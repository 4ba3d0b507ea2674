"""Makes a context's lines: the project at hand first, then the person, then other projects in a line each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from signet_sync.digest.sentences import split
from signet_sync.formats.handle import handle, sharing_short, short_handle
from signet_sync.formats.injected_block import neutral
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import day_of
from signet_sync.memories.score import UNUSED, Use, day_start, rank, score
from signet_sync.pages.sections import (
    TEXT_LENGTH,
    EntityEntry,
    FactView,
    MemoryView,
    ThreadView,
    clause,
    distinct_names,
    entity_line,
    fact_line,
    memory_line,
    plain,
    thread_line,
)
from signet_sync.pages.statements import Said
from signet_sync.text.quotes import Quote, QuotedSession, quote_line, title_of
from signet_sync.text.sentences import basename, flatten, page_cell

Size = Callable[[str], int]

_OWN_THREADS, _OTHER_THREADS = 3, 12
_LISTS = 2  # lists of next steps: older ones were left behind by what was planned since
_ISSUE = late(r"(?<![\w#])#\d{1,6}\b")
_ROUND = 4  # lines of a heading before the next heading gets some
# Of the budget, what the person and other projects may take if the project at hand needs all of it.
_OF_PERSON, _OF_OTHERS = 0.3, 0.1
# The quotes: tokens (as `size` counts them), and their share of a smaller budget.
QUOTED, _OF_QUOTES = 700, 0.35
_SHORT = 160  # characters of what another project is at

_HEADINGS = {
    "decision": "Decisions:", "constraint": "Constraints:", "blocker": "Blockers:", "next": "Next steps:",
    "question": "Open questions:", "note": "Notes:",
}  # fmt: skip
_NO_TITLE = ""
# A preference with one of these says nothing of other projects.
_OF_ONE_PROJECT = late(
    r"\b(?:this|our) (?:repo(?:sitory)?|project|code ?base|package|branch)\b"
    r"|\b(?:diesem|dieses|unserem) (?:repo\w*|projekt)|\beste (?:repo\w*|proyecto)|\bce (?:dépôt|projet)"
    r"|\bэто\w* (?:репозитори|проект)|这个?(?:仓库|项目)|この(?:リポジトリ|プロジェクト)",
    re.IGNORECASE,
)


class ProjectInputs(NamedTuple):
    """What a context may show, in any order; `uses` tells by id what is pinned and was used.

    `facts` are those of the project at hand, `threads` its threads, `others` those of other projects, newest first;
    `warning` is what MEMORY.md warns of; `quoted` is the session that this one continues.
    """

    threads: tuple[ThreadView, ...] = ()
    facts: tuple[FactView, ...] = ()
    personal: tuple[FactView, ...] = ()
    memories: tuple[MemoryView, ...] = ()
    entities: tuple[EntityEntry, ...] = ()
    others: tuple[ThreadView, ...] = ()
    uses: Mapping[str, Use] = {}
    warning: str = ""
    quoted: QuotedSession | None = None


class ContextLine(NamedTuple):
    """A line, and what it is about: `path` is the artifact it comes from. `text` has neither bullet nor handle.

    `is_ambiguous`: its short handle leads to another line, too.
    """

    id: str
    text: str
    statement: str
    path: str | None
    expands: bool = True
    is_ambiguous: bool = False

    @property
    def whole(self) -> str:
        """Returns the line as it is shown."""
        if not self.expands:
            return neutral(f"- {self.text}")
        return neutral(f"- {self.text} {(handle if self.is_ambiguous else short_handle)(self.id)}")


class _HeadedLines(NamedTuple):
    title: str
    lines: Sequence[ContextLine]


class _Part(NamedTuple):
    """One of the three parts."""

    title: str
    headings: Sequence[_HeadedLines]


class ContextText(NamedTuple):
    """The text, the lines in it, and the texts of those for which there was no room."""

    text: str
    lines: tuple[ContextLine, ...]
    left_out: tuple[str, ...]


def project_text(
    seen: ProjectInputs,
    project: str,
    now_us: int,
    limit: int,
    size: Size,
    *,
    skip: Callable[[ContextLine], bool] = lambda _: False,
) -> ContextText:
    """Returns the text on the project named `project` within a limit; `skip` tells what is left out.

    `size` measures one line, and a newline counts one. Of what does not fit, each part says how many lines it is.
    """
    parts = [_wanted(part, skip) for part in _told_apart([*_parts(seen, project, now_us)])]
    warning = [f"> [!warning] {neutral(seen.warning)}", ""] if seen.warning else []
    limit -= _cost(warning, size)
    quotes = {line: quote for line, quote in _quotes(seen.quoted).items() if not skip(line)}
    for_quotes = min(_cost([line.text for line in quotes], size), int(limit * _OF_QUOTES), QUOTED)
    limit -= for_quotes
    needs = [_cost(_rendered(part, list(_lines(part)), 0), size) for part in parts]
    own, person, others = needs
    for_others = min(others, max(int(limit * _OF_OTHERS), limit - own - person))
    for_person = min(person, max(int(limit * _OF_PERSON), limit - own - for_others))
    left = limit
    lines: list[str] = [*warning]
    kept: list[ContextLine] = []
    for part, reserved in zip(parts, (for_person + for_others, for_others, 0), strict=True):
        rendered, shown = _fitted(part, left - reserved, size)
        left -= _cost(rendered, size)
        lines += rendered
        kept += shown
    shown_ids = {line.id for line in kept}
    left_out = [line.text for part in parts for line in _lines(part) if line.id not in shown_ids]
    if seen.quoted is not None:
        rendered, shown = _quoted(quotes, seen.quoted, kept, min(left + for_quotes, QUOTED), size)
        lines += rendered
        left_out += [line.text for line in quotes if line not in shown]
        kept += shown
    return ContextText("\n".join(lines).strip("\n"), tuple(kept), tuple(left_out))


def _quotes(session: QuotedSession | None) -> dict[ContextLine, Quote]:
    """Returns quotes by their lines, in the order in which they get room: the person's, newest first, then reports."""
    if session is None:
        return {}
    day = day_of(session.latest_us)
    order = (one for speaker in ("person", "agent") for one in session.quotes[::-1] if one.speaker == speaker)
    return {ContextLine("", quote_line(one, day), one.text, None, expands=False): one for one in order}


def _quoted(
    quotes: Mapping[ContextLine, Quote], session: QuotedSession, told: Sequence[ContextLine], room: int, size: Size
) -> tuple[list[str], list[ContextLine]]:
    """Returns the quotes that fit, in the order of what was said, without sentences that other lines say already."""
    said = Said()
    for line in told:
        said.add(line.text, sentence=True)
    day, title = day_of(session.latest_us), title_of(session)
    room -= _cost([title, ""], size)
    fitting: dict[Quote, tuple[str, ContextLine]] = {}
    for line, quote in quotes.items():
        new = [sentence for sentence in split(quote.text) if not said.holds(sentence)]
        while new:
            text = neutral(quote_line(quote._replace(text=" ".join(new)), day))
            if (cost := size(text) + 1) <= room:
                room -= cost
                fitting[quote] = text, line
                break
            new[-2:] = [f"{new[-2].rstrip(' …')} …"] if len(new) > 1 else []
    shown = [fitting[quote] for quote in session.quotes if quote in fitting]
    return [title, *(text for text, _ in shown), ""] if shown else [], [line for _, line in shown]


def _told_apart(parts: Sequence[_Part]) -> Sequence[_Part]:
    """Marks the lines whose short handles would be ambiguous."""
    ambiguous = sharing_short(line.id for part in parts for line in _lines(part) if line.expands)
    if not ambiguous:
        return parts
    return [
        part._replace(
            headings=[
                one._replace(lines=[line._replace(is_ambiguous=line.id in ambiguous) for line in one.lines])
                for one in part.headings
            ]
        )
        for part in parts
    ]


def _parts(seen: ProjectInputs, project: str, now_us: int) -> Iterator[_Part]:
    today = day_start(now_us)
    said = Said()

    def fresh(lines: Iterable[ContextLine]) -> list[ContextLine]:
        found = []
        for line in lines:
            if not said.holds(line.statement):
                said.add(line.statement)
                found.append(line)
        return found

    def ranked(views: Iterable[FactView]) -> list[FactView]:
        def place(view: FactView) -> tuple[bool, float, int, str]:
            use = seen.uses.get(view.id, UNUSED)
            worth = score(
                view.aspect,
                view.latest_us,
                today,
                half_lives={},
                accesses=use.accesses,
                last_access_us=use.last_us,
                pinned=use.pinned,
            )
            return rank(worth, view.latest_us, view.id, pinned=use.pinned)

        return sorted(views, key=place)

    names = distinct_names(
        [*(view.project for view in (*seen.threads, *seen.others)), *(view.project for view in seen.personal)]
    )
    threads = []
    for view in (one._replace(name=names.get(one.project or "", "")) for one in seen.threads[:_OWN_THREADS]):
        text = thread_line(view, today, at_hand=True)
        threads.append(ContextLine(view.id, text, view.id, view.path))
        said.add(text, sentence=True)
        if view.next_action:
            said.add(_statement(view.next_action))
    own = {view.project for view in seen.threads}
    personal = [view._replace(name=names.get(view.project or "", "")) for view in seen.personal]
    wishes = [view for view in personal if view.aspect != "person"]
    local = ranked(v for v in wishes if v.project in own and _OF_ONE_PROJECT.search(v.text))
    name = page_cell(names.get(project) or basename(project), 60)
    yield _Part(
        f"=== Project {name} ===" if name else "=== Project ===",
        [
            _HeadedLines(_NO_TITLE, threads),
            *(
                _HeadedLines(
                    title,
                    fresh(_of_fact(one, today) for one in ranked(_open(v for v in seen.facts if v.aspect == aspect))),
                )
                for aspect, title in _HEADINGS.items()
            ),
            _HeadedLines("Preferences:", fresh(_of_fact(one, today) for one in local)),
        ],
    )
    memories = sorted(seen.memories, key=lambda v: (not seen.uses.get(v.id, UNUSED).pinned, -v.created_us, v.id))
    preferences = ranked(v for v in wishes if not _OF_ONE_PROJECT.search(v.text))
    preferences.sort(key=lambda v: v.project not in own)
    people = [v for v in personal if v.aspect == "person"]
    yield _Part(
        "=== For every project ===",
        [
            _HeadedLines("Remembered:", fresh(_of_memory(one, today) for one in memories)),
            _HeadedLines("Preferences:", fresh(_of_fact(one, today, named=True) for one in preferences)),
            _HeadedLines(
                "People:",
                [
                    *(ContextLine(v.id, entity_line(v), v.id, None) for v in _user_first(seen.entities)),
                    *fresh(_of_fact(one, today, named=True) for one in ranked(people)),
                ],
            ),
        ],
    )
    named: set[str] = set()
    others: list[ContextLine] = []
    for view in seen.others:
        if view.project and view.project not in named and len(others) < _OTHER_THREADS:
            named.add(view.project)
            short = view._replace(
                sample=clause(flatten(view.sample), _SHORT),
                next_action=None,
                blocker=None,
                name=names.get(view.project, ""),
            )
            others.append(ContextLine(view.id, thread_line(short, today), view.id, view.path))
    yield _Part("=== Other projects ===", [_HeadedLines(_NO_TITLE, others)])


def _open(views: Iterable[FactView]) -> list[FactView]:
    """Leaves out next steps that are older than a project's last two lists, and earlier ones of the same issue."""
    found = sorted(views, key=lambda view: view.latest_us, reverse=True)
    lists = list(dict.fromkeys(view.latest_us for view in found))[:_LISTS]
    issues: set[str] = set()
    kept = []
    for view in found:
        named = set(_ISSUE.findall(view.text))
        if view.aspect == "next" and (view.latest_us not in lists or (named and named <= issues)):
            continue
        issues |= named
        kept.append(view)
    return kept


def _of_fact(view: FactView, today: int, *, named: bool = False) -> ContextLine:
    """Returns the line of a fact without the label that its heading repeats; with `named` it names its project."""
    plainly = view._replace(aspect="decision")
    return ContextLine(view.id, fact_line(plainly, today, grouped=not named), _statement(view.text), view.path)


def _user_first(entities: Iterable[EntityEntry]) -> list[EntityEntry]:
    return sorted(entities, key=lambda view: view.kind != "user")


def _of_memory(view: MemoryView, today: int) -> ContextLine:
    # `expand` shows no more than the line, unless this is cut.
    return ContextLine(
        view.id, memory_line(view, today), _statement(view.content), None, len(view.content) > TEXT_LENGTH
    )


def _wanted(part: _Part, skip: Callable[[ContextLine], bool]) -> _Part:
    return part._replace(
        headings=[
            heading._replace(lines=[line for line in heading.lines if not skip(line)]) for heading in part.headings
        ]
    )


def _lines(part: _Part) -> Iterator[ContextLine]:
    """Yields a part's lines in the order in which they get room: some of each heading, then some more of each."""
    longest = max((len(heading.lines) for heading in part.headings), default=0)
    for start in range(0, longest, _ROUND):
        for heading in part.headings:
            yield from heading.lines[start : start + _ROUND]


def _fitted(part: _Part, room: int, size: Size) -> tuple[list[str], list[ContextLine]]:
    """Returns a part within a limit, and the lines in it; nothing if no line fits."""
    every = list(_lines(part))
    whole = _rendered(part, every, 0)
    if _cost(whole, size) <= room:
        return whole, every
    kept: list[ContextLine] = []
    left = room - _cost(["", part.title, "", f"[{len(every):,} more lines are left out]"], size)
    titles = {line.id: heading.title for heading in part.headings for line in heading.lines}
    begun: set[str] = {_NO_TITLE}
    for line in every:
        cost = size(line.whole) + 1
        title = titles[line.id]
        if title not in begun:
            cost += size(title) + 1
        if cost > left:
            continue
        left -= cost
        begun.add(title)
        kept.append(line)
    return (_rendered(part, kept, len(every) - len(kept)), kept) if kept else ([], [])


def _rendered(part: _Part, kept: Collection[ContextLine], left_out: int) -> list[str]:
    if not kept:
        return []
    shown = {line.id for line in kept}
    lines = [part.title]
    for heading in part.headings:
        some = [line.whole for line in heading.lines if line.id in shown]
        lines += [*([heading.title] if some and heading.title else []), *some]
    if left_out:
        lines.append(f"[{left_out:,} more {'line is' if left_out == 1 else 'lines are'} left out]")
    return [*lines, ""]


def _cost(lines: Iterable[str], size: Size) -> int:
    return sum(size(line) + 1 for line in lines)


def _statement(text: str) -> str:
    return plain(text)
