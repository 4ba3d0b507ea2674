"""Keeps the projects of sessions, and finds the sessions whose project changes because another session names a root."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signet_sync.graph.store import nodes, projects
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import MANIFEST, SESSION, Alive, Change, Deriver, Source


class SessionProjects(Deriver):
    """Derives where each session worked, and its project; the graph follows.

    A session whose files name no origin belongs to the repository whose root its folder is at or below, if any session
    names that root. So a root that appears, disappears or changes its origin moves other sessions.
    """

    name = "projects"
    version = "2"
    tables = ("session_projects",)
    kinds = frozenset({SESSION, MANIFEST})  # a manifest alone may name the folder

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every session."""
        return (Source(SESSION, *session) for session in nodes.sessions(database))

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Updates the rows of sessions; returns the sessions that roots moved."""
        sessions = sorted({one.session for one in prepared})
        before, after = projects.stored_rows(database, sessions), projects.made_rows(database, sessions)
        if before == after:
            return Change()
        roots = sorted({(row[0], row[4]) for row in before ^ after if row[4]})
        known = [projects.only_origin(database, *root) for root in roots]
        projects.replace(database, before - after, after - before)
        moved: set[Source] = set()
        for root, origin in zip(roots, known, strict=True):
            alive()
            if projects.only_origin(database, *root) != origin:
                moved.update(Source(SESSION, *session) for session in projects.moved_by(database, *root))
        return Change({one for one in moved if one.session not in sessions})
