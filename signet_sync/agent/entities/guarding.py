"""What belongs to people: pins and locks against an agent's writes, and their word on what an agent proposes."""

from __future__ import annotations

from signet_sync.agent.entities.answers import Done
from signet_sync.agent.workspace import Workspace
from signet_sync.entities.events import Actor


def pin(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str | None = None,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Keeps a section (None: the whole entity) from an agent's writes because it matters as it is.

    Raises `UsageError`: `actor-refused` for an agent, and as `operations.set_section`.
    """
    raise NotImplementedError


def unpin(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str | None = None,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Takes a pin away. Raises as `pin`."""
    raise NotImplementedError


def lock(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str | None = None,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Keeps a section (None: the whole entity) from an agent's writes. Raises as `pin`."""
    raise NotImplementedError


def unlock(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str | None = None,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Takes a lock away. Raises as `pin`."""
    raise NotImplementedError


def propose(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str,
    text: str,
    *,
    actor: Actor = "agent",
    rationale: str | None = None,
    evidence: str | None = None,
    now_us: int,
    key: str | None = None,
) -> Done:
    """Puts a text before a person, for a section that an agent may not write; `event_id` is the proposal's name.

    A narrative section would be set to it, a list get it as an item. Raises as `operations.set_section`.
    """
    raise NotImplementedError


def approve(
    workspace: Workspace,
    agent_id: str,
    proposal: str,
    *,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Does what was proposed (named by its event's id, a prefix of it, or its `ev:…`).

    Raises `UsageError`: `unknown-proposal`, `actor-refused`, and as `operations.set_section`.
    """
    raise NotImplementedError


def reject(
    workspace: Workspace,
    agent_id: str,
    proposal: str,
    *,
    reason: str | None = None,
    actor: Actor = "person",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Ends a proposal; it stays in the ledger. Raises as `approve`."""
    raise NotImplementedError
