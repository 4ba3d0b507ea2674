"""Supervises the agent's database: opens it again when it was lost, checks its pages, moves a damaged one away."""

from __future__ import annotations

from contextlib import suppress

import apsw

from signet_sync.errors import DatabaseCorrupt, WorkspaceError
from signet_sync.formats.timestamps import DAY, iso, parse_instant
from signet_sync.log import logger
from signet_sync.storage.database.connection import is_suspect
from signet_sync.storage.database.tables import native_tables
from signet_sync.storage.locations import now_us
from signet_sync.sync.database import examine, put_aside, reopen
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Workspace

# SIGTERM must end the agent within two seconds, even if another process works on the database.
BUSY_MS = 800
# Damage of pages that no query reads would be noticed only after the backups with good copies are gone.
EXAMINE_EVERY = DAY
LONGEST_BACKOFF = 60.0


class DatabaseSupervisor:
    """Supervises the database of a workspace for as long as the agent runs."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.lost = False
        self._shorten_timeout()

    def ensure_open(self) -> bool:
        """Reopens the database if its file is no longer the one that we write, or `lost` was set; returns True if so.

        Raises `DatabaseError`; then the next call tries again. One that another version of signet-sync took over is not
        opened again: that would take it over once more.
        """
        with suppress(apsw.Error):  # closed, or not readable
            self.workspace.database.refuse_changed()
        if self.workspace.database.replaced():
            logger.warning("the database or its log was deleted or replaced; it is opened again")
        elif not self.lost:
            return False
        self.lost = True
        with suppress(apsw.Error):
            self.workspace.database.connection.close()
        reopen(self.workspace)
        self._shorten_timeout()
        self.lost = False
        return True

    def check(self, *, deeper: bool = False) -> None:
        """Checks every page after a reader found damage, and where `deeper` once a day. Raises `DatabaseCorrupt`.

        Never by opening the file: closing it would drop SQLite's locks. Other errors are left to the code that meets
        them.
        """
        database, at_us = self.workspace.database, now_us()
        if is_suspect(database.path):
            examine(database)
        elif deeper:
            before = parse_instant(passes.get(database, "examined_at") or "")
            if before is None or abs(at_us - before) > EXAMINE_EVERY:
                examine(database, native_tables())
                with database.transaction():
                    passes.put(database, "examined_at", iso(at_us))

    def move_aside(self, error: DatabaseCorrupt) -> None:
        """Moves a damaged database away, so that the next `ensure_open` creates a new one."""
        self.lost = True
        try:
            put_aside(self.workspace, error)
        except (OSError, WorkspaceError) as trouble:
            logger.error("the damaged database cannot be moved aside: {}", trouble)

    def _shorten_timeout(self) -> None:
        self.workspace.database.connection.set_busy_timeout(BUSY_MS)


def backoff(failures: int) -> float:
    """Returns the seconds to wait after so many failures in a row."""
    return float(min(2.0 ** (failures - 1), LONGEST_BACKOFF))


def short(message: str) -> str:
    """Shortens a message to fit into a state's line."""
    return message if len(message) <= 160 else message[:159] + "…"
