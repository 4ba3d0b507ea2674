"""Makes missing vectors in idle time.

A model is asked outside any transaction and without the workspace's lock. What needs numpy is loaded only if a model is
named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from signet_sync.embeddings import rests, store
from signet_sync.errors import ProviderError, SignetSyncError, sentence_of
from signet_sync.log import logger

if TYPE_CHECKING:
    from signet_sync.sync.workspace import Workspace

MOST = 200_000  # vectors, of all agents
LONGEST = 60.0  # seconds of one run


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
    from signet_sync.settings.model_choice import has_embeddings, resolve_embeddings

    database, settings = workspace.database, workspace.settings
    if not settings.embeddings_enabled:
        return  # also if the user's settings cannot be read
    if not has_embeddings(settings):
        if store.is_any(database):
            with database.transaction():
                store.clear(database)
        return
    if rests.rests(database, rests.MAKING, now_us()):
        return
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
            rests.begin(database, rests.MAKING, now_us())
