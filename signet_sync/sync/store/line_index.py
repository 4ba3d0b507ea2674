"""Indexes short texts for `recall`: one line for each memory, fact, thread summary and condensation.

A line is rewritten with almost every change, so FTS5 only marks its former words, which is its default: removing each
at once (`secure-delete`) costs forty times as much. `scour` rebuilds full text without any of them; it must be called
when something is removed for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from signet_sync.storage.database.batches import LISTED, listed, of_ids
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import passes
from signet_sync.text.cjk import indexed

_TEXTS = "select rowid, coalesce(search_text, text) from recall_lines"


class Line(NamedTuple):
    """What is found: `tier` is `memory`, `fact`, `curated`, `thread` or `node`; `id` unique within the agent."""

    agent_id: str
    tier: str
    id: str
    text: str


def put(database: Database, lines: Iterable[Line]) -> None:
    """Writes lines in place of those of the same ids; equal ones are not written again. In the caller's transaction."""
    fresh: list[Line] = []
    for agent_id, some in groupby(sorted(lines), key=itemgetter(0)):
        wanted = {line.id: line for line in some}
        held = set(of_ids(database, "agent_id, tier, id, text", "recall_lines", agent_id, "id", wanted))
        former = {row[2] for row in held}
        changed = [line for line in wanted.values() if line not in held]
        drop(database, agent_id, [line.id for line in changed if line.id in former])
        fresh += changed
    add(database, fresh)


def add(database: Database, lines: Sequence[Line]) -> None:
    """Writes lines whose ids have none yet. In the caller's transaction."""
    if not lines:
        return
    first = (database.value("select max(rowid) from recall_lines") or 0) + 1
    database.executemany(
        "insert into recall_lines(rowid, agent_id, tier, id, text, search_text) values(?, ?, ?, ?, ?, ?)",
        [(first + place, *line, indexed(line.text)) for place, line in enumerate(lines)],
    )
    database.execute(f"insert into recall_lines_fts(rowid, text) {_TEXTS} where rowid >= ?", (first,))


def drop(database: Database, agent_id: str, ids: Sequence[str]) -> None:
    """Forgets lines; their words are found no more, and go from the file with `scour`. In the caller's transaction."""
    if not ids:
        return
    where, bound = f"where agent_id = ? and id {LISTED}", (agent_id, listed(ids))
    database.execute(
        f"insert into recall_lines_fts(recall_lines_fts, rowid, text) select 'delete', * from ({_TEXTS} {where})", bound
    )
    database.execute(f"delete from recall_lines {where}", bound)
    if database.connection.changes():
        passes.expect(database, "scour_due")


def scour(database: Database) -> None:
    """Takes every word of dropped and rewritten lines out of full text, in a transaction of its own.

    Made again and not merged (`optimize`): FTS5 keeps the marks of what went where it takes a merge for a partial one.
    Where no line was dropped since the last time nothing is done.
    """
    if passes.is_due(database, "scour_due"):
        with database.transaction():
            rebuild(database)


def in_step(database: Database) -> bool:
    """Returns whether full text holds exactly as many rows as there are lines."""
    rows = database.value("select count(*) from recall_lines")
    return bool(rows == database.value("select count(*) from recall_lines_fts_docsize"))


def rebuild(database: Database) -> None:
    """Makes all full text from the lines again. In the caller's transaction."""
    database.execute("insert into recall_lines_fts(recall_lines_fts) values('delete-all')")
    database.execute(f"insert into recall_lines_fts(rowid, text) {_TEXTS}")
    passes.done(database, "scour_due")


def clear(database: Database) -> None:
    """Forgets every line. In the caller's transaction."""
    database.execute("insert into recall_lines_fts(recall_lines_fts) values('delete-all')")
    database.execute("delete from recall_lines")
