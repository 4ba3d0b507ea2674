"""Groups rows by the weight of the terms that they contain, best first; computes only the groups that are requested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from itertools import count

_ROUNDING = 1e-9  # sums of the same weights in another order differ by less


def by_worth(
    roots: Sequence[tuple[AbstractSet[int], int]], holding: Sequence[AbstractSet[int]], weights: Sequence[float]
) -> Iterator[list[int]]:
    """Yields row numbers in groups of equal weight, the highest first.

    `roots` are disjoint row sets, each with the first term number that counts for it. A row's weight is the sum of the
    weights of the terms it contains. `holding` has the rows of each term. Only groups that may come next are split by
    term.
    """
    turn = count()
    # Of each part: the highest weight its rows may have, the terms left to separate them, the terms that all contain.
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
