"""Takes lines of removed sessions out of a page of Signet before a copy of it is kept: the copy is a file of ours."""

from __future__ import annotations

from signet_sync.formats import managed_block
from signet_sync.formats.filename import names_in
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, page_agent
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace

# What a row of Signet's session log says of a session: its key or id, and its sentence.
_ROW = late(rb"\| session=([^|]*?) \| project=[^|]*\| (.*?)(?: \[\[|$)")
_LEAST = 8  # bytes of a word by which other lines of the session are found


def without_removed(workspace: Workspace, path: str, page: bytes) -> bytes:
    """Returns a page of Signet without the lines of removed sessions."""
    database, agent_id = workspace.database, page_agent(path) or DEFAULT_AGENT
    if not tombstones_store.any_removed(database):
        return page
    words: set[bytes] = set()
    for line in page.split(b"\n"):
        if names_in(line) and tombstones_store.named_in(database, agent_id, line):
            words.add(line)
            for row in _ROW.findall(line):
                words.update(word for word in row if len(word) >= _LEAST)
    return managed_block.without_lines(page, lambda line: any(word in line for word in words)) if words else page
