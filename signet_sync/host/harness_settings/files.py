"""Reads and writes settings files of harnesses: follows and keeps links, writes a file completely or not at all."""

from __future__ import annotations

import os
import re
import stat
import uuid
from contextlib import suppress

from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.host.harness_settings.condition import Edit
from signet_sync.storage.durable import CREATE, Replacing, sweep, sync_descriptor, sync_folder, write_all

LIMIT = 16 * 1024 * 1024  # bytes; settings take some kilobytes, Claude Code's own data some megabytes
_A_WRITE = 60.0  # seconds: no write takes longer, so an older file was left behind


class Changed(SignetSyncError):
    """Another program changed the file between our read and our write, or directly after it; its version is kept."""

    code = "busy"


def read(path: str) -> bytes | None:
    """Returns a file's bytes, links followed, or None if there is none. Raises `ConfigError` unless it is a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError("this is not a settings file", path=path, hint="move it away, then try again")
        if status.st_size > LIMIT:
            size = f"larger than {LIMIT >> 20} MiB"
            raise ConfigError(size, path=path, hint="check what fills it, then try again; nothing was written")
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def text(path: str, raw: bytes) -> str:
    """Decodes a settings file. Raises `ConfigError` if it is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"line {line}: not UTF-8",
            path=path,
            hint="save the file as UTF-8, then try again; nothing was written",
            code="settings-unparsable",
        ) from error


def apply(edit: Edit) -> None:
    """Applies an edit durably: temporary file beside the target, fsync, comparison, rename, fsync of the folder.

    Mode and owner are kept, a new file is private. Raises `Changed` if the file is not as it was when the edit was
    made, or
    was overwritten at once: a running harness may write back what it read earlier. Raises `OSError` if the file cannot
    be
    written; then nothing has changed.
    """
    target = os.path.realpath(edit.path)
    folder = os.path.dirname(target)
    if edit.after is None:
        _compare(edit.path, edit.before)
        os.unlink(target)
    else:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        ours = f".{os.path.basename(target)}.signet-"
        sweep(folder, re.compile(re.escape(ours) + r"[0-9a-f]{32}\.tmp", re.ASCII), longest=_A_WRITE)
        with Replacing(target, os.path.join(folder, f"{ours}{uuid.uuid4().hex}.tmp"), durable=False) as temporary:
            _write(temporary, edit.after, target)
            _compare(edit.path, edit.before)
    sync_folder(folder)
    _compare(edit.path, edit.after)


def remove_empty_folders(path: str, harness_folder: str) -> None:
    """Removes the folder of a removed file, and its parents up to the harness's own, as long as they are empty."""
    where = os.path.dirname(path)
    while where == harness_folder or where.startswith(harness_folder.rstrip("/") + "/"):
        try:
            os.rmdir(where)
        except OSError:
            return
        where = os.path.dirname(where)


def _compare(path: str, expected: bytes | None) -> None:
    if read(path) != expected:
        hint = "close the programs that write it (the harness itself), then try again"
        raise Changed("another program has just changed this file", path=path, hint=hint)


def _write(temporary: str, data: bytes, target: str) -> None:
    handle = os.open(temporary, CREATE, 0o600)
    try:
        with suppress(FileNotFoundError):
            status = os.stat(target)
            with suppress(PermissionError):  # only root may change a file's owner
                os.fchown(handle, status.st_uid, status.st_gid)
            os.fchmod(handle, stat.S_IMODE(status.st_mode))
        write_all(handle, data)
        sync_descriptor(handle)
    finally:
        os.close(handle)
