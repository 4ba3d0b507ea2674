"""Normalizes and hashes texts by `body-normalized-v1`; lists the characters that nobody sees."""

from __future__ import annotations

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


def text_sha256(text: str) -> str:
    """Returns the lower-case hex SHA-256 of a text, as a body's when normalized; lone surrogates count as U+FFFD."""
    return sha256(utf8(text)).hexdigest()


def utf8(text: str) -> bytes:
    """Encodes any `str` as UTF-8, lone surrogates as U+FFFD: these bytes are hashed and written."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return fix_surrogates(text).encode("utf-8")


_PAIR = late("[\ud800-\udbff][\udc00-\udfff]")
_LONE = late("[\ud800-\udfff]")


def fix_surrogates(text: str) -> str:
    """Replaces every lone surrogate by U+FFFD, as UTF-8 encoders of JavaScript do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        return _LONE.sub("\ufffd", joined)
    return text


# JavaScript's String.trim and \s; Python's str.strip also removes U+0085 and U+001C–1F and keeps U+FEFF.
JS_BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def js_trim(text: str) -> str:
    """Trims as the original writer does: its tokens and noise rules depend on it."""
    return text.strip(JS_BLANKS)


# ── characters that a text may hold and nobody sees: whatever keeps or shows text goes by this one list ──

# They are what Unicode calls *default ignorable* (soft hyphens, fillers, zero-width spaces and joiners, variation
# selectors, tags, controls of direction), and marks of annotations. A model reads them all the same, and within a
# secret they hide it from every rule. Some mean something beside letters beyond ASCII: two joiners, without which
# Persian and families of emoji fall apart, and two selectors, which choose how an emoji looks.
# For a class of characters in a pattern; JOINERS and SELECTORS are not in UNSEEN.
JOINERS = "\u200c\u200d"
SELECTORS = "\ufe0e\ufe0f"
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# C0 but tab and LF, DEL, C1, line and paragraph separators.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029"

_UNSEEN = late(f"[{UNSEEN}]+")
_UNSEEN_ON_A_PAGE = late(f"[{UNSEEN}{SELECTORS}]+")
_BARE_JOINERS = late(
    rf"(?<![^\x00-\x7f])(?!\ufe0f\u20e3)[{JOINERS}{SELECTORS}]+|[{JOINERS}]+(?![{JOINERS}{SELECTORS}]*[^\x00-\x7f{JOINERS}{SELECTORS}])"
)
# In UTF-8, which is searched from one first byte to the next: a joiner beside ASCII, a selector after it.
_BARE = (
    late(b"\xe2\x80[\x8c\x8d](?:(?<![\x80-\xff]\xe2\x80[\x8c\x8d])|(?![\x80-\xff]))"),
    late(b"\xef\xb8[\x8e\x8f](?<![\x80-\xff]\xef\xb8[\x8e\x8f])"),
)
_ASCII = bytes(range(128))


def find_non_ascii(text: str) -> str:
    """Returns the different characters beyond ASCII of a text: what is asked of them is not asked of a long text."""
    if text.isascii():
        return ""
    rest = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return "".join(frozenset(rest.decode("utf-8", "surrogatepass")))


def drop_unseen(text: str, *, on_a_page: bool = False) -> str:
    """Removes what nobody sees, but for joiners between letters beyond ASCII and (not `on_a_page`) selectors."""
    beyond, unseen = find_non_ascii(text), _UNSEEN_ON_A_PAGE if on_a_page else _UNSEEN
    if unseen.search(beyond):
        text = unseen.sub("", text)
    return _BARE_JOINERS.sub("", text) if any(map(beyond.__contains__, JOINERS + SELECTORS)) else text


def may_hold_unseen(text: str, beyond: str) -> bool:
    """Returns whether `drop_unseen` could remove anything from a text with these characters beyond ASCII."""
    if not beyond:
        return False
    if _UNSEEN.search(beyond):
        return True
    if not any(map(beyond.__contains__, JOINERS + SELECTORS)):
        return False
    raw = text.encode("utf-8", "replace")
    return any(pattern.search(raw) for pattern in _BARE)
