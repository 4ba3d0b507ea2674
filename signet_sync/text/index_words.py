"""Prepares text for full-text indexes: words of what is written without spaces, and of camelCase.

FTS5's unicode61 keeps a run of Chinese, Japanese, Korean or Thai together as one word, or ends it at a vowel's mark, so
that nothing inside it can be found. With spaces between its characters a phrase finds every word; the index that tells
only what words a row has, not where, has every two adjacent characters. Only texts that need it pay.

It also knows the words too common to search for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize
from zlib import crc32

from signet_sync.formats.body import find_non_ascii
from signet_sync.formats.lazy_pattern import late

# A class of characters: Han, kana (with the long-vowel mark), Hangul, their compatibility forms and the planes beyond.
CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u30ff\u3130-\u318f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
# What is written without spaces between words: Thai, Lao, Burmese and Khmer too.
DENSE = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUN = late(f"[{DENSE}]+")
_RANGES = sorted((one[0], one[-1]) for one in re.findall("[^-](?:-[^-])?", DENSE))
_MARKS = late("[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]+")
_HUMP = late(r"[a-z0-9](?=[A-Z])|[A-Z](?=[A-Z][a-z])")
MARK = "\ue000"  # of private use; words that begin so stand in no text


def is_dense(text: str) -> bool:
    """Returns whether a text holds a character of a dense script; a class so large takes long to compile."""
    return any(map(_is_dense, find_non_ascii(text)))


@lru_cache(maxsize=4_096)
def _is_dense(character: str) -> bool:
    return any(first <= character <= last for first, last in _RANGES)


def space_dense(text: str) -> str:
    """Returns the text with every character of a dense script a word of its own; the same object if it has none."""
    if not is_dense(text):
        return text
    return _RUN.sub(lambda match: " " + " ".join(match[0]) + " ", text)


def drop_marks(run: str) -> str:
    """Returns a run of a dense script without the marks of vowels and tones, which full text does not know."""
    return _MARKS.sub("", run)


def word_phrases(word: str) -> list[str]:
    """Lists the forms in which a query word may be in the index: as it is, and split at its humps (`getUserName`)."""
    plain = space_dense(word).strip()
    parts = _HUMP.sub(r"\g<0> ", plain)
    return [plain] if parts == plain else [plain, parts]


def row_of(text: str, project: str = "") -> str:
    """Returns the words of a row of full text: of its project, which each row tells, and of its text."""
    return f"{_list_project_words(project)} {_words(text)}"


@lru_cache(maxsize=256)
def _list_project_words(project: str) -> str:
    return f"{project_word(project)} {_words(project)}"


def project_word(project: str) -> str:
    """Returns the word that tells the project with a name."""
    return f"{MARK}{crc32(project.casefold().encode())}"


def _words(text: str) -> str:
    text = text.replace(MARK, " ")
    return _RUN.sub(lambda found: _pair_characters(found[0]), text) if is_dense(text) else text


def _pair_characters(run: str) -> str:
    """Returns every two adjacent characters, and the last one."""
    letters = drop_marks(run)
    return " ".join(["", *(letters[place : place + 2] for place in range(len(letters))), ""])


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


def prefix_of(word: str) -> str:
    """Returns what other forms of a word of another alphabet begin with; "" if it is too short, or written in ASCII."""
    return word[: max(_SHORTEST, len(word) - 3)] if not word.isascii() and word.isalpha() and len(word) > 3 else ""
