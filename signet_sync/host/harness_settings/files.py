"""Reads and writes settings files of harnesses: follows and keeps links, writes a file completely or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.host.harness_settings.settings_text import Edit, JsonText, SettingsText
from signet_sync.host.harness_settings.toml_text import TomlText
from signet_sync.storage import durable
from signet_sync.storage.durable import private_folder, sync_folder, unlink

_WORDS = b"signet_sync"  # in every command that we write
LIMIT = 16 * 1024 * 1024  # bytes; settings take some kilobytes, Claude Code's own data some megabytes


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
            hint = "check what fills it, then try again; nothing was written"
            raise ConfigError(f"larger than {LIMIT >> 20} MiB", path=path, hint=hint)
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def open_settings(path: str, raw: bytes | None) -> SettingsText:
    """Returns the editor for a file with these bytes. Raises `ConfigError`."""
    return (TomlText if path.endswith(".toml") else JsonText)(path, raw)


def backup_of(path: str) -> str:
    """Returns where the copy is kept of a file as it was before our first change."""
    return f"{os.path.realpath(path)}.signet-sync.bak"


def is_new(path: str) -> bool:
    """Returns whether the file is one that we made: of any other there is a copy."""
    return not os.path.lexists(backup_of(path))


def apply(edit: Edit) -> None:
    """Applies an edit durably; a copy of a person's file is kept, as it was before our first change.

    Mode and owner are kept, a new file is private. Raises `Changed` if the file is not as it was when the edit was
    made, or was overwritten at once: a running harness may write back what it read earlier. Raises `OSError` if the
    file cannot be written; then nothing has changed.
    """
    target, backup = os.path.realpath(edit.path), backup_of(edit.path)
    _compare(edit.path, edit.before)
    if edit.after is None:
        os.unlink(target)
        sync_folder(os.path.dirname(target))
    else:
        private_folder(os.path.dirname(target))
        if edit.before is not None and not edit.ours and _WORDS not in edit.before and is_new(edit.path):
            with durable.replacing(backup, lambda _: True) as beside:
                _fill(beside, edit.before, target)
        with durable.replacing(target, lambda _: True) as beside:
            _fill(beside, edit.after, target)
            _compare(edit.path, edit.before)
    _compare(edit.path, edit.after)
    if not edit.ours and read(backup) == edit.after:
        unlink(backup)  # a copy of what is there is of no use


def missing_folders(path: str) -> list[str]:
    """Returns the folders that writing a file makes."""
    found, where = [], os.path.dirname(os.path.realpath(path))
    while not os.path.lexists(where):
        found.append(where)
        where = os.path.dirname(where)
    return found


def _fill(path: str, data: bytes, like: str) -> None:
    """Writes a new file with the mode and the owner of another one, if there is that."""
    durable.write_private(path, [data])
    with suppress(FileNotFoundError):
        status = os.stat(like)
        with suppress(PermissionError):  # only root may change a file's owner
            os.chown(path, status.st_uid, status.st_gid)
        os.chmod(path, stat.S_IMODE(status.st_mode))


def _compare(path: str, expected: bytes | None) -> None:
    if read(path) != expected:
        hint = "close the programs that write it (the harness itself), then try again"
        raise Changed("another program has just changed this file", path=path, hint=hint)
