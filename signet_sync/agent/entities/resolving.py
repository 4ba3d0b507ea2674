"""The maintainer's word on a drifted file: it counts as it stands, or is written again from its events."""

from __future__ import annotations

from typing import Literal

from signet_sync.agent.entities.answers import Done
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.gardens import File
from signet_sync.entities.events import Actor


def resolve(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    keep: Literal["file", "events"],
    *,
    file: File = "profile",
    actor: Actor,
    now_us: int,
) -> Done:
    """Ends the drift of a file; the text that gives way stays in the ledger.

    Raises `UsageError`: `actor-refused` unless a maintainer asks, `not-drifted`, `file-unreadable` (the file is no
    entity file of this id and cannot be kept), `events-incomplete` (the events do not tell it).
    """
    raise NotImplementedError
