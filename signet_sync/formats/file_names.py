"""Makes names of files that people read: allowed on every file system and in every link of Obsidian."""

from __future__ import annotations

import re
import unicodedata

from signet_sync.formats.lazy_pattern import late

# What Obsidian's links, Windows or a shell cannot have in a name.
_UNFIT = frozenset('\\/:*?"<>|#^[]`')
_RESERVED = late(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.ASCII | re.IGNORECASE)
_BYTES = 180  # a name has at most 255 with what is put behind


def readable_name(text: str, length: int) -> str:
    """Returns a text as the beginning of a file's name, at most `length` characters; "" if nothing readable is left."""
    kept = "".join(c if c.isprintable() and c not in _UNFIT else " " for c in unicodedata.normalize("NFC", text))
    words = " ".join(kept.split())[:length]
    while len(words.encode("utf-8", "replace")) > _BYTES:
        words = words[:-1]
    return words.strip(" .") if any(map(str.isalnum, words)) else ""


def is_reserved(name: str) -> bool:
    """Returns whether Windows takes a name for a device's."""
    return _RESERVED.fullmatch(name) is not None
