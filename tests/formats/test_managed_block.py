"""Generated text between markers: whatever stands on a page, the next one shows our text and loses no person's word."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.formats.managed_block import (
    BEGIN,
    Merge,
    block,
    drop_block,
    drop_lines,
    drop_marks,
    is_signets,
    merge,
    read_generated,
    seal_of,
)

OLD, NEW = block("# Old\n\n- row"), block("# New")
OLD_INNER = b"\n# Old\n\n- row\n"
OLD_END = OLD[len(BEGIN) + len(OLD_INNER) :].rstrip(b"\n")
CRLF = OLD.replace(b"\n", b"\r\n")
QUOTED = b"- one <!-- signet:end --> two\n"
QUOTING = b"<!-- generated x -->\n# Memory\n" + QUOTED + b"- a <!-- signet:begin --> b\n- " + OLD_END + b"- c\n"
TYPED = OLD.replace(b"- row", b"- row\n- mine")


def test_a_page_of_signet_is_no_block_of_ours_whatever_its_rows_quote():
    assert is_signets(QUOTING) and read_generated(QUOTING) is None
    assert drop_block(QUOTING) == drop_marks(QUOTING) == QUOTING
    assert drop_lines(QUOTING, lambda line: b"one" in line) == QUOTING.replace(QUOTED, b"")


#   what stands on the page                     page before                     page after                   displaced
CASES = {
    "nothing: a new page": (None, NEW, None), "an empty file": (b"", NEW, None), "our block": (OLD, NEW, None),
    "a note of a person": (b"# Mine\n", b"# Mine\n\n" + NEW, None),
    "a note without a newline at its end": (b"mine", b"mine\n\n" + NEW, None),
    "a note that is not UTF-8": (b"caf\xe9 \xff\xfe\n", b"caf\xe9 \xff\xfe\n\n" + NEW, None),
    "a note with a byte order mark": (b"\xef\xbb\xbf# Mine\n", b"\xef\xbb\xbf# Mine\n\n" + NEW, None),
    "text around our block": (b"a\n" + OLD + b"b\n", b"a\n" + NEW + b"b\n", None),
    "text on the lines of the markers": (b"a " + OLD[:-1] + b" b", b"a " + NEW + b" b", None),
    "a file of Signet": (
        b"<!-- generated 2026-03-28 -->\n# Memory\n", NEW, ("signet", b"<!-- generated 2026-03-28 -->\n# Memory\n"),
    ),
    "a file of Signet whose rows speak of our markers": (QUOTING, NEW, ("signet", QUOTING)),
    "a note that mentions Signet's line later": (
        b"# Mine\n<!-- generated x -->\n", b"# Mine\n<!-- generated x -->\n\n" + NEW, None,
    ),
    "Signet's line above our block": (b"<!-- generated x -->\n" + OLD, b"<!-- generated x -->\n" + NEW, None),
    "our block from another machine, in CRLF": (b"a\r\n" + CRLF + b"b\r\n", b"a\r\n" + NEW + b"b\r\n", None),
    "text typed inside": (b"a\n" + TYPED + b"b\n", b"a\n" + NEW + b"b\n", ("user", b"\n# Old\n\n- row\n- mine\n")),
    "an empty block": (BEGIN + OLD_END, NEW, ("user", b"")),
    "an end marker without its hash": (
        BEGIN + OLD_INNER + b"<!-- signet:end -->\nb", NEW + b"b", ("user", OLD_INNER),
    ),
    "an end marker without its close": (
        BEGIN + OLD_INNER + b"<!-- signet:end 0123\nb", NEW + b"b", ("user", OLD_INNER),
    ),
    "the end marker is gone": (b"a\n" + BEGIN + OLD_INNER, b"a\n" + NEW, ("user", BEGIN + OLD_INNER)),
    "the begin marker is gone": (OLD_INNER + OLD_END + b"\nb\n", NEW + b"b\n", ("user", OLD_INNER + OLD_END)),
    "markers swapped": (
        b"a\n" + OLD_END + b"\nb\n" + BEGIN + b"\nc\n", NEW, ("user", b"a\n" + OLD_END + b"\nb\n" + BEGIN + b"\nc\n"),
    ),
    "two blocks": (
        b"a\n" + OLD + b"mine\n" + OLD + b"b\n",
        b"a\n" + NEW + b"b\n",
        ("user", OLD + b"mine\n" + OLD[:-1]),
    ),
    "a begin marker too many": (
        b"a\n" + BEGIN + b"mine\n" + OLD + b"b\n",
        b"a\n" + NEW + b"b\n",
        ("user", BEGIN + b"mine\n" + OLD[:-1]),
    ),
    "an end marker too many": (
        b"a\n" + OLD + b"mine\n" + OLD_END + b"\nb\n", b"a\n" + NEW + b"b\n", ("user", OLD + b"mine\n" + OLD_END),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "keep"), CASES.values(), ids=CASES.keys())
def test_what_a_page_becomes(before, after, keep):
    assert merge(before, "# New") == Merge(after, keep)


# Everything that may be strewn over a page, whole or in pieces.
PIECES = st.sampled_from(
    [BEGIN, OLD_END, OLD, TYPED, CRLF, b"<!-- signet:end -->", b"<!-- signet:end", b"<!-- signet:", b"-->", b"\n",
     b"\r\n", b"\n\n", b"mine", b"# Mine\n", b"\xff", b"<!-- generated ", b" ", b"<", b"\xef\xbb\xbf"]
)  # fmt: skip
PAGES = st.lists(PIECES | st.binary(max_size=12), max_size=10).map(b"".join)
TEXTS = st.text(st.characters(exclude_characters="<"), max_size=40)


@given(PAGES, TEXTS)
@example(OLD_END + b"x" + BEGIN, "new")
def test_merging_is_idempotent(page, text):
    once = merge(page, text).data
    assert merge(once, text) == Merge(once)


END = re.compile(rb"<!-- signet:end ([0-9a-f]{16}) -->")
BLOCK = re.compile(rb"<!-- signet:begin -->(.*)<!-- signet:end[^<>\n]*>?(?:\r?\n)?", re.DOTALL)


@given(PAGES, TEXTS)
def test_every_byte_of_a_page_is_on_the_next_one_or_kept_beside_it_or_was_ours(page, text):
    merged = merge(page, text)
    fresh = block(text)
    place = merged.data.index(fresh)
    before, after = merged.data[:place], merged.data[place + len(fresh) :]
    if not page.strip():
        assert merged == Merge(fresh)
        return
    if before.startswith(page):
        assert before[len(page) :] in (b"", b"\n", b"\n\n") and merged.keep is None and not after
        return
    assert page.startswith(before) and page.endswith(after)
    gone = page[len(before) : len(page) - len(after)]
    kept = merged.keep[1] if merged.keep is not None else None
    if kept is not None and gone.rstrip(b"\r\n") == kept.rstrip(b"\r\n"):
        return
    ours = BLOCK.fullmatch(gone)
    assert ours is not None
    if kept is None:
        assert END.search(gone)[1].decode() == seal_of(ours[1])
    else:
        assert kept == ours[1]


# ── when our part goes ──


@pytest.mark.parametrize(
    ("page", "left"),
    [
        (OLD, None), (b"\n" + OLD + b"\n", None), (b"a\n" + OLD + b"b\n", b"a\nb\n"), (b"mine\n", b"mine\n"),
        (b"mine", b"mine"),
        (b"<!-- generated x -->\n# Memory\n", b"<!-- generated x -->\n# Memory\n"),
        (b"", None), (b" \n", None), (b"a\n" + TYPED, b"a\n\n# Old\n\n- row\n- mine\n"),
        (b"a\n" + BEGIN + b"mine\n" + OLD, b"a\nmine\n\n# Old\n\n- row\n"),
    ],
)  # fmt: skip
def test_what_is_left_when_our_part_goes(page, left):
    assert drop_block(page) == left


@given(st.lists(st.sampled_from([BEGIN, OLD_END, OLD, TYPED, CRLF, b"\n", b"mine", b"# Mine\n"]), max_size=8))
def test_when_our_part_went_no_marker_is_left(pieces):
    left = drop_block(b"".join(pieces))
    if left is not None:
        assert b"<!-- signet:" not in left
        assert drop_block(left) == left
        assert left.count(b"mine") >= pieces.count(b"mine")


@pytest.mark.parametrize(
    "page",
    [b"<!-- signet:end " * 60_000 + b">", b"<!-- signet:begin -->" * 40_000, b"<!-- " * 200_000, b" \n" * 500_000],
    ids=["ends", "begins", "comments", "blanks"],
)
def test_a_large_hostile_page_is_merged_soon(page):
    """A pattern that backtracks would take hours."""
    once = merge(page, "new").data
    assert merge(once, "new") == Merge(once)
