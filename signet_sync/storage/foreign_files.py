"""Reads files of the workspace that are not ours, once and in pieces, in little memory whatever their size."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator

from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import MEMORY, OWN, TOMBSTONES, WORDS
from signet_sync.storage.durable import READ
from signet_sync.storage.files import is_dataless

_PIECE = 1 << 20


def foreign_files(root: str, leave: Collection[str] = ()) -> Iterator[tuple[str, int]]:
    """Yields path and open descriptor of every regular file that is not an artifact, a tombstone or in `.signet`.

    The descriptor is closed when the next one is requested. Links are not followed, folders `.git` not entered; what
    cannot be opened is skipped. `leave` are absolute real paths of files and folders that are not touched at all:
    merely closing a live SQLite file would drop its locks.
    """
    own = (OWN, TOMBSTONES, WORDS)
    for where, folders, names, parent in os.fwalk(os.path.realpath(root), follow_symlinks=False):
        relative = os.path.relpath(where, os.path.realpath(root)).replace(os.sep, "/")
        base = "" if relative == "." else f"{relative}/"
        folders[:] = sorted(
            name
            for name in folders
            if name != ".git" and f"{base}{name}" not in own and os.path.join(where, name) not in leave
        )
        for name in sorted(names):
            ours = base == f"{MEMORY}/" and artifact_name(name) is not None
            if ours or os.path.join(where, name) in leave:
                continue
            descriptor = _open_foreign(name, parent)
            if descriptor is not None:
                try:
                    yield f"{base}{name}", descriptor
                finally:
                    os.close(descriptor)


def _open_foreign(name: str, parent: int) -> int | None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or is_dataless(status):
            return None
        return os.open(name, READ, dir_fd=parent)
    except OSError:
        return None


def pieces(descriptor: int, overlap: int) -> Iterator[bytes]:
    """Yields an open file in pieces of 1 MiB, each starting with the last `overlap` bytes of the previous one.

    At a read error the pieces end.
    """
    tail = b""
    while True:
        try:
            chunk = os.read(descriptor, _PIECE)
        except OSError:
            return
        if not chunk:
            return
        piece = tail + chunk
        yield piece
        tail = piece[-overlap:] if overlap else b""
