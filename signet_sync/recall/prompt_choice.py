"""Chooses what is worth injecting at a prompt: few hits, above a floor, each from another session."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.embeddings.near import near
from signet_sync.recall import search
from signet_sync.recall.operations import drop_repeats
from signet_sync.recall.query import read
from signet_sync.recall.search import Match, Within
from signet_sync.recall.shown import RankedHit, rank_hits
from signet_sync.storage.database.connection import Database
from signet_sync.text.word_forms import fold

# The least share of a prompt's words, weighed by rarity, that a hit anywhere covers.
FLOOR = 0.6
# The same if the prompt asks about earlier work: anywhere, and in the project at hand.
ASKED_FLOOR, OWN_FLOOR = 0.34, 0.1
# A hit anywhere covers at least this many times the weight of a word that is in one text only.
_RARE = 1.6
_KEPT = 0.6  # of the best hit's score
_MOST = 12
# Of what is near in meaning only the nearest counts, and only if it is as clear as it was for none of 100 unrelated
# prompts in 18 projects. More characters of a prompt would take longer than it may wait.
_CLEAR, _ASKED = 0.5, 300


def worth_injecting(
    database: Database, prompt: str, within: Within, own: Sequence[str], *, asks_about_earlier_work: bool
) -> list[RankedHit]:
    """Returns hits, the best first, each of another session; `own` names the project at hand.

    Hits of that project count even with few words of a prompt that asks about earlier work; in the agent, what clearly
    means it counts without any.
    """
    question = read(prompt)
    if not question.terms or question.common:
        return []
    weighed, found = search.search(database, question, within)
    floor = ASKED_FLOOR if asks_about_earlier_work else FLOOR
    least = max(floor, _RARE * weighed.heaviest / weighed.total)
    good = [one for one in found if one.covered >= least]
    for name in own if asks_about_earlier_work else ():
        _, of_project = search.search(database, question, within._replace(project=name))
        good += [one for one in of_project if one.covered >= OWN_FLOOR and one.text not in {of.text for of in good}]
    best = max((one.covered for one in good), default=0.0)
    if best >= FLOOR:  # few words are enough for a hit, but not beside one that has most of them
        good = [one for one in good if one.covered >= _KEPT * best]
    good.sort(key=_worth)
    meaning = near(database, search.ranges(database, within), prompt[:_ASKED], at_once=True)
    if meaning is not None and meaning.clearness >= _CLEAR:
        _, meant = search.search(database, question, within, near=meaning)
        good = [
            *good[: _MOST - 1],
            *(one for one in meant if one.meant == 1 and one.text not in {g.text for g in good}),
        ]
    hits = drop_repeats(list(rank_hits(database, within.agent_id, question, weighed, good[:_MOST])))
    return drop_restated(hits)


def drop_restated(hits: Sequence[RankedHit]) -> list[RankedHit]:
    """Returns the hits that answer, without sessions that only say what a statement among them says."""
    stated = [fold(hit.text).rstrip(".!?…") for hit in hits if hit.tier != "session"]
    return [
        hit
        for hit in hits
        if hit.answers and (hit.tier != "session" or not any(text in fold(hit.text) for text in stated))
    ]


def _worth(match: Match) -> tuple[float, bool, int, str]:
    return -round(match.covered, 2), match.text.tier == "session", -match.text.at_us, match.text.name
