"""Reads and writes `memory/words/`: what people and agents said of statements, and what is pinned; rows follow.

Each workspace appends to a file of its own, so that no two machines write the same one; the lines of all files count,
also those of conflict copies, and of lines about the same the later one. Writers hold the workspace's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext

from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import WORDS
from signet_sync.formats.snapshot import Found
from signet_sync.formats.statement import WORDS_LIMIT, Word, decode_word, encode_word, newest_words
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.statements import store
from signet_sync.storage import files, writing
from signet_sync.sync import deriving
from signet_sync.sync.index_records import Source
from signet_sync.sync.planner import Tombstones
from signet_sync.sync.store import passes
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Workspace

OUTCOME = "outcome"  # a source that moves: a thread, for what its sessions came to
_NAME = "words"  # of what was read last, in the table derivers
_TRIES = 5
_AWAY = ("unreadable", "unsettled")  # troubles with a file that may hold words


def fingerprint(root: str) -> str:
    """Returns what changes with every file; empty where there is none. Raises `OSError`."""
    signs = files.signatures(root, _paths(root))
    return text_sha256(repr(sorted(signs.items())))[:16] if signs else ""


def read_words(root: str) -> list[Word]:
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


def _paths(root: str) -> list[str]:
    try:
        with files.folder(root, WORDS) as descriptor:
            return [
                f"{WORDS}/{name}" for name in os.listdir(descriptor) if name.endswith(".jsonl") and name.isprintable()
            ]
    except (FileNotFoundError, WorkspaceError):
        return []


def _pages(root: str) -> dict[str, bytes]:
    found = {path: files.read(root, path, WORDS_LIMIT) for path in _paths(root)}
    for path, one in found.items():
        if not isinstance(one, Found) and one.code in _AWAY:
            raise WorkspaceError(f"it cannot be read: {one.message}", path=path, hint="it is tried again by itself")
    return {path: one.raw for path, one in found.items() if isinstance(one, Found)}


# ── rows follow ──


def follow(workspace: Workspace) -> set[str]:
    """Makes rows follow the files, if these changed; returns the agents whose pins moved. What was removed stays away.

    Raises `OSError`, `WorkspaceError`.
    """
    database = workspace.database
    seen = fingerprint(workspace.root)
    if seen == (passes.find_version(database, _NAME) or ""):
        return set()
    removed = Tombstones(tombstones_store.list_mirrored(database))
    said = read_words(workspace.root)
    # While a removed session has rows, its removal has yet to say the same of what other sessions state, too.
    gone = {word for word in said if _is_covered(word, removed) and not store.has_thread(database, word)}
    if gone and not workspace.touch_nothing:
        erase(workspace.root, gone.__contains__)
        seen = "erased"  # the next look reads them again
    with nullcontext() if database.connection.in_transaction else database.transaction(durable=True):
        threads, agents = store.follow_words(database, newest_words(word for word in said if word not in gone).values())
        deriving.queue(database, workspace.pipeline, {Source(OUTCOME, *thread) for thread in threads})
        passes.set_version(database, _NAME, seen)
    return agents


def say(workspace: Workspace, said: Sequence[Word]) -> None:
    """Writes words, but for what was said last and still counts; rows follow. Raises `OSError`, `WorkspaceError`."""
    follow(workspace)  # what a command that was killed has written
    add(workspace, [word for word in said if not store.counts(workspace.database, word)])
    follow(workspace)


def forget(workspace: Workspace, ids: Collection[tuple[str, str]]) -> None:
    """Deletes the words of removed sessions, and those about some ids (agent, id), once derived rows are up to date.

    What another session states, too, stays as it was said of it. Raises `OSError`, `WorkspaceError`.
    """
    if workspace.touch_nothing:
        return
    removed = Tombstones(tombstones_store.list_mirrored(workspace.database))
    last = newest_words(read_words(workspace.root)).values()
    stated = [(word, store.get(workspace.database, *word[:2])) for word in last if _is_covered(word, removed)]
    others = [word._replace(token=one.session[1], session_id=one.session[2]) for word, one in stated if one is not None]
    add(workspace, [word for word in others if not _is_covered(word, removed)])
    erase(workspace.root, lambda word: (word.agent_id, word.id) in ids or _is_covered(word, removed))
    follow(workspace)


def _is_covered(word: Word, removed: Tombstones) -> bool:
    """Returns whether a word names a removed session."""
    return bool(word.token) and removed.cover_session(word.token, word.agent_id, word.session_id)
