"""Rules of vectors: how texts are grouped, vectors kept in half the space, and similar texts chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.embeddings import similarity
from signet_sync.errors import ProviderError

VECTORS = st.integers(2, 40).flatmap(
    lambda size: st.lists(st.lists(st.floats(-10, 10, width=32), min_size=size, max_size=size), min_size=1, max_size=60)
)


@given(st.text(max_size=6000))
def test_groups_cover_a_text_and_are_short(text: str) -> None:
    found = similarity.groups(text)
    assert "".join(text[one.start : one.end] for one in found) == text
    assert all(one.tokens <= similarity.GROUP_TOKENS or one.end - one.start == 1 for one in found)


def test_a_few_turns_are_a_group_and_a_long_one_is_several() -> None:
    turn = "## User · 2026-03-01T10:00:00.000Z\n\nWhy does the queue of lantern never drain at all?\n\n"
    text = turn * 40 + "## Assistant · 2026-03-01T10:01:00.000Z\n\n" + "The loop retries for ever. " * 200
    found = similarity.groups(text)
    inside = [one for one in found if one.end <= len(turn) * 40]
    assert len(inside) > 2 and all(one.start % len(turn) == 0 for one in inside)
    assert all(300 < one.end - one.start < 1600 for one in found[:-1])
    assert similarity.plain(text[inside[0].start : inside[0].end]).startswith("User:\n\nWhy does the queue")
    assert "2026" not in similarity.plain(text)


@given(VECTORS)
def test_a_kept_vector_is_nearly_the_vector(values: list[list[float]]) -> None:
    found = similarity.unit_vectors(values, len(values), None)
    for vector in found:
        raw = similarity.packed(vector)
        if not vector.any():
            assert raw == b""
            continue
        assert len(raw) == 2 * len(vector)
        (again,) = similarity.unpacked(raw, len(vector))
        assert math.isclose(float(np.linalg.norm(vector)), 1, abs_tol=1e-5)
        assert float(again @ vector) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 2.0]],
        [[1.0, 2.0], [1.0]],
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, float("inf")], [1.0, 2.0]],
        [[1.0, 1e39], [1.0, 2.0]],
        [[], []],
        [1.0, 2.0],
        ["a", "b"],
        [[None], [None]],
        [[[1.0]], [[2.0]]],
        [[1.0] * 9000] * 2,
        {"a": 1},
        None,
    ],
)
def test_what_is_no_vector_for_each_text_is_refused(values: object) -> None:
    with pytest.raises(ProviderError):
        similarity.unit_vectors(values, 2, None)


def test_other_dimensions_than_before_are_refused() -> None:
    with pytest.raises(ProviderError, match="2 dimensions, and had 3"):
        similarity.unit_vectors([[1.0, 2.0]], 1, 3)


def test_large_and_small_numbers_have_a_length() -> None:
    found = similarity.unit_vectors([[3e38, 3e38], [1e-38, 0.0]], 2, 2)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


@given(VECTORS, st.integers(1, 7), st.integers(1, 10))
def test_blocks_do_not_matter(values: list[list[float]], size: int, most: int) -> None:
    query, *found = similarity.unit_vectors(values, len(values), None)
    kept = [(number, similarity.packed(vector)) for number, vector in enumerate(found) if vector.any()]
    if not query.any() or not kept:
        return
    whole = similarity.nearest(query, [([number for number, _ in kept], b"".join(raw for _, raw in kept))], most)
    parts = [kept[at : at + size] for at in range(0, len(kept), size)]
    blocks = [([number for number, _ in some], b"".join(raw for _, raw in some)) for some in parts]
    again = similarity.nearest(query, blocks, most)
    assert [round(cosine, 4) for _, cosine in again] == [round(cosine, 4) for _, cosine in whole]
    assert len(whole) <= most and [cosine for _, cosine in whole] == sorted((one for _, one in whole), reverse=True)
    cosines = {number: float(similarity.unpacked(raw, len(query))[0] @ query) for number, raw in kept}
    best = max(cosines.values())
    assert not whole or whole[0][1] == pytest.approx(best, abs=1e-5)
    assert all(cosines[number] == pytest.approx(cosine, abs=1e-5) for number, cosine in whole)


def test_only_what_is_nearly_as_similar_as_the_best_counts() -> None:
    assert similarity.least(0.9, 0.1, 0.05, 1000) == pytest.approx(0.74)
    # A model that finds everything similar: its differences count.
    assert similarity.least(0.9, 0.7, 0.02, 1000) == pytest.approx(0.86)


def test_a_best_one_that_is_like_all_others_is_not_similar() -> None:
    assert similarity.least(0.25, 0.1, 0.1, 1000) == math.inf
    assert similarity.least(0.25, 0.1, 0.1, 3) < 0.25  # of three nothing can be said
    assert similarity.least(-0.1, -0.5, 0.1, 10) == math.inf


def test_nothing_is_similar_among_nothing() -> None:
    assert similarity.nearest(np.ones(3, dtype=np.float32), [], 5) == []
