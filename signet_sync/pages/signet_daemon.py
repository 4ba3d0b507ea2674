"""Detects a live Signet daemon on the same workspace and holds pages back, so that the two do not overwrite each other.

Held back are MEMORY.md and manifests, which Signet writes too. Pages that only signet-sync writes are still updated if
they exist, and removed text is still deleted from a MEMORY.md of ours: that needs no decision of the user.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from signet_sync.formats import managed_block
from signet_sync.formats.paths import head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages.store import pages
from signet_sync.storage import files

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database
    from signet_sync.sync.workspace import Workspace

PID_FILE = ".daemon/pid"
# Seconds after its last write until a daemon without visible process counts as gone: it may run on another machine.
HOLD = 3600.0


def daemon_pid(root: str) -> int | None:
    """Returns the process id in Signet's pid file, if that process is alive."""
    found = files.read(root, PID_FILE, 64)
    if not isinstance(found, Found):
        return None
    text = found.raw.decode("ascii", "replace").strip()
    if not text.isdigit() or not 1 < int(text) < 1 << 31 or int(text) == os.getpid():
        return None
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return int(text)


def holds(workspace: Workspace, agents: Sequence[str]) -> str:
    """Returns why pages and manifests are held back; empty if they are not, or if the user decided to take over."""
    if workspace.settings.takeover:
        return ""
    pid = daemon_pid(workspace.root)
    if pid is not None:
        return f"a Signet daemon (pid {pid}) is alive on this workspace"
    path, age = replaced(workspace.root, workspace.database, agents)
    return f"Signet replaced {path} after signet-sync had written it" if path and age < HOLD else ""


def replaced(root: str, database: Database, agents: Sequence[str]) -> tuple[str, float]:
    """Returns a page that Signet wrote over one of ours, and how many seconds ago.

    Of several, the one written last; an empty path if there is none.
    """
    found: list[tuple[float, str]] = []
    for agent_id in agents:
        path = head_page(agent_id)
        if not pages.head_written(database, agent_id):
            continue
        state = pages.page_state(database, path)
        status = files.status_of(root, path)
        if status is None or (state is not None and state.signature == files.signature_of(status)):
            continue
        read = files.read(root, path, PAGE_LIMIT)
        if isinstance(read, Found) and managed_block.is_signets(read.raw):
            # A file dated in the future must not hold pages back for longer than any other.
            found.append((abs(time.time() - status.st_mtime), path))
    age, path = min(found, default=(0.0, ""))
    return path, age
