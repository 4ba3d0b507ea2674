"""Two machines that wrote at once: what a conflict copy of the ledger tells is added to its end, and the copy goes."""

from __future__ import annotations

from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log import files as event_log_files
from signet_sync.entities.repository import Garden
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage import files


def merge(garden: Garden) -> None:
    """Takes in every conflict copy of the ledger; one that is damaged is left to a person.

    Nothing but the ledger and the copy says what is added: machines that merge the same write the same bytes. The
    workspace's lock is held. Raises `WorkspaceError`, `OSError`.
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
