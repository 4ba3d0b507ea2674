"""Promotes memories that were recalled often and by different queries into MEMORY.md; DREAMS.md gives the reasons.

Both pages are made from rows that one transaction writes: after a sweep is killed, either it had no effect, or the next
pass shows its result.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.ids import require_agent
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.memories import operations as memories_operations
from signet_sync.memories import promotion_score
from signet_sync.memories.promotion_score import Promotion
from signet_sync.memories.store import promotions
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.database import back_up
from signet_sync.sync.deriving import publish_pages
from signet_sync.sync.store import counts
from signet_sync.sync.workspace import Workspace


class RecalledMemory(NamedTuple):
    """A recalled memory, with its present signals, what it lacks for promotion, and whether it has been promoted."""

    memory: Promotion
    lacks: tuple[str, ...]
    risen: bool


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep considered and promoted, best first; `deferred`: another one was running, and nothing was done.

    `waiting` is the reason why the page does not show it yet.
    """

    sweep_id: str
    candidates: int
    skipped: int
    promoted: tuple[Promotion, ...]
    dry_run: bool = False
    deferred: bool = False
    waiting: str = ""


def dream(
    workspace: Workspace,
    agent_id: str,
    now_us: int,
    *,
    dry_run: bool = False,
    patience: float = 60.0,
) -> SweepResult:
    """Sweeps an agent's memories; with `dry_run` nothing is written. Repeating it with one `now_us` changes nothing.

    If the workspace is locked for more than `patience` seconds, the sweep is deferred. The caller commits to the
    history.

    Raises `UsageError` (`unknown-agent` among them), `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    if dry_run:
        _require_known(workspace, agent_id)
        return _weigh(workspace, agent_id, now_us)
    try:
        with state_dir.lock(workspace.state, "dream"), state_dir.workspace_lock(workspace.state, patience):
            memories_operations.first_pass(workspace, now_us)
            _require_known(workspace, agent_id)
            prune(workspace, now_us)
            swept = _weigh(workspace, agent_id, now_us, dry_run=False)
            with workspace.database.transaction(durable=True):
                sweep = (swept.sweep_id, now_us, swept.candidates, len(swept.promoted), swept.skipped)
                promotions.store(workspace.database, agent_id, sweep, swept.promoted)
            shown = publish_pages(workspace, agents={agent_id}, now_us=now_us)
            back_up(workspace, iso(now_us))
            waiting = memories_operations.waiting_for(agent_id, shown) if shown.held else next(iter(shown.trouble), "")
            return replace(swept, waiting=waiting)
    except WorkspaceError as error:
        if error.code != "busy":
            raise
        return SweepResult(promotion_score.sweep_id(now_us), 0, 0, (), deferred=True)


def _require_known(workspace: Workspace, agent_id: str) -> None:
    """Refuses unknown agents: a mistyped name must not create a DREAMS.md."""
    wrong = counts.unknown(workspace.database, agent_id)
    if wrong is not None and promotions.last_sweep(workspace.database, agent_id) is None:
        raise wrong


def _weigh(workspace: Workspace, agent_id: str, now_us: int, *, dry_run: bool = True) -> SweepResult:
    """Determines what a sweep would promote."""
    found = weigh_recalled(workspace.database, workspace.settings, agent_id, now_us)
    fresh = [one for one in found if not one.risen]
    chosen = [one.memory for one in fresh if not one.lacks][: workspace.settings.dream_max_promotions]
    return SweepResult(promotion_score.sweep_id(now_us), len(found), len(found) - len(fresh), tuple(chosen), dry_run)


def weigh_recalled(database: Database, settings: Settings, agent_id: str, now_us: int) -> list[RecalledMemory]:
    """Returns recalled memories as a sweep would weigh them now, best first; writes nothing."""
    found = []
    # Expired hits do not count, even if not yet deleted.
    since_us = now_us - int(settings.recall_retention_days * DAY) if settings.recall_retention_days else 0
    for one, totals, risen in promotions.list_found_since(database, agent_id, since_us):
        memory = promotion_score.weigh(one, totals, now_us)
        lacks = () if risen else promotion_score.lacking(memory, settings.dream_min_score)
        found.append(RecalledMemory(memory, lacks, risen))
    return sorted(found, key=lambda one: promotion_score.order(one.memory))


def prune(workspace: Workspace, now_us: int) -> int:
    """Deletes hits of all agents past their retention; returns their number."""
    days = workspace.settings.recall_retention_days
    if not days:
        return 0
    with workspace.database.transaction():
        return promotions.drop_before(workspace.database, now_us - int(days * DAY))


# ── schedule ──


def due(workspace: Workspace, now_us: int) -> Iterator[str]:
    """Yields agents whose sweep is due: one interval after the last sweep, or after the first hit.

    Times in the future, left by a clock that has been set back, are ignored.
    """
    interval = int(workspace.settings.dream_interval * SECOND)
    for agent_id in counts.agents(workspace.database):
        first = promotions.first_at(workspace.database, agent_id)
        if first is None:
            continue
        last = promotions.last_sweep(workspace.database, agent_id, until_us=now_us)
        since = max((at_us for at_us in (first, last) if at_us is not None and at_us <= now_us), default=None)
        if since is None or now_us - since >= interval:
            yield agent_id
