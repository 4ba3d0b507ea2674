"""Prepares text for full-text indexes: words of what is written without spaces, and of camelCase.

FTS5's unicode61 keeps a run of Chinese, Japanese, Korean or Thai together as one word, or ends it at a vowel's mark, so
that nothing inside it can be found. With spaces between its characters a phrase finds every word; the index that tells
only what words a row has, not where, has every two adjacent characters. Only texts that need it pay.
"""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import crc32

from signet_sync.formats.invisible import beyond_ascii
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
    return any(map(_is_dense, beyond_ascii(text)))


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
