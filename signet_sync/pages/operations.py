"""Returns the context for a session of an agent: its pages at the start, what memory holds on a prompt later."""

from __future__ import annotations

import os
from typing import Any

from signet_sync.capture.catch_up import catch_up
from signet_sync.errors import DatabaseError
from signet_sync.pages.session_context import SessionContext, compose
from signet_sync.sync.read_only import IndexPlace, count_nodes, reading
from signet_sync.text.token_estimate import estimate_tokens


def at_start(place: IndexPlace, agent_id: str, *, shared: bool = False, budget: int | None = None) -> SessionContext:
    """Returns the agent's MEMORY.md (not with `shared`) and the identity files, in at most `budget` tokens.

    Raises `WorkspaceError`.
    """
    trouble = []
    # Only pages are read, but opening the index first finishes a removal that was interrupted.
    try:
        with reading(place):
            pass
    except DatabaseError as error:
        if os.path.exists(place.database):
            trouble = [f"the index cannot be read: {error.message}"]
    if budget is None:
        composed = compose(place.root, agent_id, shared=shared)
    else:
        composed = compose(place.root, agent_id, shared=shared, limit=budget, size=estimate_tokens)
    composed.troubles[:0] = trouble
    return composed


def at_prompt(
    place: IndexPlace,
    agent_id: str,
    prompt: str,
    *,
    shared: bool = False,
    budget: int | None = None,
    counted: bool = True,
) -> SessionContext:
    """Returns what memory holds on a prompt, in at most `budget` tokens; it counts as seen unless not `counted`.

    Raises `WorkspaceError`, `DatabaseError`.
    """
    from signet_sync.pages.prompt_context import prompted  # slow import, not needed at a session's start

    if counted and not shared:
        catch_up(place, agent_id)
    with reading(place) as database:
        composed = prompted(place.root, database, agent_id, prompt, shared=shared, budget=budget)
    if counted:
        count_nodes(place, agent_id, composed.ids)
    return composed


def document(agent_id: str, composed: SessionContext, *, shared: bool) -> dict[str, Any]:
    """Returns the document of `context --json`."""
    return {
        "agent_id": agent_id,
        "scope": "shared" if shared else "main",
        "tokens": estimate_tokens(composed.text),
        "text": composed.text,
        "sources": composed.sources,
    }
