r"""Lists the characters that a text may hold and nobody sees: whatever keeps or shows text goes by this one list.

They are what Unicode calls *default ignorable* (soft hyphens, fillers, zero-width spaces and joiners, variation
selectors, tags, controls of direction), and marks of annotations. A model reads them all the same, and within a secret
they hide it from every rule. Some mean something beside letters beyond ASCII: two joiners, without which Persian and
families of emoji fall apart, and two selectors, which choose how an emoji looks.
"""

from __future__ import annotations

from signet_sync.formats.lazy_pattern import late

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
# The same in UTF-8: searched for at once, or from one first byte to the next. A class of characters takes ten times
# as long.
_RARE = (b"\xc2\xad", b"\xcd\x8f", b"\xd8\x9c", b"\xe3\x85\xa4", b"\xef\xbb\xbf", b"\xef\xbe\xa0", b"\xf3\xa0")
_OTHERS = (
    late(b"\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"),
    late(b"\xe2(?:\x80[\x8b\x8e\x8f\xaa-\xae]|\x81[\xa0-\xaf])"),
    late(b"\xef(?:\xb8[\x80-\x8d]|\xbf[\xb0-\xbb])"),
    late(b"\xf0(?:\x9b\xb2[\xa0-\xa3]|\x9d\x85[\xb3-\xba])"),
    # A joiner beside ASCII, a selector after it.
    late(b"\xe2\x80[\x8c\x8d](?:(?<![\x80-\xff]\xe2\x80[\x8c\x8d])|(?![\x80-\xff]))"),
    late(b"\xef\xb8[\x8e\x8f](?<![\x80-\xff]\xef\xb8[\x8e\x8f])"),
)


def without_unseen(text: str, *, on_a_page: bool = False) -> str:
    """Removes what nobody sees, but for joiners between letters beyond ASCII and (not `on_a_page`) selectors."""
    if text.isascii():
        return text
    return _BARE_JOINERS.sub("", (_UNSEEN_ON_A_PAGE if on_a_page else _UNSEEN).sub("", text))


def may_hold_unseen(raw: bytes) -> bool:
    """Returns whether `without_unseen` could remove anything from a text, given in UTF-8."""
    return any(map(raw.__contains__, _RARE)) or any(pattern.search(raw) for pattern in _OTHERS)
