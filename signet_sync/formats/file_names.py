"""Makes names of files that people read: allowed on every file system and in every link of Obsidian."""

from __future__ import annotations

import re
import unicodedata

from signet_sync.formats.lazy_pattern import late

# What Obsidian's links, Windows or a shell cannot have in a name.
_UNFIT = frozenset('\\/:*?"<>|#^[]`')
_RESERVED = late(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.ASCII | re.IGNORECASE)
# A reference in brackets, and the blanks that unfit characters leave within brackets.
_REFERENCE = late(r"\s*\(#\d+\)", re.ASCII)
_LOOSE = late(r"(?<=\() | (?=\))")
_BYTES = 180  # a name has at most 255 with what is put behind


def readable_name(text: str, length: int) -> str:
    """Returns a text as the beginning of a file's name, at most `length` characters; "" if nothing readable is left."""
    plain = _REFERENCE.sub("", unicodedata.normalize("NFC", text))
    kept = "".join(c if c.isprintable() and c not in _UNFIT else " " for c in plain)
    whole = _LOOSE.sub("", " ".join(kept.split()))
    words = whole[:length]
    while len(words.encode("utf-8", "replace")) > _BYTES:
        words = words[:-1]
    if words != whole:
        words = _whole_words(words, whole[len(words)])
    return words.strip(" .") if any(map(str.isalnum, words)) else ""


def _whole_words(cut: str, following: str) -> str:
    """Returns the beginning of a text without a word or bracket that was cut; a single long word stays."""
    at = len(cut) if following == " " else cut.rfind(" ")
    words = cut[:at] if at > 0 else cut
    if words.count("(") > words.count(")"):
        words = words[: words.rfind("(")] or words
    return words.rstrip(" ,;:(–—-")


def is_reserved(name: str) -> bool:
    """Returns whether Windows takes a name for a device's."""
    return _RESERVED.fullmatch(name) is not None
