"""Cuts snippets: a piece of a text around the words of a query, on one line."""

from __future__ import annotations

import re
from bisect import bisect_right

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import fold, word_phrases

SNIPPET = 200  # characters
LONGEST_TURN = 300  # characters of a turn that is shown whole
_CODE_FENCE = late(r"^[ ]{0,3}(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
MOST_WORDS = 64
WORDS = late(r"[^\W_]+")
_HEADING = late(r"(?:^|(?<=\s))#{1,6} ", re.MULTILINE)


def snippet(content: str, sentence: str, query: str, *, spoken: bool = False) -> str:
    """Returns about 200 characters with most of the query's words, on one line; the sentence if the text has none.

    Of a conversation, `spoken`, they are of one turn and bear its speaker.
    """
    words = [word for word in query.split() if WORDS.search(word)][:MOST_WORDS]
    for text in (content, sentence):
        place = _place(text, words)
        if place is not None:
            return _cut_turn(text, place) if spoken and text is content else around(text, place)
    return around(sentence or content, 0)


def _cut_turn(text: str, place: int) -> str:
    from signet_sync.text.chunking import turns  # slow import; most snippets are of summaries

    begun = list(turns(text))
    number = bisect_right(begun, place, key=lambda turn: turn.start)
    if not number:
        return around(text[: begun[0].start] if begun else text, place)
    turn = begun[number - 1]
    said = text[turn.words : begun[number].start] if number < len(begun) else text[turn.words :]
    return f"{turn.label}: {around(_inert(said).strip(), max(place - turn.words, 0))}"


def around(text: str, place: int, width: int = SNIPPET) -> str:
    """Returns about `width` characters around a place, on one line, with `…` where text is cut before or after."""
    start = max(place - width // 3, 0)
    if start:
        start = text.find(" ", start, place) + 1 or start
    piece = " ".join(text[start : start + width].split())
    if not piece.isprintable():
        piece = "".join(c if c.isprintable() else " " for c in piece)
    return ("…" if start else "") + piece + ("…" if start + width < len(text) else "")


def turn_text(said: str, place: int) -> str:
    """Returns a turn's words on one line: all of a short one, else the part around a place.

    Nothing in it looks like the head of another turn, or like the gap that we leave between two.
    """
    said = _inert(said)
    plain = " ".join(said.split())
    return plain if len(plain) <= LONGEST_TURN else around(said, place, LONGEST_TURN)


def _inert(said: str) -> str:
    """Returns a turn's words, as long as they were, without marks of headings, fences and our gaps."""
    said = _CODE_FENCE.sub(_blanks, _HEADING.sub(_blanks, said)).replace("…", " ")
    return f"   {said[3:]}" if said.startswith(" · ") else said


def _blanks(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _place(text: str, words: list[str]) -> int | None:
    """Returns where the densest group of words begins; of equal ones, that with the longest word."""
    low = fold(text)
    found = [(place, len(word)) for word in words if (place := _find(low, word)) is not None]
    if not found:
        return None
    reach = SNIPPET // 2
    return max(found, key=lambda hit: (sum(hit[0] <= p < hit[0] + reach for p, _ in found), hit[1], -hit[0]))[0]


def _find(low: str, word: str) -> int | None:
    """Returns the first place of a word, or of one of its parts if the whole word does not occur."""
    for form in (fold(word.strip("\"'.,;:!?()[]*^")), *(fold(part) for part in _parts(word))):
        first = place = low.find(form) if form else -1
        for _ in range(20):
            if place <= 0 or not low[place - 1].isalnum():
                break
            place = low.find(form, place + 1)
        if first >= 0:
            return place if place >= 0 else first
    return None


def _parts(word: str) -> list[str]:
    return WORDS.findall(word_phrases(word[:1000])[-1])
