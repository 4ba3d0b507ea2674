"""Adds what is only similar in meaning to a question, below everything that its words find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signet_sync.embeddings.meaning import Meaning
from signet_sync.embeddings.store import EmbeddedText
from signet_sync.recall.query import read
from signet_sync.recall.search import Match, WeighedTerms, Within
from signet_sync.recall.shown import RankedHit, ranked_hits
from signet_sync.recall.store import hits, rows
from signet_sync.recall.store.hits import FoundArtifact
from signet_sync.storage.database.connection import Database

MOST = 5  # whatever the limit: what no word finds is seldom what was asked for


def similar_hits(
    database: Database, text: str, within: Within, found: Sequence[RankedHit], limit: int, meaning: Meaning
) -> Iterator[RankedHit]:
    """Yields texts that are similar to a question, the best first, if fewer than `limit` were `found`; score 0.

    Nothing found is repeated, a session is there once.
    """
    left = min(limit - len(found), MOST)
    shown = {name for hit in found for name in (hit.id, (hit.path or hit.id).rpartition("--")[0])}
    nothing = WeighedTerms()
    for place in meaning.nearest(database, within.agent_id, text) if left > 0 else ():
        matches = [
            Match(one, 0.0, 0.0, 0.0, 0.0, 0.0, 0, (), _found(database, place, one)) for one in _texts(database, place)
        ]
        for hit in ranked_hits(database, within.agent_id, read(text), nothing, _wanted(matches, within)):
            names = {hit.id, (hit.path or hit.id).rpartition("--")[0]} - {""}
            if names.isdisjoint(shown):
                shown |= names
                yield hit._replace(why=f"similar in meaning, in {hit.why.partition(', in ')[2]}")
                left -= 1
                if not left:
                    return


def _texts(database: Database, place: EmbeddedText) -> list[rows.FoundText]:
    number, column = (place.line, "first") if place.line is not None else (place.artifact, "artifact")
    return rows.texts_by(database, column, number or 0)


def _found(database: Database, place: EmbeddedText, text: rows.FoundText) -> FoundArtifact | None:
    if text.artifact is None:
        return None
    places = rows.passage_at(database, text, place.start) or (text.first,)
    return hits.artifact(database, text.artifact, places, text.last)


def _wanted(matches: Sequence[Match], within: Within) -> list[Match]:
    return [
        one
        for one in matches
        if within.holds(one.text.at_us)
        and (within.private or not one.text.private)
        and (not within.statements or one.text.artifact is None)
    ]
