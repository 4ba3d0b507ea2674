"""Detects who else writes in the workspace: a live Signet daemon.

Beside a daemon pages are held back, so that the two do not overwrite each other: MEMORY.md and manifests, which Signet
writes too. Pages that only signet-sync writes are still updated if they exist, and removed text is still deleted from a
MEMORY.md of ours: that needs no decision of the user.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.snapshot import Found
from signet_sync.storage import files
from signet_sync.storage.locations import process_alive

if TYPE_CHECKING:
    from signet_sync.sync.workspace import Workspace

FOLDERS = ".daemon", "runtime"  # the second one is where newer versions have it
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


def holds(workspace: Workspace) -> str:
    """Returns why pages and manifests are held back; empty if they are not, or if the user decided to take over."""
    pid = None if workspace.settings.takeover else daemon_pid(workspace.root)
    return f"a Signet daemon (pid {pid}) is alive on this workspace" if pid is not None else ""
