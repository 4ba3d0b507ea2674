"""Clears conflict copies of pages and entity files: generated text is removed, the user's text stays.

Two machines write the same pages, so sync services make such copies regularly; only copies that hold something found
nowhere else need the user's attention. A copy may arrive before the version that displaced it: while a page is no later
than its copy, it may be what was copied and about to be replaced, so the copy is kept.
"""

from typing import NamedTuple

from signet_sync.errors import WorkspaceError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.entity_paths import parse_ledger_page
from signet_sync.formats.paths import DEFAULT_AGENT, page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages import signet_daemon
from signet_sync.pages.kept_copies import AGENT_FOLDER, copied_file, tree
from signet_sync.storage import files
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.workspace import Workspace


class Copy(NamedTuple):
    """A conflict copy of a page, an entity file or an event log, and the file that it is a copy of."""

    path: str
    original: str
    agent_id: str


class PageCopies(Maintenance):
    """Removes our block from conflict copies of pages."""

    name = "copies of pages"

    def run(self, run: Pass) -> None:
        """Clears the copies."""
        run.outcome.trouble += clear(run.workspace)


def find(root: str) -> list[Copy]:
    """Returns every conflict copy outside `memory/` and `.signet/`, without reading any."""
    found = []
    for path in tree(root):
        original = copied_file(root, path)
        if original is not None:
            owner = AGENT_FOLDER.match(path)
            found.append(Copy(path, original, owner[1] if owner else DEFAULT_AGENT))
    return found


def clear(workspace: Workspace) -> list[str]:
    """Removes our block from copies of pages, and deletes copies that hold nothing which their later original lacks.

    Every machine does the same to the same copy. Event logs are left to the entities stage. Returns what could not be
    done.
    """
    trouble = []
    for copy in find(workspace.root):
        is_page = page_agent(copy.original) is not None
        if parse_ledger_page(copy.original) is not None or (
            is_page and signet_daemon.holds(workspace, [copy.agent_id])
        ):
            continue
        try:
            _clear(workspace.root, copy, is_page=is_page)
        except (OSError, WorkspaceError) as error:
            trouble.append(f"{copy.path}: the conflict copy could not be cleared: {reason(error)}")
    return trouble


def _clear(root: str, copy: Copy, *, is_page: bool) -> None:
    found, present = files.read(root, copy.path, PAGE_LIMIT), files.read(root, copy.original, PAGE_LIMIT)
    if not isinstance(found, Found) or not (isinstance(present, Found) or present.code == "gone"):
        return
    words, known = found.raw, present.raw if isinstance(present, Found) else b""
    if is_page:
        words, known = (managed_block.without_block(raw) or b"" for raw in (words, known))
    if not words.strip() or (_within(words, known) and files.is_later(root, copy.original, copy.path)):
        files.retract(root, copy.path, found.raw)
    elif is_page and managed_block.is_generated(found.raw):
        files.replace(root, copy.path, words, found.raw)


def _within(words: bytes, known: bytes) -> bool:
    """Returns whether every line of one text is in the other, in the same order."""
    lines = iter(known.splitlines())
    return all(line in lines for line in words.splitlines() if line.strip())
