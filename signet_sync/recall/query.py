"""Parses a query into its words, each in the forms that a text may contain. Any text is a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple
from unicodedata import normalize

from signet_sync.formats.lazy_pattern import late
from signet_sync.recall.dates import DateWord, date_words
from signet_sync.text.cjk import CJK, word_phrases
from signet_sync.text.tags import glossary_terms
from signet_sync.text.word_forms import STOP_WORDS, folded, inflections, prefix_of, stem_of

MOST_READ = 20_000  # characters of a query
MOST_TERMS = 30
MOST_PARTS = 8  # of one word: `src/index/retry.py` has four
LONGEST = 64  # characters of a word
MOST_CONCEPTS = 3  # terms of the glossary in one word: `networking` finds `network`, `chatgpt` finds `gpt`
# Worth of a word that a text contains in another form, or (of `retry.py`, `lantern-core`) in part.
AKIN, PART = 0.9, 0.5

_TOKEN = late(r"[^\W_]+")
_RUN = late(f"[{CJK}]+|[^{CJK}]+")
# Japanese words end where the script changes; hiragana between them is mostly grammar.
_SCRIPT = late(
    "[\u3041-\u309f]+|[\u30a0-\u30ff\uff66-\uff9f]+|[\uac00-\ud7ff]+|[^\u3041-\u30ff\uff66-\uff9f\uac00-\ud7ff]+"
)
_HIRAGANA = late("[\u3041-\u309f]+")
# Words that say what kind of answer is wanted: "what types of …", "how many", "did he mention".
_ASKING = frozenset(
    ("kind", "kinds", "type", "types", "sort", "sorts", "thing", "things", "item", "items", "many", "much", "often",
     "long", "recently", "currently", "likely", "particular", "specific", "various", "different", "say", "said", "tell",
     "told", "mention", "mentioned", "describe", "described", "happen", "happened")
)  # fmt: skip
_SHORTENED = frozenset({"s", "t", "re", "ll", "ve", "d", "m"})  # of what's, don't, we're


class Term(NamedTuple):
    """A word of a query, or two characters of one in Chinese, Japanese or Korean.

    `word` numbers the word it belongs to, and `share` is its part of it. `phrases` are its forms in a text as typed:
    folded tokens with blanks between. `akin` are other tokens that count as it, for `worth`; so does all that begins
    with `prefix`. Most of `akin` begin with `stem`. A `dense` term may be anywhere, inside a word too.
    """

    word: int
    phrases: tuple[str, ...]
    akin: tuple[str, ...] = ()
    prefix: str = ""
    stem: str = ""
    worth: float = AKIN
    share: float = 1.0
    dense: bool = False

    @property
    def name(self) -> bool:
        """Returns whether it has several parts (`queue.py`, `getUserName`) or a digit: typed deliberately."""
        return not self.dense and (len(self.phrases) > 1 or not self.phrases[0].isalpha())

    @property
    def asks(self) -> bool:
        """Returns whether it says what kind of answer is wanted, rather than about what."""
        return self.phrases[0] in _ASKING


class Query(NamedTuple):
    """The terms of a query in order, and their number of words; `common` means that all are stop words.

    `dates` are the terms, by number, that name a date.
    """

    terms: tuple[Term, ...]
    words: int
    common: bool
    dates: Mapping[int, DateWord] = MappingProxyType({})


class _Word(NamedTuple):
    """A word as `typed`: its tokens, and the parts of a camel-case word; `dense` ones are CJK."""

    typed: str
    forms: tuple[tuple[str, ...], ...]
    dense: bool

    @property
    def common(self) -> bool:
        first, *rest = self.forms[0]
        if self.dense:
            return len(first) < 3 and _HIRAGANA.fullmatch(first) is not None
        return first in STOP_WORDS and _SHORTENED.issuperset(rest)

    @property
    def weight(self) -> tuple[bool, int]:
        """Sorts names and numbers before other words, long ones before short ones."""
        whole = "".join(self.forms[0])
        return len(self.forms[0]) > 1 or len(self.forms) > 1 or not whole.isalpha(), len(whole)


def read(text: str) -> Query:
    """Parses a text, without stop words unless it has no others; at most `MOST_TERMS` terms.

    If there are more, names and numbers are kept first, then the longer words. Total, linear, bounded.
    """
    typed = normalize("NFC", text[:MOST_READ].encode("utf-8", "replace").decode("utf-8"))
    words = list({word.forms[0]: word for word in _words(typed)}.values())
    dates = {date.word: date for date in date_words(typed)}
    important = [word for word in words if not word.common or word.forms[0][0] in dates]
    words = important or words
    kept = _most_important(words)
    terms = [term for number, word in enumerate(kept) for term in _terms(number, word)][:MOST_TERMS]
    dated = {number: dates[term.phrases[0]] for number, term in enumerate(terms) if term.phrases[0] in dates}
    return Query(tuple(terms), len(kept), not important, dated)


def _most_important(words: Sequence[_Word]) -> list[_Word]:
    """Returns as many words as the limit allows, most important kept, in their order."""
    left = MOST_TERMS
    kept: set[tuple[str, ...]] = set()
    for word in sorted(words, key=lambda word: word.weight, reverse=True):
        left -= len(_pairs(word.forms[0][0])) if word.dense else 1
        if left < 0 and kept:
            break
        kept.add(word.forms[0])
    return [word for word in words if word.forms[0] in kept]


def _words(text: str) -> Iterator[_Word]:
    known: dict[str, list[_Word]] = {}
    for typed in text.split():
        for run in (typed[:1000],) if typed.isascii() else _RUN.findall(typed[:1000]):
            if run not in known:
                known[run] = list(_words_of(run))
            yield from known[run]


def _words_of(run: str) -> Iterator[_Word]:
    if not run.isascii() and re.match(f"[{CJK}]", run):
        yield from (_Word(piece, ((piece,),), dense=True) for piece in _SCRIPT.findall(run))
        return
    forms = (tuple(_tokens(phrase)) for phrase in word_phrases(run))
    if distinct := tuple(dict.fromkeys(form for form in forms if form)):
        yield _Word(run, distinct, dense=False)


def _tokens(phrase: str) -> list[str]:
    return [folded(match[0][:LONGEST]) for match in islice(_TOKEN.finditer(phrase), MOST_PARTS)]


def _terms(number: int, word: _Word) -> list[Term]:
    if word.dense:
        pairs = _pairs(word.forms[0][0])
        return [Term(number, (" ".join(pair),), share=1 / len(pairs), dense=True) for pair in pairs]
    phrases = tuple(" ".join(form) for form in word.forms)
    whole = word.forms[0]
    concepts = [term for term in _concepts(word.typed) if term not in phrases]
    if len(whole) == 1:
        akin = dict.fromkeys((*inflections(whole[0]), *concepts))
        return [Term(number, phrases, tuple(akin), prefix_of(whole[0]), stem_of(whole[0]))]
    longest = max(whole, key=len)
    akin = dict.fromkeys((*([longest] if len(longest) > 3 and longest.isalpha() else []), *concepts))
    return [Term(number, phrases, tuple(akin), worth=PART)]


# A word that is neither in the glossary of concepts nor a compound has as tags its concepts and itself. The parts of a
# compound are left out: a query for `pre-commit` is not one for `pre`. In Chinese, Japanese and Korean the pairs of a
# word find the terms in it.
def _concepts(typed: str) -> list[str]:
    """Returns the concepts in a word as the index has them, each one token."""
    tokens = [_tokens(term) for term in glossary_terms(typed, MOST_CONCEPTS)]
    return [token for token, *rest in tokens if not rest]


def _pairs(piece: str) -> list[str]:
    """Returns every two adjacent characters, each pair once; a single character as it is."""
    return list(dict.fromkeys(piece[place : place + 2] for place in range(max(1, min(len(piece), MOST_TERMS + 1) - 1))))
