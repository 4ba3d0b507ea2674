"""What stands in an agent's entities and their ledger, for whoever asks: shown, listed, checked, told again."""

from __future__ import annotations

from signet_sync.agent.entities.answers import Listed, Logged, Proposal, Remark, Replay, Shown, Source
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.gardens import Kind


def show(workspace: Workspace, agent_id: str, ref: str, *, now_us: int) -> Shown:
    """An entity with its sections. Raises `UsageError` (`unknown-entity`, `ambiguous-entity`)."""
    raise NotImplementedError


def listing(workspace: Workspace, agent_id: str, *, kind: Kind | None = None, now_us: int) -> list[Listed]:
    """The entities of an agent, by kind and title."""
    raise NotImplementedError


def lint(workspace: Workspace, agent_id: str, ref: str | None = None, *, now_us: int) -> list[Remark]:
    """What is untidy about an entity's files (None: those of all). Raises as `show`."""
    raise NotImplementedError


def verify(workspace: Workspace, agent_id: str) -> list[Remark]:
    """What is wrong with an agent's ledger: edits, gaps, a lost end; nothing where it stands as it was written."""
    raise NotImplementedError


def replay(workspace: Workspace, agent_id: str, ref: str) -> Replay:
    """An entity as its events tell it, compared with its files; writes nothing. Raises as `show`."""
    raise NotImplementedError


def drift(workspace: Workspace, agent_id: str) -> list[Remark]:
    """The maintainer's queue: files that differ from their events in a way that nobody may settle by himself."""
    raise NotImplementedError


def log(workspace: Workspace, agent_id: str, ref: str | None = None, *, limit: int = 0) -> list[Logged]:
    """The events of an entity (None: of all), newest first; `limit` 0: every one. Raises as `show`."""
    raise NotImplementedError


def proposals(workspace: Workspace, agent_id: str, ref: str | None = None) -> list[Proposal]:
    """Proposals that wait for a person's word, oldest first. Raises as `show`."""
    raise NotImplementedError


def source(workspace: Workspace, agent_id: str, token: str) -> Source:
    """What an `ev:…` leads to. Raises `UsageError` (`token-invalid`, `unknown-event`)."""
    raise NotImplementedError
