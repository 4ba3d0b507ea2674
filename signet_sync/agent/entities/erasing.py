"""A removal reaches entities: evidence and words of what was removed leave files and ledger, the chain stays whole."""

from __future__ import annotations

from collections.abc import Iterable

from signet_sync.agent.entities.answers import Erased
from signet_sync.agent.workspace import Workspace


def erase(
    workspace: Workspace,
    agent_id: str,
    *,
    paths: Iterable[str],
    needles: Iterable[bytes],
    tombstone: str,
    now_us: int,
) -> Erased:
    """Takes what rests on these artifacts (paths), or holds one of the words, out of an agent's entities.

    `tombstone` is the path of the removal's tombstone; the workspace's lock is held. Again changes nothing.
    """
    raise NotImplementedError
