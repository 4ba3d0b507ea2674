"""Composes the text on a project for a session's start: where it stands, quotes of its last session, what holds."""

import re
from collections.abc import Callable, Iterator, Mapping

from signet_sync.digest.sentences import split, stems
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import neutral
from signet_sync.formats.paths import file_of
from signet_sync.formats.timestamps import day_of, short_day
from signet_sync.memories.score import day_start
from signet_sync.pages.board import MORE, Line, Said, SessionContext, Size, blocks, choose, cost
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
from signet_sync.text.phrases import QUOTED, Quote, quote_line, title_of
from signet_sync.text.sentences import basename, page_cell, shorten

_LAST = 1_000_000  # more than any rank
_THREADS = 3  # of the project at hand; without one, of any
# What earlier sessions of the project came to: their heading, and characters of each.
_EARLIER, _OUTCOME = "=== Earlier sessions here ===", 240
# The quotes: tokens (as `size` counts them), and their share of a smaller budget; characters of a sentence.
_QUOTED, _OF_QUOTES, _PIECE = 800, 0.35, 200
_SUBJECT = 3  # content words; a person's words with fewer only answer
# What a note's line begins with: it is a statement, shown as long as it holds.
_LABEL = late(r"(?:outcome|decided|constraint|blocked|open|next(?: steps?)?|preference): ", re.IGNORECASE)


def project_text(
    seen: BoardInputs,
    project: str,
    now_us: int,
    limit: int,
    size: Size,
    *,
    skip: Callable[[Line], bool] = lambda _: False,
    marks: Mapping[str, str] = {},
) -> SessionContext:
    """Returns the text on the project named `project` within a limit, "" for none; what it may `skip` is left out.

    `size` measures one line, and a newline counts one. `marks` stand behind the lines of some ids.
    """
    projects = *(view.project for view in seen.threads), *(view.project for view in seen.statements)
    own = {"", *map(scope_of, projects)}
    names = distinct_names(view.project for view in (*seen.threads, *seen.others))
    heads = (seen.threads if project else seen.others)[:_THREADS]
    threads = [view._replace(name=names.get(view.project or "", "")) for view in heads]
    name = page_cell(names.get(project) or basename(project), 60)
    headings = {key: f"=== {heading.removeprefix('## ')} ===" for key, heading in SECTIONS.items()}
    headings |= {"earlier": _EARLIER, **({"projects": f"=== Project {name} ==="} if name else {})}

    warning = [f"> [!warning] {neutral(seen.warning)}", ""] if seen.warning else []
    room = limit - cost(warning, size)
    quotes = _list_quotes(seen)
    for_quotes = min(cost([*quotes], size), int(room * _OF_QUOTES), _QUOTED)
    of_board = candidates(seen._replace(threads=threads), now_us, own)
    earlier = _list_earlier(seen, basename(project), now_us)
    lines = [line._replace(mark=marks.get(line.id, "")) for line in (*of_board, *earlier) if not skip(line)]
    board = choose(lines, headings, room - for_quotes, lambda line: size(neutral(line)))
    parts = {heading: [heading, *map(neutral, shown), ""] for heading, shown in blocks(board, headings)}
    more = [MORE, ""] if parts and board.left else []
    room -= sum(cost(part, size) for part in (*parts.values(), more))

    chosen = tuple(line for some in board.lines.values() for line in some)
    told = Said()
    for words in (*seen.ended, *(words for line in chosen for words in (line.text, line.sentence))):
        told.add(words, sentence=True)
    shown = _cut_quotes(seen, quotes, told, min(room, _QUOTED), size)
    standing = parts.pop(headings["projects"], [])
    last = [title_of(seen.quoted), *shown.values(), ""] if seen.quoted is not None and shown else []
    text = [*warning, *standing, *last, *(line for part in parts.values() for line in part), *more]
    sources = dict.fromkeys(path for line in chosen if (path := file_of(line.path)) is not None)
    of = seen.quoted.id if seen.quoted is not None else ""
    ids = [*(line.id for line in chosen), *(f"{QUOTED}{of}" for _ in shown)]
    return SessionContext("\n".join(text).strip("\n"), [*sources], [], ids)


def _list_earlier(seen: BoardInputs, name: str, now_us: int) -> Iterator[Line]:
    """Yields the lines of earlier sessions, ranked behind all else: the newest first."""
    for place, (node, at_us, sentence) in enumerate(seen.earlier):
        whole = ASKED.sub("", plain(outcome_of(sentence, name), 2 * _OUTCOME))
        if outcome := clause(whole, _OUTCOME):
            text, rank = f"{short_day(at_us, day_start(now_us))}: {outcome}", float(_LAST + place)
            yield Line(node, "earlier", text, (True, rank, -at_us, node), outcome, (place,), sentence=whole)


def _list_quotes(seen: BoardInputs) -> dict[str, Quote]:
    """Returns the quotes of the last session, by their whole lines, in the order in which they get room.

    The last report and the person's last words that say something come first, then the others, the newest first.
    """
    session = seen.quoted
    if session is None:
        return {}
    said = [one for one in session.quotes if one.speaker == "agent" or len(stems(one.text)) >= _SUBJECT]
    last = {one.speaker: one for one in said}
    ordered = sorted(said, key=lambda one: (one is not last[one.speaker], -one.turn))
    return {quote_line(one, day_of(session.latest_us)): one for one in ordered}


def _cut_quotes(seen: BoardInputs, quotes: Mapping[str, Quote], told: Said, room: int, size: Size) -> dict[str, str]:
    """Returns by their whole lines those of quotes that fit, cut at sentences, in the order in which they were said.

    What other lines say is left out.
    """
    session, shown = seen.quoted, dict[str, str]()
    if session is None:
        return shown
    room -= size(title_of(session)) + 2
    for words, quote in quotes.items():
        text, line, gap = "", "", ""
        for sentence in split(quote.text):
            if _LABEL.match(sentence) or told.holds(sentence):
                gap = "… " if text else ""
                continue
            longer = f"{text} {gap}{shorten(sentence, _PIECE)}".lstrip()
            drawn = neutral(quote_line(quote._replace(text=longer), day_of(session.latest_us)))
            if size(drawn) + 1 > room:
                break
            text, line, gap = longer, drawn, ""
            told.add(sentence, sentence=True)
        if line:
            shown[words] = line
            room -= size(line) + 1
    return {words: shown[words] for words in sorted(shown, key=lambda words: quotes[words].turn)}
