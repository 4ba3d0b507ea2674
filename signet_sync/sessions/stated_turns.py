"""Finds what live turns state: what the summary of the session would state if it ended now, each by its turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from signet_sync.digest.outcome import outcome
from signet_sync.formats.statement import Item
from signet_sync.sessions.live_turns import SpokenTurn, render
from signet_sync.statements.outcomes import stated
from signet_sync.text.sanitizer import sanitize_counted


def stated_by(said: Sequence[SpokenTurn]) -> list[tuple[int, Item]]:
    """Returns what (sanitized) turns state, each with the index of the turn that says it.

    By the rules that write a summary. What the agent states waits for the transcript: only that has the results of
    tools, which tell whether it repeats a page.
    """
    texts = [render([turn]) for turn in said]
    found = outcome("\n\n".join(texts))
    found = found._replace(items=tuple(item for item in found.items if item.who == "person"))
    # Each turn begins two lines below the last line of the one before.
    begins = list(accumulate((text.count("\n") + 2 for text in texts[:-1]), initial=1))
    # Rules may have become stricter since the turns were stored.
    items = (item._replace(text=sanitize_counted(item.text)[0]) for item in stated(found))
    return [(max(bisect_right(begins, item.line) - 1, 0), item) for item in items]
