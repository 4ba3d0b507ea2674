"""Cuts snippets: a piece of a text around the words of a query, on one line."""

from __future__ import annotations

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.cjk import word_phrases
from signet_sync.text.word_forms import folded

SNIPPET = 200  # characters
LONGEST_TURN = 300  # characters of a turn that is shown whole
_TURN_HEADING = late(r"#{1,6}[ \t]|\*\*")
MOST_WORDS = 64
WORDS = late(r"[^\W_]+")
_LOOKED_BACK = 8_000  # characters
_HEADING = late(r"(?:^|(?<= ))#{1,6} ")
_ROLE = late(r"[^\W\d_]+")


def snippet(content: str, sentence: str, query: str) -> str:
    """Returns about 200 characters with most of the query's words, on one line; the sentence if the text has none."""
    words = [word for word in query.split() if WORDS.search(word)][:MOST_WORDS]
    for text in (content, sentence):
        place = _place(text, words)
        if place is not None:
            return around(text, place)
    return around(sentence or content, 0)


def around(text: str, place: int, width: int = SNIPPET, first: int = 0) -> str:
    """Returns about `width` characters around a place, on one line, with `…` where text is cut before or after.

    It begins at `first` or later.
    """
    start = max(place - width // 3, first)
    if start > first:
        blank = text.find(" ", start, place)
        start = blank + 1 if blank >= 0 else start
    piece = " ".join(text[start : start + width].split())
    if not piece.isprintable():
        piece = "".join(c if c.isprintable() else " " for c in piece)
    return ("…" if start > first else "") + piece + ("…" if start + width < len(text) else "")


def label_with_snippet(label: str, content: str, place: int | None, first: int = 0) -> str:
    """Returns the line that identifies a node, with its content, from `first` on, around a place."""
    from signet_sync.text.sentences import flatten  # slow import; `search` does not need it

    piece = "" if place is None else _HEADING.sub("", flatten(around(content, place, first=first))).removeprefix("…")
    if not piece or folded(piece.strip("…. ")) in folded(label):
        return label
    return f"{label} … {piece}" if label else piece


def turn_text(turn: str, place: int) -> str:
    """Returns a turn's words on one line, without its heading: all of a short one, else the part around a place."""
    heading, _, said = turn.partition("\n")
    if not _TURN_HEADING.match(heading):
        heading, said = "", turn
    plain = " ".join(said.split())
    if len(plain) <= LONGEST_TURN:
        return plain
    return around(said, max(place - len(turn) + len(said), 0), LONGEST_TURN)


def speaker(text: str, place: int) -> str:
    """Returns the speaker (`User`) of the transcript turn at a place; "" if no heading names one."""
    from signet_sync.text.chunking import turns  # slow import; `search` does not need it

    begin = max(0, place - _LOOKED_BACK)
    end = text.find("\n", place)
    before = text[begin : end if end >= 0 else None]
    start = max((turn.start for turn in turns(before) if begin + turn.start <= place), default=None)
    role = _ROLE.search(before, start) if start is not None else None
    return role[0].capitalize() if role else ""


def _place(text: str, words: list[str]) -> int | None:
    """Returns where the densest group of words begins; of equal ones, that with the longest word."""
    low = folded(text)
    found = [(place, len(word)) for word in words if (place := _find(low, word)) is not None]
    if not found:
        return None
    reach = SNIPPET // 2
    return max(found, key=lambda hit: (sum(hit[0] <= p < hit[0] + reach for p, _ in found), hit[1], -hit[0]))[0]


def _find(low: str, word: str) -> int | None:
    """Returns the first place of a word, or of one of its parts if the whole word does not occur."""
    for form in (folded(word.strip("\"'.,;:!?()[]*^")), *(folded(part) for part in _parts(word))):
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
