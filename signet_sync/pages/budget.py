"""Shares a page's budget of tokens among its parts."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

# Fractions of MEMORY.md's budget for the scored sections, the session log and the temporal index.
SHARES = 0.45, 0.45, 0.10


@dataclass(frozen=True, slots=True)
class Shares:
    """A page's budget by part, in tokens; the caller may pass on what one part leaves unused."""

    head: int
    ledger: int
    index: int


def shares(budget_tokens: int, head: float, ledger: float, index: float) -> Shares:
    """Returns whole tokens for each part of a page, from fractions of one; the remainder goes to the session log.

    The parts never add up to more than the budget.
    """
    total = min(_whole(budget_tokens, head + ledger + index), max(0, budget_tokens))
    for_head = min(_whole(budget_tokens, head), total)
    for_index = min(_whole(budget_tokens, index), total - for_head)
    return Shares(head=for_head, ledger=total - for_head - for_index, index=for_index)


def _whole(budget_tokens: int, share: float) -> int:
    # 100 * 0.29 is 28.999999999999996: a share that is meant to be whole must not lose a token to that.
    return max(0, floor(budget_tokens * share + 1e-6))
