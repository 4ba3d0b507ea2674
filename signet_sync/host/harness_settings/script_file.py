"""Writes files that are entirely ours: plug-ins for harnesses that run JavaScript instead of commands."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from importlib import resources

from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings.condition import Condition, Edit, HarnessProblem
from signet_sync.host.harness_settings.program import Program, command_problems, workspace_of

_OURS = b"signet-sync hooks install"
_PROGRAM = re.compile(r"^const PROGRAM = (\[.*\])$", re.MULTILINE)


def template(name: str) -> str:
    """Returns a file as it is shipped."""
    return resources.files("signet_sync.host.harness_settings").joinpath(name).read_text(encoding="utf-8")


def script(name: str, program: Program) -> str:
    """Returns a script that calls this program. The words are in ASCII, which JavaScript parses as JSON does."""
    line = f"const PROGRAM = {json.dumps(program.start)}"
    return _PROGRAM.sub(lambda _: line, template(name), count=1)


def writing(path: str, text: str) -> Edit:
    """Returns the edit that writes a file of ours. Raises `ConfigError` if the file there is not ours."""
    return Edit(path, _own(path), text.encode())


def removing(path: str) -> Edit:
    """Returns the edit that removes a file of ours; any other file is kept."""
    raw = files.read(path)
    return Edit(path, raw, None if raw is None or _OURS in raw else raw)


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


def read(path: str) -> tuple[str | None, tuple[HarnessProblem, ...]]:
    """Returns the text of a file of ours, None if there is none; and problems if it cannot be read."""
    try:
        raw = _own(path)
        return (None if raw is None else files.text(path, raw)), ()
    except SignetSyncError as error:
        return None, (HarnessProblem("foreign-file", error.message, "move it away, so that ours can be written"),)
    except OSError as error:
        return None, (HarnessProblem("foreign-file", f"{error.strerror}", "check its permissions"),)


def condition(
    name: str, folder: str, path: str, wanted: Mapping[str, str], events: tuple[str, ...], program: Program, what: str
) -> Condition:
    """Returns a harness's state from our script at `path` and the files (`wanted`) that belong to it."""
    read_files = {place: read(place) for place in wanted}
    problems = tuple(problem for _, unreadable in read_files.values() for problem in unreadable)
    found, text = os.path.isdir(folder), read_files[path][0]
    if text is None:
        return Condition(name, found, path, missing=events, problems=problems)
    wrong = [*problems, *command_problems(words(text), program.start, name)]
    if not wrong and {place: known for place, (known, _) in read_files.items()} != wanted:
        wrong = [HarnessProblem("outdated", f"the {what} was written by another version", program.again(name))]
    return Condition(name, found, path, events, (), workspace_of(words(text)), tuple(wrong))


def words(text: str) -> list[str]:
    """Returns the words with which a script of ours starts us; empty if it was changed beyond recognition."""
    match = _PROGRAM.search(text)
    try:
        found = json.loads(match[1]) if match else []
    except (ValueError, RecursionError):
        return []
    return [str(word) for word in found]
