"""Adds what is only similar in meaning to a query, below everything that its words find."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from signet_sync.embeddings.meaning import Meaning
from signet_sync.embeddings.store import EmbeddedText
from signet_sync.recall import places
from signet_sync.recall.rank import LINE_TIERS, TIER_OF, RecallCandidate, Tier, folded_text
from signet_sync.recall.snippets import speaker, turn_text
from signet_sync.recall.store import hits
from signet_sync.recall.store.hits import Period
from signet_sync.storage.database.connection import Database
from signet_sync.text.sentences import flatten

MOST = 5  # whatever the limit: what no word finds is seldom what was asked for


def candidates(
    database: Database,
    text: str,
    agent_id: str,
    found: Sequence[RecallCandidate],
    limit: int,
    meaning: Meaning,
    *,
    tiers: Collection[Tier],
    private: bool,
    period: Period | None = None,
) -> list[RecallCandidate]:
    """Returns an agent's texts that are similar to a query, the best first, if fewer than `limit` were `found`.

    With a period, only what is of that time. Their score is 0. Nothing found is repeated, a session is there once;
    private memories only with `private`.
    """
    most = min(limit - len(found), MOST)
    if most <= 0:
        return []
    shown = {_identity(one) for one in found}
    texts = {folded_text(one.text) for one in found}
    more: list[RecallCandidate] = []
    for place in meaning.nearest(database, agent_id, text):
        for one in _at(database, agent_id, place, tiers, private):
            if period is not None and not period.holds(one.at_us):
                continue
            if _identity(one) not in shown and folded_text(one.text) not in texts:
                shown.add(_identity(one))
                texts.add(folded_text(one.text))
                more.append(one)
        if len(more) == most:
            break
    return more


def _identity(one: RecallCandidate) -> tuple[str, ...]:
    return (one.id,) if one.session is None else one.session


def _at(
    database: Database, agent_id: str, place: EmbeddedText, tiers: Collection[Tier], private: bool
) -> Iterator[RecallCandidate]:
    """Yields what is at a place, if it is in one of the tiers."""
    if place.line is not None:
        for tier in (tier for tier in LINE_TIERS if tier in tiers):
            ids = hits.first(database, agent_id, tier, [[place.line]], 1, private)
            for line in hits.lines(database, agent_id, tier, ids):
                where = places.of_line(tier, line)
                text = f"{line.about}: {line.shown}" if tier == "curated" else line.shown
                yield RecallCandidate(tier, line.id, text, line.path, line.at_us, 0.0, {}, where)
    if place.artifact is not None:
        kinds = [kind for kind, tier in TIER_OF.items() if tier in tiers]
        for kind, number in hits.kinds_of(database, agent_id, [place.artifact], kinds):
            for artifact in hits.artifacts(database, [number], hits.LONGEST, hits.LONGEST):
                node = hits.node_at(database, agent_id, artifact.path, place.start)
                if node is not None:
                    tier, start = TIER_OF[kind], place.start
                    role = speaker(artifact.content, start) if tier == "transcript" else ""
                    what = "a transcript" if tier == "transcript" else places.WHAT[kind]
                    where = places.with_turn(role, what + places.of_project(artifact.project), node.at_us)
                    said = flatten(turn_text(artifact.content[start : place.end], 0))
                    yield RecallCandidate(
                        tier, node.id, said, artifact.path, node.at_us, 0.0, {}, where, artifact.session
                    )
