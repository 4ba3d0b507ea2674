"""Normalizes and hashes bodies by `body-normalized-v1`."""

from __future__ import annotations

import re
from hashlib import sha256

from signet_sync.formats.lazy_pattern import late

HASH_SCOPE = "body-normalized-v1"


def normalize(text: str) -> str:
    """Normalizes CRLF and lone CR to LF; removes trailing spaces and tabs (only those) and empty lines at the end.

    Lines end at LF only: `str.splitlines()` would also split at U+2028, form feed and others.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if " \n" in text or ("\t" in text and "\t\n" in text):
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    end = len(text)
    while end:
        line = text.rfind("\n", 0, end) + 1
        if text[line:end].strip(" \t"):
            break
        end = max(line - 1, 0)
    return text[:end].rstrip(" \t")


def body_sha256(normalized: str) -> str:
    """Returns the digest of a *normalised* body; lone surrogates count as U+FFFD, as in JavaScript."""
    return text_sha256(normalized)


def text_sha256(text: str) -> str:
    """Returns the lower-case hex SHA-256 of a text's UTF-8 bytes."""
    return sha256(utf8(text)).hexdigest()


def utf8(text: str) -> bytes:
    """Encodes any `str` as UTF-8, lone surrogates as U+FFFD: these bytes are hashed and written."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return well_formed(text).encode("utf-8")


_PAIR = late("[\ud800-\udbff][\udc00-\udfff]")
_LONE = late("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Replaces every lone surrogate by U+FFFD, as UTF-8 encoders of JavaScript do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", _PAIR.sub(_join_surrogates, text))
    return text


def _join_surrogates(pair: re.Match[str]) -> str:
    """Joins the two halves of a surrogate pair."""
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


# JavaScript's String.trim and \s; Python's str.strip also removes U+0085 and U+001C–1F and keeps U+FEFF.
JS_BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def js_trim(text: str) -> str:
    """Trims as the original writer does: its tokens and noise rules depend on it."""
    return text.strip(JS_BLANKS)
