"""Adds what is only similar in meaning to a query, below everything that its words find."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from signet_sync.embeddings.meaning import Meaning
from signet_sync.embeddings.store import EmbeddedText
from signet_sync.recall import places
from signet_sync.recall.rank import LINE_TIERS, TIER_OF, RecallCandidate, Tier, folded_text
from signet_sync.recall.snippets import turn_text
from signet_sync.recall.store import hits
from signet_sync.recall.store.hits import Period
from signet_sync.storage.database.connection import Database
from signet_sync.text.chunking import speaker_at, turns
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
                    what = "a transcript" if tier == "transcript" else places.WHAT[kind]
                    role, said = _beginning(artifact.content, start, place.end, spoken=tier == "transcript")
                    where = places.with_turn(role, what + places.of_project(artifact.project), node.at_us)
                    yield RecallCandidate(
                        tier, node.id, flatten(said), artifact.path, node.at_us, 0.0, {}, where, artifact.session
                    )


def _beginning(text: str, start: int, end: int, *, spoken: bool) -> tuple[str, str]:
    """Returns who speaks at the beginning of a piece of a text, and what: of a conversation only that turn."""
    if not spoken:
        return "", turn_text(text[start:end], 0)
    begun = list(turns(text))
    number = bisect_right(begun, start, key=lambda turn: turn.start)
    end = min(end, begun[number].start) if number < len(begun) else end
    begin = max(start, begun[number - 1].words) if number else start
    return speaker_at(begun, start), turn_text(text[begin:end], 0)
