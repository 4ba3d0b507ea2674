"""Pages of an entity ledger: read whole, added to durably at their end, written anew only where privacy asks for it."""

from __future__ import annotations

import os
import stat

from signet_sync.contracts.gardens import ledger_page, parse_ledger_page
from signet_sync.contracts.observed import Trouble
from signet_sync.errors import WorkspaceError
from signet_sync.vault import files
from signet_sync.vault.layout import folder, split_path

LIMIT = 64 << 20  # bytes of a page

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = _APPEND | os.O_CREAT | os.O_EXCL


def pages(root: str, agent_id: str) -> list[tuple[str, str]]:
    """Month (`YYYY-MM`) and path of each page of an agent's ledger, the oldest first; none where there is no folder.

    Raises `WorkspaceError` (`PathEscape` for a symlink) or `OSError` where the folder cannot be looked into: a ledger
    that cannot be seen must not be taken for an empty one.
    """
    raise NotImplementedError


def read(root: str, path: str) -> bytes:
    """The bytes of a page; empty where there is none.

    Raises `WorkspaceError` for anything that is no readable file of at most 64 MiB; its code is that of
    `contracts.observed.Trouble`.
    """
    raise NotImplementedError


def append(root: str, path: str, text: str, expected_size: int) -> None:
    """Adds text to the end of a page, durably: one write, fsync; a new page is made with its folders, and these synced.

    Raises `WorkspaceError` (`ledger-changed`) where the page is not `expected_size` bytes long (0: empty or absent):
    somebody else wrote, and nothing is added; `ledger-full` where it would be longer than 64 MiB. After an `OSError`
    the page is as it was, or (a crash) ends with a part of the text.
    """
    raise NotImplementedError


def rewrite(root: str, path: str, data: bytes, before: bytes) -> None:
    """Puts other bytes in place of a page, atomically: for what a removal erases, and nothing else.

    Raises `WorkspaceError` (`ledger-changed`) where the page is not `before`; then it stays as it is.
    """
    raise NotImplementedError
