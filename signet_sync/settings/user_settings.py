"""Sets one of the person's own settings in `config.toml`, which keeps its comments."""

from __future__ import annotations

import os
import stat
import tempfile
import tomllib
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.settings import model
from signet_sync.storage import durable
from signet_sync.storage.locations import user_file

DEFAULT = "default"  # a value that stands for none


def set_value(root: str, key: str, text: str) -> tuple[str, object]:
    """Writes a value, or takes it out for `DEFAULT`, if all settings can be used then; returns the file and the value.

    Raises `UsageError` for an unknown key, `ConfigError` for a value, or a file, that cannot be used.
    """
    field = model.require_setting(key)
    value = None if text == DEFAULT else model.parse(field, text, key)
    path = user_file()
    target = os.path.realpath(path)  # many people keep the file elsewhere, and link it
    before, mode = "", 0o600
    try:
        if os.path.exists(target):
            with open(target, encoding="utf-8", newline="") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                before = file.read(model.FILE_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"it cannot be read: {why}", path=path, hint="put that right; nothing was written") from None
    after = set_in_text(before, key, value, path)
    with tempfile.TemporaryDirectory() as folder:
        trial = os.path.join(folder, "config.toml")
        with open(trial, "w", encoding="utf-8", newline="") as file:
            file.write(after)
        try:
            model.load(root, environ={**os.environ, "SIGNET_CONFIG": trial})
        except ConfigError as error:
            message = f"nothing was written, because then {error.message}"
            where = path if error.path in (None, trial) else error.path
            raise ConfigError(message, path=where, hint=error.hint) from None
    try:
        durable.private_folder(os.path.dirname(target))
        os.close(durable.publish(target, after.encode(), mode))
    except OSError as error:
        raise ConfigError(f"it cannot be written: {error.strerror}", path=path, hint="check its permissions") from None
    return path, field.default if value is None else value


def set_in_text(text: str, key: str, value: Any, path: str) -> str:
    """Returns a settings file's text with one setting set, or without it (None). Raises `ConfigError`, with the path.

    The result is held against what the text must mean: tomlkit changes other lines in some files.
    """
    import tomlkit  # a large library, needed only here

    text += "\n" if text and not text.endswith("\n") else ""
    value = list(value) if isinstance(value, tuple) else value
    hint = f"take {key} out" if value is None else f"set by hand: {key} = {tomlkit.item(value).as_string()}"
    unsafe = ConfigError("this file cannot be changed safely", path=path, hint=hint)
    try:
        wanted = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(error), path=path, hint="correct this, then try again; nothing was written") from error
    document = tomlkit.parse(text)
    *tables, name = key.split(".")
    plain, table = wanted, document
    for step in tables:
        if step not in plain:
            if value is None:
                return text
            plain[step] = {}
            table[step] = tomlkit.table()
        plain, table = plain[step], table[step]
        if not isinstance(plain, dict):
            raise unsafe
    if value is None:
        if plain.pop(name, None) is not None:
            del table[name]
    else:
        plain[name] = table[name] = value
    after = document.as_string()
    if "\r\n" in text:
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        found = tomllib.loads(after)
    except ValueError:
        raise unsafe from None
    if dict(model.flatten(found)) != dict(model.flatten(wanted)):
        raise unsafe
    return after
