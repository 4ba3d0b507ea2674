"""Searches the sessions of many workspaces, in tables that an index made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_sync.fleet import targets
from signet_sync.fleet.tables import text_index
from signet_sync.fleet.tables.parquet import ParquetTables
from signet_sync.fleet.tables.postgres import PostgresTables, is_database
from signet_sync.fleet.tables.selection import Selection
from signet_sync.formats.paths import display
from signet_sync.recall.snippets import MOST_WORDS, snippet
from signet_sync.text.cjk import spaced
from signet_sync.text.word_forms import folded

_LONGEST_WORD = 500  # characters; a run of Chinese or Japanese is one
_COLUMNS = ("workspace", "agent", "token", "session", "project", "harness", "day", "sentence", "path")


class FleetHit(NamedTuple):
    """A found session: where it is, what it was about, and of what it says the line that has most of the words."""

    workspace: str
    agent_id: str
    session_token: str
    session_id: str
    project: str | None
    harness: str | None
    day: str
    sentence: str
    path: str
    score: float
    snippet: str


def search(query: str, named: Sequence[str], place: str, wanted: Selection, *, install: bool = False) -> dict[str, Any]:
    """Returns the document of `fleet search --json`.

    `named` limits it to workspaces; `install` lets DuckDB fetch its full-text extension. Raises `UsageError`.
    """
    wanted = wanted._replace(workspaces=[display(one) for one in targets.workspaces(named)] if named else ())
    words = " ".join(word[:_LONGEST_WORD] for word in _plain(query).split()[:MOST_WORDS])
    if is_database(place):
        rows = PostgresTables(place).found(spaced(words), wanted)
    else:
        with text_index.opened(ParquetTables(place), install=install) as connection:
            rows = text_index.found(connection, spaced(words), wanted)
    return {"query": query, "hits": [_hit(row, words)._asdict() for row in rows]}


def _plain(query: str) -> str:
    return query.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _hit(row: dict[str, Any], query: str) -> FleetHit:
    score, said = round(float(row["score"]), 6), _said(row, query)
    return FleetHit._make([*(row[name] for name in _COLUMNS), score, said])


def _said(row: dict[str, Any], query: str) -> str:
    """Returns the line of a session with most of the words; empty if its sentence has as many."""
    wanted = [folded(word) for word in query.split()]

    def count(line: str) -> int:
        low = folded(line)
        return sum(word in low for word in wanted)

    best = max(row["words"].split("\n"), key=count)
    return snippet(best, row["sentence"], query) if count(best) > count(row["sentence"]) else ""
