"""Finds what answers a question: sessions by what was said, memories, statements and entities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from signet_sync.embeddings.store import near
from signet_sync.formats.filename import find_carried_token
from signet_sync.formats.timestamps import day_of
from signet_sync.memories.store import promotions
from signet_sync.recall import search
from signet_sync.recall.as_text import split_turns
from signet_sync.recall.hits import FLOOR, RankedHit, list_file_hits, list_running_hits, rank_hits, words_held
from signet_sync.recall.query import MOST_READ, Question, read
from signet_sync.recall.search import Match, Within
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, counting
from signet_sync.sync.store import counts
from signet_sync.text.index_words import fold
from signet_sync.text.sanitizer import sanitize_beginning

if TYPE_CHECKING:
    from signet_sync.capture.harness_files import HarnessFile

_MEANT = 0.5  # of what the nearest text has over others; without a word of the question, what means less is no answer
_CLEAR = 0.35  # `Nearness.clearness` that unrelated questions seldom have
_KEPT = 0.05  # of the best hit's score
_LEADING, _LEAD, _LEADING_WORDS = 0.5, 0.2, 3  # what a hit covers that alone has so much: see `_leads`
_BESIDE = 0.45  # of the first hit's score, if it is surely an answer: what scores less would only be read
_COUNTED = 0.75  # of the best hit's score; memories that score less were not what was looked for
_MOST_FILES = 3  # a harness tells its sessions of them anyway


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
    matches = _keep_enough(matches, clear=meaning is not None and meaning.clearness >= _CLEAR)
    found = list(rank_hits(database, within.agent_id, question, weighed, matches))
    found += list_running_hits(database, question, weighed, within)
    files = sorted(list_file_hits(question, weighed, within, beside), key=lambda hit: -hit.score)
    found = drop_repeats([*found, *files[:_MOST_FILES]])
    if found and matches and _leads(question, matches[0], found):  # a damaged row may match and show nothing
        found[0] = found[0]._replace(known=True)
    if found and found[0].known:
        found = [hit for hit in found if hit.known or hit.score >= _BESIDE * found[0].score]
    return found[:limit]


def _keep_enough(matches: Sequence[Match], *, clear: bool) -> list[Match]:
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
    session_of = [(find_carried_token(hit.path) if hit.path else None) or hit.id for hit in found]
    of_others = (hit.score for hit, session in zip(found, session_of, strict=True) if session != session_of[0])
    return found[0].score * (1 - _LEAD) >= max(of_others, default=0.0)


def drop_repeats(found: Sequence[RankedHit]) -> list[RankedHit]:
    """Orders hits, each text once; a statement stands before the session that it comes from.

    A session is known again by its longest turn, after which a fork goes on otherwise.
    """
    kept: list[RankedHit] = []
    texts: set[str] = set()
    for hit in sorted(found, key=lambda hit: -hit.score):
        turns = (turn.removeprefix("User: ").removeprefix("Assistant: ") for turn in split_turns(hit._asdict()))
        told = " ".join(fold(max(turns, key=len)).split()).rstrip(".!?…")
        if told in texts:
            continue
        texts.add(told)
        place = len(kept)
        if hit.tier == "statement" and hit.path is not None:
            session = hit.path.rpartition("--")[0]
            sessions = ((n, one.path or "") for n, one in enumerate(kept) if one.tier == "session")
            place = next((n for n, path in sessions if path.startswith(session)), place)
        kept.insert(place, hit if place == len(kept) else hit._replace(score=kept[place].score))
    return kept


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
    return promotions.record(database, agent_id, asked, scored, at_us)


def count_hits(place: IndexPlace, agent_id: str, text: str, hits: Sequence[RankedHit], at_us: int) -> None:
    """Counts the hits if the database can be written at once: an answer never waits for a counter."""
    hits = [hit for hit in hits if hit.tier != "file"]
    with counting(place) as database:
        if hits and database is not None:
            counts.count_ids(database, agent_id, [hit.id for hit in hits], day_of(at_us))
            record(database, agent_id, text, hits, at_us)
