"""Composes the context for a prompt: what an agent's memory holds on it, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from signet_sync.formats.paths import file_of
from signet_sync.pages import context
from signet_sync.pages.context import PROMPT_BUDGET, PromptHit
from signet_sync.pages.session_context import SessionContext, compose
from signet_sync.pages.store import project_inputs
from signet_sync.recall import operations as recall_operations
from signet_sync.recall import prompt_choice
from signet_sync.recall.rank import TIERS, RecallCandidate, Tier, for_prompt
from signet_sync.storage.database.connection import Database
from signet_sync.text.prompt import is_about_earlier_work
from signet_sync.text.token_estimate import estimate_tokens

_MOST_RECALLED = 12


def prompted(
    root: str, database: Database, agent_id: str, prompt: str, *, shared: bool = False, budget: int | None = None
) -> SessionContext:
    """Returns what memory holds on a prompt, in at most `budget` tokens (else `PROMPT_BUDGET`).

    With `shared`, only memories that are not private, followed by the identity files in what the budget leaves.
    Raises what reading the database raises.
    """
    best = partial(for_prompt, limit=_MOST_RECALLED)
    tiers = _tiers(shared)
    _, found = recall_operations.select_candidates(database, prompt, agent_id, best, tiers=tiers, private=not shared)
    hits = [PromptHit(one.text, one.where, file_of(one.path), one.id) for one in found]
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


def worth_injecting(
    database: Database,
    agent_id: str,
    prompt: str,
    belongs: Callable[[str | None], bool],
    *,
    shared: bool = False,
    session_id: str = "",
) -> list[PromptHit]:
    """Returns the hits that are worth interrupting a session for, the best first; none that it said itself.

    `belongs` tells whether a recorded project is the one at hand. Raises what reading the database raises.
    """
    own = project_inputs.OwnRows()
    asks = is_about_earlier_work(prompt)
    if asks and not shared:
        own = project_inputs.own_rows(database, agent_id, belongs)
    found = recall_operations.prompt_candidates(
        database,
        prompt,
        agent_id,
        tiers=_tiers(shared),
        private=not shared,
        threads=own.threads,
        topics=own.topics,
    )
    if found is None:
        return []
    every = (*found.anywhere, *found.own)
    sessions = project_inputs.sessions_of(database, (one.path for one in every if one.path is not None))

    def source(one: RecallCandidate) -> str:
        if one.path is None:
            key, running = one.session or ("", "")
            return running or key or one.id
        return sessions.get(one.path, one.path)

    memories = [one.id for one in every if one.tier == "memory"]
    said = project_inputs.memories_of_session(database, agent_id, session_id, memories)

    def others(some: Collection[RecallCandidate]) -> list[RecallCandidate]:
        # A condensation of several sessions has no file; it may repeat this session.
        return [
            one
            for one in some
            if source(one) != session_id and one.id not in said and not (one.tier == "node" and one.path is None)
        ]

    chosen = prompt_choice.choose(
        found.query,
        found.weights,
        found.heaviest,
        others(found.anywhere),
        others(found.own),
        source,
        asks_about_earlier_work=asks,
    )
    located = (found.located(one) for one in chosen[:_MOST_RECALLED])
    return [PromptHit(one.text, one.where, file_of(one.path), one.id) for one in located if one is not None]


def _tiers(shared: bool) -> tuple[Tier, ...]:
    return ("memory",) if shared else TIERS
