"""Stores quotes of the newest sessions of each thread; reads those of a project. Imports nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING

from signet_sync.graph.nodes import Place, make_place, possible_roots
from signet_sync.storage.database.batches import Session, rows_of_sessions
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.text.phrases import Quote, QuotedSession

if TYPE_CHECKING:
    from signet_sync.digest.quotes import SessionWords

_CONTINUABLE = 20  # the newest sessions of a project, among which one of the same folder comes first
_KNOWN = 60  # the newest sessions of a thread, of which quotes and deeds are kept: these may end a statement


def newest(database: Database, agent_id: str, thread_id: str) -> dict[Session, int]:
    """Returns the newest sessions of a thread, in this order, with their numbers."""
    rows = database.execute(
        "select t.agent_id, t.session_token, t.session_id, s.session from thread_sessions t"
        " join sessions s using (agent_id, session_token, session_id) where t.agent_id = ? and t.thread_id = ?"
        f" order by t.latest_us desc, t.session_token, t.session_id limit {_KNOWN}",
        (agent_id, thread_id),
    )
    return {row[:3]: row[3] for row in rows}


def list_known(database: Database, agent_id: str, thread_id: str) -> set[int]:
    """Returns the numbers of a thread's sessions of which quotes and deeds are kept."""
    known = "select session from session_notes where agent_id = ? and thread_id = ?"
    return {*database.column(known, (agent_id, thread_id))}


def store(database: Database, number: int, agent_id: str, thread_id: str, said: SessionWords | None) -> bool:
    """Makes the quotes and deeds of a session those given; returns whether they were others. In a transaction."""
    deeds, worked, quotes = (said.deeds, said.worked_commands, said.quotes) if said else ((), (), ())
    lines = "\n".join(deeds), "\n".join(worked)
    row = number, agent_id, thread_id, *lines, json.dumps(quotes, ensure_ascii=False)
    if list(database.execute("select * from session_notes where session = ?", (number,))) == [row]:
        return False
    database.execute("insert or replace into session_notes values(?, ?, ?, ?, ?, ?)", row)
    return True


def drop(database: Database, numbers: Iterable[int]) -> None:
    """Deletes the quotes and deeds of sessions. In the caller's transaction."""
    database.executemany("delete from session_notes where session = ?", [(number,) for number in numbers])


def read_of_session(database: Database, session: Session) -> tuple[Quote, ...]:
    found = database.value(
        "select q.quotes from sessions s cross join session_notes q using (session)"
        " where s.agent_id = ? and s.session_token = ? and s.session_id = ?",
        session,
    )
    return tuple(Quote(*one) for one in json.loads(found or "[]"))


def read_last(
    database: Database,
    agent_id: str,
    threads: Iterable[str],
    until_us: int,
    folder: str | None,
    first: Collection[str],
    but: Collection[str],
) -> QuotedSession | None:
    """Returns the session that work in a folder continues: the newest one in it, else the newest of some threads.

    Before it those of the nodes that come `first`; none of those in `but`, of other branches.
    """
    rows = database.execute(
        "select t.session_token, t.session_id, t.latest_us, t.node_id, exists(select 1 from session_projects p"
        " where p.agent_id = t.agent_id and p.session_token = t.session_token and p.session_id = t.session_id"
        " and p.folder = ?4) from (select * from thread_sessions where agent_id = ?1"
        " and thread_id in (select value from json_each(?2)) and latest_us <= ?3"
        " and node_id not in (select value from json_each(?5))"
        f" order by latest_us desc, session_token, session_id limit {_CONTINUABLE}) t",
        (agent_id, json.dumps(list(threads)), until_us, folder or "", json.dumps(list(but))),
    )
    # A stable order: the first ones, the newest of those in the folder, then the newest of all.
    for token, session_id, latest_us, node, _ in sorted(rows, key=lambda row: (row[3] not in first, not row[-1])):
        if quoted := read_of_session(database, (agent_id, token, session_id)):
            return QuotedSession(latest_us, quoted, node)
    return None


# ── reads where sessions worked, and finds the repositories they belong to by what other sessions' files name ──

Row = tuple[str, str, str, str, str, str, str]  # a row of `session_projects`

_COLUMNS = "agent_id, session_token, session_id, folder, root, origin, identity"
# Of a table: its columns of roots and origins.
_ARTIFACTS = ("memory_artifacts", "repository_root", "repository_origin")
_ROWS = ("session_projects", "root", "origin")


def find_only_origin(database: Database, agent_id: str, root: str, among: tuple[str, str, str] = _ROWS) -> str | None:
    """Returns the origin of a root, empty if it has none or several; None if no row names the root.

    A folder that held several repositories in turn says nothing about a session that names no origin.
    """
    table, root_column, origin_column = among
    where = f"from {table} where agent_id = ? and {root_column} = ?"
    if not database.value(f"select exists(select 1 {where})", (agent_id, root)):
        return None
    first, last = (
        database.value(f"select {which}({origin_column}) {where} and {origin_column} > ''", (agent_id, root))
        for which in ("min", "max")
    )
    return first if first is not None and first == last else ""


class Projects:
    """Finds the projects of places, and keeps what was found: only for as long as no artifact is written."""

    def __init__(self, database: Database) -> None:
        self._origin_of = cache(lambda agent_id, root: find_only_origin(database, agent_id, root, _ARTIFACTS))

    def find(self, agent_id: str, place: Place) -> str:
        """Returns the identity of a place's project; empty if it has none."""
        if place.origin:
            return place.origin
        for root in possible_roots(place):
            if (origin := self._origin_of(agent_id, root)) is not None:
                return origin or root
        return place.root or place.folder


def read_rows(database: Database, sessions: Iterable[Session]) -> set[Row]:
    return set(rows_of_sessions(database, _COLUMNS, "session_projects", list(sessions)))


def make_rows(database: Database, sessions: Iterable[Session]) -> set[Row]:
    """Returns the rows that the artifacts of some sessions give."""
    projects = Projects(database)
    columns = "agent_id, session_token, session_id, project, repository_root, repository_origin"
    found = rows_of_sessions(
        database, f"distinct {columns}", "memory_artifacts", list(sessions), by="memory_artifacts_session"
    )
    rows = set()
    for agent_id, token, session_id, *named in found:
        place = make_place(*named)
        if place.folder or place.root:
            rows.add((agent_id, token, session_id, *place, projects.find(agent_id, place)))
    return rows


def replace(database: Database, gone: Iterable[Row], come: Iterable[Row]) -> None:
    """Deletes some rows and writes others. In the caller's transaction."""
    database.executemany(
        "delete from session_projects where agent_id = ? and session_token = ? and session_id = ?"
        " and folder = ? and root = ? and origin = ?",
        sorted(row[:6] for row in gone),
    )
    database.executemany(f"insert or replace into session_projects values({placeholders(7)})", sorted(come))


def find_moved(database: Database, agent_id: str, root: str) -> set[Session]:
    """Returns the sessions at or below a root that name no origin, and whose project is another one by now."""
    projects = Projects(database)
    below = database.execute(
        f"select {_COLUMNS} from session_projects where agent_id = ?1 and root = ?2 and origin = ''"
        f" union select {_COLUMNS} from session_projects where agent_id = ?1 and root = '' and folder = ?2"
        # `0` sorts directly after `/`.
        f" union select {_COLUMNS} from session_projects"
        " where agent_id = ?1 and root = '' and folder > ?2 || '/' and folder < ?2 || '0'",
        (agent_id, root),
    )
    return {
        (agent_id, token, session_id)
        for _, token, session_id, *place, identity in list(below)
        if projects.find(agent_id, Place(*place)) != identity
    }
