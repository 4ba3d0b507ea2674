"""All that one artifact gives: its items, what it speaks of, and how that hangs together."""

from __future__ import annotations

from signet_sync.facts.items import items
from signet_sync.facts.mentions import mentioned
from signet_sync.facts.relations import related
from signet_sync.formats.fact import Distilled

SCANNED = 256 * 1024


def distil(body: str, *, project: str | None) -> Distilled:
    """Items, mentions and relations of a (sanitized) body of a session in `project`.

    Mentions and relations are looked for in the first `SCANNED` characters. Total, deterministic, linear; at most
    `items.ITEMS_PER_ARTIFACT`, `mentions.MENTIONS_PER_ARTIFACT` and `relations.RELATIONS_PER_ARTIFACT` of each.
    """
    said = items(body)
    scanned = body
    if len(body) > SCANNED:
        # The line that the limit falls into may end in half a name.
        scanned = body[:SCANNED].rpartition("\n")[0] or body[:SCANNED].rpartition(" ")[0]
    seen = mentioned(scanned, project, said)
    return Distilled(said, seen, related(scanned, said, seen))
