"""Tells what people wrote into a MEMORY.md of Signet from what Signet generated, as far as that shows."""

from __future__ import annotations

import re

from signet_sync.formats import managed_block
from signet_sync.formats.lazy_pattern import late

_HEAD = late(
    rb"^(?:\xef\xbb\xbf)?<!-- generated [^\n]*-->[ \t]*\r?\n\s*# Working Memory Summary[ \t]*\r?$", re.MULTILINE
)
_SECTIONS = late(rb"^(?=## )", re.MULTILINE)
_GENERATED = frozenset(
    {
        b"Global Head (Tier 1)",
        b"Thread Heads (Tier 2)",
        b"Open Threads",
        b"Durable Notes & Constraints",
        b"Session Ledger (Last 30 Days)",
        b"Temporal Index",
    }
)


def persons_text(page: bytes) -> tuple[bytes, bytes] | None:
    """Returns what stands above Signet's text, and the sections that Signet does not write; None for any other page.

    Lines in sections of Signet's own cannot be told apart.
    """
    head = _HEAD.search(page)
    if head is None or managed_block.around(page) is not None:
        return (b"", b"") if managed_block.is_signets(page) else None
    sections = _SECTIONS.split(page[head.end() :])[1:]
    own = [one for one in sections if one.partition(b"\n")[0].removeprefix(b"## ").strip() not in _GENERATED]
    return page[: head.start()], b"".join(own)
