"""Saves what people wrote into a MEMORY.md that Signet replaced, and keeps Signet's page without what was removed."""

from __future__ import annotations

import re

from signet_sync.formats import managed_block
from signet_sync.formats.filename import names_in
from signet_sync.formats.paths import DEFAULT_AGENT, page_agent
from signet_sync.formats.signet_page import persons_text
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages.kept_copies import copy_names, no_free_name
from signet_sync.storage import files
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace

_BACKUP = "MEMORY.backup-"
# What a row of Signet's session log says of a session: its key or id, and its sentence.
_ROW = re.compile(rb"\| session=([^|]*?) \| project=[^|]*\| (.*?)(?: \[\[|$)")
_LEAST = 8  # bytes of a word by which other lines of the session are found


def around_block(root: str, path: str, page: bytes) -> bytes | None:
    """Returns what people wrote into or before a MEMORY.md of Signet, around an empty block; None for any other page.

    Signet replaces the whole page; what stood around a block of ours is in the newest of its backups with a block.
    """
    own = persons_text(page) if path.endswith("MEMORY.md") else None
    if own is None:
        return None
    replaced = _replaced(root, f"{path.removesuffix('MEMORY.md')}memory")
    above, below = (joined(one, other) for one, other in zip(replaced, own, strict=True))
    if above:
        above = above.rstrip(b"\r\n") + b"\n\n"
    return above + managed_block.block("") + below


def _replaced(root: str, folder: str) -> tuple[bytes, bytes]:
    for name in sorted(files.listing(root, folder, _BACKUP), reverse=True):
        backup = files.read(root, f"{folder}/{name}", PAGE_LIMIT)
        around = managed_block.around(backup.raw) if isinstance(backup, Found) else None
        if around is not None:
            return around
    return b"", b""


def joined(one: bytes, other: bytes) -> bytes:
    """Joins what two pages have at the same place; what is in both is there once, and blanks alone are nothing."""
    if not other.strip() or other.strip() in one:
        return one if one.strip() else b""
    if not one.strip() or one.strip() in other:
        return other
    return one.rstrip(b"\r\n") + b"\n\n" + other.lstrip(b"\r\n")


def without_removed(workspace: Workspace, path: str, page: bytes) -> bytes:
    """Returns a page of Signet without the lines of removed sessions: a copy of it is a file that we write."""
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


def keep_page(workspace: Workspace, path: str, page: bytes, now_us: int) -> None:
    """Keeps a page of Signet beside it, once for equal bytes: a person may have typed into its sections."""
    kept = without_removed(workspace, path, page)
    folder, _, name = path.rpartition("/")
    for other in files.listing(workspace.root, folder, f"{name.removesuffix('.md')}.signet-"):
        found = files.read(workspace.root, f"{folder}/{other}" if folder else other, PAGE_LIMIT)
        if isinstance(found, Found) and found.raw == kept:
            return
    for target in copy_names(path, "signet", now_us):
        try:
            files.create_once(workspace.root, target, kept)
        except FileExistsError:
            continue
        workspace.events.append(f"{path}: Signet's page is kept as {target}")
        return
    raise no_free_name(path)
