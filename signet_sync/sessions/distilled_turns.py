"""Distils live turns: what the summary of the session would state if it ended now, each statement by its turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from signet_sync.facts.extract import distil
from signet_sync.formats.fact import Item, Report
from signet_sync.sessions.live_turns import SpokenTurn, render
from signet_sync.text.digest.session import outcome
from signet_sync.text.digest.summary import listed_items, summary
from signet_sync.text.sanitizer import sanitize_counted


class DistilledTurns(NamedTuple):
    """What live turns state: items and reports, each with the index of the turn that says it."""

    items: tuple[tuple[int, Item], ...]
    reports: tuple[Report, ...]


def distil_turns(said: Sequence[SpokenTurn], project: str) -> DistilledTurns:
    """Returns what (sanitized) turns of a session in `project` state, by the rules that write a summary.

    What the summary adds without naming a turn, and all that it reports, counts as said last.
    """
    texts = [render([turn]) for turn in said]
    found = outcome("\n\n".join(texts))
    body = summary(found, project=project or None, harness=None)
    # Rules may have become stricter since the turns were stored.
    body = sanitize_counted(body)[0]
    # Each turn begins two lines below the last line of the one before.
    begins = list(accumulate((text.count("\n") + 2 for text in texts[:-1]), initial=1))
    placed = {line: bisect_right(begins, item.line) - 1 for line, item in listed_items(body, found).items()}
    stated = distil(body, project=project or None, sentence="")
    last = len(said) - 1
    return DistilledTurns(tuple((placed.get(item.line, last), item) for item in stated.items), stated.reports)
