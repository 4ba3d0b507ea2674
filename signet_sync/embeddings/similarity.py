"""Packs vectors, and decides which texts are similar enough to a query. Loads numpy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from signet_sync.errors import ProviderError
from signet_sync.text.chunking import ChunkSpan, pieces

GROUP_TOKENS = 250  # of turns that have a vector together: about 1,000 characters
# Of what the best text has more than the average one, a similar text has so much.
KEPT = 0.8
# The best of many texts is similar only if it is so many standard deviations above their average.
_ABOVE, _MANY = 3.0, 30
_MOST_DIMENSIONS = 8192
_HEADING = re.compile(r"^## (User|Assistant|Compaction) · \S.*$", re.MULTILINE)

_Place = TypeVar("_Place")
Vectors = NDArray[np.float32]


def groups(text: str) -> list[ChunkSpan]:
    """Returns the groups of turns that have a vector each; they cover the text."""
    return list(pieces(text, GROUP_TOKENS))


def plain(group: str) -> str:
    """Returns a group's words, without the times of its turns."""
    return _HEADING.sub(r"\1:", group).strip()


def unit_vectors(values: object, count: int, dimensions: int | None) -> Vectors:
    """Returns what a model made of `count` texts as vectors of length 1; one of length 0 is left as it is.

    Raises `ProviderError` if these are not `count` vectors of finite numbers, each with the dimensions of the others.
    """
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused below
            found = np.asarray(values, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise ProviderError("the model's answer contains no vectors of one length") from None
    if found.ndim != 2 or len(found) != count or not 0 < found.shape[1] <= _MOST_DIMENSIONS:
        raise ProviderError("the model's answer does not contain a vector for each text")
    if dimensions is not None and found.shape[1] != dimensions:
        raise ProviderError(
            f"the model's vectors have {found.shape[1]} dimensions, and had {dimensions} before",
            hint="give another model another name in embeddings.model, or run signet-sync reindex --full",
        )
    if not np.isfinite(found).all():
        raise ProviderError("the model's vectors contain values that are no numbers")
    # Scaled first, so that no square overflows.
    found = found / np.maximum(np.abs(found).max(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def packed(vector: Vectors) -> bytes:
    """Returns a vector of length 1 in two bytes a number; nothing for one of length 0."""
    return vector.astype("<f2").tobytes() if vector.any() else b""


def unpacked(raw: bytes, dimensions: int) -> Vectors:
    """Returns vectors that `packed` made, one after the other."""
    return np.frombuffer(raw, dtype="<f2").reshape(-1, dimensions).astype(np.float32)


def nearest(query: Vectors, blocks: Iterable[tuple[Sequence[_Place], bytes]], most: int) -> list[tuple[_Place, float]]:
    """Returns the places whose vectors are similar enough to the query's, the best first, at most `most`."""
    found: list[tuple[_Place, float]] = []
    count, total, squares = 0, 0.0, 0.0
    for places, raw in blocks:
        cosines = unpacked(raw, len(query)) @ query
        count += len(cosines)
        total += float(cosines.sum(dtype=np.float64))
        squares += float(np.square(cosines, dtype=np.float64).sum())
        best = np.argsort(-cosines, kind="stable")[:most]
        found += [(places[number], float(cosines[number])) for number in best]
    found = sorted(found, key=lambda one: -one[1])[:most]
    if not found:
        return []
    mean = total / count
    floor = least(found[0][1], mean, max(squares / count - mean * mean, 0.0) ** 0.5, count)
    return [(place, cosine) for place, cosine in found if cosine >= floor]


def least(best: float, mean: float, deviation: float, count: int) -> float:
    """Returns from which cosine on a text is similar to the query, by those of all texts; above `best` if none is.

    What cosine two unrelated texts have depends on the model, so only differences count.
    """
    if best <= 0 or (count >= _MANY and best < mean + _ABOVE * deviation):
        return float("inf")
    return mean + KEPT * (best - mean)
