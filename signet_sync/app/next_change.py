"""Finds how long a workspace in which nothing changes needs no pass."""

from __future__ import annotations

from signet_sync.formats.timestamps import DAY, iso
from signet_sync.integrity import store as integrity_store
from signet_sync.memories.score import day_start
from signet_sync.memories.store import recall_events
from signet_sync.pages.store import pages
from signet_sync.storage.database import native_backup
from signet_sync.sync import outbox
from signet_sync.sync.store import counts, passes
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace


def lasts_until(workspace: Workspace, now_us: int) -> int | None:
    """Returns until when time alone changes nothing after a pass that found nothing to do; None if something waits."""
    database, settings = workspace.database, workspace.settings
    if passes.any_due(database) or native_backup.is_due(database):
        return None
    if tombstones_store.unscrubbed(database) or counts.dated_after(database, now_us) is not None:
        return None
    if outbox.any_waits(database):
        return None
    next_us = pages.next_instant(database)
    until = day_start(now_us) + DAY
    until = min(until, next_us) if next_us is not None else until
    if settings.seals_keep_days and integrity_store.older(database, iso(until - int(settings.seals_keep_days * DAY))):
        return None
    hits = settings.recall_retention_days
    if hits and recall_events.any_before(database, until - int(hits * DAY)):
        return None
    return until
