"""The schema of an agent's entities: a field that proved itself under Extensions becomes a section of its kind."""

from __future__ import annotations

from signet_sync.agent.entities.answers import Promoted
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.gardens import Kind
from signet_sync.entities.events import Actor


def promote(
    workspace: Workspace,
    agent_id: str,
    field: str,
    kind: Kind | None = None,
    *,
    actor: Actor,
    now_us: int,
) -> Promoted:
    """Makes `### field` of Extensions a section of a kind (None: the one kind that has it), and migrates the files.

    Raises `UsageError`: `actor-refused` unless a maintainer asks, `unknown-field`, `ambiguous-field`, `field-exists`.
    """
    raise NotImplementedError
