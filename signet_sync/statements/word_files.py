"""Reads and writes `memory/words/`: what people and agents said of statements, and what is pinned.

Each workspace appends to a file of its own, so that no two machines write the same one; the lines of all files count,
also those of conflict copies, and of lines about the same the later one. Writers hold the workspace's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import WORDS
from signet_sync.formats.snapshot import Found
from signet_sync.formats.statement import WORDS_LIMIT, Word, decode_word, encode_word, newest_words
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import files, writing
from signet_sync.storage.files import Root, reading
from signet_sync.sync.workspace import Workspace

_TRIES = 5
_AWAY = ("unreadable", "unsettled")  # troubles with a file that may hold words


def fingerprint(root: Root) -> str:
    """Returns what changes with every file; empty where there is none. Raises `OSError`."""
    signs = files.signatures(root, _paths(root))
    return text_sha256(repr(sorted(signs.items())))[:16] if signs else ""


def read_words(root: Root) -> list[Word]:
    """Returns the words of all files. Raises `OSError`, `WorkspaceError` if one cannot be read now."""
    lines = (line for raw in _pages(root).values() for line in raw.split(b"\n"))
    return [word for line in lines if (word := decode_word(line)) is not None]


def add(workspace: Workspace, words: Iterable[Word]) -> None:
    """Writes words durably, each as later than what was said before. Raises `OSError`, `WorkspaceError`."""
    before, lines = newest_words(read_words(workspace.root)), b""
    for word in words:
        earlier = before.get((word.agent_id, word.id, word.is_pin))
        at = word.at if earlier is None else max(word.at, iso((parse_instant(earlier.at) or 0) + 1_000))
        lines += encode_word(word._replace(at=at))
    path = f"{WORDS}/{workspace.state.key.removeprefix('path-')[:8]}.jsonl"
    for _ in range(_TRIES if lines else 0):
        raw = _pages(workspace.root).get(path)
        if raw is None:
            writing.create_once(workspace.root, path, lines)
            return
        whole = raw if raw.endswith(b"\n") else raw + b"\n"
        if writing.replace(workspace.root, path, whole + lines, raw).displaced is None:
            return
    if lines:
        raise WorkspaceError("it changes again and again", path=path, hint="try again")


def erase(root: str, gone: Callable[[Word], bool]) -> None:
    """Deletes words from all files. Raises `OSError`, `WorkspaceError`."""
    for path, raw in _pages(root).items():
        lines = raw.split(b"\n")
        kept = [line for line in lines if (word := decode_word(line)) is None or not gone(word)]
        if len(kept) < len(lines) and writing.replace(root, path, b"\n".join(kept), raw).displaced is not None:
            raise WorkspaceError("it changed since it was read", path=path, hint="the next pass tries again")


def _paths(root: Root) -> list[str]:
    try:
        with reading(root, WORDS) as vault:
            return [f"{WORDS}/{name}" for name in vault.names() if name.endswith(".jsonl") and name.isprintable()]
    except (FileNotFoundError, WorkspaceError):
        return []


def _pages(root: Root) -> dict[str, bytes]:
    found = {path: files.read(root, path, WORDS_LIMIT) for path in _paths(root)}
    for path, one in found.items():
        if not isinstance(one, Found) and one.code in _AWAY:
            raise WorkspaceError(f"it cannot be read: {one.message}", path=path, hint="it is tried again by itself")
    return {path: one.raw for path, one in found.items() if isinstance(one, Found)}
