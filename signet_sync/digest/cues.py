"""Words by which a digest tells labels and statements apart; the table is `cues.tsv`, one cue a line with an example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

# The order in which a label is tried; the first kind that fits counts.
LABELS = ("blocker", "next", "decision", "constraint", "preference", "plan", "state", "done")
# A cue stands at a label's beginning, or the label is short: "Two pull requests are open:" is no list of what is open.
_NEAR, _SHORT = 14, 3


class Cue(NamedTuple):
    """A line of the table: what it is a cue for, in which language, its pattern, a text that holds it."""

    kind: str
    language: str
    pattern: str
    example: str


def table() -> Iterator[Cue]:
    """The lines of the table."""
    for line in (resources.files("signet_sync.digest") / "cues.tsv").read_text("utf-8").split("\n"):
        if line and not line.startswith("#"):
            kind, language, pattern, example = line.split("\t")
            yield Cue(kind, language, pattern, example)


class Cues:
    """The table, compiled: one pattern a kind."""

    def __init__(self) -> None:
        patterns: dict[str, list[str]] = {}
        for cue in table():
            patterns.setdefault(cue.kind, []).append(cue.pattern)
        self._patterns = {kind: re.compile("|".join(found), re.IGNORECASE) for kind, found in patterns.items()}
        self._labels: dict[str, str] = {}

    def kind_of(self, label: str) -> str:
        """What a label announces (one of `LABELS`), empty where it is no known one."""
        if len(label) > 120:
            return ""
        known = self._labels.get(label)
        if known is None:
            known = next((kind for kind in LABELS if self._announces(kind, label)), "")
            if len(self._labels) < 2000:
                self._labels[label] = known
        return known

    def _announces(self, kind: str, label: str) -> bool:
        found = self._patterns[f"label.{kind}"].search(label)
        return found is not None and (found.start() < _NEAR or len(label.split()) <= _SHORT)

    def find(self, kind: str, text: str) -> re.Match[str] | None:
        """The first cue of a kind in a text."""
        return self._patterns[kind].search(text)

    def has(self, kind: str, text: str) -> bool:
        """Whether a text holds a cue of a kind."""
        return self._patterns[kind].search(text) is not None


@cache
def cues() -> Cues:
    """The compiled table; made at the first use."""
    return Cues()
