"""Reads pages of an event log, appends to them durably, and rewrites them only for removals."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from signet_sync.errors import WorkspaceError
from signet_sync.formats.entity_paths import ledger_page, original_of, parse_ledger_page
from signet_sync.formats.snapshot import Trouble
from signet_sync.storage import files
from signet_sync.storage.durable import sync_descriptor
from signet_sync.storage.files import Root, reading
from signet_sync.storage.safe_paths import folder, split_path

LIMIT = 64 << 20  # bytes of a page

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = _APPEND | os.O_CREAT | os.O_EXCL
# The errors of `open` for a symlink, a folder, a pipe without a reader.
_ODD = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})
_MOVE = "move it away; a page of the event log belongs there"


def pages(root: Root, agent_id: str) -> list[tuple[str, str]]:
    """Lists month (`YYYY-MM`) and path of each page of an agent's event log, oldest first; empty without a folder.

    Raises `WorkspaceError` (`PathEscape` for a symlink) or `OSError` if the folder cannot be read: an unreadable log
    must not be taken for an empty one.
    """
    where, _ = split_path(ledger_page(agent_id, "2000-01"))
    try:
        with reading(root, where) as vault:
            names = vault.names()
    except FileNotFoundError:
        # An unmounted vault has no event log either, but none may be started there.
        with reading(root, ""):
            return []
    found = ((parse_ledger_page(f"{where}/{name}"), f"{where}/{name}") for name in names)
    return sorted((page[1], path) for page, path in found if page is not None)


def copies(root: str, agent_id: str) -> list[tuple[str, str]]:
    """Lists month and path of each conflict copy of a page, in the same order on every machine."""
    where, _ = split_path(ledger_page(agent_id, "2000-01"))
    found = []
    for name in files.listing(root, where, ""):
        page = parse_ledger_page(original_of(f"{where}/{name}") or "")
        if page is not None:
            found.append((page[1], f"{where}/{name}"))
    return sorted(found)


def read(root: Root, path: str) -> bytes:
    """Returns the bytes of a page; empty if there is none.

    Raises `WorkspaceError` for anything but a readable file of at most 64 MiB, with the code of
    `formats.snapshot.Trouble`.
    """
    found = files.read(root, path, LIMIT)
    if not isinstance(found, Trouble):
        return found.raw
    if found.code == "gone":
        return b""
    raise WorkspaceError(f"the page cannot be read: {found.message}", path=path, hint=_MOVE, code=found.code)


def append(root: str, path: str, text: str, expected_size: int) -> None:
    """Appends text to a page durably, by one write and fsync; creates and syncs a new page and its folders.

    Raises `WorkspaceError` (`ledger-changed`) if the page is not `expected_size` bytes long (0: empty or missing):
    another process wrote to it, and nothing is appended; `ledger-full` if it would be longer than 64 MiB; `not-a-file`
    if something else has its name. After an `OSError` the page is unchanged; after a crash it may end with a part of
    the text.
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
                    # Before the first byte: a page with content has a durable name, whenever a crash happens.
                    sync_descriptor(descriptor)
                _write(handle, data, expected_size)
        finally:
            os.close(handle)
    if linked:
        _write_apart(root, path, data, expected_size)


def rewrite(root: str, path: str, data: bytes, before: bytes) -> None:
    """Replaces a page atomically; only for removals, and for pages with several hard links.

    Raises `WorkspaceError` (`ledger-changed`) if the page is missing or is not `before`; then it stays unchanged.
    """
    if files.status_of(root, path) is None or files.replace(root, path, data, before).displaced is not None:
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
    """Appends data to an open page of this size; after any error the page is unchanged."""
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
    """Appends data to a page that has several hard links, without changing its copies."""
    before = read(root, path)
    if len(before) != size:
        raise _changed(path)
    rewrite(root, path, before + data, before)


def _changed(path: str) -> WorkspaceError:
    return WorkspaceError(
        "the page changed since it was read", path=path, hint="it will be retried", code="ledger-changed"
    )


def _not_a_page(path: str) -> WorkspaceError:
    return WorkspaceError("it is a symlink or not a file", path=path, hint=_MOVE, code="not-a-file")
