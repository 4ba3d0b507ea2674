"""Runs the full pass of `reindex`; apart from the command, which answers without it if nothing has changed."""

from __future__ import annotations

import os
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
from signet_sync.storage.locations import now_us
from signet_sync.sync.engine import run_pass_mending
from signet_sync.sync.store import counts, passes
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.phrases import count_noun


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
        if not index_only and outcome.cliff is None and _take_spool(context, workspace):
            outcome = run_pass_mending(workspace, Request(now_us=instant))
        document = report.describe_pass(workspace, outcome, instant, rebuild=full)
        if current is not None and not outcome.read:
            until = lasts_until(workspace, instant)
    if current is not None and not context.warnings:
        unchanged.save(current, outcome, document, instant, until)
    return document


def _take_spool(context: Context, workspace: Workspace) -> bool:
    """Captures what hooks spooled, if no agent has done so; returns whether anything was written."""
    folder = workspace.state.spool
    if not os.path.isdir(folder) or not any(name.endswith(".json") for name in os.listdir(folder)):
        return False
    from signet_sync.capture.worker import due  # nearly always the agent has taken them

    if next(due(workspace, now_us()), None) is None:
        return False
    from signet_sync.capture import intake  # parsers of transcripts

    context.log_to_person()
    done = intake.run_capture(workspace, now_us=now_us)
    written = sum(captured.wrote for captured in done.captured)
    failed = f", {len(done.failed)} failed" if done.failed else ""
    context.say(f"{count_noun(written, 'session')} captured from hooks{failed}")
    return written > 0


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
