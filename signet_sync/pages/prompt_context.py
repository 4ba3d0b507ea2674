"""Composes the context for a prompt: what an agent's memory holds on it, within a budget of tokens."""

from __future__ import annotations

from functools import partial

from signet_sync.pages import context
from signet_sync.pages.context import PROMPT_BUDGET, PromptHit
from signet_sync.pages.session_context import SessionContext, compose
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.rank import TIERS, Tier, for_prompt
from signet_sync.storage.database.connection import Database
from signet_sync.text.token_estimate import estimate_tokens

_MOST_RECALLED = 12


def prompted(
    root: str, database: Database, agent_id: str, prompt: str, *, shared: bool = False, budget: int | None = None
) -> SessionContext:
    """Returns what memory holds on a prompt, in at most `budget` tokens (else `PROMPT_BUDGET`).

    With `shared`, only memories that are not private, followed by the identity files in what the budget leaves.
    Raises what reading the database raises.
    """
    tiers: tuple[Tier, ...] = ("memory",) if shared else TIERS
    best = partial(for_prompt, limit=_MOST_RECALLED)
    _, found = recall_operations.select_candidates(database, prompt, agent_id, best, tiers=tiers, private=not shared)
    hits = [PromptHit(one.text, one.where, one.path, one.id) for one in found]
    text, kept = context.recalled(hits, budget or PROMPT_BUDGET, estimate_tokens)
    sources = list(dict.fromkeys(hit.path for hit in kept if hit.path is not None))
    ids = [hit.id for hit in kept]
    if not shared:
        return SessionContext(text, sources, [], ids, crowded=bool(hits) and not kept)
    left = None if budget is None else budget - estimate_tokens(text) - 2
    identity = (
        compose(root, agent_id, shared=True)
        if left is None
        else compose(root, agent_id, shared=True, limit=max(left, 0), size=estimate_tokens)
    )
    joined = "\n\n".join(filter(None, [text, identity.text]))
    crowded = not joined and (bool(hits) or identity.crowded)
    return SessionContext(joined, [*sources, *identity.sources], identity.troubles, ids, crowded=crowded)
