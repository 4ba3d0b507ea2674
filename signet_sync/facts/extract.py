"""Extracts items, mentions and relations from one artifact."""

from __future__ import annotations

from signet_sync.facts.items import items
from signet_sync.facts.mentions import mentions
from signet_sync.facts.relations import relations
from signet_sync.formats.fact import Distilled

SCANNED = 256 * 1024


def distil(body: str, *, project: str | None) -> Distilled:
    """Returns items, mentions and relations of a (sanitized) body of a session in `project`.

    Mentions and relations are searched in the first `SCANNED` characters. Works for any text; deterministic and linear;
    at most `items.ITEMS_PER_ARTIFACT`, `mentions.MENTIONS_PER_ARTIFACT` and `relations.RELATIONS_PER_ARTIFACT` of each.
    """
    listed = items(body)
    scanned = body
    if len(body) > SCANNED:
        # The line at the limit is left out: it may end in half a name.
        scanned = body[:SCANNED].rpartition("\n")[0] or body[:SCANNED].rpartition(" ")[0]
    mentioned = mentions(scanned, project, listed)
    return Distilled(listed, mentioned, relations(scanned, listed, mentioned))
