"""Reads the running sessions of an agent before a search, so that their last turns are found."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

from signet_sync.capture import spool
from signet_sync.errors import SignetSyncError
from signet_sync.storage.locations import now_us
from signet_sync.sync.read_only import reading

if TYPE_CHECKING:
    from signet_sync.sync.read_only import IndexPlace

# Transcripts of running sessions longer than this in total are left to the agent.
_MOST_READ = 64 * 1024 * 1024  # bytes
_MOMENT_MS = 500


def catch_up(place: IndexPlace, agent_id: str) -> None:
    """Reads what was added to an agent's running sessions since the last read, so that a search finds it.

    Works whether or not an agent is running, also for a session that was killed a moment ago. If nothing was added,
    nothing is opened to write; what cannot be read or written now is left to the agent.
    """
    folder = place.state()
    if not spool.markers(folder.spool):
        return
    from signet_sync.capture import worker  # slow imports, needed only while a session runs
    from signet_sync.sync.workspace import Workspace

    instant = now_us()
    with suppress(SignetSyncError, OSError, apsw.Error):
        with reading(place) as database:
            seen = Workspace(place.root, place.settings(), folder, database, touch_nothing=True)
            moved = [(job, shape) for job, shape in worker.unread(seen, instant) if job.agent_id == agent_id]
        if not moved:
            return
        from signet_sync.capture import intake  # parsers of transcripts

        left = _MOST_READ
        with place.opened() as workspace:
            workspace.database.connection.set_busy_timeout(_MOMENT_MS)
            for job, shape in sorted(moved, key=lambda one: one[0].at, reverse=True):
                left -= intake.length(job)
                if left >= 0:
                    intake.read_running(workspace, job, shape, instant)
