"""Segments: what is kept of a transcript is recognised, and what comes after it is what is new."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.body import normalize
from signet_sync.sessions.segments import new_part

LINES = st.lists(
    st.text(st.sampled_from("ab# é\t🙂\u2028\u00a0\x0c"), max_size=30)
    | st.sampled_from(["", "", "## User", "## Assistant", "- a\tb", "word " * 30]),
    max_size=40,
)


def without_empty_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


@given(LINES, st.lists(st.integers(0, 41), max_size=4))
def test_what_was_kept_is_recognised_and_the_rest_is_what_is_new(lines, cuts):
    whole = normalize("\n".join(lines))
    bounds = sorted({min(cut, whole.count("\n") + 1) for cut in cuts})
    split = whole.split("\n")
    pieces = [normalize("\n".join(split[start:stop])).lstrip("\n") for start, stop in itertools.pairwise([0, *bounds])]
    kept = [piece for piece in pieces if piece]
    rest = new_part(whole, kept)
    if kept:
        new = "\n".join(split[bounds[-1] :])
        assert rest is not None and not rest.startswith("\n")
        assert without_empty_lines(rest) == without_empty_lines(new)
    else:
        assert rest == whole


@pytest.mark.parametrize(("whole", "segments"), [
    ("a\nb\nc", ["x"]), ("a\nb\nc", ["a\nx"]), ("a\nbc", ["a\nb"]), ("ab", ["a"]),
])  # fmt: skip
def test_a_whole_that_does_not_begin_with_what_is_kept_is_all_new(whole, segments):
    assert new_part(whole, segments) is None


@pytest.mark.parametrize("unit", ["word after word\n", "word ", "a\n\n\n\n\n\n", "## User\n\nb\n\n"])
def test_time_grows_with_length_and_not_faster(unit):
    """64 times the text in at most 600 times the time: a square would take 4,096 times as long."""

    def taken(body: str) -> float:
        third = body.find("\n", len(body) // 3)
        pieces = [body] if third < 0 else [body[:third], body[third + 1 :].lstrip("\n")]
        began = time.process_time()
        assert new_part(body, pieces) == ""
        return time.process_time() - began

    small, large = (normalize(unit * count) for count in (2_000, 128_000))
    assert min(taken(large) for _ in range(3)) <= 600 * max(min(taken(small) for _ in range(3)), 0.001)
