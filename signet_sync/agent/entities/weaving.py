"""Patterns of relationships, kept as marked items among the highlights of an agent's user."""

from __future__ import annotations

from signet_sync.agent.workspace import Workspace

PREFIX = "pattern: "


def weave(workspace: Workspace, agent_id: str, now_us: int) -> tuple[str, ...]:
    """Adds patterns that are new and prunes those that are no more; gives the ids of the events.

    Nothing is done without a user, or where a person has locked or pinned the highlights. The workspace's lock is held.
    """
    raise NotImplementedError
