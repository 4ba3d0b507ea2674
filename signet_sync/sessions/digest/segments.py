"""Joins the outcomes of a session's segments: its newest sentence includes the results of earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.sessions.digest.conversation import Outcome
from signet_sync.sessions.digest.selection import SENTENCE_LENGTH, SENTENCE_LENGTH_CJK
from signet_sync.sessions.digest.sentences import IS_CJK, stems

SEGMENTS = 12  # the newest ones that a session's sentence is made from


def joined(earlier: Sequence[Outcome], latest: Outcome) -> Outcome:
    """Returns the latest outcome with the best passages of earlier ones, newest first, as far as a sentence has room.

    `earlier` are oldest first. If the latest segment has no results, the one before it is used.
    """
    told = [one for one in (*reversed(earlier), latest) if one.told]
    if not told:
        return latest
    lead = latest if latest.told else told[0]
    parts = list(lead.told)
    room = SENTENCE_LENGTH_CJK if IS_CJK.search(parts[0]) else SENTENCE_LENGTH
    known = frozenset().union(*map(stems, parts))
    for one in reversed(earlier):
        part = one.told[0] if one.told and one is not lead else ""
        if part and sum(map(len, parts)) + len(part) + 2 * len(parts) <= room and len(stems(part) - known) >= 2:
            parts.append(part)
            known |= stems(part)
    return latest._replace(
        told=tuple(parts), asked=latest.asked or next((one.asked for one in earlier if one.asked), "")
    )
