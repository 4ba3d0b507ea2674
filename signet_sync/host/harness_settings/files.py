"""Reads and writes settings files of harnesses: follows and keeps links, writes a file completely or not at all."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.host.harness_settings.settings_text import Edit, JsonText, SettingsText, Way, unusable
from signet_sync.settings.model import DOTS_LIMIT
from signet_sync.storage import durable
from signet_sync.storage.durable import private_folder, sync_folder, unlink

if TYPE_CHECKING:
    from tomlkit.container import Container

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
        folder = os.path.dirname(target)
        os.unlink(target)
        sync_folder(folder)
        if edit.ours and os.path.basename(folder) == "signet-sync":
            with suppress(OSError):  # a person has put something there
                os.rmdir(folder)
    else:
        private_folder(os.path.dirname(target))
        if edit.before is not None and not edit.ours and _WORDS not in edit.before and is_new(edit.path):
            with durable.replace_file(backup, lambda _: True) as beside:
                _fill(beside, edit.before, target)
        with durable.replace_file(target, lambda _: True) as beside:
            _fill(beside, edit.after, target)
            _compare(edit.path, edit.before)
    _compare(edit.path, edit.after)
    if not edit.ours and read(backup) == edit.after:
        unlink(backup)  # a copy of what is there is of no use


def _fill(path: str, data: bytes, like: str) -> None:
    """Writes a new file with the mode and the owner of another one, if there is that."""
    os.close(durable.create(path, data))
    with suppress(FileNotFoundError):
        status = os.stat(like)
        with suppress(PermissionError):  # only root may change a file's owner
            os.chown(path, status.st_uid, status.st_gid)
        os.chmod(path, stat.S_IMODE(status.st_mode))


def _compare(path: str, expected: bytes | None) -> None:
    if read(path) != expected:
        hint = "close the programs that write it (the harness itself), then try again"
        raise Changed("another program has just changed this file", path=path, hint=hint)


# ── edits TOML documents of other programs with `tomlkit`, which is imported only for that; parses with `tomllib` ──

_CUT = "\0"  # no TOML document contains it


class TomlText(SettingsText):
    """A TOML document. A new table goes to its end, after a blank line; a comment before a table stays with that."""

    def parse(self, text: str) -> dict[str, Any]:
        """Parses the document. Raises `ConfigError` with line and remedy."""
        try:
            # tomllib needs minutes for a key of some ten thousand parts, and numbers may be too long for Python.
            if any(line.count(".") > DOTS_LIMIT for line in text.split("\n") if "[" in line or "=" in line):
                raise ValueError("a key is nested too deeply")
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise unusable(self.path, f"{error}") from error

    def with_value(self, way: Way, value: Any) -> str:
        """Returns the document with a value put there."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        text = self.text or ""
        newline = "\r\n" if "\r\n" in text else "\n"
        if isinstance(value, dict) and self.find(way) is None:
            for step in reversed(way):
                value = {step: value}
            gap = newline if text.endswith("\n") else newline * 2 if text else ""
            return text + gap + tomlkit.dumps(value).replace("\n", newline)
        try:
            document = tomlkit.parse(text)
            table: Any = document
            for step in way[:-1]:
                table = table[step]
            table[way[-1]] = value
            return document.as_string()
        except (TOMLKitError, KeyError, TypeError, RecursionError) as error:
            raise self._unsafe(way) from error

    def without_value(self, way: Way) -> str:
        """Returns the document without a value; of a table without all of its parts, wherever they stand."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        text = self.text or ""
        try:
            while True:
                document = tomlkit.parse(text)
                if not _cut(document, way):
                    return text
                # Written again, a document is as it was, so that what is missing in it is what was cut.
                head, _, rest = document.as_string().partition(_CUT)
                lines = text[len(head) : len(text) - len(rest)].splitlines(keepends=True)
                while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
                    rest = lines.pop() + rest  # blank lines and comments belong to what comes after them
                if not rest or rest[0] in "\r\n":
                    head = re.sub(r"(\A|\n)\r?\n\Z", r"\1", head)  # the blank line before it
                if len(head) + len(rest) >= len(text):
                    raise self._unsafe(way)
                text = head + rest
        except (TOMLKitError, RecursionError) as error:
            raise self._unsafe(way) from error


def _cut(container: Container, way: Way) -> bool:
    """Puts a mark in place of the first part of what is there; returns whether there was any."""
    from tomlkit.items import InlineTable, Table, Whitespace

    for index, (key, item) in enumerate(container.body):
        if key is None or key.key != way[0]:
            continue
        if len(way) == 1:
            container.body[index] = (None, Whitespace(_CUT))
            return True
        if isinstance(item, Table | InlineTable) and _cut(item.value, way[1:]):
            return True
    return False
