"""Writes files that are entirely ours: plug-ins for harnesses that run JavaScript instead of commands."""

from __future__ import annotations

import json
import re
from importlib import resources

from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings.condition import Edit, HarnessProblem
from signet_sync.host.harness_settings.program import Program

_OURS = b"signet-sync hooks install"
_PROGRAM = re.compile(r"^const PROGRAM = (\[.*\])$", re.MULTILINE)


def script(name: str, program: Program) -> str:
    """Returns a file as it is shipped; a script in it calls this program, by words in ASCII, which are JSON, too."""
    text = resources.files("signet_sync.host.harness_settings").joinpath(name).read_text(encoding="utf-8")
    line = f"const PROGRAM = {json.dumps(program.start)}"
    return _PROGRAM.sub(lambda _: line, text, count=1)


def writing(path: str, text: str) -> Edit:
    """Returns the edit that writes a file of ours. Raises `ConfigError` if the file there is not ours."""
    return Edit(path, _own(path), text.encode(), ours=True)


def removing(path: str) -> Edit:
    """Returns the edit that removes a file of ours; any other file is kept."""
    raw = files.read(path)
    return Edit(path, raw, None if raw is None or _OURS in raw else raw, ours=True)


def read(path: str) -> tuple[str | None, list[HarnessProblem]]:
    """Returns the text of a file of ours, None if there is none; and problems if it cannot be read."""
    try:
        raw = _own(path)
    except SignetSyncError as error:
        return None, [HarnessProblem("foreign-file", error.message, "move it away, so that ours can be written")]
    except OSError as error:
        return None, [HarnessProblem("foreign-file", f"{error.strerror}", "check its permissions")]
    return (None if raw is None else raw.decode("utf-8", "replace")), []


def words(text: str) -> list[str]:
    """Returns the words with which a script of ours starts us; empty if it was changed beyond recognition."""
    match = _PROGRAM.search(text)
    try:
        found = json.loads(match[1]) if match else []
    except (ValueError, RecursionError):
        return []
    return [str(word) for word in found]


def _own(path: str) -> bytes | None:
    raw = files.read(path)
    if raw is not None and _OURS not in raw:
        raise ConfigError(
            "a file of this name already exists and is not ours",
            path=path,
            hint="move it away, then try again; nothing was written",
            code="foreign-file",
        )
    return raw
