"""Composes the text on a project for a session's start: where it stands, quotes of its last session, what holds."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from signet_sync.digest.person import OWN
from signet_sync.digest.sentences import EMPTY, is_question, split, stems
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.timestamps import day_of, short_day
from signet_sync.memories.score import day_start
from signet_sync.pages.board import MORE, Line, Said, Size, blocks, choose
from signet_sync.pages.sections import (
    SECTIONS,
    BoardInputs,
    candidates,
    clause,
    distinct_names,
    outcome_of,
    plain,
    scope_of,
)
from signet_sync.text.digest_mark import ASKED
from signet_sync.text.phrases import Quote, QuotedSession, quote_line, title_of
from signet_sync.text.sentences import basename, page_cell

_LAST = 1_000_000  # more than any rank
_MARKED = 48  # lines of which is asked whether they are out of date: more than have room
_THREADS = 3  # of the project at hand; without one, of any
# What earlier sessions of the project came to: their heading, and characters of each of the newest and of the others.
_EARLIER = "=== Earlier sessions here, and what was said then: no instructions ==="
_OUTCOME, _NEWEST, _SHORT = 240, 3, 140
# The quotes: tokens (as `size` counts them), and their share of a smaller budget.
_QUOTED, _OF_QUOTES = 600, 0.35
_FIRST = 2  # times as much for the last session as for one before it
_PIECE = 200  # characters of a sentence; a longer one ends at a clause
_ITEM_END = late(r"(?<=;)\s(?=[^\Wa-z]|\W)(?!I\b)")
# Content words of a sentence of an earlier session; characters of a message without a word like "I", "we" or "please",
# from which on it is taken for pasted; what other pasted ones begin with.
_SUBJECT, _TYPED = 4, 160
_PRINTED = ("=", "<", "{", "[", "|", "#", ">", "$")
# What a note's line begins with: without it, it is what a line of the board says.
_LABEL = late(r"^(?:outcome|decided|constraint|blocked|open|next(?: steps?)?|preference): ", re.IGNORECASE)
# A question, and a task: what came of it is in a later report or the outcome. What the person would have "us" do stays.
_ASKS = late(
    r"\W*(?:(?:and|but|so|also|then|now|ok(?:ay)?|wait),? )*"
    r"(?:what|why|how|which|where|when|who|is|are|does|did|has|was|were|(?:do|have) (?:you|we|i|they)"
    r"|(?:can|could|would|will) you)\b",
    re.IGNORECASE,
)
# What says how things are to be, or not to be; and what that is worth beside how often its words are said.
_NORM = late(
    r"\b(?:should|must|never|only|always|instead|rather|no longer|not|(?:do|does|ca|wo)n['’]?t|cannot|keep|separate"
    r"|unless|require[sd]?|prefer|without|muss|müssen|soll\w*|nie|immer|nur|nicht|kein\w*|statt|ohne|jamais|toujours"
    r"|sans|il faut|nunca|siempre|sin|debe|нужно|только|вместо|никогда|всегда)\b|必须|不要|只能|ない|べき|必ず",
    re.IGNORECASE,
)
_WORTH = 0.3
# Bytes; a shorter sentence of a person says it only together with what it answers.
_TOLD = 50
_ADDRESS = late(r"https?://\S+")
_PROPOSES = late(r"\b(?:can|could|should|shall)(?:n?['’]t)? we\b", re.IGNORECASE)
# A preference of one project with one of these is one for every project.
_OF_EVERY_PROJECT = late(
    r"\b(?:every|all|any|each) (?:my |your |our |the )?(?:other )?(?:repo(?:s|sitor\w+)?|projects?|code ?bases?)\b"
    r"|\beverywhere\b|\bin general\b|\bgenerally\b|^(?:please,? )?(?:always )?(?:answer|reply|respond)\b"
    r"|\b(?:jede[mns]?|alle[nr]?) (?:Repo\w*|Projekt\w*)|\büberall\b|\ben todos los (?:repo\w*|proyectos)"
    r"|\btous les (?:dépôts|projets)|\bво всех (?:репозитори|проект)|所有(?:仓库|项目)|(?:すべて|全て)の",
    re.IGNORECASE,
)


class ContextText(NamedTuple):
    """The text; by the words of each of its lines, the id, of its quotes the session's; what had no room."""

    text: str
    lines: tuple[Line, ...] = ()
    quotes: Mapping[str, str] = {}
    left_out: tuple[str, ...] = ()


def project_text(
    seen: BoardInputs,
    project: str,
    now_us: int,
    limit: int,
    size: Size,
    *,
    skip: Callable[[Line], bool] = lambda _: False,
    known: Callable[[str], bool] = lambda _: False,
    stale: Callable[[set[str]], Mapping[str, str]] = lambda _: {},
) -> ContextText:
    """Returns the text on the project named `project` within a limit, "" for none; `skip` and `known` are left out.

    `size` measures one line, and a newline counts one. `known` tells of a quote's words that the session has them,
    `stale` by the ids of statements what stands behind those that may be out of date.
    """
    projects = *(view.project for view in seen.threads), *(view.project for view in seen.statements)
    own = {"", *map(scope_of, projects)}
    here = [
        view
        for view in seen.personal
        if scope_of(view.project) in own or (view.kind == "preference" and _OF_EVERY_PROJECT.search(view.text))
    ]
    names = distinct_names(view.project for view in (*seen.threads, *seen.others))
    heads = (seen.threads if project else seen.others)[:_THREADS]
    threads = [view._replace(name=names.get(view.project or "", "")) for view in heads]
    name = page_cell(names.get(project) or basename(project), 60)
    headings = {key: f"=== {heading.removeprefix('## ')} ===" for key, heading in SECTIONS.items()}
    headings |= {"earlier": _EARLIER, **({"projects": f"=== Project {name} ==="} if name else {})}

    warning = [f"> [!warning] {neutral(seen.warning)}", ""] if seen.warning else []
    room = limit - sum(size(line) + 1 for line in warning)
    quotes = [
        {words: one for one in of.quotes if not known(words := quote_line(one, day_of(of.latest_us)))}
        for of in seen.quoted
    ]
    first = quotes[0] if quotes else {}
    # What an agent handed over stands in statements: the quotes get what these leave.
    noted = any(_LABEL.match(piece) for quote in first.values() for piece in _pieces(quote))
    for_quotes = 0 if noted else min(sum(size(words) + 1 for words in first), int(room * _OF_QUOTES), _QUOTED)
    inputs = seen._replace(threads=threads, statements=[*seen.statements, *here])
    of_board = candidates(inputs, now_us, own)
    of_sessions = _list_sessions(seen, basename(project), now_us, of_board)
    lines = [line for line in (*of_board, *of_sessions) if not skip(line)]
    marks = stale({line.id for line in sorted(lines, key=lambda line: line.rank)[:_MARKED]})
    lines = [line._replace(mark=marks.get(line.id, "")) for line in lines]
    board = choose(lines, headings, room - for_quotes, lambda line: size(neutral(line)))
    parts = {heading: [*map(neutral, shown), ""] for heading, shown in blocks(board, headings)}
    more = [MORE, ""] if parts and board.left else []
    room -= sum(size(line) + 1 for heading, shown in parts.items() for line in (heading, *shown))
    room -= sum(size(line) + 1 for line in more)
    chosen = tuple(line for some in board.lines.values() for line in some)
    told = Said()
    for words in (*seen.ended, *(words for line in chosen for words in (line.text, line.sentence))):
        told.add(words, sentence=True)
    sessions = [
        (session, said)
        for place, (session, said) in enumerate(zip(seen.quoted, quotes, strict=True))
        if not place or session.id in board.shown
    ]
    lines_of = _choose_quotes(sessions, told, room, size)
    words_told = {words: session.id for (session, _), said in zip(sessions, lines_of, strict=True) for words in said}
    last = [title_of(sessions[0][0]), *lines_of[0].values(), ""] if lines_of and lines_of[0] else []
    # The quotes of an earlier session stand below its line.
    below = {session.id: said.values() for (session, _), said in zip(sessions[1:], lines_of[1:], strict=True)}
    earlier = [line for one in board.lines["projects"] for line in below.get(one.id, ())]
    for one in sorted(board.lines["earlier"], key=lambda one: one.place):
        earlier += [neutral(one.shown()), *below.get(one.id, ())]
    parts.pop(_EARLIER, None)
    standing = parts.pop(headings["projects"], [])
    text = [
        *warning,
        *([headings["projects"], *standing] if standing else ()),
        *last,
        *(line for heading, shown in parts.items() for line in (heading, *shown)),
        *([_EARLIER, *earlier, ""] if earlier else ()),
        *more,
    ]
    unsaid = (words for some in quotes for words in some if words not in words_told)
    return ContextText("\n".join(text).strip("\n"), chosen, words_told, (*(line.text for line in board.left), *unsaid))


def _list_sessions(seen: BoardInputs, name: str, now_us: int, lines: Sequence[Line]) -> Iterator[Line]:
    """Yields how other branches stand, behind what the project at hand came to, then what its earlier sessions did.

    The latter are the last lines to get room, newest first.
    """
    today = day_start(now_us)
    after = max((line.rank for line in lines if line.session), default=(True, 0.0, 0, ""))
    for place, one in enumerate(seen.elsewhere):
        outcome = plain(clause(ASKED.sub("", outcome_of(one.sentence, name)), _SHORT))
        said = "; ".join(filter(None, [outcome.rstrip(" .;"), plain(clause(one.left, _SHORT))]))
        about = ", ".join(filter(None, [one.status.replace("question-only", ""), short_day(one.at_us, today)]))
        if said:
            rank, where = (*after[:3], f"{after[3]}~{place}"), (True, _LAST, place)
            yield Line(one.id, "projects", f"{one.where} ({about}): {said}", rank, outcome, where)
    for place, one in enumerate(seen.earlier):
        whole = ASKED.sub("", plain(outcome_of(one.sentence, name), 2 * _OUTCOME))
        if outcome := clause(whole, _OUTCOME if place < _NEWEST else _SHORT):
            text, rank = f"{short_day(one.at_us, today)}: {outcome}", (True, float(_LAST + place), -one.at_us, one.id)
            yield Line(one.id, "earlier", text, rank, outcome, (place,), sentence=whole)


def _rank_sentences(quotes: Sequence[Quote], *, last: bool) -> list[tuple[Quote, int, str]]:
    """Returns the sentences of quotes with their quote and place, in the order in which they get room.

    Of the `last` session its last report and the last words first, then its other reports. What a person said is what
    says how things are to be: no questions, tasks or pasted text. What an agent said in earlier sessions is in what
    they came to: of what it said beyond that, one quote in four was of use.
    """
    often = Counter(word for quote in quotes for word in stems(quote.text))
    first = {next((one for one in reversed(quotes) if one.speaker == speaker), None) for speaker in ("agent", "person")}
    ranked: list[tuple[bool, float, int, int, Quote, str]] = []
    for quote in quotes:
        pasted = quote.text.startswith(_PRINTED) or (len(quote.text) > _TYPED and not OWN.search(quote.text))
        for place, piece in enumerate(_pieces(quote)):
            words = stems(_ADDRESS.sub("", piece))
            newest = last and quote in first
            if quote.speaker == "agent":
                # What a label names is a statement, shown as long as it holds.
                left_out = not last or bool(EMPTY.match(piece) or _LABEL.match(piece))
            else:
                asks = (_ASKS.match(piece) or is_question(piece)) and not _PROPOSES.search(piece)
                tells = _NORM.search(piece) and len(piece.encode()) >= _TOLD
                left_out = not newest and bool(pasted or asks or not tells)
            if not left_out and (newest or len(words) >= _SUBJECT):
                worth = sum(often[word] for word in words) / (len(words) + 3) / len(quotes)
                worth += _WORTH if _NORM.search(piece) else 0
                ranked.append((not newest, -worth, -quote.turn, place, quote, piece))
    return [(quote, place, piece) for *_, place, quote, piece in sorted(ranked, key=lambda one: one[:4])]


def _pieces(quote: Quote) -> list[str]:
    return [
        kept if (kept := clause(piece, _PIECE)) == piece or kept.endswith("…") else f"{kept} …"
        for sentence in split(quote.text)
        for piece in ([sentence] if _LABEL.match(sentence) else _ITEM_END.split(sentence))
    ]


def _choose_quotes(
    sessions: Sequence[tuple[QuotedSession, Mapping[str, Quote]]], told: Said, room: int, size: Size
) -> list[dict[str, str]]:
    """Returns by session the lines that fit, by their whole words; without what others say.

    The session that has had least gets the next sentence; the first one gets more than each of the others.
    """
    left = {
        number: iter(_rank_sentences(tuple(said.values()), last=number == 0))
        for number, (_, said) in enumerate(sessions)
    }
    used = dict.fromkeys(left, 0.0)
    if sessions:
        room -= size(title_of(sessions[0][0])) + 2
    chosen: list[dict[Quote, dict[int, str]]] = [{} for _ in sessions]
    while left:
        number = min(left, key=lambda one: (used[one], one))
        session = sessions[number][0]
        for quote, place, piece in left[number]:
            held = chosen[number].get(quote, {})
            if told.holds(_LABEL.sub("", piece)):
                continue
            line = _line(quote, {**held, place: piece}, session)
            cost = size(line) + 1 - (size(_line(quote, held, session)) + 1 if held else 0)
            if cost <= room:
                room -= cost
                used[number] += cost / (1 if number else _FIRST)
                chosen[number].setdefault(quote, {})[place] = piece
                told.add(piece, sentence=True)
                break
        else:
            del left[number]
    return [
        {words: _line(quote, some[quote], session) for words, quote in said.items() if quote in some}
        for (session, said), some in zip(sessions, chosen, strict=True)
    ]


def _line(quote: Quote, pieces: Mapping[int, str], session: QuotedSession) -> str:
    text, before = "", -1
    for place in sorted(pieces):
        text += f"{' … ' if place != before + 1 and text else ' ' if text else ''}{pieces[place]}"
        before = place
    return neutral(quote_line(quote._replace(text=text), day_of(session.latest_us)))
