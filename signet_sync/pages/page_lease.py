"""Holds the lease of a MEMORY.md while it is written: one process at a time, and none that has lost its lease."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.errors import LeaseBusy
from signet_sync.formats.paths import head_page
from signet_sync.formats.timestamps import iso
from signet_sync.pages.store import pages
from signet_sync.storage.state_dir import process_alive, process_birth
from signet_sync.sync.workspace import Workspace

# Time after which the lease of a page counts as abandoned.
LEASE_SECONDS = 30.0

# Tokens of the leases held by this process.
_HELD: set[str] = set()


class PageLease:
    """The lease of an agent's page, held by this process; `content_hash` is set once the page was written."""

    def __init__(self, workspace: Workspace, agent_id: str, row: pages.Lease, now_us: int) -> None:
        self.content_hash: str | None = None
        self._database = workspace.database
        self._path = head_page(agent_id)
        self._row = row
        self._now_iso = iso(now_us)

    def require(self) -> None:
        """Raises `LeaseBusy` if the lease was taken over: a process that slept past its end writes nothing."""
        if not pages.still_holds(self._database, self._row):
            raise LeaseBusy(f"the lease of {self._path} was taken over", hint="this will be retried automatically")

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
        pages.release_lease(self._database, self._row, content_hash=self.content_hash, now_iso=self._now_iso)


@contextmanager
def page_lease(workspace: Workspace, agent_id: str, now_us: int) -> Iterator[PageLease]:
    """Takes the lease of an agent's page; the caller releases it, or leaves with an exception, which does.

    Raises `LeaseBusy` while another process holds it.
    """
    # Leases use real time, whatever `now` the caller renders for.
    clock = time.time_ns() // 1000
    token = uuid.uuid4().hex
    _HELD.add(token)
    try:
        row = pages.acquire_lease(
            workspace.database,
            agent_id,
            token=token,
            owner=f"{os.uname().nodename}:{os.getpid()}:{process_birth(os.getpid())}",
            now_iso=iso(clock),
            expires_iso=iso(clock + int(LEASE_SECONDS * 1_000_000)),
            abandoned=_is_abandoned,
        )
        lease = PageLease(workspace, agent_id, row, now_us)
        try:
            yield lease
        except BaseException:
            with workspace.database.transaction():
                lease.release()
            raise
    finally:
        _HELD.discard(token)


def _is_abandoned(owner: str, token: str) -> bool:
    """Returns whether a lease has no holder: its owner, a process of this machine, died, or is us and released it.

    So no lease has to expire after a crash, or after losing the row that recorded its release. A dead owner's process
    id may since have been reused.
    """
    host, _, process = owner.partition(":")
    pid, _, birth = process.partition(":")
    if host != os.uname().nodename or not pid.isdigit():
        return False
    if not process_alive(int(pid)) or process_birth(int(pid)) != birth:
        return True
    return int(pid) == os.getpid() and token not in _HELD
