"""Extracts items, mentions, relations and reports from one artifact."""

from __future__ import annotations

from signet_sync.facts.items import items, with_new_values
from signet_sync.facts.mentions import mentions
from signet_sync.facts.relations import relations
from signet_sync.facts.reports import reports
from signet_sync.formats.fact import Distilled

SCANNED = 256 * 1024


def distil(body: str, *, project: str | None, sentence: str | None = None) -> Distilled:
    """Returns what a (sanitized) body of a session in `project` states.

    Reports are extracted only with a `sentence`, that of a summary or compaction. Mentions and relations are searched
    in the first `SCANNED` characters. Works for any text; deterministic and linear; at most
    `items.ITEMS_PER_ARTIFACT`, `mentions.MENTIONS_PER_ARTIFACT`, `relations.RELATIONS_PER_ARTIFACT` and
    `reports.REPORTS_PER_ARTIFACT` of each.
    """
    listed = items(body)
    scanned = body
    if len(body) > SCANNED:
        # The line at the limit is left out: it may end in half a name.
        scanned = body[:SCANNED].rpartition("\n")[0] or body[:SCANNED].rpartition(" ")[0]
    mentioned = mentions(scanned, project, listed)
    reported = reports(scanned, sentence, listed) if sentence is not None else ()
    if sentence is not None:
        listed = with_new_values(listed, scanned)
    return Distilled(listed, mentioned, relations(scanned, listed, mentioned), reported)
