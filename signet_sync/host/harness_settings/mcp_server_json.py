"""Edits our MCP server as a member of a JSON document; the rest of the document does not change by a byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from signet_sync.errors import SignetSyncError
from signet_sync.host.harness_settings import document, json_text, mcp_server
from signet_sync.host.harness_settings.condition import Edit, HarnessProblem, Server
from signet_sync.host.harness_settings.json_text import Child
from signet_sync.host.harness_settings.mcp_server import NAME, Access
from signet_sync.host.harness_settings.program import Program

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerShape:
    """How a harness writes a server: the members that lead to it, and the entry for some words."""

    way: tuple[str, ...]
    entry: Callable[[Sequence[str]], Entry]
    # Only in a new entry: a person's later changes are kept.
    fresh: tuple[tuple[str, Any], ...] = ()


def merged(
    text: str | None, shape: ServerShape, program: Program, access: Access | None, *, path: str, search: str | None
) -> str | None:
    """Returns the document with the server that `access` requests, or with ours renewed if needed.

    `search` is the PATH of programs. Raises `ConfigError`.
    """
    if access is None and NAME not in (text or ""):
        return text
    steps = [] if text is None else steps_to(text, (*shape.way, NAME), path)
    present = steps[-1][1].data if len(steps) > len(shape.way) else None
    words = mcp_server.wanted(words_of(present), program, access, search)
    if words is None:
        return text
    if present is not None and not mcp_server.is_ours(words_of(present)):
        raise mcp_server.foreign(path)
    return _written(text, shape, steps, words)


def stripped(text: str, shape: ServerShape, path: str) -> str | None:
    """Returns the document without our server; None if we created it and it has nothing else. Raises `ConfigError`."""
    if NAME not in text:
        return text
    steps = steps_to(text, (*shape.way, NAME), path)
    if len(steps) <= len(shape.way) or not mcp_server.is_ours(words_of(steps[-1][1].data)):
        return text
    return json_text.cut(text, steps)


def registering(
    path: str, shape: ServerShape, program: Program, access: Access | None, search: str | None
) -> list[Edit]:
    """Returns the edit of a file with nothing else of ours; none if it does not change. Raises `ConfigError`."""
    text = document.load(path)
    after = merged(text, shape, program, access, path=path, search=search)
    return [] if access is None and after == text else [document.edit(path, text, after)]


def unregistering(path: str, shape: ServerShape) -> list[Edit]:
    """Returns the edit that removes our server from such a file; none if it is not there. Raises `ConfigError`."""
    text = document.load(path)
    after = None if text is None else stripped(text, shape, path)
    return [] if after == text else [document.edit(path, text, after)]


def read(path: str, shape: ServerShape) -> tuple[Server | None, Entry, list[HarnessProblem]]:
    """Returns our server in a file, its whole entry, and problems if the file cannot be read."""
    try:
        text = document.load(path) or ""
        data = document.parsed(text, path) if NAME in text else {}
    except SignetSyncError as error:
        return None, {}, [mcp_server.unreadable(path, error.message)]
    except OSError as error:
        return None, {}, [mcp_server.unreadable(path, f"{error.strerror}")]
    return *found(data, shape, path), []


def found(data: object, shape: ServerShape, path: str) -> tuple[Server | None, Entry]:
    """Returns our server in a document's value, and its whole entry."""
    value = data
    for name in (*shape.way, NAME):
        value = value.get(name) if isinstance(value, dict) else None
    words = words_of(value)
    if not isinstance(value, dict) or not mcp_server.is_ours(words):
        return None, {}
    return Server(path, tuple(words)), value


def words_of(entry: object) -> list[str]:
    """Returns the words with which an entry starts a program, in any notation; empty if it starts none."""
    if not isinstance(entry, dict):
        return []
    command, arguments = entry.get("command"), entry.get("args")
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    return [*map(str, words), *map(str, arguments if isinstance(arguments, list) else ())]


def split(words: Sequence[str]) -> Entry:
    """Returns the entry for harnesses that separate a program from its arguments."""
    return {"command": words[0], "args": list(words[1:])}


def steps_to(text: str, names: Sequence[str], path: str) -> list[tuple[int, Child]]:
    """Returns the path to an entry as far as it exists: each object's position, and the member to follow.

    Raises `ConfigError`.
    """
    value: object = document.parsed(text, path)
    start = json_text.root(text)
    steps: list[tuple[int, Child]] = []
    for name in names:
        if not isinstance(value, dict):
            raise document.unusable(path, f'"{".".join(names[: len(steps)])}" is not an object', "correct this")
        child = json_text.member(text, start, name)
        if child is None:
            break
        steps.append((start, child))
        start, value = child.value, child.data
    return steps


def _written(text: str | None, shape: ServerShape, steps: Sequence[tuple[int, Child]], words: Sequence[str]) -> str:
    names = (*shape.way, NAME)
    entry = shape.entry(words)
    if text is not None and len(steps) == len(names):
        child = steps[-1][1]
        value = child.data | entry
        return text if value == child.data else json_text.replaced(text, child, value)
    return put(text, names, steps, entry | dict(shape.fresh))


def put(text: str | None, names: Sequence[str], steps: Sequence[tuple[int, Child]], value: Entry) -> str:
    """Returns the document with one more entry, to which `names` lead; `steps` is how much of that path exists."""
    for name in reversed(names[len(steps) + 1 :]):
        value = {name: value}
    if text is None:
        return json_text.new_document({names[0]: value})
    start = steps[-1][1].value if steps else json_text.root(text)
    return json_text.appended(text, start, value, names[len(steps)])
