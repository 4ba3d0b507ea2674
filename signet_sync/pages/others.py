"""Detects who else writes in the workspace: a live Signet daemon.

Beside a daemon pages are held back, so that the two do not overwrite each other: MEMORY.md and manifests, which Signet
writes too. Pages that only signet-sync writes are still updated if they exist, and removed text is still deleted from a
MEMORY.md of ours: that needs no decision of the user.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from signet_sync.formats import managed_block
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages.store import pages
from signet_sync.storage import files
from signet_sync.storage.locations import process_alive

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database
    from signet_sync.sync.workspace import Workspace

FOLDERS = ".daemon", "runtime"  # the second one is where newer versions have it
# Seconds after its last write until a daemon without visible process counts as gone: it may run on another machine.
HOLD = 3600.0
_SIGNET = late(rb"signet(?![-_]sync)|daemon\.[jt]s\b", re.IGNORECASE)


def daemon_pid(root: str) -> int | None:
    """Returns the process id in a pid file of Signet, if that process is alive and is not another program's."""
    for folder in FOLDERS:
        found = files.read(root, f"{folder}/pid", 64)
        text = found.raw.decode("ascii", "replace").strip() if isinstance(found, Found) else ""
        pid = int(text) if text.isdigit() else 0
        if 1 < pid < 1 << 31 and pid != os.getpid() and process_alive(pid) and _is_signet(pid):
            return pid
    return None


def _is_signet(pid: int) -> bool:
    """Returns whether a process has the name of Signet's daemon in its command line; also if nobody tells that."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return True
    return _SIGNET.search(words) is not None


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
    for path in [head_page(agent_id) for agent_id in agents if pages.head_written(database, agent_id)]:
        state, status = pages.page_state(database, path), files.status_of(root, path)
        if status is None or (state is not None and state.signature == files.signature_of(status)):
            continue
        read = files.read(root, path, PAGE_LIMIT)
        if isinstance(read, Found) and managed_block.is_signets(read.raw):
            # A file dated in the future must not hold pages back for longer than any other.
            found.append((abs(time.time() - status.st_mtime), path))
    age, path = min(found, default=(0.0, ""))
    return path, age
