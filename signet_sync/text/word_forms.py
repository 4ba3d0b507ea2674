"""Finds the forms in which words may occur in a text: folded, inflected; lists words too common to search for."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import normalize

from signet_sync.formats.lazy_pattern import late

_COMMON = """
    a about after all also am an and any are as at be because been before being but by can could did do does doing done
    each either for from get got had has have having he her here him his how i if in into is it its just let like may
    me might more most much my no nor not now of off on once one only or other our out over own per please shall she
    should so some still such tell than that the their them then there these they this those through to too under until
    up us very was we were what when where which while who whom whose why will with would yet you your
"""
# Words that do not matter to what a question is about.
STOP_WORDS = frozenset(_COMMON.split())

# Words whose forms no ending reveals, one family a line.
_IRREGULAR = """
    begin began begun
    break broke broken
    build built
    choose chose chosen choice
    decide decided decides deciding decision decisions
    fall fell fallen
    find found
    give gave given
    grow grew grown
    hold held
    keep keeps keeping kept
    know knew known
    leave left
    lose loses losing lost loss losses
    meet met
    pay paid
    read reads reading reader
    rewrite rewrote rewritten
    run ran running runs
    see saw seen
    sell sold
    send sent
    speak spoke spoken
    spend spent
    take took taken
    think thought
    throw threw thrown
    write wrote written writes writing
"""
_FAMILIES = {form: tuple(line.split()) for line in _IRREGULAR.splitlines() for form in line.split()}

_ENDINGS = (
    "ations", "ation", "ements", "ement", "ments", "ment", "ships", "ship", "ings", "ing", "ions", "ion", "ors", "or",
    "ers", "er", "ying", "ies", "ied", "ed", "es", "ly", "s", "y", "e",
)  # fmt: skip
# Each form is looked up: these are the ones in common use, and those of words that end in `y`.
_USUAL = ("", "e", "s", "es", "ed", "ing", "er", "ers", "ion", "ions")
_OF_Y = ("y", "ies", "ied", "ying")
_DOUBLED = ("ing", "ed", "er")
_SHORT = late(".*[^aeiou][aeiouy][^aeiouwxy]")  # drop, plan: their last letter is doubled before an ending
_ACCENTED = late("[\u00c0-\u024f\u1e00-\u1eff]")
_VOWEL = late("[aeiouy]")
_SHORTEST, _LONGEST = 3, 24  # letters of a stem, of a word whose ending is removed


def folded(text: str) -> str:
    """Returns the text in lower case, Latin letters without accents, one for one: positions do not change."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return lowered if lowered.isascii() else _ACCENTED.sub(lambda match: _bare(match[0]), lowered)


@lru_cache(maxsize=1_000)
def _bare(letter: str) -> str:
    """Returns a Latin letter without its accent, as the index stores it."""
    return normalize("NFD", letter)[0].lower()


def inflections(word: str) -> tuple[str, ...]:
    """Returns other forms of a folded English word in lower case: for `moving` `move`, `moved`, `mover` and so on.

    Made by removing an ending and adding others, so that many of them are no words; none is the word itself.
    """
    stem = stem_of(word)
    if not stem:
        return ()
    forms = {stem + ending for ending in (_USUAL + _OF_Y if word.endswith(_OF_Y) else _USUAL)}
    if _SHORT.fullmatch(stem):
        forms |= {stem + stem[-1] + ending for ending in _DOUBLED}
    return tuple(sorted((forms | set(_FAMILIES.get(word, ()))) - {word} - STOP_WORDS))


def stem_of(word: str) -> str:
    """Returns an English word without its ending, last consonant single; "" if it is none, or too short or long."""
    if not (word.isascii() and word.isalpha() and _SHORTEST <= len(word) <= _LONGEST):
        return ""
    stem = next(
        (
            word[: -len(ending)]
            for ending in _ENDINGS
            if word.endswith(ending)
            and len(word) - len(ending) >= _SHORTEST
            and _VOWEL.search(word[: -len(ending)])
            and not (ending == "s" and word.endswith("ss"))
            and not (ending == "y" and word[-2] in "aeiou")
        ),
        word,
    )
    if stem != word and len(stem) > _SHORTEST and stem[-1] == stem[-2] and stem[-1] not in "aeiouls":
        return stem[:-1]
    return stem[:-1] if stem != word and stem.endswith("e") and len(stem) > _SHORTEST else stem


def prefix_of(word: str) -> str:
    """Returns what other forms of a word of another alphabet begin with; "" if it is too short, or written in ASCII."""
    return word[: max(_SHORTEST, len(word) - 3)] if not word.isascii() and word.isalpha() and len(word) > 3 else ""
