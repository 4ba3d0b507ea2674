"""Makes missing vectors in idle time, and finds what is similar in meaning to a query.

A model is asked outside any transaction and without the workspace's lock. What needs numpy or the settings is loaded
only where there are vectors or a model is named. Raises no `SignetSyncError`: `recall` answers by words alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.embeddings import store
from signet_sync.embeddings.store import EmbeddedText, StoredModel
from signet_sync.errors import DatabaseError, ProviderError, SignetSyncError, sentence_of
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.graph.store import wordings
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, counting

if TYPE_CHECKING:
    from signet_sync.embeddings.similarity import Vectors
    from signet_sync.sync.workspace import Workspace

MOST = 200_000  # vectors, of all agents
LONGEST = 60.0  # seconds of one run
REST = 900 * SECOND  # after a failure
QUERY_SECONDS = 1.0
QUERY_REST = 300 * SECOND
MOST_SIMILAR = 40  # texts of one query; several may be of one session
_LONGEST_QUERY = 1_000  # characters
_MAKING, _ASKING = "embeddings", "similar"  # kinds of rests


def embed_waiting(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    environ: Mapping[str, str] = os.environ,
    waiting: Callable[[], bool] = lambda: False,
) -> None:
    """Makes vectors of texts that have none, for a minute or until `waiting` returns True.

    Deletes all vectors if the user's settings name no model. Failures are logged and retried later.
    """
    from signet_sync.settings.model import has_embeddings, resolve_embeddings

    database, settings = workspace.database, workspace.settings
    if not settings.embeddings_enabled:
        return  # also if the user's settings cannot be read
    if not has_embeddings(settings):
        if store.is_any(database):
            with database.transaction():
                store.clear(database)
        return
    if _rests(database, _MAKING, REST, now_us()):
        return
    from loguru import logger

    from signet_sync.embeddings import models
    from signet_sync.storage import state_dir

    try:
        with state_dir.model_lock(workspace.state):
            embedder = models.embedder_for(resolve_embeddings(settings), environ)
            from signet_sync.embeddings import making  # needs numpy, which is there now

            making.make(database, embedder, most=MOST, seconds=LONGEST, waiting=waiting)
    except SignetSyncError as error:
        if error.code == "busy":
            return
        logger.warning("texts get their vectors later: {}", sentence_of(error))
        if isinstance(error, ProviderError):
            with database.transaction():
                wordings.set_rests_until(database, _MAKING, iso(now_us() + REST))


def is_resting(database: Database, now_us: int) -> bool:
    """Returns whether no vectors are made or searched now, because the model failed."""
    return _rests(database, _MAKING, REST, now_us) or _rests(database, _ASKING, QUERY_REST, now_us)


def _rests(database: Database, kind: str, longest: int, now_us: int) -> bool:
    """Returns whether no model is asked now, because it failed."""
    # Later than `longest`: the clock was set back.
    return iso(now_us) < (wordings.rests_until(database, kind) or "") <= iso(now_us + longest)


# Until when no model is asked for a query, by database: for a process that answers many and may not write.
_rest_of: dict[str, int] = {}


class Meaning:
    """Finds the texts that are similar in meaning to a query; `trouble` says why it could not.

    After a failure no model is asked for some minutes, by other processes neither if this one `remembers`.
    """

    def __init__(
        self, place: IndexPlace, now_us: int, *, remembers: bool = True, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.trouble = ""
        self._place, self._now_us, self._remembers, self._environ = place, now_us, remembers, environ

    def nearest(self, database: Database, agent_id: str, query: str) -> list[EmbeddedText]:
        """Returns an agent's texts that are similar to a query, the best first."""
        made = store.model_of(database)
        if made is None or self._is_resting(database):
            return []
        try:
            vector = self._vector(made, query)
        except SignetSyncError as error:
            self.trouble = f"nothing was searched by meaning: {sentence_of(error)}"
            self._rest()
            return []
        if vector is None:
            return []
        from signet_sync.embeddings.similarity import nearest

        found = nearest(vector, store.blocks(database, agent_id, made.dimensions), MOST_SIMILAR)
        return [place for place, _ in found]

    def _vector(self, made: StoredModel, query: str) -> Vectors | None:
        """Returns the query's vector; None if no model is to be asked. Raises `SignetSyncError`."""
        from signet_sync.settings.model import resolve_embeddings

        choice = resolve_embeddings(self._place.settings())
        text = _sanitized(query)
        if choice.kind == "none" or not text:
            return None
        from signet_sync.embeddings import models

        embedder = models.embedder_for(choice, self._environ)
        if embedder.id != made.id:
            return None  # its vectors replace these in idle time
        from signet_sync.embeddings.similarity import unit_vectors

        found: Vectors = unit_vectors(embedder.embed([text], QUERY_SECONDS), 1, made.dimensions)[0]
        return found if found.any() else None

    def _is_resting(self, database: Database) -> bool:
        until = _rest_of.get(self._place.database, 0)
        own = self._now_us < until <= self._now_us + QUERY_REST
        return own or _rests(database, _ASKING, QUERY_REST, self._now_us)

    def _rest(self) -> None:
        until = self._now_us + QUERY_REST
        _rest_of[self._place.database] = until
        with counting(self._place, wanted=self._remembers) as database, suppress(DatabaseError):
            if database is not None:
                with database.transaction():
                    wordings.set_rests_until(database, _ASKING, iso(until))


def _sanitized(query: str) -> str:
    """Returns the beginning of a query without secrets."""
    from signet_sync.text.sanitizer import sanitize_line

    # Cut between words, so that no secret is cut in two and missed.
    most = 4 * _LONGEST_QUERY
    whole = query if len(query) <= most else " ".join(query[:most].split()[:-1])
    return sanitize_line(whole)[:_LONGEST_QUERY].strip()
