"""Makes statements of what the digest found in a transcript."""

from __future__ import annotations

from signet_sync.digest.outcome import Outcome
from signet_sync.digest.summary import item_line
from signet_sync.formats.statement import Item
from signet_sync.statements.sections import ITEM_LENGTH, normal
from signet_sync.text.sentences import flatten, unescape


def list_stated(found: Outcome) -> tuple[Item, ...]:
    """Returns what a session states, in the words that its summary has, each once, at the lines of the transcript."""
    kept: dict[tuple[str, str], Item] = {}
    for said in found.items:
        text = flatten(unescape(item_line(said)), ITEM_LENGTH)
        if text:
            kept[said.kind, normal(text)] = Item(said.kind, text, said.line, said.rule == "done", said.who)
    return tuple(kept.values())
