"""Composes the context for a prompt: what an agent's memory holds on it, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable

from signet_sync.pages import context
from signet_sync.pages.context import PROMPT_BUDGET, PromptHit
from signet_sync.pages.session_context import SessionContext, compose
from signet_sync.pages.store import project_inputs
from signet_sync.recall import operations as recall_operations
from signet_sync.recall import prompt_choice
from signet_sync.recall.query import read
from signet_sync.recall.search import Within
from signet_sync.recall.shown import RankedHit
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
    within = Within(agent_id, private=not shared, statements=shared)
    found = [] if read(prompt).common else recall_operations.recall(database, prompt, within, limit=_MOST_RECALLED)
    hits = [_prompt_hit(one) for one in prompt_choice.without_restated(found)]
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
    asks = is_about_earlier_work(prompt)
    own = project_inputs.names(database, agent_id, belongs) if asks and not shared else ()
    within = Within(agent_id, private=not shared, statements=shared)
    found = prompt_choice.worth_injecting(database, prompt, within, own, asks_about_earlier_work=asks)
    said = project_inputs.of_session(database, agent_id, session_id, [one.id for one in found])
    sessions = project_inputs.sessions_of(database, (one.path for one in found if one.path is not None))
    return [
        _prompt_hit(one)
        for one in found
        if one.id not in said and (one.path is None or sessions.get(one.path, one.path) != session_id)
    ]


def _prompt_hit(hit: RankedHit) -> PromptHit:
    return PromptHit(hit.text, hit.why.partition(", in ")[2], hit.path, hit.id)
