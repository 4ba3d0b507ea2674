"""Prepares text for the full-text index, which tells what words a row has, not where: rows of adjacent words are none.

What is written without spaces has a word of every two adjacent characters, so that what is inside it can be found.
"""

from __future__ import annotations

from zlib import crc32

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.cjk import DENSE, is_dense, without_marks

MARK = "\ue000"  # of private use; words that begin so stand in no text
_DENSE = late(f"[{DENSE}]+")


def row_of(text: str, project: str = "") -> str:
    """Returns the words of a row of full text: of its project, which each row tells, and of its text."""
    return f"{project_word(project)} {_words(project)} {_words(text)}"


def project_word(project: str) -> str:
    """Returns the word that tells the project with a name."""
    return f"{MARK}{crc32(project.casefold().encode())}"


def _words(text: str) -> str:
    text = text.replace(MARK, " ")
    return _DENSE.sub(lambda found: _paired(found[0]), text) if is_dense(text) else text


def _paired(run: str) -> str:
    """Returns every two adjacent characters, and the last one."""
    letters = without_marks(run)
    return " ".join(["", *(letters[place : place + 2] for place in range(len(letters))), ""])
