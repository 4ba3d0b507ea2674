"""Marks the words of a query in a text. Pure."""

from __future__ import annotations

import re

from signet_sync.recall.snippets import WORDS


def marked(piece: str, query: str) -> list[tuple[str, bool]]:
    """Splits a text into pieces: those that begin a word like one of the query's are marked."""
    words = sorted({word.casefold() for word in WORDS.findall(query)[:64]}, key=len, reverse=True)
    if not words:
        return [(piece, False)]
    found = re.split(rf"(?<![^\W_])({'|'.join(map(re.escape, words))})", piece, flags=re.IGNORECASE)
    return [(text, place % 2 == 1) for place, text in enumerate(found) if text]
