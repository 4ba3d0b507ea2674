"""Finds the sessions and statements that answer a question: one score for `recall`, MCP, the page and prompts.

Words weigh by rarity among the texts of the agent: bm25 of FTS5 would count those of others. A text is ranked by all of
its rows, as a whole, and most by coverage: the share of the question within a row of full text. Many words in one row
say more than the same words in many, and what a tool printed beside what is said helps to find it.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import log
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.formats.timestamps import local
from signet_sync.recall.query import Question, Term, find_needle
from signet_sync.recall.store import rows
from signet_sync.recall.store.rows import FoundArtifact, FoundText, Within
from signet_sync.storage.database.connection import Database
from signet_sync.text.index_words import fold

if TYPE_CHECKING:
    from signet_sync.embeddings.vectors import Nearness

MOST_PASSAGES, MOST_FOUND = 400, 40
COMMON = 1_000  # passages; a word of more of them finds nothing, but counts
_NEWEST = 2_000  # texts that are searched where words are common and nowhere together
_OF_SAID, _OF_WHOLE, _OF_COVERED = 1.0, 1.0, 3.0
_OF_ALL = _OF_SAID + _OF_WHOLE + _OF_COVERED
_LEAST = 0.3  # weight of a word that every text has
_MANY = 8  # one of so many texts has a common word at least
_OF_PRINTED, _BESIDE = 0.2, 0.6  # of the weight of a word that only a tool printed: in the text, behind this row
_SATURATED, _OF_LENGTH = 1.2, 0.3  # constants of bm25; passages differ little in length
_SHOWN = 2  # rows of a text
_BY_WORDS, _BY_MEANING, _MOST_NEAR = 0.75, 0.25, 100  # shares of a score; passages that only mean it
_NEARLY = 0.9  # of what another text of the session covers


class WeighedTerms:
    """The terms of a question as an agent's texts know them: the rarer, the heavier. Bits are sets of terms.

    `common` ones are in too many passages to find any; `heaviest` is the weight of a plain word that one text contains.
    """

    def __init__(
        self, terms: Sequence[Term] = (), weights: Sequence[float] = (), common: int = 0, texts: int = 1
    ) -> None:
        self.terms, self.common, self.heaviest = terms, common, rarity(1, texts)
        self.total = sum(weights) or 1.0
        # The rarest first: where it stands in a text, the text is worth reading.
        ordered = sorted(enumerate(terms), key=lambda one: -weights[one[0]])
        self._needles = [(1 << number, term.needle) for number, term in ordered]
        self._weights = weights
        self._shares: dict[int, float] = {}

    def share(self, terms: int) -> float:
        """Returns how much of the question's weight some terms have, from 0 to 1."""
        if terms not in self._shares:  # many passages have the same
            held = sum(weight for number, weight in enumerate(self._weights) if terms >> number & 1)
            self._shares[terms] = held / self.total
        return self._shares[terms]

    def find_terms(self, text: str) -> int:
        """Returns the terms that a text contains."""
        low = fold(text)
        return sum(bit for bit, needle in self._needles if find_needle(needle, low) >= 0)

    def find_first(self, text: str) -> int:
        """Returns where the rarest term that a text contains begins; 0 without one."""
        low = fold(text)
        return next((place for _, needle in self._needles if (place := find_needle(needle, low)) >= 0), 0)


class Match(NamedTuple):
    """A session or statement that answers, and the text of it that is shown, with its best rows if they were read.

    `said` weighs its words for its length in the best row, `all_said` in all of them, `whole` without regard to rows.
    `covered` is the share of the question that one row has, `terms` which of it; `near` counts what tools printed
    behind it too. `score` is from 0 to 1. `meant` says how near the session is to the question's meaning, from 0 to 1,
    `nearest` which row of the text is.
    """

    text: FoundText
    said: float
    all_said: float
    whole: float
    near: float
    covered: float
    terms: int
    places: tuple[int, ...]
    found: FoundArtifact | None = None
    score: float = 0.0
    meant: float = 0.0
    nearest: int | None = None


class _Row(NamedTuple):
    """A row of full text: its text, first passage, weight, and which terms are said in it and printed behind it."""

    text: FoundText
    place: int
    weight: float
    said: int
    printed: int


def search(
    database: Database, question: Question, within: Within, most: int = MOST_FOUND, near: "Nearness | None" = None
) -> tuple[WeighedTerms, list[Match]]:
    """Returns the weighed terms, and the best sessions and statements, at most `most`, each once.

    With `near` they are ordered by words and meaning, the more by words the more of the question the best one has.
    """
    weighed, held = weigh(database, question, within)
    matches = _find_matches(database, within, weighed, held)
    if near is not None:
        matches = _add_meaning(database, within, matches, near)
    best = _score_matches(matches)[:most]
    return weighed, _score_matches([_read(database, weighed, one) for one in best])


def weigh(database: Database, question: Question, within: Within) -> tuple[WeighedTerms, dict[int, int]]:
    """Weighs the terms by rarity among the texts that are searched.

    With them are the passages that have any, each with its terms, and those printed behind it as higher bits. Common
    terms find only where there are no others: the passages with all of them, else the newest.
    """
    agent_id, shared, period, project = within
    searched = rows.ranges(database, within)
    some = shared or period is not None
    texts = rows.count(database, searched) if some else rows.count_all(database, agent_id)
    terms, weights, common = question.terms, [], 0
    found: list[tuple[int, Sequence[int]]] = []
    for number, term in enumerate(terms):
        said = rows.passages_with(database, [term], searched, COMMON + 1, project)
        many = len(said) > COMMON
        printed = [] if many else rows.find_printed(database, term, searched, COMMON + 1)
        weights.append(term.worth * rarity(max(rows.minutes(said), texts // _MANY if many else 0), texts))
        if many:
            common |= 1 << number
        else:
            found += [(1 << number, said), (1 << number + len(terms), printed)]
    if common and not any(places for _, places in found):
        sought = [(number, term) for number, term in enumerate(terms) if common >> number & 1]
        together = rows.passages_with(database, [term for _, term in sought], searched, MOST_PASSAGES, project)
        newest = [] if together else rows.newest(database, searched, _NEWEST)
        alone = [(1 << number, rows.passages_with(database, [term], newest, -1, project)) for number, term in sought]
        found = [(common, together), *alone]
    held: dict[int, int] = {}
    for bits, places in found:
        for place in places:
            held[place] = held.get(place, 0) | bits
    return WeighedTerms(terms, weights, common, texts), held


def rarity(holding: int, texts: int) -> float:
    """Returns the weight of a word that `holding` of `texts` contain."""
    return _LEAST + log(1 + (max(texts - holding, 0) + 0.5) / (holding + 0.5))


def _find_matches(database: Database, within: Within, weighed: WeighedTerms, held: Mapping[int, int]) -> list[Match]:
    """Returns a match for each session and statement whose rows have most of the question."""
    share, width = weighed.share, len(weighed.terms)
    said = (1 << width) - 1
    worth = {bits: share(bits & said) + _BESIDE * share(bits >> width & ~bits) for bits in set(held.values())}
    best = nlargest(MOST_PASSAGES, held, key=lambda place: (worth[held[place]], place))  # of equal ones the newest
    placed = list(rows.texts_of(database, best))
    usual = _mean(length for _, _, length in placed)
    groups: dict[tuple[bool, str], list[_Row]] = {}
    for text, place, length in placed:
        if within.holds(text.at_us):
            bits = held[place]
            row = _Row(text, place, worth[bits] ** 2 * _weigh_length(length / usual), bits & said, bits >> width)
            groups.setdefault(text.whose, []).append(row)
    lengths = [
        sum({row.text.first: row.text.last - row.text.first + 1 for row in one}.values()) for one in groups.values()
    ]
    usual = _mean(lengths)
    return [_match(weighed, found, length / usual) for found, length in zip(groups.values(), lengths, strict=True)]


def _match(weighed: WeighedTerms, found: Sequence[_Row], length: float) -> Match:
    """Returns the match of a session: the text of it that is shown is the one that says it.

    The words themselves say more than a summary of them.
    """
    dated = 0
    for number, term in enumerate(weighed.terms):
        if term.date is not None and term.date.holds(local(found[0].text.at_us)):
            dated |= 1 << number
    covered = {row.place: weighed.share(row.said | dated) for row in found}
    top = max(covered.values())
    best = max(found, key=lambda row: (covered[row.place] >= _NEARLY * top, row.text.is_transcript, row.weight))
    order = sorted(
        (row for row in found if row.text.first == best.text.first), key=lambda row: (-row.weight, row.place)
    )
    said = printed = 0
    for row in found:
        said, printed = said | row.said, printed | row.printed
    return Match(
        text=best.text,
        said=max(row.weight for row in found),
        all_said=sum(row.weight for row in found),
        whole=(weighed.share(said) + _OF_PRINTED * weighed.share(printed & ~said)) * _weigh_length(length),
        near=max(covered[row.place] + _BESIDE * weighed.share(row.printed & ~row.said & ~dated) for row in found),
        covered=top,
        terms=max((row.said | dated for row in order), key=weighed.share),
        places=tuple(row.place for row in order[:_SHOWN]),
    )


def _add_meaning(database: Database, within: Within, matches: Sequence[Match], near: "Nearness") -> list[Match]:
    """Returns matches with what they mean, and those of sessions that have no word of the question, but mean it."""
    found: dict[tuple[bool, str], Match] = {}
    for one in matches:
        meant, nearest = near.measure(one.text.first)
        found[one.text.whose] = one._replace(meant=meant, nearest=nearest)
    places = dict(near.nearest(_MOST_NEAR))
    for text, place, _ in rows.texts_of(database, list(places)):
        if not within.holds(text.at_us):
            continue
        if within.project and not rows.passages_with(database, [], [(place, place)], project=within.project):
            continue
        match = found.get(text.whose) or Match(text, 0, 0, 0, 0, 0, 0, (), nearest=place)
        found[text.whose] = match._replace(meant=max(match.meant, places[place]))
    return list(found.values())


def _weigh_length(length: float) -> float:
    """Returns how much words count in a text of a length in relation to others: the longer, the less, as in bm25."""
    return (1 + _SATURATED) / (1 + _SATURATED * (1 - _OF_LENGTH + _OF_LENGTH * length))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / max(len(numbers), 1) or 1.0


def _read(database: Database, weighed: WeighedTerms, match: Match) -> Match:
    """Reads the best rows of a match, and adds the words that are too common to find, where they have them."""
    found = None
    words = match.text.words or ""
    if match.text.artifact is not None:
        places = match.places if match.nearest is None else (*match.places, match.nearest)
        found = rows.read_artifact(database, match.text.artifact, places, match.text.last)
        words = found.spoken_text if found is not None else ""
    more = weighed.find_terms(words) & weighed.common & ~match.terms if weighed.common else 0
    share = weighed.share(more)
    return match._replace(near=match.near + share, covered=match.covered + share, terms=match.terms | more, found=found)


def _score_matches(matches: Sequence[Match]) -> list[Match]:
    """Returns the matches with their scores, the best first: each part in relation to the best of all.

    A statement is one passage, which is all of it. Of equal scores statements come first, then what is newer.
    """
    most_said, most_all, most_whole = (
        max((getattr(one, part) for one in matches), default=0.0) or 1.0 for part in ("said", "all_said", "whole")
    )
    scored = []
    for one in matches:
        all_said, whole = one.all_said / most_all, one.whole / most_whole
        if one.text.tier != "session":
            all_said = whole = one.said / most_said
        total = _OF_SAID * all_said + _OF_WHOLE * whole + _OF_COVERED * one.near
        scored.append(one._replace(score=total / _OF_ALL))
    if any(one.meant for one in matches):
        best = max(scored, key=lambda one: one.score)
        words = _BY_WORDS * best.covered / (best.score or 1.0)
        scored = [one._replace(score=words * one.score + _BY_MEANING * one.meant) for one in scored]
    return sorted(
        scored, key=lambda one: (-round(one.score, 3), one.text.tier == "session", -one.text.at_us, one.text.name)
    )
