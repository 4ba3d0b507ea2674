"""Marks the words of a query in a text that is shown without Markdown. Pure."""

from __future__ import annotations

import re

from signet_sync.recall.snippets import WORDS
from signet_sync.text.word_forms import FUNCTION_WORDS

_SIGNS = re.compile(r"\*\*|__|`|(?:(?<=^)|(?<=[…:] ))(?:#{1,6}|[-*>]) ")


def marked(piece: str, query: str) -> list[tuple[str, bool]]:
    """Splits a text into pieces: those that begin a word like one of the query's are marked."""
    piece = _SIGNS.sub("", piece)
    asked = {word.casefold() for word in WORDS.findall(query)[:64]}
    words = sorted(asked - FUNCTION_WORDS or asked, key=len, reverse=True)
    if not words:
        return [(piece, False)]
    found = re.split(rf"(?<![^\W_])({'|'.join(map(re.escape, words))})", piece, flags=re.IGNORECASE)
    return [(text, place % 2 == 1) for place, text in enumerate(found) if text]
