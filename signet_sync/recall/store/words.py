"""Finds the files of sessions that contain every word of a text, printed by tools too; ranks nothing by meaning."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.recall.query import read
from signet_sync.recall.snippets import snippet
from signet_sync.recall.store.rows import Period, ranges
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_at

_SPOKEN = "transcript"


class FoundFile(NamedTuple):
    """A file that contains every word, with a piece of it; `at_us` is the time that it is of."""

    path: str
    kind: str
    session_token: str
    session_id: str
    at_us: int
    snippet: str


def every_word(text: str) -> str | None:
    """Returns the FTS5 expression for a text that has every word of another one; None without a word."""
    return " AND ".join(term.expression for term in read(text).terms) or None


def files_with(
    database: Database, text: str, *, agent_id: str, period: Period | None = None, limit: int = 10
) -> list[FoundFile]:
    """Returns an agent's files with every word of a text, the best first; accepts any text."""
    expression = every_word(text)
    if expression is None:
        return []
    rows: list[tuple[str, str, str, str, int, str]] = []
    for first, last in ranges(database, agent_id, period, private=True, statements=False):
        rows += database.execute(
            "select a.source_path, a.source_kind, a.session_token, a.session_id, a.membership_us,"
            " coalesce(a.memory_sentence, '') from whole join texts t on t.first = whole.rowid"
            " join memory_artifacts a on a.id = t.artifact where whole match ? and whole.rowid between ? and ?"
            " order by whole.rank, a.membership_us desc, a.source_path limit ?",
            (expression, first, last, max(1, min(limit, 1000))),
        )
    return [
        FoundFile(
            path,
            kind,
            token,
            session_id,
            at_us,
            snippet(text_at(database, path), sentence, text, spoken=kind == _SPOKEN),
        )
        for path, kind, token, session_id, at_us, sentence in rows
        if period is None or period.holds(at_us)
    ]
