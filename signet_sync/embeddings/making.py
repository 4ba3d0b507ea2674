"""Makes the vectors of texts that have none. Loads numpy."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from signet_sync.embeddings import store
from signet_sync.embeddings.models import Embedder
from signet_sync.embeddings.similarity import Vectors, groups, packed, plain, unit_vectors
from signet_sync.embeddings.store import EmbeddedText, StoredModel
from signet_sync.llm.providers import TextRefused
from signet_sync.storage.database.connection import Database

BATCH = 32  # texts that a model gets at once, and a transaction stores
SECONDS = 60.0  # that a server has for them
_LINES = 5_000  # of one run


class _Text(NamedTuple):
    """A text to embed: a part of `whole`, which must still be the same when the vector is stored."""

    place: EmbeddedText
    said: str
    whole: str


def make(
    database: Database, embedder: Embedder, *, most: int, seconds: float, waiting: Callable[[], bool] = lambda: False
) -> None:
    """Makes vectors, batch by batch, until all texts have one or there are `most`; after so many seconds no batch more.

    Those of another model are deleted first. Raises `ProviderError`, `ConfigError`.
    """
    ends = time.monotonic() + seconds
    made = store.model_of(database)
    if made is None or made.id != embedder.id:
        with database.transaction():
            store.clear(database)
        made = None
    room = most - store.count(database)
    texts = _texts_left(database)
    while room > 0 and time.monotonic() < ends and not waiting():
        batch = list(islice(texts, min(BATCH, room)))
        if not batch:
            return
        made = _make_batch(database, embedder, made, batch)
        room -= len(batch)


def _texts_left(database: Database) -> Iterator[_Text]:
    """Yields texts without a vector: lines, then artifacts, the newest first."""
    for agent_id, number, text in store.lines_left(database, _LINES):
        yield _Text(EmbeddedText(agent_id, None, number, 0, len(text), True), text.strip(), text)
    for number in store.artifacts_left(database):
        found = store.artifact(database, number)
        if found is None:
            continue
        agent_id, content, done = found
        spans = [(span.start, span.end) for span in groups(content)] or [(0, 0)]
        for start, end in spans:
            if start >= done:
                place = EmbeddedText(agent_id, number, None, start, end, end == spans[-1][1])
                yield _Text(place, plain(content[start:end]), content)


def _make_batch(
    database: Database, embedder: Embedder, made: StoredModel | None, batch: Sequence[_Text]
) -> StoredModel | None:
    """Makes and stores the vectors of some texts; returns the model by which there are vectors now."""
    said = list(dict.fromkeys(one.said for one in batch if one.said))
    vectors = _vectors(embedder, said, made) if said else {}
    if made is None:
        made = next((StoredModel(len(one), embedder.id) for one in vectors.values() if one is not None), None)
    with database.transaction():
        if made is not None:
            store.set_model(database, made)
        unchanged = {one.whole: _is_unchanged(database, one) for one in batch}
        rows = []
        for one in batch:
            vector = vectors.get(one.said)
            rows.append((one.place, b"" if vector is None else packed(vector)))
        store.put(database, [row for row, one in zip(rows, batch, strict=True) if unchanged[one.whole]])
    return made


def _is_unchanged(database: Database, one: _Text) -> bool:
    """Returns whether the whole text is still there: it may have been removed while the model worked."""
    if one.place.line is not None:
        return store.line(database, one.place.line) == one.whole
    assert one.place.artifact is not None
    found = store.artifact(database, one.place.artifact)
    return found is not None and found[1] == one.whole


def _vectors(embedder: Embedder, texts: Sequence[str], made: StoredModel | None) -> dict[str, Vectors | None]:
    """Returns the vector of each text, None for one that the model refuses. Raises `ProviderError`."""
    try:
        return dict(zip(texts, _answer(embedder, texts, made), strict=True))
    except TextRefused:
        if len(texts) == 1 and made is None:
            raise
    found = {text: _one_vector(embedder, text, made) for text in texts}
    if len(texts) > 1 and all(vector is None for vector in found.values()):
        raise TextRefused("the model refuses every text")
    return found


def _one_vector(embedder: Embedder, text: str, made: StoredModel | None) -> Vectors | None:
    try:
        vector: Vectors = _answer(embedder, [text], made)[0]
    except TextRefused:
        return None
    return vector


def _answer(embedder: Embedder, texts: Sequence[str], made: StoredModel | None) -> Vectors:
    dimensions = None if made is None else made.dimensions
    return unit_vectors(embedder.embed(texts, SECONDS), len(texts), dimensions)
