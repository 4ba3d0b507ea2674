"""Finds what is similar in meaning to a query.

Imports nothing slow: settings, numpy and the model are loaded only if there are vectors. Raises no `SignetSyncError`,
because `recall` answers by words alone if a model fails.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.embeddings import RULES
from signet_sync.errors import DatabaseError, SignetSyncError, sentence_of
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, counting
from signet_sync.sync.store import passes

if TYPE_CHECKING:
    from signet_sync.embeddings.similarity import Vectors
    from signet_sync.embeddings.store import EmbeddedText, StoredModel

SECONDS = 1.0  # that a server has for a query
MOST_SIMILAR = 40  # texts of one query; several may be of one session
_LONGEST_QUERY = 1_000  # characters

# Until when no model is asked, by database: for a process that answers many queries and may not write.
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

    def is_ready(self, database: Database) -> bool:
        """Returns whether there may be vectors; loads nothing more."""
        return passes.version_of(database, RULES) is not None

    def nearest(self, database: Database, agent_id: str, query: str) -> list[EmbeddedText]:
        """Returns an agent's texts that are similar to a query, the best first."""
        from signet_sync.embeddings import store

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
        from signet_sync.settings.model_choice import resolve_embeddings

        choice = resolve_embeddings(self._place.settings())
        text = _sanitized(query)
        if choice.kind == "none" or not text:
            return None
        from signet_sync.embeddings import models

        embedder = models.embedder_for(choice, self._environ)
        if embedder.id != made.id:
            return None  # its vectors replace these in idle time
        from signet_sync.embeddings.similarity import unit_vectors

        found: Vectors = unit_vectors(embedder.embed([text], SECONDS), 1, made.dimensions)[0]
        return found if found.any() else None

    def _is_resting(self, database: Database) -> bool:
        from signet_sync.embeddings import rests

        until = _rest_of.get(self._place.database, 0)
        own = self._now_us < until <= self._now_us + rests.ASKING.length
        return own or rests.rests(database, rests.ASKING, self._now_us)

    def _rest(self) -> None:
        from signet_sync.embeddings import rests

        _rest_of[self._place.database] = self._now_us + rests.ASKING.length
        with counting(self._place, wanted=self._remembers) as database, suppress(DatabaseError):
            if database is not None:
                rests.begin(database, rests.ASKING, self._now_us)


def _sanitized(query: str) -> str:
    """Returns the beginning of a query without secrets."""
    from signet_sync.text.sanitizer import sanitize_beginning

    return sanitize_beginning(query, 4 * _LONGEST_QUERY)[:_LONGEST_QUERY].strip()
