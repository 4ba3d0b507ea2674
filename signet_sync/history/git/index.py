"""Writes the index of our own repository after each commit, so that `git status` shows only real changes."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping

from signet_sync.history.git.objects import TreeEntry

_ENTRY = struct.Struct(">10I20sH")
_LOW = 0xFFFFFFFF


def serialised(flat: Mapping[str, TreeEntry], stats: Mapping[str, os.stat_result]) -> bytes:
    """Serialises version 2 of git's index. For a path without a stat, git compares the bytes."""
    parts = [struct.pack(">4sII", b"DIRC", 2, len(flat))]
    for name, path in sorted((os.fsencode(path), path) for path in flat):
        entry = flat[path]
        row = _ENTRY.pack(*_stat(entry.mode, stats.get(path)), entry.oid, min(len(name), 0xFFF))
        parts += row, name, b"\0" * (8 - (len(row) + len(name)) % 8)
    data = b"".join(parts)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def _stat(mode: int, status: os.stat_result | None) -> tuple[int, ...]:
    """Returns times of change and modification (seconds, nanoseconds), device, inode, mode, owner, group, size."""
    if status is None:
        return 0, 0, 0, 0, 0, 0, mode, 0, 0, 0
    changed, changed_ns = divmod(status.st_ctime_ns, 10**9)
    modified, modified_ns = divmod(status.st_mtime_ns, 10**9)
    return (
        *(changed & _LOW, changed_ns, modified & _LOW, modified_ns),
        *(status.st_dev & _LOW, status.st_ino & _LOW, mode, status.st_uid, status.st_gid, status.st_size & _LOW),
    )
