"""A live Signet daemon on the same workspace would fight over MEMORY.md: it is noticed, and pages are held back."""

from __future__ import annotations

import os
from collections.abc import Sequence

from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.observed import Found
from signet_sync.contracts.places import head_page
from signet_sync.index import pages
from signet_sync.projection import markers
from signet_sync.vault import files

PID_FILE = ".daemon/pid"


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
    for agent_id in agents:
        path = head_page(agent_id)
        if not pages.head_written(workspace.database, agent_id):
            continue
        state = pages.page_state(workspace.database, path)
        status = files.look(workspace.root, path)
        if status is None or (state is not None and state.signature == files.signature_of(status)):
            continue
        found = files.read(workspace.root, path, 1 << 28)
        if isinstance(found, Found) and markers.is_signets(found.raw):
            return f"Signet replaced {path} after signet-sync had written it"
    return ""
