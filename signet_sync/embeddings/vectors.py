"""Packs vectors, and holds those of a model to find texts that are near to a question's. Loads numpy.

A text's row holds for each row of its full text the number of that within the text, the length of its vector, and the
vector in a byte a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from signet_sync.embeddings import store
from signet_sync.errors import ProviderError
from signet_sync.storage.database.connection import Database

if TYPE_CHECKING:
    from signet_sync.embeddings.models import Model

Vectors = NDArray[np.float32]
_TOGETHER = 400  # rows; so many vectors stay in a processor's cache
_MOST_DIMENSIONS = 8192


class Nearness:
    """How near some texts are to a question: `texts` in order, of each its best cosine and which passage has it."""

    def __init__(self, texts: NDArray[np.int64], cosines: Vectors, places: NDArray[np.int64]) -> None:
        self.texts, self.cosines, self.places = texts, cosines, places
        self.mean, self.most = float(cosines.mean()), float(cosines.max())

    @property
    def clearness(self) -> float:
        """Returns how far the nearest text is from the average one, on the way to the same text."""
        return (self.most - self.mean) / max(1 - self.mean, 1e-6)

    def measure(self, text: int) -> tuple[float, int | None]:
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


class Held:
    """The vectors of a model in memory, by text; all are read again once the table has others."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._form = _form(model.dimensions)
        self._state: object = None
        self._lock = Lock()

    def measure(self, database: Database, ranges: Sequence[tuple[int, int]], question: Vectors) -> Nearness | None:
        """Returns how near the texts of some ranges are to a question; None if none has vectors."""
        texts, sizes, rows = self.read(database)
        wanted = np.zeros(len(texts), bool)
        for first, last in ranges:
            wanted |= (texts >= first) & (texts <= last)
        if not wanted.any():
            return None
        cosines = np.empty(len(rows), np.float32)
        some = np.empty((_TOGETHER, len(question)), np.float32)
        for at in range(0, len(rows), _TOGETHER):
            bytes_of = rows["vector"][at : at + _TOGETHER]
            some[: len(bytes_of)] = bytes_of
            np.dot(some[: len(bytes_of)], question, out=cosines[at : at + _TOGETHER])
        cosines /= rows["length"]
        begins = np.cumsum(sizes) - sizes
        best = np.maximum.reduceat(cosines, begins)
        at_best = np.flatnonzero(cosines == np.repeat(best, sizes))
        at_best = at_best[np.searchsorted(at_best, begins)]  # of equal ones the first
        return Nearness(texts[wanted], best[wanted], (texts + rows["row"][at_best])[wanted])

    def read(self, database: Database) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.void]]:
        """Returns the texts, how many vectors each has, and these: what is gone from the table is gone here."""
        with self._lock:
            if (state := store.state(database)) != self._state:
                texts, sizes, raw = list[int](), list[int](), bytearray()
                for text, rows in store.rows(database):
                    texts.append(text)
                    sizes.append(len(rows) // self._form.itemsize)
                    raw += rows
                self._all = np.array(texts, np.int64), np.array(sizes, np.int64), np.frombuffer(raw, self._form)
                self._state = state
            return self._all


def pack(rows: Sequence[int], vectors: Vectors) -> bytes:
    """Returns the vectors of some rows of a text as they are stored."""
    found = np.zeros(len(rows), _form(vectors.shape[1]))
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-9)
    found["row"], found["vector"] = rows, np.rint(vectors * (127 / largest))
    found["length"] = np.maximum(np.linalg.norm(found["vector"].astype(np.float32), axis=1), 1e-9)
    return found.tobytes()


def _form(dimensions: int) -> np.dtype[np.void]:
    return np.dtype([("row", "<u4"), ("length", "<f4"), ("vector", "i1", (dimensions,))])


def unit_vectors(values: object, count: int, dimensions: int = 0) -> Vectors:
    """Returns what a model made of `count` texts as vectors of length 1; one of length 0 stays.

    Raises `ProviderError` if these are not `count` vectors of numbers, each of `dimensions`, or of any one number.
    """
    try:
        found = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):  # what becomes infinite does not fit
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
        fits = found.shape == (count, dimensions or found.shape[1]) and np.isfinite(lengths).all()
    except (ValueError, TypeError, OverflowError):
        fits = False
    if not fits or not 0 < found.shape[1] <= _MOST_DIMENSIONS:
        of = f"{dimensions:,}" if dimensions else "equally many"
        raise ProviderError(f"the model's answer is not a vector of {of} numbers for each text")
    return np.asarray(found / np.maximum(lengths, 1e-12), np.float32)
