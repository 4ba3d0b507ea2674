"""Finds what answers a question: sessions by what was said, memories, statements and entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from signet_sync.embeddings.near import near
from signet_sync.formats.filename import find_carried_token
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.memories.store import recall_events
from signet_sync.recall import search
from signet_sync.recall.as_text import GAP
from signet_sync.recall.query import MOST_READ, Question, read
from signet_sync.recall.search import Match, WeighedTerms, Within
from signet_sync.recall.shown import (
    RankedHit,
    is_question,
    make_hit,
    mark_as_question,
    rank_hits,
    words_held,
)
from signet_sync.recall.snippets import turn_text
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, counting
from signet_sync.sync.store import counts
from signet_sync.text.chunking import label_of, speaker_of
from signet_sync.text.index_words import fold
from signet_sync.text.sanitizer import sanitize_beginning, sanitize_transcript_v2
from signet_sync.text.sentences import flatten

if TYPE_CHECKING:
    from signet_sync.capture.harness_files import HarnessFile

FLOOR = 0.02  # of the question's weight; what covers less answers nothing
_MEANT = 0.5  # of what the nearest text has over others; without a word of the question, what means less is no answer
_CLEAR = 0.35  # `Nearness.clearness` that unrelated questions seldom have
_KEPT = 0.05  # of the best hit's score
_LEADING, _LEAD, _LEADING_WORDS = 0.5, 0.2, 3  # what a hit covers that alone has so much: see `_leads`
_BESIDE = 0.45  # of the first hit's score, if it is surely an answer: what scores less would only be read
_NEAREST = 10  # hits that are shown where none is surely an answer
_COUNTED = 0.75  # of the best hit's score; memories that score less were not what was looked for
_OF_RUNNING = 0.8  # of what a turn of a running session covers: its score beside those of other texts
_STORED = 400  # characters of a question
_MOST_FILES = 3  # a harness tells its sessions of them anyway
_LEAST_OF_FILE = 0.5  # of the question's weight: these files are about everything
_PARAGRAPH = late(r"\n\s*\n|\n(?=[ \t]{0,8}(?:[-*+]|\d+\.) )")


def recall(
    database: Database,
    text: str,
    within: Within,
    *,
    limit: int = 10,
    beside: Iterable[HarnessFile] = (),
) -> list[RankedHit]:
    """Returns what answers a text, best first; accepts any text. [] where nothing covers enough of it.

    `beside` are files that harnesses give to their sessions. In the agent the order is by words and meaning, where a
    model is set up.
    """
    question = read(text)
    if not question.terms:
        return []
    meaning = near(database, search.ranges(database, within), text)
    weighed, matches = search.search(database, question, within, min(2 * limit, search.MOST_FOUND), meaning)
    matches = _enough(matches, clear=meaning is not None and meaning.clearness >= _CLEAR)
    found = list(rank_hits(database, within.agent_id, question, weighed, matches))
    found += _running(database, question, weighed, within)
    files = sorted(_list_file_hits(question, weighed, within, beside), key=lambda hit: -hit.score)
    found = drop_repeats([*found, *files[:_MOST_FILES]])
    if found and matches and _leads(question, matches[0], found):  # a damaged row may match and show nothing
        found[0] = found[0]._replace(known=True)
    if found and found[0].known:
        found = [hit for hit in found if hit.known or hit.score >= _BESIDE * found[0].score]
    elif not any(hit.known for hit in found):
        limit = min(limit, _NEAREST)
    return found[:limit]


def _enough(matches: Sequence[Match], *, clear: bool) -> list[Match]:
    """Returns the matches that say enough by their words, and beside those, or if it is `clear`, what only means it."""
    best = max((one.score for one in matches), default=0.0)
    found = [one for one in matches if one.score >= _KEPT * best]
    if not clear and not any(one.covered and one.near >= FLOOR for one in found):
        return []
    return [one for one in found if (one.covered and one.near >= FLOOR) or one.meant >= _MEANT]


def _leads(question: Question, best: Match, found: Sequence[RankedHit]) -> bool:
    """Returns whether the first hit has several words, half of the question, and clearly more than other sessions."""
    if not found[0].answers or best.covered < _LEADING or words_held(question, best.terms) < _LEADING_WORDS:
        return False
    of_others = (hit.score for hit in found if _session_of(hit) != _session_of(found[0]))
    return found[0].score * (1 - _LEAD) >= max(of_others, default=0.0)


def _session_of(hit: RankedHit) -> str:
    return (find_carried_token(hit.path) if hit.path else None) or hit.id


def drop_repeats(found: Sequence[RankedHit]) -> list[RankedHit]:
    """Orders hits, each text once; a statement stands before the session that it comes from."""
    kept: list[RankedHit] = []
    texts: set[str] = set()
    for hit in sorted(found, key=lambda hit: -hit.score):
        told = _key_of(hit)
        if told in texts:
            continue
        texts.add(told)
        place = len(kept)
        if hit.tier == "statement" and hit.path is not None:
            session = hit.path.rpartition("--")[0]
            place = next(
                (n for n, one in enumerate(kept) if one.tier == "session" and (one.path or "").startswith(session)),
                place,
            )
        kept.insert(place, hit if place == len(kept) else hit._replace(score=kept[place].score))
    return kept


def _key_of(hit: RankedHit) -> str:
    """Returns by what a hit is known again: of a session its longest turn, after which a fork goes on otherwise."""
    turns = hit.text.split(GAP) if hit.tier == "session" else [hit.text]
    longest = max((turn.removeprefix("User: ").removeprefix("Assistant: ") for turn in turns), key=len)
    return " ".join(fold(longest).split()).rstrip(".!?…")


def _running(database: Database, question: Question, weighed: WeighedTerms, within: Within) -> Iterator[RankedHit]:
    """Yields the best turn of each running session that covers enough of the question."""
    if within.statements or within.project is not None:  # a live turn tells no project
        return
    best: dict[str, RankedHit] = {}
    for turn in live.find(database, within.agent_id, [term.needle for term in weighed.terms]):
        hit = _make_turn_hit(database, question, weighed, within, turn)
        if hit is not None and ((held := best.get(turn.session_key)) is None or hit.score > held.score):
            best[turn.session_key] = hit
    yield from best.values()


def _make_turn_hit(
    database: Database, question: Question, weighed: WeighedTerms, within: Within, turn: live.FoundTurn
) -> RankedHit | None:
    """Returns the hit of a live turn, of a question with its answer; None if it says too little."""
    held, at_us = weighed.in_text(turn.content), parse_instant(turn.at) or 0
    covered = weighed.share(held)
    if covered < FLOOR or not within.private or not within.holds(at_us):
        return None
    place = weighed.first_in(turn.content)
    label, text = label_of(turn.role), turn_text(turn.content, place)
    asks = speaker_of(turn.role) == "user" and is_question(turn.content)
    answer = live.answer_of(database, within.agent_id, turn) if asks else None
    if answer is not None:
        text = f"{label}: {text}{GAP}{label_of(answer.role)}: {turn_text(answer.content, 0)}"
    hit = make_hit(
        question, held, "session", f"{turn.session_key}#{turn.turn}", flatten(text, _STORED), "a running session",
        label, at_us, covered, _OF_RUNNING * covered, turn=turn.turn,
    )  # fmt: skip
    return mark_as_question(hit) if asks and answer is None else hit


def _list_file_hits(
    question: Question, weighed: WeighedTerms, within: Within, files: Iterable[HarnessFile]
) -> Iterator[RankedHit]:
    """Yields the best paragraph of each of the harnesses' files that covers enough of the question."""
    for file in files:
        if not within.holds(file.at_us) or weighed.share(_best_of(file.text, weighed)[0]) < _LEAST_OF_FILE:
            continue
        held, paragraph = _best_of(sanitize_transcript_v2(file.text), weighed)  # as a whole, so that no secret is cut
        text, covered = flatten(turn_text(paragraph, weighed.first_in(paragraph)), _STORED), weighed.share(held)
        where = f"a file of {file.harness or 'the project'}"
        name, score = sanitize_transcript_v2(file.path), _OF_RUNNING * covered
        yield make_hit(question, held, "file", name, text, where, "file", file.at_us, covered, score)


def _best_of(text: str, weighed: WeighedTerms) -> tuple[int, str]:
    """Returns the paragraph that has most of a question, and the terms that it has."""
    parts = ((weighed.in_text(one), one) for one in _PARAGRAPH.split(text))
    return max(parts, key=lambda part: weighed.share(part[0]))


def record(database: Database, agent_id: str, text: str, hits: Sequence[RankedHit], at_us: int) -> bool:
    """Records which memories a question found and at which place, for the dream sweep; False if the database was busy.

    Only those count that answer nearly as well as the best hit. The score is
    1/rank in the whole answer.
    """
    least = _COUNTED * max((hit.score for hit in hits), default=0.0)
    scored = [(hit.id, 1 / rank) for rank, hit in enumerate(hits, 1) if hit.tier == "memory" and hit.score >= least > 0]
    if not scored:
        return True
    asked = " ".join(sanitize_beginning(text, MOST_READ).split())
    return recall_events.record(database, agent_id, asked, scored, at_us)


def count_hits(place: IndexPlace, agent_id: str, text: str, hits: Sequence[RankedHit], at_us: int) -> None:
    """Counts the hits if the database can be written at once: an answer never waits for a counter."""
    hits = [hit for hit in hits if hit.tier != "file"]
    with counting(place, wanted=bool(hits)) as database:
        if database is not None:
            counts.count_ids(database, agent_id, [hit.id for hit in hits], day_of(at_us))
            record(database, agent_id, text, hits, at_us)
