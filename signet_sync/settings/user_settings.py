"""Sets one of the person's own settings in `config.toml`, which keeps its comments."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping

from signet_sync.errors import ConfigError
from signet_sync.settings import model
from signet_sync.settings.workspace_file import with_values
from signet_sync.storage import durable


def set_value(root: str, key: str, text: str, environ: Mapping[str, str] = os.environ) -> tuple[str, object]:
    """Writes a value, after a look whether all settings can be used with it; returns the file and the value.

    Raises `UsageError` for an unknown key, `ConfigError` for a value, or a file, that cannot be used.
    """
    value = model.parse(model.named(key), text, key)
    path = model.user_file(environ)
    target = os.path.realpath(path)  # many people keep the file elsewhere, and link it
    mode = 0o600
    try:
        with open(target, encoding="utf-8", newline="") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            before = file.read(model.FILE_LIMIT)
    except FileNotFoundError:
        before = ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"it cannot be read: {why}", path=path, hint="put that right; nothing was written") from None
    after = with_values(before, {key: value}, path)
    with tempfile.TemporaryDirectory() as folder:
        trial = os.path.join(folder, "config.toml")
        with open(trial, "w", encoding="utf-8", newline="") as file:
            file.write(after)
        try:
            model.load(root, environ={**environ, "SIGNET_CONFIG": trial})
        except ConfigError as error:
            message = f"nothing was written, because then {error.message}"
            where = path if error.path in (None, trial) else error.path
            raise ConfigError(message, path=where, hint=error.hint) from None
    try:
        durable.private_folder(os.path.dirname(target))
        os.close(durable.publish(target, after.encode(), mode))
    except OSError as error:
        raise ConfigError(f"it cannot be written: {error.strerror}", path=path, hint="check its permissions") from None
    return path, value
