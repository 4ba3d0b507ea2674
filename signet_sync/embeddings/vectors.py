"""Packs vectors, and finds those of texts that are near to a question's. Loads numpy.

A text's row holds for each row of its full text the number of that within the text, the length of its vector, and the
vector in a byte a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from signet_sync.errors import ProviderError
from signet_sync.storage.database.connection import Database

Vectors = NDArray[np.float32]
_TOGETHER = 400  # rows; so many vectors stay in a processor's cache
_MOST_DIMENSIONS = 8192
_CLEAR = 0.35  # of the way from what an average text has to the same text


class Nearness:
    """How near the texts of some ranges are to a question: `texts` in order, of each its best cosine and which row."""

    def __init__(self, texts: NDArray[np.int64], cosines: Vectors, places: NDArray[np.int64]) -> None:
        self.texts, self.cosines, self.places = texts, cosines, places
        self.mean, self.most = float(cosines.mean()), float(cosines.max())

    @property
    def is_clear(self) -> bool:
        """Returns whether the nearest text is far from the average one: unrelated ones seldom are."""
        return self.most - self.mean >= _CLEAR * (1 - self.mean)

    def of(self, text: int) -> tuple[float, int | None]:
        """Returns how near a text is, from 0 for the average one to 1 for the nearest, and its nearest passage."""
        at = int(np.searchsorted(self.texts, text))
        if at == len(self.texts) or self.texts[at] != text:
            return 0.0, None
        return self._share(at), int(self.places[at])

    def nearest(self, most: int) -> Iterator[tuple[int, float]]:
        """Yields the nearest passages of texts, each with how near it is."""
        for at in np.argsort(-self.cosines, kind="stable")[:most]:
            yield int(self.places[at]), self._share(int(at))

    def _share(self, at: int) -> float:
        return max(float(self.cosines[at]) - self.mean, 0.0) / max(self.most - self.mean, 1e-6)


def packed(rows: Sequence[int], vectors: Vectors) -> bytes:
    """Returns the vectors of some rows of a text as they are stored."""
    found = np.zeros(len(rows), _form(vectors.shape[1]))
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-9)
    found["row"], found["vector"] = rows, np.rint(vectors * (127 / largest))
    found["length"] = np.maximum(np.linalg.norm(found["vector"].astype(np.float32), axis=1), 1e-9)
    return found.tobytes()


def near(database: Database, ranges: Sequence[tuple[int, int]], key: str, question: Vectors) -> Nearness | None:
    """Returns how near the texts of some ranges are to a question; None if none has vectors."""
    form = _form(len(question))
    texts: list[NDArray[np.int64]] = []
    best: list[Vectors] = []
    places: list[NDArray[np.int64]] = []
    for first, last in ranges:
        found = database.execute(
            "select text, rows from vectors where text between ? and ? and model = ? and length(rows) > 0",
            (first, last, key),
        )
        while some := list(islice(found, _TOGETHER)):
            numbers = np.array([number for number, _ in some], np.int64)
            sizes = np.array([len(raw) // form.itemsize for _, raw in some])
            rows = np.frombuffer(b"".join(raw for _, raw in some), form)
            cosines = (rows["vector"].astype(np.float32) @ question) / rows["length"]
            begins = np.concatenate(([0], np.cumsum(sizes)[:-1]))
            highest = np.maximum.reduceat(cosines, begins)
            at = np.flatnonzero(cosines == np.repeat(highest, sizes))
            at = at[np.searchsorted(at, begins)]  # of equal ones the first
            texts.append(numbers)
            best.append(highest)
            places.append(numbers + rows["row"][at])
    return Nearness(np.concatenate(texts), np.concatenate(best), np.concatenate(places)) if texts else None


def _form(dimensions: int) -> np.dtype[np.void]:
    return np.dtype([("row", "<u4"), ("length", "<f4"), ("vector", "i1", (dimensions,))])


def unit_vectors(values: object, count: int) -> Vectors:
    """Returns what a model made of `count` texts as vectors of length 1; one of length 0 stays.

    Raises `ProviderError` if these are not `count` vectors of finite numbers and of one length.
    """
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused below
            found = np.asarray(values, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise ProviderError("the model's answer contains no vectors of one length") from None
    if found.ndim != 2 or len(found) != count or not 0 < found.shape[1] <= _MOST_DIMENSIONS:
        raise ProviderError("the model's answer does not contain a vector for each text")
    if not np.isfinite(found).all():
        raise ProviderError("the model's vectors contain values that are no numbers")
    # Scaled first, so that no square overflows.
    found = found / np.maximum(np.abs(found).max(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12), dtype=np.float32)
