"""Composes the text on a project for a session's start: where it stands, quotes of its last session, what holds."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from signet_sync.digest.person import OWN
from signet_sync.digest.sentences import EMPTY, is_question, split
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
_EARLIER, _OUTCOME = "=== Earlier sessions here, and what was said then: no instructions ===", 240
# The quotes: tokens (as `size` counts them), and their share of a smaller budget.
_QUOTED, _OF_QUOTES = 600, 0.35
_BEFORE = 110  # tokens of the quotes of each session before it
_ITEM_END = late(r"(?<=;)\s")
# Content words of a sentence of an earlier session; characters of a message without a word like "I", "we" or "please",
# from which on it is taken for pasted; what other pasted ones begin with.
_SUBJECT, _TYPED = 4, 160
_PRINTED = ("=", "<", "{", "[", "|", "#", ">", "$")
# What a note's line begins with: without it, it is what a line of the board says.
_LABEL = late(r"^(?:outcome|decided|constraint|blocked|open|next(?: steps?)?|preference): ", re.IGNORECASE)
ASKED = late(r"(?<=\S) \(asked: .*", re.DOTALL)  # what was asked for, behind what came out
# A question, and a task: what came of it is in a later report or the outcome. What the person would have "us" do stays.
_ASKS = late(
    r"\W*(?:(?:and|but|so|also|then|now|ok(?:ay)?|wait),? )*"
    r"(?:what|why|how|which|where|when|who|is|are|does|did|has|was|were|(?:do|have) (?:you|we|i|they)"
    r"|(?:can|could|would|will) you)\b",
    re.IGNORECASE,
)
_COMMIT = late(r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b")
_PROPOSES = late(r"\b(?:can|could|should|shall)(?:n?['’]t)? we\b", re.IGNORECASE)
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
    quotes = [{words: one for words, one in _lines_of(session).items() if not known(words)} for session in seen.quoted]
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
    said_of: dict[str, list[str]] = {}
    for place, (session, some) in enumerate(zip(seen.quoted, quotes, strict=True)):
        if place and session.id not in board.shown:
            continue
        title = [] if place else [title_of(session), ""]
        share = max(_BEFORE, room // max(len(quotes) - place, 1)) if place else _QUOTED
        most = min(room, share) - sum(size(line) + 1 for line in title)
        if said := _quoted(some, session, told, most, size, last=place == 0):
            said_of["" if place == 0 else session.id] = [*title[:1], *said.values(), *title[1:]]
            room -= sum(size(line) + 1 for line in (*title, *said.values()))
            words_told += said
    own_lines = [headings["projects"], *parts.pop(headings["projects"], ())]
    earlier = [
        line
        for one in sorted(board.lines["earlier"], key=lambda one: one.place)
        for line in (neutral(one.shown()), *said_of.get(one.id, ()))
    ]
    parts.pop(_EARLIER, None)
    text = [
        *warning,
        *(own_lines if len(own_lines) > 1 else ()),
        *said_of.get("", ()),
        *(line for heading, shown in parts.items() for line in (heading, *shown)),
        *([_EARLIER, *earlier] if earlier else ()),
    ]
    left_out = (
        *(line.text for line in board.left),
        *(words for some in quotes for words in some if words not in words_told),
    )
    return ContextText("\n".join(text).strip("\n"), chosen, tuple(words_told), left_out)


def _earlier(seen: ProjectInputs, name: str, now_us: int) -> Iterator[Line]:
    """Yields what earlier sessions of the project came to: the last lines to get room, newest first."""
    for place, one in enumerate(seen.earlier):
        outcome = clause(ASKED.sub("", plain(outcome_of(one.sentence, name), 2 * _OUTCOME)), _OUTCOME)
        if outcome:
            text = f"{short_day(one.at_us, day_start(now_us))}: {outcome}"
            yield Line(one.id, "earlier", text, (True, float(_LAST + place), -one.at_us, one.id), outcome, (place,))


def _holds_everywhere(view: StatementView) -> bool:
    """Returns whether a statement of another project says that it holds for all of them."""
    return view.kind == "preference" and _OF_EVERY_PROJECT.search(view.text) is not None


def _lines_of(session: QuotedSession) -> dict[str, Quote]:
    """Returns quotes by their lines."""
    return {quote_line(one, day_of(session.latest_us)): one for one in session.quotes}


def _by_worth(quotes: Sequence[Quote], *, last: bool) -> Iterator[tuple[Quote, int, str]]:
    """Yields the sentences of quotes with their quote and place, in the order in which they get room.

    Of the `last` session its last report and the last words first; then what the person stated, and proposed, the
    newest first; then reports, of an earlier session the last one alone. Left out are questions, tasks, what is pasted
    and what is without a subject.
    """
    reports = [one for one in reversed(quotes) if one.speaker == "agent"]
    words = [one for one in reversed(quotes) if one.speaker == "person"][:1]
    ranked: list[tuple[int, int, int, Quote, str]] = []
    for before, quote in pairwise((None, *quotes)):
        assert quote is not None
        answers = before is not None and before.speaker == "agent"
        pasted = quote.text.startswith(_PRINTED) or (len(quote.text) > _TYPED and not OWN.search(quote.text))
        pieces = (
            piece
            for sentence in split(quote.text)
            for piece in ([sentence] if _LABEL.match(sentence) else _ITEM_END.split(sentence))
        )
        for place, piece in enumerate(pieces):
            subject = len(content_words(piece))
            # What a label names is a statement, shown as long as it holds; commits stand in the outcome.
            known = EMPTY.match(piece) or _LABEL.match(piece) or (not last and _COMMIT.search(piece))
            if quote.speaker == "agent" and known:
                continue
            if quote.speaker == "agent":
                rank = reports.index(quote)
                worth = 0 if last and not rank else 4 + rank if subject >= _SUBJECT and (last or not rank) else None
            elif last and quote in words:
                worth = 1
            elif (
                pasted
                or ((_ASKS.match(piece) or is_question(piece)) and not _PROPOSES.search(piece))
                or not (subject >= _SUBJECT or (last and (subject > 1 or answers)))
            ):
                worth = None
            else:
                worth = 3 if is_question(piece) else 2
            if worth is not None:
                ranked.append((worth, -quote.turn, place, quote, piece))
    return ((quote, place, piece) for _, _, place, quote, piece in sorted(ranked, key=lambda one: one[:3]))


def _quoted(
    quotes: Mapping[str, Quote], session: QuotedSession, told: Said, room: int, size: Size, *, last: bool
) -> dict[str, str]:
    """Returns the lines that fit, by their whole words, in the order of what was said; without what others say."""
    chosen: dict[Quote, dict[int, str]] = {}

    def line(quote: Quote, pieces: Mapping[int, str]) -> str:
        text, before = "", -1
        for place in sorted(pieces):
            text += f"{' … ' if place != before + 1 and text else ' ' if text else ''}{pieces[place]}"
            before = place
        return neutral(quote_line(quote._replace(text=text), day_of(session.latest_us)))

    for quote, place, piece in _by_worth(tuple(quotes.values()), last=last):
        held = chosen.get(quote, {})
        if told.holds(_LABEL.sub("", piece)):
            continue
        cost = size(line(quote, {**held, place: piece})) + 1 - (size(line(quote, held)) + 1 if held else 0)
        if cost <= room:
            room -= cost
            chosen.setdefault(quote, {})[place] = piece
            told.add(piece, sentence=True)
    return {words: line(quote, chosen[quote]) for words, quote in quotes.items() if quote in chosen}
