"""Restores or accepts violations, between two passes: verdicts as of now, then the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from signet_sync.integrity import operations
from signet_sync.integrity.operations import BatchResult
from signet_sync.sync.engine import run_pass
from signet_sync.sync.request import Request
from signet_sync.sync.store import violations
from signet_sync.sync.workspace import Workspace

# Asks for consent, given the number of files, once their verdicts are as of now; raises to stop.
Ask = Callable[[int], None]


def restore(
    workspace: Workspace, paths: Sequence[str], now_us: int, ask: Ask, *, agent: str | None = None,
    accepted: bool = False,
) -> BatchResult:  # fmt: skip
    """Writes the sealed bytes of files back: of these paths, else of all open violations (of an agent).

    `accepted`: of all missing files whose absence was accepted. Trouble with one of several is recorded.
    """
    wanted = _choose_paths(workspace, paths, now_us, ask, agent, accepted=accepted)
    if len(paths) == 1:
        kept = operations.restore(workspace, paths[0], now_us)
        settled = BatchResult(wanted, {} if kept is None else {paths[0]: kept})
    else:
        settled = operations.restore_all(workspace, wanted, now_us)
    run_pass(workspace, Request(now_us=now_us))
    return settled


def accept(
    workspace: Workspace, paths: Sequence[str], reason: str, now_us: int, ask: Ask, *, agent: str | None = None
) -> BatchResult:
    """Seals the present content of these files, else of all open violations, or accepts that they are gone."""
    wanted = _choose_paths(workspace, paths, now_us, ask, agent)
    if len(paths) == 1:
        operations.accept(workspace, paths[0], reason, now_us)
        settled = BatchResult(wanted)
    else:
        settled = operations.accept_all(workspace, wanted, reason, now_us)
    run_pass(workspace, Request(now_us=now_us, reread=frozenset(settled.done)))
    return settled


def _choose_paths(
    workspace: Workspace, paths: Sequence[str], now_us: int, ask: Ask, agent: str | None, *, accepted: bool = False
) -> list[str]:
    run_pass(workspace, Request(now_us=now_us, project=False))
    if accepted:
        found = [one.path for one in violations.list_accepted_gone(workspace.database)]
    else:
        found = [one.path for batch in violations.batches(workspace.database, agent) for one in batch.files]
    wanted = list(dict.fromkeys(paths or found))
    if wanted:
        ask(len(wanted))
    return wanted
