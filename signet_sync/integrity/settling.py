"""Restores or accepts the violations that a filter selects, between two passes: verdicts as of now, then the rows."""

from __future__ import annotations

from collections.abc import Callable

from signet_sync.integrity import operations
from signet_sync.integrity.operations import BatchResult, ViolationFilter
from signet_sync.sync.engine import run_pass
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace

# Asks for consent, given the number of files, once their verdicts are as of now; raises to stop.
Ask = Callable[[int], None]


def restore(workspace: Workspace, which: ViolationFilter, now_us: int, ask: Ask) -> BatchResult:
    """Writes the sealed bytes of the selected files back."""
    paths = _selected(workspace, which, now_us, ask)
    if which.is_one:
        kept = operations.restore(workspace, paths[0], now_us)
        settled = BatchResult(paths, {} if kept is None else {paths[0]: kept})
    else:
        settled = operations.restore_all(workspace, paths, now_us)
    run_pass(workspace, Request(now_us=now_us))
    return settled


def accept(workspace: Workspace, which: ViolationFilter, reason: str, now_us: int, ask: Ask) -> BatchResult:
    """Seals the present content of the selected files, or accepts that they are gone."""
    paths = _selected(workspace, which, now_us, ask)
    if which.is_one:
        operations.accept(workspace, paths[0], reason, now_us)
        settled = BatchResult(paths)
    else:
        settled = operations.accept_all(workspace, paths, reason, now_us)
    run_pass(workspace, Request(now_us=now_us, reread=frozenset(settled.done)))
    return settled


def _selected(workspace: Workspace, which: ViolationFilter, now_us: int, ask: Ask) -> list[str]:
    run_pass(workspace, Request(now_us=now_us, project=False))
    paths = operations.select(workspace.database, which)
    if paths:
        ask(len(paths))
    return paths
