"""Finds statements that say no more than others, so that a page says each thing once."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from signet_sync.facts.words import CJK, work_of
from signet_sync.facts.words import words_of as base_words_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.word_forms import base_of

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

# Two rules with the same words say the same only if both have these, or neither.
_SIDES = _TURNS - {"formerly", "previously"} | frozenset(
    """
    before after above below over under more less most least on off up down during between vor nach über unter mehr
    weniger sans avant après sin antes después
    """.split()
)
# The same negation in other words, and what makes a rule of any sentence.
_NEGATIONS = frozenset("cannot never no none not nothing kein keine nicht nie".split())
_DUTIES = frozenset(map(base_of, "must always mean means need needs ever shall require required muss immer".split()))
_LEAST_OF_RULE, _SHARE = 4, 0.8
# Words for the same thing, one group a line.
_ALIKE = """
    build rebuild
    full everything whole entire complete
    equal identical match
    finish finished end ended
"""
_FIRST_OF = {base_of(word): base_of(line.split()[0]) for line in _ALIKE.strip().splitlines() for word in line.split()}
_IDENTIFIER = late(r"[\d_./#@+]")
_NAME = late(r"(?<=[\w,;)] )[A-Z]\w+")

Words = tuple[str, ...]


class RuleWords(NamedTuple):
    """The content words of a rule in order, each once and in its common form, its names, and what turns it."""

    words: Words
    names: frozenset[str]
    sides: frozenset[str]


@lru_cache(maxsize=2_000)
def rule_words_of(text: str) -> RuleWords | None:
    """Returns the words by which two rules may say the same; None for a short one, or one in CJK."""
    if CJK.search(text):
        return None
    bases = [_FIRST_OF.get(word, word) for word in base_words_of(text) if word not in _DUTIES]
    words = tuple(dict.fromkeys(work_of(word) for word in bases))
    if len(words) < _LEAST_OF_RULE:
        return None
    named = {word for word in words if _IDENTIFIER.search(word)}
    named |= {_FIRST_OF.get(base, base) for base in map(base_of, map(str.casefold, _NAME.findall(text)))}
    said = _WORD.findall(text.casefold())
    sides = {"not" if word in _NEGATIONS or word.endswith(("n't", "n’t")) else word for word in said}
    return RuleWords(words, frozenset(named), frozenset(sides & _SIDES))


def say_the_same(said: RuleWords, new: RuleWords) -> bool:
    """Returns whether a new rule says in other words what one said before.

    Nearly all words of the shorter one are in the longer one, in its order, and nothing is in the place of another. The
    longer has other names only if it was said before, and is not much longer if it is the new one.
    """
    short, long = sorted((said, new), key=lambda one: len(one.words))
    if said.sides != new.sides or not short.names <= long.names or (long is new and long.names != short.names):
        return False
    shared = [word for word in short.words if word in long.words]
    if len(shared) < max(_SHARE * len(short.words), _LEAST_OF_RULE):
        return False
    if long is new and len(long.words) - len(shared) > len(short.words):
        return False
    places = [long.words.index(word) for word in shared]
    # One word may stand on the other side of another one.
    if sum(before > behind for before, behind in combinations(places, 2)) > 1:
        return False
    return not _replaces(short.words, long.words)


def _replaces(short: Words, long: Words) -> bool:
    """Returns whether the longer rule has other words where a word of the shorter one is missing."""
    for place, word in enumerate(short):
        if word not in long:
            behind = next((other for other in short[place + 1 :] if other in long), None)
            ahead = next((other for other in reversed(short[:place]) if other in long), None)
            end = len(long) if behind is None else long.index(behind)
            start = 0 if ahead is None else long.index(ahead) + 1
            if any(other not in short for other in long[start:end]):
                return True
    return False


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
        self._rules: list[tuple[str, RuleWords]] = []
        self._by_base: dict[str, list[int]] = {}

    def add(self, text: str, scope: str = "", *, sentence: bool = False, rule: bool = False) -> None:
        """Adds a statement; one that is contained in a `sentence` counts as said, too.

        Of one scope a `rule` counts as said in other words as well.
        """
        self._keys.add(key_of(text))
        words = words_of(text)
        for word in set(words):
            self._by_word.setdefault(word, []).append(len(self._said))
        self._said.append((scope, words, sentence))
        stated = rule_words_of(text) if rule else None
        if stated is not None:
            for word in stated.words:
                self._by_base.setdefault(word, []).append(len(self._rules))
            self._rules.append((scope, stated))

    def holds(self, text: str, scope: str = "", *, rule: bool = False) -> bool:
        """Returns whether a statement adds nothing to those before."""
        if key_of(text) in self._keys:
            return True
        words = words_of(text)
        if len(words) < LEAST:
            return False
        # What says the same has all words but the few that may be more: of one more than these, at least one.
        lists = sorted((self._by_word.get(word, ()) for word in set(words)), key=len)
        near = {place for places in lists[: _most_extra(words) + 1] if len(places) <= _COMMON for place in places}
        if any(
            (not scope or not other or scope == other) and (same(said, words) or (sentence and contains(said, words)))
            for other, said, sentence in map(self._said.__getitem__, near)
        ):
            return True
        stated = rule_words_of(text) if rule else None
        return stated is not None and self._holds_rule(stated, scope)

    def _holds_rule(self, stated: RuleWords, scope: str) -> bool:
        # Rules that say the same share at least `_LEAST_OF_RULE` words.
        lists = sorted((self._by_base.get(word, ()) for word in stated.words), key=len)
        some = lists[: len(lists) - _LEAST_OF_RULE + 1]
        near = {place for places in some if len(places) <= _COMMON for place in places}
        return any(other == scope and say_the_same(said, stated) for other, said in map(self._rules.__getitem__, near))


def key_of(text: str) -> str:
    """Returns what is equal for statements that differ in case or final punctuation only."""
    return text.casefold().rstrip(" .!…")
