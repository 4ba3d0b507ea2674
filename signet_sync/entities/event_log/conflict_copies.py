"""Merges conflict copies of an event log: appends the entries that it lacks, and deletes the copy."""

from __future__ import annotations

from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log import files as event_log_files
from signet_sync.entities.repository import Garden
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage import files


def merge(garden: Garden) -> None:
    """Merges every conflict copy; a damaged one is left to a person.

    The result depends only on log and copy: machines that merge the same copy write the same bytes. The workspace's
    lock is held. Raises `WorkspaceError`, `OSError`.
    """
    for month, path in event_log_files.copies(garden.workspace.root, garden.agent_id):
        raw = event_log_files.read(garden.workspace.root, path)
        news = chain.missing(garden.ledger.lines(), chain.lines_of(month, raw))
        if news is None:
            continue
        if news:
            garden.ledger.add(news, parse_instant(f"{month}-01T00:00:00.000Z") or 0)
            garden.forget_told(None)
        files.retract(garden.workspace.root, path, raw)
