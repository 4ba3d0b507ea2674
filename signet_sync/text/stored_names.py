"""Makes ids, keys, projects and paths storable: sanitized and of limited length; cheap to import, for hooks."""

from __future__ import annotations

import re
from bisect import bisect_right
from hashlib import sha256

from signet_sync.formats.body import utf8
from signet_sync.formats.ids import storable_text
from signet_sync.formats.lazy_pattern import late

VALUE_LIMIT = 16_000  # characters
NAME_BYTES = 24_000  # of an id or a key in frontmatter, which holds 64 KiB in all
# Ids of most harnesses, and ids too short for a secret: they never change, and this check is fast.
_PLAIN = late(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{26}|[\w.-]{1,15}", re.ASCII)
_MOST_LOOKS = 8


def session_name(text: str) -> str:
    """Returns the id or key of a session as it is stored: exact, but for secrets and excess length.

    A changed one ends in a hash of the original, so that two sessions never become one. Its own result is returned as
    is.
    """
    if _PLAIN.fullmatch(text):
        return text
    for _ in range(_MOST_LOOKS):  # what is left after a cut may look like a secret
        before, text = text, _redact_name(text)
        if text != before and text != storable_text(before):
            text = f"{text}#{_hash(before)}"
        text = _cut_name(text)
        if text == before:
            break
    return text


def session_value(text: str) -> str:
    """Returns a project or a harness as it is stored: exact, but for secrets and all after 16,000 characters."""
    for _ in range(_MOST_LOOKS):
        before, text = text, _redact_name(text)[:VALUE_LIMIT]
        if text == before:
            break
    return text


def measure_written(text: str) -> int:
    """Returns how many bytes a text takes in frontmatter, without its quotes."""
    from signet_sync.formats.frontmatter import scalar_text  # slow, and most hooks need none of it

    return len(utf8(scalar_text(text))) - 2


def cut_to(text: str, size: int) -> str:
    """Returns the longest beginning of a text that takes at most `size` bytes in frontmatter."""
    if len(text) * 6 <= size or measure_written(text) <= size:
        return text
    return text[: bisect_right(range(len(text) + 1), size, key=lambda end: measure_written(text[:end])) - 1]


def storable_path(path: str) -> str:
    """Returns a path outside the workspace, or a name, as a row may hold it: secrets redacted, kept distinct by a hash.

    The same path gives the same text, and its own result is returned as is.
    """
    from signet_sync.text.sanitizer import sanitize_line  # slow, and most hooks need none of it

    clean = sanitize_line(path)
    return path if clean == path else f"{clean}#{_hash(path)}"


def _redact_name(text: str) -> str:
    # Slow, and most hooks need none of it.
    from signet_sync.text.sanitizer import redact, sanitize_line, sanitize_line_counted

    exact = redact(storable_text(text))[0]
    # A secret that control characters split is found only without them.
    return sanitize_line(text) if sanitize_line_counted(exact)[1] else exact


def _cut_name(text: str) -> str:
    if len(text) <= VALUE_LIMIT and (len(text) * 6 <= NAME_BYTES or measure_written(text) <= NAME_BYTES):
        return text
    tail = f"#{_hash(text)}"
    return cut_to(text[: VALUE_LIMIT - len(tail)], NAME_BYTES - len(tail)) + tail


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
