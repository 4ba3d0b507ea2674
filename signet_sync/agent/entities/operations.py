"""What may be done to an entity: make it, set and add to sections, prune items, change its status or name."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.agent.entities.answers import Done
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.gardens import Kind
from signet_sync.entities.events import Actor


def create(
    workspace: Workspace,
    agent_id: str,
    kind: Kind,
    name: str,
    *,
    relation: str | None = None,
    between: Sequence[str] = (),
    actor: Actor = "agent",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Makes an entity with its profile and notes; a relationship is of a type (`relation`) `between` two or more.

    Raises `UsageError`: `entity-exists`, `text-empty`, `relation-needed`, `unknown-entity`, `idempotency-conflict`.
    """
    raise NotImplementedError


def set_section(
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
    """Gives a narrative section another text; `ref` is an id, a prefix of one, a slug or a title.

    `section` is an anchor or heading, of the notes with `notes/` before it. `evidence` is `PATH#LINE` of an artifact.
    Raises `UsageError`: `unknown-entity`, `ambiguous-entity`, `section-unknown`, `section-form` (a list or log),
    `section-locked`, `section-pinned`, `section-cap` (no rationale), `entity-drifted`, `idempotency-conflict`.
    """
    raise NotImplementedError


def append(
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
    """Adds a paragraph to a narrative section, an item to a list. Evidence is quoted from `evidence` (`PATH#LINE`).

    Raises as `set_section`, and `UsageError` `evidence-cap` for an eighth item of Evidence without a rationale.
    """
    raise NotImplementedError


def prune(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    section: str,
    item: str,
    *,
    reason: str,
    actor: Actor = "agent",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Takes an item (its key or number) out of a list section; the event keeps it. Raises as `set_section`."""
    raise NotImplementedError


def deprecate(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    *,
    reason: str,
    actor: Actor = "agent",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Marks an entity as no longer in use, with the reason; its files stay. Raises as `set_section`."""
    raise NotImplementedError


def set_status(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    status: str,
    *,
    reason: str | None = None,
    actor: Actor = "agent",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Gives an entity another status: a word or a few. Raises as `set_section`."""
    raise NotImplementedError


def rename(
    workspace: Workspace,
    agent_id: str,
    ref: str,
    name: str,
    *,
    actor: Actor = "agent",
    now_us: int,
    key: str | None = None,
) -> Done:
    """Gives an entity another title, and its folder the slug of it; the id stays. Raises as `set_section`."""
    raise NotImplementedError
