"""Extracts items and mentions from one artifact."""

from __future__ import annotations

from signet_sync.facts.items import items
from signet_sync.facts.mentions import mentions
from signet_sync.formats.fact import Distilled

SCANNED = 256 * 1024


def distil(body: str, *, project: str | None) -> Distilled:
    """Returns what a (sanitized) body of a session in `project` states.

    Mentions are searched in the first `SCANNED` characters. Works for any text; deterministic and linear; at most
    `items.ITEMS_PER_ARTIFACT` and `mentions.MENTIONS_PER_KIND` of each.
    """
    listed = items(body)
    scanned = body
    if len(body) > SCANNED:
        # The line at the limit is left out: it may end in half a name.
        scanned = body[:SCANNED].rpartition("\n")[0] or body[:SCANNED].rpartition(" ")[0]
    return Distilled(listed, mentions(scanned, project, listed))
