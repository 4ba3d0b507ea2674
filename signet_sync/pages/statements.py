"""Finds statements that say no more than others, so that a page says each thing once."""

from __future__ import annotations

from functools import lru_cache

from signet_sync.formats.lazy_pattern import late

# Fewer words fit too many statements.
LEAST = 3
# Statements that share a word with more than these are not compared with them: among so many it tells none apart.
_COMMON = 200
_WORD = late(r"\w+(?:[.:/@#+'’-]\w+)*")
_FILLERS = frozenset(
    """
    a an and are as at be been by for from has have in is it its of on or so that the their this to was were which will
    with das der die ein eine hat ist und war
    """.split()
)
# What turns a statement into another one: with one of these (or a number) more, two do not say the same.
_TURNS = frozenset(
    """
    but cannot except if instead never no none not nothing only unless until without formerly previously kein keine
    nicht nie nur ohne statt
    """.split()
)

Words = tuple[str, ...]


@lru_cache(maxsize=2_000)
def words_of(text: str) -> Words:
    """Returns the words of a statement in order, casefolded, without those that every statement has."""
    return tuple(word for word in _WORD.findall(text.casefold()) if word not in _FILLERS)


def contains(whole: Words, part: Words) -> bool:
    """Returns whether a longer text has all words of a statement."""
    return len(part) >= LEAST and set(part) <= set(whole)


def same(said: Words, new: Words) -> bool:
    """Returns whether a statement only shortens one that was said, or adds no more than a few words to it.

    The longer has the words of the shorter in order, and none more that turns its meaning.
    """
    short, long = sorted((said, new), key=len)
    if len(short) < LEAST or (long is new and len(long) - len(short) > _most_extra(long)):
        return False
    extra: list[str] = []
    ahead = iter(long)
    for word in short:
        for found in ahead:
            if found == word:
                break
            extra.append(found)
        else:
            return False
    return not any(word in _TURNS or word.endswith("n't") or any(map(str.isdigit, word)) for word in (*extra, *ahead))


def _most_extra(words: Words) -> int:
    return max(len(words) // 4, 1)


class Said:
    """Collects the statements of a page.

    Statements with the same key say the same. Otherwise those of one scope are compared, and of none with all.
    """

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._said: list[tuple[str, Words, bool]] = []
        self._by_word: dict[str, list[int]] = {}

    def add(self, text: str, scope: str = "", *, sentence: bool = False) -> None:
        """Adds a statement; one that is contained in a `sentence` counts as said, too."""
        self._keys.add(key_of(text))
        words = words_of(text)
        for word in set(words):
            self._by_word.setdefault(word, []).append(len(self._said))
        self._said.append((scope, words, sentence))

    def holds(self, text: str, scope: str = "") -> bool:
        """Returns whether a statement adds nothing to those before."""
        if key_of(text) in self._keys:
            return True
        words = words_of(text)
        if len(words) < LEAST:
            return False
        # What says the same has all words but the few that may be more: of one more than these, at least one.
        lists = sorted((self._by_word.get(word, ()) for word in set(words)), key=len)
        near = {place for places in lists[: _most_extra(words) + 1] if len(places) <= _COMMON for place in places}
        return any(
            (not scope or not other or scope == other) and (same(said, words) or (sentence and contains(said, words)))
            for other, said, sentence in map(self._said.__getitem__, near)
        )


def key_of(text: str) -> str:
    """Returns what is equal for statements that differ in case or final punctuation only."""
    return text.casefold().rstrip(" .!…")
