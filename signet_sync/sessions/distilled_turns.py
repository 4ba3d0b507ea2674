"""Distils live turns: what the summary of the session would state if it ended now, each statement by its turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from signet_sync.digest.outcome import outcome
from signet_sync.digest.summary import listed_items, summary
from signet_sync.facts.extract import distil
from signet_sync.formats.fact import Item
from signet_sync.sessions.live_turns import SpokenTurn, render
from signet_sync.text.sanitizer import sanitize_counted


def distil_turns(said: Sequence[SpokenTurn], project: str) -> list[tuple[int, Item]]:
    """Returns the items of (sanitized) turns of a session in `project`, each with the index of the turn that says it.

    By the rules that write a summary; what that adds without naming a turn counts as said last. What the agent states
    waits for the transcript: only that has the results of tools, which tell whether it repeats a page.
    """
    texts = [render([turn]) for turn in said]
    found = outcome("\n\n".join(texts))
    found = found._replace(items=tuple(item for item in found.items if item.who == "person"))
    body = summary(found, project=project or None, harness=None)
    # Rules may have become stricter since the turns were stored.
    body = sanitize_counted(body)[0]
    # Each turn begins two lines below the last line of the one before.
    begins = list(accumulate((text.count("\n") + 2 for text in texts[:-1]), initial=1))
    placed = {line: bisect_right(begins, item.line) - 1 for line, item in listed_items(body, found).items()}
    stated = distil(body, project=project or None)
    last = len(said) - 1
    return [(placed.get(item.line, last), item) for item in stated.items]
