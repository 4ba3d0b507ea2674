"""Runs the full pass of `reindex`; apart from the command, which answers without it if nothing has changed."""

from __future__ import annotations

from typing import Any

from signet_sync.app import unchanged
from signet_sync.app.unchanged import Look
from signet_sync.app.workspace import opened
from signet_sync.cli.main import Context
from signet_sync.formats.timestamps import DAY
from signet_sync.integrity import report
from signet_sync.memories.score import day_start
from signet_sync.memories.store import promotions
from signet_sync.pages.store import pages
from signet_sync.storage.database import native_backup
from signet_sync.sync.engine import run_pass_mending
from signet_sync.sync.store import counts, passes
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Request, Workspace


def run(context: Context, current: Look | None, full: bool, index_only: bool, accept_removals: bool) -> dict[str, Any]:
    """Runs the pass and returns its document; saves what shows the next one that nothing changed."""
    if current is not None:
        unchanged.drop(current)
    settings, instant = context.settings(), context.now_us
    until = None
    with opened(context.root, settings, database=context.chosen_database, touch_nothing=index_only) as workspace:
        with context.progress("indexing") as advance:
            request = Request(now_us=instant, rebuild=full, accept_removals=accept_removals, progress=advance)
            outcome = run_pass_mending(workspace, request)
        document = report.describe_pass(workspace, outcome, instant, rebuild=full)
        if current is not None and not outcome.read:
            until = lasts_until(workspace, instant)
    if current is not None and not context.warnings:
        unchanged.save(current, outcome, document, instant, until)
    return document


def lasts_until(workspace: Workspace, now_us: int) -> int | None:
    """Returns until when time alone changes nothing after a pass that found nothing to do; None if something waits."""
    database, settings = workspace.database, workspace.settings
    if passes.any_due(database) or native_backup.is_due(database):
        return None
    if tombstones_store.is_unscrubbed(database) or counts.any_dated_after(database, now_us):
        return None
    if passes.anything_waits(database):
        return None
    next_us = pages.next_instant(database)
    until = day_start(now_us) + DAY
    until = min(until, next_us) if next_us is not None else until
    hits = settings.recall_retention_days
    if hits and promotions.any_before(database, until - int(hits * DAY)):
        return None
    return until
