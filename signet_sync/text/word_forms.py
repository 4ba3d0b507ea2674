"""Finds the forms in which words may occur in a text; lists words too common to search for."""

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
# Words that hardly matter to what a question is about; and those that do not matter at all.
STOP_WORDS = frozenset(_COMMON.split())
FUNCTION_WORDS = frozenset(
    """
    a about an and are as at be been before by can could did do does for from had has have how i if in into is it its
    me my not of on one or our she he should so than that the their them then there they this to was we were what when
    where which who whom whose why will with would you your
    """.split()
)

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

_ACCENTED = late("[\u00c0-\u024f\u1e00-\u1eff]")
_SHORTEST = 3  # letters of a prefix


def fold(text: str) -> str:
    """Returns the text in lower case, Latin letters without accents, one for one: positions do not change."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return lowered if lowered.isascii() else _ACCENTED.sub(lambda match: _bare(match[0]), lowered)


@lru_cache(maxsize=1_000)
def _bare(letter: str) -> str:
    """Returns a Latin letter without its accent, as the index stores it."""
    return normalize("NFD", letter)[0].lower()


def family_of(word: str) -> tuple[str, ...]:
    """Returns the other forms of a folded English word that no ending reveals: for `kept` `keep`, `keeps`."""
    return tuple(form for form in _FAMILIES.get(word, ()) if form != word)


def prefix_of(word: str) -> str:
    """Returns what other forms of a word of another alphabet begin with; "" if it is too short, or written in ASCII."""
    return word[: max(_SHORTEST, len(word) - 3)] if not word.isascii() and word.isalpha() and len(word) > 3 else ""
