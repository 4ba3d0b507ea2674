"""Tells whether words stand in what tools printed: a page that an agent repeats states nothing.

Six words in a row are enough, of short words all, and of any words four of five close to each other in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from signet_sync.digest.deeds import ASKERS, COMMITTED, SHELLS, TODO
from signet_sync.digest.sentences import COMMON, IS_CJK
from signet_sync.digest.turns import ToolCall, Turn
from signet_sync.formats.lazy_pattern import late

_WORDS, _RUN, _STRIDE = 80, 6, 3  # words of a statement that are read; of a run; between the places it is looked for
_SIGNS = 8 * 3  # bytes of a run of signs in scripts without spaces
_CONTENT, _STEM = 4, 5  # content words that can be told apart in any order, and their letters
_COMMON_STEMS = frozenset(b" " + word.encode() for word in COMMON)
_FETCHES = late(r"fetch|browse|search_query|web_?search|^mcp_|\b(?:curl|wget|gh (?:api|issue view|pr view))\b")
_PLACES = 40  # of one word that are looked at

# Letters in lower case and digits; all else parts words.
_LETTERS = bytes(
    code if code >= 128 or chr(code).isalnum() or code == ord("_") else 32 for code in bytes(range(256)).lower()
)
_MARKS = late(rb"\xe2[\x80\x81][\x80-\xbf]|\xe3\x80[\x80-\xbf]|\xef\xbc[\x81-\x8f\x9a-\xa0]|\xc2[\xa0-\xbf]")


class Printed:
    """Texts that tools printed, in their order; made searchable when first asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Iterable[str] | None = texts
        self._text = b""
        self._ends: list[int] = []

    def holds(self, said: str, before: int | None = None) -> bool:
        """Returns whether words stand in the texts, or in the first ones; linear in their length."""
        end = self._end(before)
        words = _words(said)[:_WORDS] if end else ()
        if not words:
            return False
        in_a_row = self._has_run(words, end) if len(words) > _RUN else self._has(_space_words(words), end)
        return in_a_row or self._has_most(words, end) or (not said.isascii() and self._has_signs(said, words, end))

    def holds_all(self, said: str, before: int | None = None) -> bool:
        """Returns whether all words stand there in a row."""
        words = _words(said)[:_WORDS]
        return bool(words) and self._has(_space_words(words), self._end(before))

    def _end(self, before: int | None) -> int:
        if self._texts is not None:
            parts = [_space_words(words) if (words := _words(text)) else b"" for text in self._texts]
            self._text, self._ends, self._texts = b"".join(parts), list(accumulate(map(len, parts))), None
        return len(self._text) if before is None else self._ends[before - 1] if before else 0

    def _has(self, words: bytes, end: int) -> bool:
        return self._text.find(words, 0, end) >= 0

    def _has_run(self, words: Sequence[bytes], end: int) -> bool:
        for at in range(0, len(words) - _STRIDE + 1, _STRIDE):
            if self._has(_space_words(words[at : at + _STRIDE]), end):
                begins = range(max(0, at - _STRIDE), min(at, len(words) - _RUN) + 1)
                if any(self._has(_space_words(words[one : one + _RUN]), end) for one in begins):
                    return True
        return False

    def _has_signs(self, said: str, words: Sequence[bytes], end: int) -> bool:
        runs = (word[at : at + _SIGNS] for word in words for at in range(0, len(word) - _SIGNS + 1, 3))
        return IS_CJK.search(said) is not None and any(self._has(run, end) for run in runs)

    def _has_most(self, words: Sequence[bytes], end: int) -> bool:
        stems = {b" " + word[: _STEM if word.isascii() else 2 * _STEM] for word in words if len(word) > 3}
        stems -= _COMMON_STEMS
        missing = len(stems) // 5
        if len(stems) < _CONTENT:
            return False
        width = 3 * sum(map(len, words)) // 2 + 40
        # One of these is there if no more than `missing` are not.
        for anchor in sorted(stems, key=lambda stem: (-len(stem), stem))[: missing + 1]:
            at = -1
            for _ in range(_PLACES):
                if (at := self._text.find(anchor, at + 1, end)) < 0:
                    break
                near = self._text[max(0, at - width) : min(at + width, end)]
                absent = 0
                for stem in stems:
                    absent += stem not in near
                    if absent > missing:
                        break
                else:
                    return True
        return False


def read_printed(turns: Sequence[Turn]) -> Printed:
    """Returns what the tools of each turn printed, without what the agent or the person told them."""
    return Printed("\n".join(text for call in _calls(turn) for text in _list_told(call)) for turn in turns)


def read_fetched(turns: Sequence[Turn]) -> Printed:
    """Returns what the tools of each turn brought from outside: pages, issues, answers of other servers."""
    return Printed(
        "\n".join(call.printed for call in _calls(turn) if fetches(call.tool, call.detail)) for turn in turns
    )


def _calls(turn: Turn) -> Iterator[ToolCall]:
    return (step for step in turn.steps if isinstance(step, ToolCall))


def fetches(tool: str, detail: str) -> bool:
    """Returns whether a call brings something from outside."""
    if tool in SHELLS:
        return ("curl" in detail or "wget" in detail or "gh " in detail) and _FETCHES.search(detail) is not None
    return _FETCHES.search(tool) is not None


def _list_told(call: ToolCall) -> Iterator[str]:
    if call.tool in TODO or call.tool in ASKERS:
        return
    if call.tool in SHELLS and "commit" in call.detail:
        yield from (line for line in call.printed.split("\n") if not COMMITTED.match(line))
    else:
        yield call.printed


def _words(text: str) -> list[bytes]:
    if text.isascii():
        return text.encode().translate(_LETTERS).split()
    return _MARKS.sub(b" ", text.casefold().encode(errors="replace")).translate(_LETTERS).split()


def _space_words(words: Sequence[bytes]) -> bytes:
    return b" " + b" ".join(words) + b" "
