"""Stores the quotes of sessions; reads those of one, and of the newest one of a project. Imports nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session, of_values
from signet_sync.storage.database.connection import Database
from signet_sync.text.quotes import Quote, QuotedSession

if TYPE_CHECKING:
    from signet_sync.digest.quotes import SessionWords

_CONTINUABLE = 20  # newest sessions of a project, among which one of the same folder comes first


def store(database: Database, wanted: Mapping[Session, SessionWords | None]) -> None:
    """Makes quotes, deeds and counted notes of sessions equal to the given ones. In the caller's transaction."""
    numbers = batches.numbers(database, wanted)
    columns = "session, place, turn, speaker, at_us, text"
    rows = sorted(of_values(database, columns, "session_quotes", "session", numbers.values()))
    held = {number: list(some) for number, some in groupby(rows, key=lambda row: row[0])}
    noted = of_values(database, "session, notes, deeds", "session_notes", "session", numbers.values())
    counted = {row[0]: [tuple(row)] for row in noted}
    for session, number in numbers.items():
        said = wanted[session]
        fresh = [(number, place, *quote) for place, quote in enumerate(said.quotes if said else ())]
        if held.get(number, []) != fresh:
            database.execute("delete from session_quotes where session = ?", (number,))
            database.executemany("insert into session_quotes values(?, ?, ?, ?, ?, ?)", fresh)
        counted_notes = said.notes if said and (said.worked or said.notes) else None
        deeds = "\n".join(said.deeds) if said else ""
        notes = [(number, counted_notes, deeds)] if deeds or counted_notes is not None else []
        if notes != counted.get(number, []):
            database.execute("delete from session_notes where session = ?", (number,))
            database.executemany("insert into session_notes values(?, ?, ?)", notes)


def noted(database: Database) -> dict[str, tuple[int, int]]:
    """Returns by harness how many sessions that worked, and had a person, ended a turn with a note; and of how many."""
    rows = database.execute(
        "select coalesce(t.harness, ''), sum(n.notes > 0), count(*) from session_notes n join sessions using (session)"
        " join thread_sessions t using (agent_id, session_token, session_id) where n.notes >= 0 group by 1 order by 1"
    )
    return {harness: (some, of) for harness, some, of in rows}


def of_session(database: Database, session: Session) -> tuple[Quote, ...]:
    """Returns the quotes of a session in their order."""
    rows = database.execute(
        "select q.turn, q.speaker, q.at_us, q.text from sessions s cross join session_quotes q using (session)"
        " where s.agent_id = ? and s.session_token = ? and s.session_id = ? order by q.place",
        session,
    )
    return tuple(Quote(*row) for row in rows)


def of_newest(
    database: Database,
    agent_id: str,
    threads: Iterable[str],
    until_us: int,
    folder: str | None,
    without: str = "",
    most: int = 13,
) -> tuple[QuotedSession, ...]:
    """Returns the sessions that work in a folder continues, newest first: of some threads, first those in this folder.

    A folder may be a worktree with a branch of its own. The session called `without` does not continue itself.
    """
    rows = database.execute(
        "select t.session_token, t.session_id, t.latest_us, t.node_id, exists(select 1 from session_projects p"
        " where p.agent_id = t.agent_id and p.session_token = t.session_token and p.session_id = t.session_id"
        " and p.folder = ?4) from (select * from thread_sessions where agent_id = ?1"
        " and thread_id in (select value from json_each(?2)) and latest_us <= ?3 and session_id <> ?5"
        f" order by latest_us desc, session_token, session_id limit {_CONTINUABLE}) t",
        (agent_id, json.dumps(list(threads)), until_us, folder or "", without),
    )
    # A stable order: the newest of those in the folder, then the newest of all.
    found: list[QuotedSession] = []
    for token, session_id, latest_us, node, _ in sorted(rows, key=lambda row: not row[-1]):
        if quoted := of_session(database, (agent_id, token, session_id)):
            found.append(QuotedSession(latest_us, quoted, node))
        if len(found) == most:
            break
    return tuple(found)
