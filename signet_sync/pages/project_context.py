"""Composes the text on a project for a session's start: where it stands, quotes of its last session, what holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from signet_sync.digest.sentences import split
from signet_sync.formats.injected_block import neutral
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import day_of, short_day
from signet_sync.memories.score import Use, day_start
from signet_sync.pages.board import Line, Said, Size, blocks, choose
from signet_sync.pages.sections import (
    SECTIONS,
    EntityEntry,
    MemoryView,
    SectionInputs,
    StatementView,
    ThreadView,
    candidates,
    clause,
    distinct_names,
    outcome_of,
    plain,
    scope_of,
)
from signet_sync.text.quotes import Quote, QuotedSession, quote_line, title_of
from signet_sync.text.sentences import basename, content_words, page_cell

_LAST = 1_000_000  # more than any rank
_THREADS = 3  # of the project at hand; without one, of any
# What earlier sessions of the project came to: their heading, and characters of each.
_EARLIER, _OUTCOME = "=== Earlier sessions here ===", 240
# The quotes: tokens (as `size` counts them), and their share of a smaller budget.
_QUOTED, _OF_QUOTES = 700, 0.35
_BEFORE = 350  # tokens of the quotes of each session before it
# What a note's line begins with: without it, it is what a line of the board says.
_LABEL = late(r"^(?:outcome|decided|constraint|blocked|open|next(?: steps?)?|preference): ", re.IGNORECASE)
_ASKED = late(r"(?<=\S) \(asked: .*", re.DOTALL)  # what was asked for, behind what came out
# A question, no request: what was answered since is in a later report.
_ASKS = late(
    r"(?:(?:and|but|so|also|ok(?:ay)?|wait),? )*"
    r"(?:what|why|how|which|where|when|who|is|are|does|did|has|was|were|(?:do|have) (?:you|we|i|they))\b",
    re.IGNORECASE,
)
# A preference of one project with one of these is one for every project.
_OF_EVERY_PROJECT = late(
    r"\b(?:every|all|any|each) (?:my |your |our |the )?(?:other )?(?:repo(?:s|sitor\w+)?|projects?|code ?bases?)\b"
    r"|\beverywhere\b|\bin general\b|\bgenerally\b|^(?:please,? )?(?:always )?(?:answer|reply|respond)\b"
    r"|\b(?:jede[mns]?|alle[nr]?) (?:Repo\w*|Projekt\w*)|\büberall\b|\ben todos los (?:repo\w*|proyectos)"
    r"|\btous les (?:dépôts|projets)|\bво всех (?:репозитори|проект)|所有(?:仓库|项目)|(?:すべて|全て)の",
    re.IGNORECASE,
)


class EarlierSession(NamedTuple):
    """A session of the project at hand: its node, when it ended, what it came to."""

    id: str
    at_us: int
    sentence: str


class ProjectInputs(NamedTuple):
    """What a context may show, in any order; `uses` tells by id what is pinned and was used.

    `statements` are those of the project at hand, `threads` its threads, `others` those of other projects,
    newest first; `warning` is what MEMORY.md warns of; `quoted` are the session that this one continues and those
    before it, and `earlier` the newest sessions of the project before the one that its thread tells of, newest first.
    """

    threads: tuple[ThreadView, ...] = ()
    statements: tuple[StatementView, ...] = ()
    personal: tuple[StatementView, ...] = ()
    memories: tuple[MemoryView, ...] = ()
    entities: tuple[EntityEntry, ...] = ()
    others: tuple[ThreadView, ...] = ()
    uses: Mapping[str, Use] = {}
    warning: str = ""
    quoted: tuple[QuotedSession, ...] = ()
    earlier: tuple[EarlierSession, ...] = ()


class ContextText(NamedTuple):
    """The text; by the words of each of its lines, the id; and the words of lines for which there was no room."""

    text: str
    lines: tuple[Line, ...] = ()
    quotes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def project_text(
    seen: ProjectInputs,
    project: str,
    now_us: int,
    limit: int,
    size: Size,
    *,
    skip: Callable[[Line], bool] = lambda _: False,
    known: Callable[[str], bool] = lambda _: False,
) -> ContextText:
    """Returns the text on the project named `project` within a limit, "" for none; `skip` and `known` are left out.

    `size` measures one line, and a newline counts one. `known` tells of a quote's words that the session has them.
    """
    own = {
        "",
        *(scope_of(view.project) for view in seen.threads),
        *(scope_of(view.project) for view in seen.statements),
    }
    here = [view for view in seen.personal if scope_of(view.project) in own or _holds_everywhere(view)]
    names = distinct_names(view.project for view in (*seen.threads, *seen.others))
    threads = [
        view._replace(name=names.get(view.project or "", "")) for view in (seen.threads if project else seen.others)
    ]
    inputs = SectionInputs(
        threads[:_THREADS], [*seen.statements, *here], seen.memories, (), seen.uses, {}, seen.entities
    )
    name = page_cell(names.get(project) or basename(project), 60)
    headings = {key: f"=== {heading.removeprefix('## ')} ===" for key, heading in SECTIONS.items()}
    headings["projects"] = f"=== Project {name} ===" if name else headings["projects"]
    headings["earlier"] = _EARLIER

    warning = [f"> [!warning] {neutral(seen.warning)}", ""] if seen.warning else []
    room = limit - sum(size(line) + 1 for line in warning)
    quotes = [{words: one for words, one in _by_worth(session).items() if not known(words)} for session in seen.quoted]
    first = quotes[0] if quotes else {}
    for_quotes = min(sum(size(words) + 1 for words in first), int(room * _OF_QUOTES), _QUOTED)
    lines = [
        line._replace(group="", alone="" if line.project in own else line.alone)
        for line in (*candidates(inputs, now_us, at_hand=True), *_earlier(seen, basename(project), now_us))
        if not skip(line)
    ]
    board = choose(lines, headings, room - for_quotes, lambda line: size(neutral(line)))
    parts = {heading: [*map(neutral, shown), ""] for heading, shown in blocks(board, headings)}
    room -= sum(size(line) + 1 for heading, shown in parts.items() for line in (heading, *shown))
    chosen = tuple(line for some in board.lines.values() for line in some)
    told, words_told = Said(), list[str]()
    for line in chosen:
        told.add(line.text, sentence=True)
    quoted: list[list[str]] = []
    for place, (session, some) in enumerate(zip(seen.quoted, quotes, strict=True)):
        title = title_of(session, last=place == 0)
        said = _quoted(some, session, told, min(room, _BEFORE if place else _QUOTED) - size(title) - size("") - 2, size)
        if said:
            quoted.append([title, *said.values(), ""])
            room -= sum(size(line) + 1 for line in quoted[-1])
            words_told += said
    own_lines = [headings["projects"], *parts.pop(headings["projects"], ())]
    earlier = [_EARLIER, *parts.pop(_EARLIER, ())]
    text = [
        *warning,
        *(own_lines if len(own_lines) > 1 else ()),
        *(line for block in quoted[:1] for line in block),
        *(line for heading, shown in parts.items() for line in (heading, *shown)),
        *(earlier if len(earlier) > 1 else ()),
        *(line for block in quoted[1:] for line in block),
    ]
    left_out = (
        *(line.text for line in board.left),
        *(words for some in quotes for words in some if words not in words_told),
    )
    return ContextText("\n".join(text).strip("\n"), chosen, tuple(words_told), left_out)


def _earlier(seen: ProjectInputs, name: str, now_us: int) -> Iterator[Line]:
    """Yields what earlier sessions of the project came to: the last lines to get room, newest first."""
    for place, one in enumerate(seen.earlier):
        outcome = clause(_ASKED.sub("", plain(outcome_of(one.sentence, name), 2 * _OUTCOME)), _OUTCOME)
        if outcome:
            text = f"{short_day(one.at_us, day_start(now_us))}: {outcome}"
            yield Line(one.id, "earlier", text, (True, float(_LAST + place), -one.at_us, one.id), outcome, (place,))


def _holds_everywhere(view: StatementView) -> bool:
    """Returns whether a statement of another project says that it holds for all of them."""
    return view.kind == "preference" and _OF_EVERY_PROJECT.search(view.text) is not None


def _by_worth(session: QuotedSession) -> dict[str, Quote]:
    """Returns quotes by their lines, in the order in which they get room: the last report, the person's, other reports.

    The newest first. Left out are a person's words without a subject, unless they answer a report, and questions before
    the last words.
    """
    quotes = [
        one
        for before, one in pairwise((None, *session.quotes))
        if one is not None
        and (one.speaker == "agent" or len(content_words(one.text)) > 1 or (before and before.speaker == "agent"))
    ]
    reports = [one for one in quotes[::-1] if one.speaker == "agent"]
    words = [one for one in quotes[::-1] if one.speaker == "person"]
    words = [*words[:1], *(one for one in words[1:] if not all(map(_ASKS.match, split(one.text))))]
    day = day_of(session.latest_us)
    return {quote_line(one, day): one for one in (*reports[:1], *words, *reports[1:])}


def _quoted(quotes: Mapping[str, Quote], session: QuotedSession, told: Said, room: int, size: Size) -> dict[str, str]:
    """Returns the lines that fit, by their whole words, in the order of what was said; without what others say."""
    fitting: dict[Quote, tuple[str, str]] = {}
    for words, quote in quotes.items():
        new = [sentence for sentence in split(quote.text) if not told.holds(_LABEL.sub("", sentence))]
        while new:
            text = neutral(quote_line(quote._replace(text=" ".join(new)), day_of(session.latest_us)))
            if (cost := size(text) + 1) <= room:
                room -= cost
                fitting[quote] = words, text
                told.add(" ".join(new), sentence=True)
                break
            new[-2:] = [f"{new[-2].rstrip(' …')} …"] if len(new) > 1 else []
    return dict(fitting[quote] for quote in session.quotes if quote in fitting)
