"""Invented secrets; they are drawn from a `random.Random`, so that a run can be repeated."""

from __future__ import annotations

import string
from random import Random

ALNUM = string.ascii_letters + string.digits


def some(dice: Random, count: int, alphabet: str = ALNUM) -> str:
    """So many characters."""
    return "".join(dice.choices(alphabet, k=count))
