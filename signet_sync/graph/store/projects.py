"""Reads where sessions worked, and finds the repositories they belong to by what other sessions' files name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from signet_sync.graph.nodes import Place, make_place, possible_roots
from signet_sync.storage.database.batches import Session, rows_of_sessions
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders

Row = tuple[str, str, str, str, str, str, str]  # a row of `session_projects`

_COLUMNS = "agent_id, session_token, session_id, folder, root, origin, identity"
# Of a table: its columns of roots and origins.
_ARTIFACTS = ("memory_artifacts", "repository_root", "repository_origin")
_ROWS = ("session_projects", "root", "origin")


def only_origin(database: Database, agent_id: str, root: str, among: tuple[str, str, str] = _ROWS) -> str | None:
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
        self._origin_of = cache(lambda agent_id, root: only_origin(database, agent_id, root, _ARTIFACTS))

    def find(self, agent_id: str, place: Place) -> str:
        """Returns the identity of a place's project; empty if it has none."""
        if place.origin:
            return place.origin
        for root in possible_roots(place):
            if (origin := self._origin_of(agent_id, root)) is not None:
                return origin or root
        return place.root or place.folder


def read_rows(database: Database, sessions: Iterable[Session]) -> set[Row]:
    """Returns the rows of some sessions."""
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
