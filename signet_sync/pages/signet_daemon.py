"""A live Signet daemon on the same workspace would fight over MEMORY.md: it is noticed, and pages are held back.

Held back are MEMORY.md and manifests, which Signet writes too. Pages that are ours alone go on to be kept true where
they stand, and what was removed leaves a MEMORY.md of ours as well: no decision of a person is needed for that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from signet_sync.formats.paths import head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages.store import pages
from signet_sync.storage import files

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database
    from signet_sync.sync.workspace import Workspace

PID_FILE = ".daemon/pid"
# So long after its last write a daemon that nobody sees counts as gone, in seconds: it may run on another machine.
HOLD = 3600.0


def daemon_pid(root: str) -> int | None:
    """The process that Signet's pid file names, if it is alive."""
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
    """Why pages and manifests are held back; empty when they are not, or when the person decided to take over."""
    if workspace.settings.takeover:
        return ""
    pid = daemon_pid(workspace.root)
    if pid is not None:
        return f"a Signet daemon (pid {pid}) is alive on this workspace"
    path, age = replaced(workspace.root, workspace.database, agents)
    return f"Signet replaced {path} after signet-sync had written it" if path and age < HOLD else ""


def replaced(root: str, database: Database, agents: Sequence[str]) -> tuple[str, float]:
    """A page that Signet has put in the place of one that we wrote, and how many seconds ago.

    Of several the one that was written last; an empty path where there is none.
    """
    found: list[tuple[float, str]] = []
    for agent_id in agents:
        path = head_page(agent_id)
        if not pages.head_written(database, agent_id):
            continue
        state = pages.page_state(database, path)
        status = files.look(root, path)
        if status is None or (state is not None and state.signature == files.signature_of(status)):
            continue
        from signet_sync.formats import managed_block

        read = files.read(root, path, PAGE_LIMIT)
        if isinstance(read, Found) and managed_block.is_signets(read.raw):
            # One that is dated ahead holds nothing for longer than any other.
            found.append((abs(time.time() - status.st_mtime), path))
    age, path = min(found, default=(0.0, ""))
    return path, age
