"""Rows by what the terms that they hold are worth, the best first; no more of them than somebody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from itertools import count

_ROUNDING = 1e-9  # sums of the same weights in another order


def by_worth(
    roots: Sequence[tuple[AbstractSet[int], int]], holding: Sequence[AbstractSet[int]], weights: Sequence[float]
) -> Iterator[list[int]]:
    """Row numbers in groups of equal worth, those that are worth most first.

    A row of `roots`, each in one of them at most, is worth the weights of what it holds, from the term on that stands
    beside it; `holding` says for each term what holds it. Rows are told apart term by term, and only those among which
    the best may still be: of thousands few are.
    """
    turn = count()
    # What all rows of a part are worth at most; the terms left to tell them apart; those that all of them hold.
    parts: list[tuple[float, int, AbstractSet[int], list[int], frozenset[int]]] = []
    whole: list[tuple[float, int, AbstractSet[int]]] = []

    def put(rows: AbstractSet[int], left: list[int], held: frozenset[int]) -> None:
        if rows:
            most = sum(weights[term] for term in left) + sum(weights[term] for term in held)
            heappush(parts, (-most, next(turn), rows, left, held))

    for rows, first in roots:
        put(rows, sorted(range(first, len(holding)), key=lambda term: weights[term]), frozenset())
    while parts or whole:
        while parts and (not whole or parts[0][0] <= whole[0][0] + _ROUNDING):
            _, _, rows, left, held = heappop(parts)
            if left:
                term = left[-1]
                having = rows & holding[term]
                put(having, left[:-1], held | {term})
                put(rows - having if having else rows, left[:-1], held)
            else:
                worth = sum(weights[term] for term in sorted(held))
                heappush(whole, (-worth, next(turn), rows))
        worth, _, rows = heappop(whole)
        group = list(rows)
        while whole and whole[0][0] == worth:
            group += heappop(whole)[2]
        yield group
