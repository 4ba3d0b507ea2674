"""Holds the lease of a MEMORY.md while it is written: no process writes it that another one has overtaken.

Who writes a page holds the workspace's lock, so that a lease which stands is that of a process that died, or that slept
while its lock was taken from it: the next one takes it over at once, and its number fences off the former.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import LeaseBusy
from signet_sync.formats.paths import head_page
from signet_sync.pages.store import pages
from signet_sync.sync.workspace import Workspace


class PageLease:
    """The lease of an agent's page, taken by this process; `content_hash` is set once the page was written."""

    def __init__(self, workspace: Workspace, agent_id: str) -> None:
        self.content_hash: str | None = None
        self._database = workspace.database
        self._agent_id = agent_id
        self._fence = pages.take_lease(workspace.database, agent_id, f"{os.uname().nodename}:{os.getpid()}")

    def require(self) -> None:
        """Raises `LeaseBusy` if the lease was taken over: a process that slept meanwhile writes nothing."""
        if not pages.holds_lease(self._database, self._agent_id, self._fence):
            page = head_page(self._agent_id)
            raise LeaseBusy(f"the lease of {page} was taken over", hint="this will be retried automatically")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Checks the lease while a page is swapped in, holding the database's write lock.

        Taking the lease over needs the same lock, so that cannot happen between the check and the swap.
        """
        with self._database.transaction():
            self.require()
            yield

    def release(self) -> None:
        """Releases the lease. In the caller's transaction."""
        pages.release_lease(self._database, self._agent_id, self._fence, content_hash=self.content_hash)
