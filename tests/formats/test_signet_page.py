"""What people wrote into a page of Signet, or around a block of ours that it replaced."""

from __future__ import annotations

import pytest

from signet_sync.formats.managed_block import around, block
from signet_sync.formats.signet_page import persons_text

HEAD = b"<!-- generated 2026-03-29 12:00 -->\n\n# Working Memory Summary\n\n"
OWN = b"## Open Threads\n\n- one\n\n"
MINE = b"## My list\n\n- mine\n\n"


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (HEAD + OWN, (b"", b"")),
        (b"\xef\xbb\xbf" + HEAD + OWN, (b"", b"")),
        (b"Above.\n\n" + HEAD + OWN, (b"Above.\n\n", b"")),
        (HEAD + OWN + MINE + b"## Temporal Index\n\n- x\n", (b"", MINE)),
        (HEAD.replace(b"\n", b"\r\n") + MINE, (b"", MINE)),
        # An older one, whose sections a model named.
        (b"<!-- generated 2026-01-01 -->\n# Memory\n\n## Anything\n", (b"", b"")),
        (b"# My own page\n", None),
        (b"I quote <!-- generated 2026-01-01 --> here.\n", None),
        (b"Above.\n\n" + block("ours"), None),
        (b"", None),
    ],
)
def test_sections_of_its_own_are_not_a_persons(page: bytes, found: tuple[bytes, bytes] | None) -> None:
    assert persons_text(page) == found


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (b"A\n" + block("x") + b"B\n", (b"A\n", b"B\n")),
        (block("x"), (b"", b"")),
        (b"A\n<!-- signet:begin -->\ntorn", (b"A\n", b"")),
        (HEAD + b"- a quote of <!-- signet:begin -->\n", None),
        (b"A\n", None),
    ],
)
def test_what_stands_around_a_block(page: bytes, found: tuple[bytes, bytes] | None) -> None:
    assert around(page) == found
