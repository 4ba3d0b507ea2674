"""Pages of an entity ledger: read whole, added to durably at their end, written anew only where privacy asks for it."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from signet_sync.errors import WorkspaceError
from signet_sync.formats.conflict_copy import original_of
from signet_sync.formats.entity_paths import ledger_page, parse_ledger_page
from signet_sync.formats.snapshot import Trouble
from signet_sync.storage import files
from signet_sync.storage.durable import sync_descriptor
from signet_sync.storage.safe_paths import folder, split_path

LIMIT = 64 << 20  # bytes of a page

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = _APPEND | os.O_CREAT | os.O_EXCL
# What `open` says of a symlink, a folder, a pipe that nobody reads.
_ODD = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})
_MOVE = "move it away; a page of the entity ledger belongs there"


def pages(root: str, agent_id: str) -> list[tuple[str, str]]:
    """Month (`YYYY-MM`) and path of each page of an agent's ledger, the oldest first; none where there is no folder.

    Raises `WorkspaceError` (`PathEscape` for a symlink) or `OSError` where the folder cannot be looked into: a ledger
    that cannot be seen must not be taken for an empty one.
    """
    where, _ = split_path(ledger_page(agent_id, "2000-01"))
    try:
        with folder(root, where) as descriptor:
            names = os.listdir(descriptor)
    except FileNotFoundError:
        # A vault that is not mounted has no ledger either, but nobody may begin one there.
        os.stat(root)
        return []
    found = ((parse_ledger_page(f"{where}/{name}"), f"{where}/{name}") for name in names)
    return sorted((page[1], path) for page, path in found if page is not None)


def copies(root: str, agent_id: str) -> list[tuple[str, str]]:
    """Month and path of each conflict copy that a sync service made of a page, in one order on every machine."""
    where, _ = split_path(ledger_page(agent_id, "2000-01"))
    found = []
    for name in files.listing(root, where, ""):
        page = parse_ledger_page(original_of(f"{where}/{name}") or "")
        if page is not None:
            found.append((page[1], f"{where}/{name}"))
    return sorted(found)


def read(root: str, path: str) -> bytes:
    """The bytes of a page; empty where there is none.

    Raises `WorkspaceError` for anything that is no readable file of at most 64 MiB; its code is that of
    `formats.snapshot.Trouble`.
    """
    found = files.read(root, path, LIMIT)
    if not isinstance(found, Trouble):
        return found.raw
    if found.code == "gone":
        return b""
    raise WorkspaceError(f"the page cannot be read: {found.message}", path=path, hint=_MOVE, code=found.code)


def append(root: str, path: str, text: str, expected_size: int) -> None:
    """Adds text to the end of a page, durably: one write, fsync; a new page is made with its folders, and these synced.

    Raises `WorkspaceError` (`ledger-changed`) where the page is not `expected_size` bytes long (0: empty or absent):
    somebody else wrote, and nothing is added; `ledger-full` where it would be longer than 64 MiB; `not-a-file` where
    something else stands there. After an `OSError` the page is as it was; after a crash it may end with a part of the
    text.
    """
    data = text.encode("utf-8")
    if expected_size + len(data) > LIMIT:
        hint = "the next month has a page of its own; look at what fills this one"
        raise WorkspaceError(f"the page would be longer than {LIMIT:,} bytes", path=path, hint=hint, code="ledger-full")
    where, name = split_path(path)
    with folder(root, where, create=True) as descriptor:
        handle = _opened(descriptor, name, path, create=expected_size == 0)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _not_a_page(path)
            if status.st_size != expected_size:
                raise _changed(path)
            linked = status.st_nlink > 1
            if not linked:
                if expected_size == 0:
                    # Before the first byte: a page that holds any has a durable name, whatever crashes.
                    sync_descriptor(descriptor)
                _write(handle, data, expected_size)
        finally:
            os.close(handle)
    if linked:
        _write_apart(root, path, data, expected_size)


def rewrite(root: str, path: str, data: bytes, before: bytes) -> None:
    """Puts other bytes in place of a page, atomically: for what a removal erases, and nothing else.

    Raises `WorkspaceError` (`ledger-changed`) where the page is gone or is not `before`; then it stays as it is.
    """
    if files.look(root, path) is None or files.replace(root, path, data, before).displaced is not None:
        raise _changed(path)


def _opened(descriptor: int, name: str, path: str, *, create: bool) -> int:
    try:
        return os.open(name, _APPEND, dir_fd=descriptor)
    except FileNotFoundError:
        if not create:
            raise _changed(path) from None
    except OSError as error:
        if error.errno in _ODD:
            raise _not_a_page(path) from None
        raise
    try:
        return os.open(name, _CREATE, 0o600, dir_fd=descriptor)
    except FileExistsError:
        raise _changed(path) from None


def _write(handle: int, data: bytes, size: int) -> None:
    """Adds data to an open page of this size; after any error the page is as it was."""
    written = 0
    try:
        while written < len(data):
            written += os.write(handle, data[written:])
        sync_descriptor(handle)
    except BaseException:
        with suppress(OSError):
            if os.fstat(handle).st_size == size + written:
                os.ftruncate(handle, size)
        raise


def _write_apart(root: str, path: str, data: bytes, size: int) -> None:
    """Adds data to a page that has a second name: a copy made of hard links must not change with it."""
    before = read(root, path)
    if len(before) != size:
        raise _changed(path)
    rewrite(root, path, before + data, before)


def _changed(path: str) -> WorkspaceError:
    return WorkspaceError(
        "the page is not as it was when it was read", path=path, hint="it is tried again", code="ledger-changed"
    )


def _not_a_page(path: str) -> WorkspaceError:
    return WorkspaceError("it is a symlink, or no file", path=path, hint=_MOVE, code="not-a-file")
