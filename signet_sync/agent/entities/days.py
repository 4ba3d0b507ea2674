"""The daily roll-up: a past day of an entity's ledger as one entry of its change log."""

from __future__ import annotations

from signet_sync.agent.workspace import Workspace


def rollup(workspace: Workspace, agent_id: str, day: str, now_us: int) -> tuple[str, ...]:
    """Writes the entries of a past day (`YYYY-MM-DD`, UTC) that are missing; gives the profiles that got one.

    Made of the ledger alone, the same for the same events; the workspace's lock is held.
    """
    raise NotImplementedError


def roll_up(workspace: Workspace, now_us: int) -> tuple[str, ...]:
    """`rollup` for every agent and every past day that no roll-up has told yet; the workspace's lock is held."""
    raise NotImplementedError
