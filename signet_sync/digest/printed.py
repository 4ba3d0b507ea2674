"""Tells whether words stand in what tools printed: a page that an agent repeats states nothing.

Six words in a row are enough, of short words all, and of any words four of five close to each other in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from signet_sync.digest.deeds import ASKERS, COMMITTED, CREATES, SHELLS, TODO
from signet_sync.digest.sentences import COMMON, IS_CJK
from signet_sync.digest.transcript import ToolCall
from signet_sync.digest.turns import Turn
from signet_sync.formats.lazy_pattern import late

_WORDS, _RUN, _STRIDE = 80, 6, 3  # words of a statement that are read; of a run; between the places it is looked for
_SIGNS = 8 * 3  # bytes of a run of signs in scripts without spaces
_CONTENT, _STEM = 4, 5  # content words that can be told apart in any order, and their letters
_COMMON_STEMS = frozenset(b" " + word.encode() for word in COMMON)
_PLACES = 40  # of one word that are looked at

# Letters in lower case and digits; all else parts words.
_LETTERS = bytes(
    code if code >= 128 or chr(code).isalnum() or code == ord("_") else 32 for code in bytes(range(256)).lower()
)
_MARKS = late(rb"\xe2[\x80\x81][\x80-\xbf]|\xe3\x80[\x80-\xbf]|\xef\xbc[\x81-\x8f\x9a-\xa0]|\xc2[\xa0-\xbf]")


class Printed:
    """What tools printed, made searchable when it is first asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Iterable[str] | None = texts
        self._text = b""

    def holds(self, said: str) -> bool:
        """Returns whether words stand in what was printed; linear in that."""
        words = _words(said)[:_WORDS]
        if not words:
            return False
        if self._texts is not None:
            self._text, self._texts = _spaced(_words("\n".join(self._texts))), None
        if len(words) <= _RUN:
            return _spaced(words) in self._text
        return self._has_run(words) or self._has_most(words) or (bool(IS_CJK.search(said)) and self._has_signs(words))

    def _has_run(self, words: Sequence[bytes]) -> bool:
        for at in range(0, len(words) - _STRIDE + 1, _STRIDE):
            if _spaced(words[at : at + _STRIDE]) in self._text:
                begins = range(max(0, at - _STRIDE), min(at, len(words) - _RUN) + 1)
                if any(_spaced(words[one : one + _RUN]) in self._text for one in begins):
                    return True
        return False

    def _has_signs(self, words: Sequence[bytes]) -> bool:
        return any(
            word[at : at + _SIGNS] in self._text for word in words for at in range(0, len(word) - _SIGNS + 1, 3)
        )

    def _has_most(self, words: Sequence[bytes]) -> bool:
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
                if (at := self._text.find(anchor, at + 1)) < 0:
                    break
                near = self._text[max(0, at - width) : at + width]
                if sum(stem in near for stem in stems) >= len(stems) - missing:
                    return True
        return False


def printed_in(turns: Sequence[Turn]) -> Printed:
    """Returns what the tools of a session printed, without what the agent or the person told them."""
    return Printed(text for turn in turns for step in turn.steps if isinstance(step, ToolCall) for text in _told(step))


def _told(call: ToolCall) -> Iterator[str]:
    if call.tool in TODO or call.tool in ASKERS or CREATES.search(call.tool):
        return
    if call.tool in SHELLS and "commit" in call.detail:
        yield from (line for line in call.printed.split("\n") if not COMMITTED.match(line))
    else:
        yield call.printed


def _words(text: str) -> list[bytes]:
    if text.isascii():
        return text.encode().translate(_LETTERS).split()
    return _MARKS.sub(b" ", text.casefold().encode(errors="replace")).translate(_LETTERS).split()


def _spaced(words: Sequence[bytes]) -> bytes:
    return b" " + b" ".join(words) + b" "
