"""The rule table of `secrets.toml`, read at its first use and compiled rule by rule, and the digest that names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import Any

from signet_sync.contracts.secret_shapes import AROUND, CHECKS, VALUE, Check, found

_TABLE = "secrets.toml"
# The looks of `sanitizer` need these two before there is a table.
_SHARED = {"around": AROUND, "value": VALUE}


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    `look` names the look that must have fired; each match holds one of `keywords`, if there are any; `expression`
    finds candidates, and `check` gives the span to replace, or None for a look-alike. `finds` and `leaves` are whole
    texts: in each of the first this rule finds something, in none of the second any rule does.
    """

    name: str
    about: str
    source: str
    look: str
    keywords: tuple[str, ...]
    expression: str
    check: Check
    finds: tuple[str, ...]
    leaves: tuple[str, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression, made when a text first gives reason to."""
        return re.compile(self.expression)


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which they are applied."""
    # Most processes never meet a secret: they need neither the table nor what reads it.
    import tomllib

    table = tomllib.loads(_raw().decode("utf-8"))
    phrases = {**_SHARED, **table["phrases"]}
    return tuple(_rule(row, phrases) for row in table["rule"])


@cache
def table_digest() -> str:
    """Sixteen hex digits that change with any byte of the table."""
    return sha256(_raw()).hexdigest()[:16]


def _raw() -> bytes:
    from pkgutil import get_data

    raw = get_data(__package__, _TABLE)
    assert raw is not None, "the loader of every ordinary installation gives data"
    return raw


def _rule(row: Mapping[str, Any], phrases: Mapping[str, str]) -> Rule:
    return Rule(
        row["name"],
        row["about"],
        row["source"],
        row["look"],
        tuple(row["keywords"]),
        _expanded("".join(line.strip() for line in row["pattern"].splitlines()), phrases),
        CHECKS[row["check"]] if "check" in row else found,
        tuple(map(_joined, row["finds"])),
        tuple(map(_joined, row.get("leaves", ()))),
    )


def _joined(vector: str | list[str]) -> str:
    return "".join(vector)


_PHRASE = re.compile(r"\{\{(\w+)((?: [^ {}]+)*)\}\}")


def _expanded(pattern: str, phrases: Mapping[str, str]) -> str:
    """A pattern with each `{{phrase arguments}}` written out, `$1`, `$2` in the phrase being the arguments."""

    def written_out(match: re.Match[str]) -> str:
        arguments = match[2].split()
        return re.sub(r"\$([1-9])", lambda number: arguments[int(number[1]) - 1], phrases[match[1]])

    while _PHRASE.search(pattern):
        pattern = _PHRASE.sub(written_out, pattern)
    return pattern
