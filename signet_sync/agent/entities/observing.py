"""A look at entity files: what people changed is recorded, what a crash left is settled, drift is put in the queue."""

from __future__ import annotations

from collections.abc import Iterable

from signet_sync.agent.entities.answers import Observed
from signet_sync.agent.workspace import Workspace


def observe(workspace: Workspace, paths: Iterable[str] | None, now_us: int) -> Observed:
    """Looks at entity files and ledger pages (None: those of all agents), by somebody who holds the workspace's lock.

    Settles first (`resume`). A file that is as it was known costs one read.
    """
    raise NotImplementedError


def resume(workspace: Workspace, now_us: int, agent_id: str | None = None) -> Observed:
    """Settles writes that a crash cut off, of one agent or all, by somebody who holds the workspace's lock."""
    raise NotImplementedError
