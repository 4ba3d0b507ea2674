"""Remembers texts on request, and promotes memories that were recalled often and by different queries into MEMORY.md.

DREAMS.md gives the reasons. Both pages are made from rows that one transaction writes: after a sweep is killed, either
it had no effect, or the next pass shows its result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from signet_sync.errors import UsageError
from signet_sync.formats.ids import require_agent, token_of
from signet_sync.formats.paths import MEMORY, head_page
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.memories import score
from signet_sync.memories.score import Promotion
from signet_sync.memories.store import memories, promotions
from signet_sync.memories.store.memories import OWN_WORD, Memory, Origin
from signet_sync.storage import files, state_dir
from signet_sync.sync import deriving, engine
from signet_sync.sync.database import back_up
from signet_sync.sync.index_records import Change
from signet_sync.sync.store import counts, sessions
from signet_sync.sync.tombstones import is_removed
from signet_sync.sync.workspace import Outcome, Pass, Request, Workspace
from signet_sync.text.memory import clean_text, derive_tags, memory_id, tags_of
from signet_sync.text.sanitizer import sanitize_line


@dataclass(frozen=True, slots=True)
class Remembered:
    """A memory as stored; `new`: there was no equal one. `waiting` is the reason why the page does not show it yet."""

    memory: Memory
    new: bool
    redactions: dict[str, int]
    waiting: str


def remember(
    workspace: Workspace,
    agent_id: str,
    text: str,
    *,
    kind: str,
    tags: tuple[str, ...],
    private: bool,
    session: str | None,
    now_us: int,
    project: str = "",
) -> Remembered:
    """Remembers a text for an agent, sanitized, as a person's own or a session's. An equal text is stored once.

    It is for a project, as sessions record it; for "" for all.

    Raises `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    content, redactions = clean_text(text)
    identity = memory_id(agent_id, kind, content)
    told = iso(now_us), derive_tags(content), sanitize_line(project)
    wanted = Memory(agent_id, identity, kind, content, tags_of(tags), private, *told)
    with state_dir.workspace_lock(workspace.state):
        first_pass(workspace, now_us)
        origin = OWN_WORD if session is None else _origin(workspace, agent_id, session)
        with workspace.database.transaction(durable=True):
            memory, new = memories.store(workspace.database, wanted, origin)
        waiting = settle(workspace, agent_id, now_us)
    return Remembered(memory, new, redactions, waiting)


def first_pass(workspace: Workspace, now_us: int) -> None:
    """Runs the first pass over the vault if there was none; without it the page would show no sessions."""
    if deriving.stale(workspace.database, workspace.pipeline) and files.status_of(workspace.root, MEMORY) is not None:
        engine.run_locked(workspace, Request(now_us=now_us))


def _origin(workspace: Workspace, agent_id: str, name: str) -> Origin:
    """Returns the session that a memory comes from. Raises `UsageError` if it is unknown, ambiguous, or was removed."""
    removed = is_removed(workspace, agent_id, token_of(agent_id, name), name)
    ref = None if removed else sessions.one(workspace.database, agent_id, name)
    if ref is None or is_removed(workspace, agent_id, ref.session_token, ref.session_id):
        raise UsageError(
            f"the session {name!r} was removed",
            hint="omit --session to remember it as your own statement",
            code="removed-session",
        )
    return ref.session_token, ref.session_id


def settle(workspace: Workspace, agent_id: str, now_us: int) -> str:
    """Updates the page, and the backup, because memories are in no file. Returns why the page waits."""
    outcome = update_page(workspace, agent_id, now_us)
    back_up(workspace, iso(now_us))
    return explain_delay(agent_id, outcome)


def update_page(workspace: Workspace, agent_id: str, now_us: int) -> Outcome:
    """Runs a pass over the agent's page only."""
    paths = frozenset({head_page(agent_id)})
    return engine.run_locked(workspace, Request(now_us=now_us, paths=paths, resume=False))


def explain_delay(agent_id: str, outcome: Outcome) -> str:
    """Returns the reason why the page is out of date, or an empty string."""
    if outcome.held:
        return f"{head_page(agent_id)} is held back: {outcome.held}"
    if outcome.trouble:
        return f"{head_page(agent_id)} will be updated by the next pass: {outcome.trouble[0]}"
    return ""


def describe_remembered(done: Remembered) -> dict[str, Any]:
    memory = done.memory
    return {
        "id": memory.id,
        "agent_id": memory.agent_id,
        "tags": list(memory.tags),
        "concept_tags": list(memory.concepts),
        "redactions": done.redactions,
        "type": memory.type,
        "private": memory.private,
        "project": memory.project or None,
        "new": done.new,
    }


# ── promotion ──


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep considered and promoted, best first; `waiting` is the reason why the page does not show it yet."""

    sweep_id: str
    candidates: int
    skipped: int
    promoted: tuple[Promotion, ...]
    dry_run: bool = False
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

    The caller commits to the history.

    Raises `UsageError` (`unknown-agent` among them), `DatabaseError`, and `WorkspaceError` (`busy` where the workspace
    is locked for more than `patience` seconds).
    """
    require_agent(agent_id)
    if dry_run:
        _require_known(workspace, agent_id)
        return _weigh(workspace, agent_id, now_us)
    with state_dir.workspace_lock(workspace.state, patience):
        first_pass(workspace, now_us)
        _require_known(workspace, agent_id)
        swept = _weigh(workspace, agent_id, now_us, dry_run=False)
        with workspace.database.transaction(durable=True):
            sweep = (swept.sweep_id, now_us, swept.candidates, len(swept.promoted), swept.skipped)
            promotions.store(workspace.database, agent_id, sweep, swept.promoted)
        shown = Outcome(change=Change(agents={agent_id}))
        deriving.publish(Pass(workspace, Request(now_us, frozenset()), shown), workspace.pipeline.publishers)
        back_up(workspace, iso(now_us))
        waiting = explain_delay(agent_id, shown) if shown.held else next(iter(shown.trouble), "")
        return replace(swept, waiting=waiting)


def _require_known(workspace: Workspace, agent_id: str) -> None:
    """Refuses unknown agents: a mistyped name must not create a DREAMS.md."""
    wrong = counts.make_unknown_error(workspace.database, agent_id)
    if wrong is not None and promotions.last_sweep(workspace.database, agent_id) is None:
        raise wrong


def _weigh(workspace: Workspace, agent_id: str, now_us: int, *, dry_run: bool = True) -> SweepResult:
    """Determines what a sweep would promote: of the memories that were recalled, the best that pass."""
    settings = workspace.settings
    # Expired hits do not count, even if not yet deleted.
    since_us = now_us - int(settings.recall_retention_days * DAY) if settings.recall_retention_days else 0
    found = list(promotions.list_found_since(workspace.database, agent_id, since_us))
    fresh = [score.weigh(memory_id, totals, now_us) for memory_id, totals, risen in found if not risen]
    passing = sorted((one for one in fresh if score.passes(one, settings.dream_min_score)), key=score.order)
    chosen = tuple(passing[: settings.dream_max_promotions])
    return SweepResult(score.sweep_id(now_us), len(found), len(found) - len(fresh), chosen, dry_run)


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
