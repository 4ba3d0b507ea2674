"""Cuts excerpts: as much of a text as a budget of tokens allows, cut at lines, and where to begin."""

from __future__ import annotations

from signet_sync.text.token_estimate import estimate_tokens

# No token has more characters than this: so many hold all that a budget can show.
CHARACTERS = 16


def cut(text: str, room: int, notice: str, *, whole: bool = True) -> str:
    """Returns the text if it fits into `room` tokens, else as many of its lines as fit, and a notice of the rest.

    A single line that is too long is cut; if there is no room for the notice, it is replaced by an ellipsis.
    """
    if whole and estimate_tokens(text) <= room:
        return text
    left = room - estimate_tokens(notice) - 1
    kept = _lines(text, left) or _characters(text, left)
    return f"{kept}\n{notice}" if kept else _characters(text, room)


def _lines(text: str, room: int) -> str:
    end = place = 0
    while place < len(text):
        stop = text.find("\n", place)
        stop = len(text) if stop < 0 else stop
        room -= estimate_tokens(text[place:stop]) + 1
        if room < 0:
            break
        end, place = stop, stop + 1
    return text[:end]


def _characters(text: str, room: int) -> str:
    """Returns the beginning of a text and an ellipsis; empty if there is no room for both."""
    low, high = 0, max(min(len(text), room * CHARACTERS), 0)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle] + "…") <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low else ""


def ending(text: str, room: int, notice: str) -> str:
    """Returns the text if it fits into `room` tokens, else a notice and as many of its last lines as fit."""
    if estimate_tokens(text) <= room:
        return text
    left = room - estimate_tokens(notice) - 1
    start = len(text)
    while start > 0:
        before = text.rfind("\n", 0, start - 1) + 1
        left -= estimate_tokens(text[before:start]) + 1
        if left < 0:
            break
        start = before
    kept = text[start:].strip("\n")
    return f"{notice}\n{kept}" if kept else cut(text, room, notice)


def line_about(text: str, statement: str) -> int:
    """Returns the line, counted from 1, that holds most of a statement's words; the first of equal ones."""
    words = {word.strip(".,;:!?()[]'\"").casefold() for word in statement.split()}
    words = {word for word in words if len(word) > 3} or words
    lines = text.casefold().split("\n")
    return max(range(len(lines)), key=lambda place: (sum(word in lines[place] for word in words), -place)) + 1
