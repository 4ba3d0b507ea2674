"""Merges generated text between markers with people's text around it, so that no word of a person is lost."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late

BEGIN = b"<!-- signet:begin -->"
_END = late(rb"<!-- signet:end ([0-9a-f]{16}) -->")
_MARKER = late(rb"<!-- signet:(?:begin -->|end[^\n<>]*+>?)")
_MARKED_LINE = late(_MARKER.pattern + rb"(?:\r?\n)?")
_SIGNET = late(rb"(?:\xef\xbb\xbf)?\s*<!-- generated ")
_OPENED = late(rb"^" + re.escape(BEGIN), re.MULTILINE)


class Merge(NamedTuple):
    """The next bytes of a page; `keep` are bytes that it displaces, with the suffix of the copy to be kept first."""

    data: bytes
    keep: tuple[str, bytes] | None = None


def seal_of(inner: bytes) -> str:
    """Returns the hash of an end marker: first 16 hex digits of the sha256 of the text between, line ends as LF."""
    return sha256(inner.replace(b"\r\n", b"\n")).hexdigest()[:16]


def block(text: str) -> bytes:
    """Returns generated text with its markers and one newline at the end."""
    inner = b"\n" + text.encode("utf-8", "replace") + b"\n"
    return BEGIN + inner + f"<!-- signet:end {seal_of(inner)} -->\n".encode()


def is_signets(data: bytes) -> bool:
    """Returns whether a page without a block of ours is one that Signet generated.

    Its rows quote sessions, which may have mentioned our markers: a block of ours begins on a line of its own.
    """
    return _SIGNET.match(data) is not None and _OPENED.search(data) is None


class _Part(NamedTuple):
    """Our part of a page, with its markers and without.

    `paired`: it has the two markers; `whole`: it is as some machine's signet-sync wrote it.
    """

    start: int
    inner_start: int
    inner_end: int
    end: int
    paired: bool
    whole: bool


def _find_part(data: bytes) -> _Part | None:
    """Returns our part of a page; None for one without markers, and for one that Signet generated.

    A block without a begin marker starts at the top of the page, one without an end marker ends at the bottom.
    """
    marks = list(_MARKER.finditer(data))
    if not marks or is_signets(data):
        return None
    start, inner_start = marks[0].span() if marks[0][0] == BEGIN else (0, 0)
    inner_end, end = marks[-1].span() if marks[-1][0] != BEGIN else (len(data), len(data))
    paired = len(marks) == 2 and marks[0][0] == BEGIN != marks[1][0]
    exact = _END.fullmatch(marks[1][0]) if paired else None
    whole = exact is not None and exact[1].decode() == seal_of(data[inner_start:inner_end])
    return _Part(start, inner_start, inner_end, end, paired, whole)


def read_generated(data: bytes) -> str | None:
    """Returns the text of the one block of a page, if it is as some machine's signet-sync wrote it; else None."""
    part = _find_part(data)
    if part is None or not part.whole:
        return None
    inner = data[part.inner_start : part.inner_end].replace(b"\r\n", b"\n")
    return inner.decode("utf-8", "replace").removeprefix("\n").removesuffix("\n")


def merge(existing: bytes | None, text: str) -> Merge:
    """Returns the page that shows `text` and loses no word of a person."""
    fresh = block(text)
    if existing is None or not existing.strip():
        return Merge(fresh)
    if is_signets(existing):
        return Merge(fresh, ("signet", existing))
    part = _find_part(existing)
    if part is None:
        gap = b"" if existing.endswith(b"\n\n") else b"\n" if existing.endswith(b"\n") else b"\n\n"
        return Merge(existing + gap + fresh)
    # One newline after the end marker belongs to it.
    after = re.sub(rb"\A\r?\n", b"", existing[part.end :])
    kept = (part.inner_start, part.inner_end) if part.paired else (part.start, part.end)
    return Merge(existing[: part.start] + fresh + after, None if part.whole else ("user", existing[slice(*kept)]))


def drop_block(existing: bytes) -> bytes | None:
    """Removes our part of a page: returns people's text, or None if there is none.

    A page without our markers has no part of ours and stays as it is.
    """
    rest = existing
    if _find_part(existing) is not None:
        merged = merge(existing, "")
        rest = merged.data.replace(block(""), b"", 1)
        if merged.keep is not None:
            rest += _MARKER.sub(b"", merged.keep[1])
    return rest if rest.strip() else None


def drop_marks(existing: bytes) -> bytes:
    """Removes the markers only: the generated text becomes its owner's, every other byte stays."""
    return existing if is_signets(existing) else _MARKED_LINE.sub(b"", existing)


def drop_lines(data: bytes, goes: Callable[[bytes], bool]) -> bytes:
    """Removes some lines of our part of a page, with a new hash if it had one; what people wrote around it stays.

    All of a page that Signet generated is ours; nothing of one without any marker.
    """
    part = _find_part(data)
    if part is None:
        return drop_matching(data, goes) if is_signets(data) else data
    left, closing = drop_matching(data[part.inner_start : part.inner_end], goes), data[part.inner_end :]
    if part.whole:
        closing = _END.sub(f"<!-- signet:end {seal_of(left)} -->".encode(), closing, count=1)
    return data[: part.inner_start] + left + closing


def drop_matching(data: bytes, goes: Callable[[bytes], bool]) -> bytes:
    """Removes some lines, and the headings of projects and days below which nothing is left."""
    left: list[bytes] = []
    heading, emptied = None, False
    for line in [*data.split(b"\n"), None]:
        if line is None or line.startswith(b"#"):
            if emptied and heading is not None and not any(map(bytes.strip, left[heading + 1 :])):
                del left[heading:]
            heading, emptied = None, False
        if line is None:
            continue
        if goes(line):
            emptied = True
            continue
        if line.startswith(b"### "):
            heading = len(left)
        left.append(line)
    return b"\n".join(left)


# ── what we inject into a session; readers of transcripts and pages remove it again ──

# MEMORY.md must never feed on itself.
OPENING, CLOSING = "<signet-memory>", "</signet-memory>"
# How the line below the opening begins, of what hooks inject and of what the MCP server answers.
BACKGROUND = "Background from earlier sessions, kept by signet-sync"
STORED = "Stored text of earlier sessions, kept by signet-sync."


def neutral(text: str) -> str:
    """Makes our marks in a text harmless, in as many characters, so that it cannot end the injected block."""
    for mark in (OPENING, CLOSING):
        text = text.replace(mark, f"‹{mark[1:-1]}›")
    return text
