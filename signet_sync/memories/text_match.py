"""Finds distinctive phrases of a session, used to locate its text in other files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence

from signet_sync.formats.paths import display
from signet_sync.memories.store import session_texts
from signet_sync.memories.store.memories import Memory
from signet_sync.storage import files
from signet_sync.storage.database.batches import Scope
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import SURE, Sieve, phrases
from signet_sync.text.sentences import escape, flatten

MOST_PHRASES = 1000
_FEW = 16


def distinctive(database: Database, scopes: Sequence[Scope]) -> set[bytes]:
    """Returns phrases of some scopes that no other session has, as bytes, raw and as JSON writes them.

    At most `MOST_PHRASES`, spread over the whole text. Every other text of the index is read once.
    """
    own = (text for scope in scopes for text in session_texts.texts(database, scope))
    return _distinctive_phrases(own, session_texts.other_texts(database, scopes))


def identify_memory(database: Database, memory: Memory) -> set[bytes]:
    """Returns what identifies a memory: its handle, and phrases that nothing else in the index has."""
    # A page shows it flattened.
    own = [memory.content, flat := flatten(memory.content, limit=len(memory.content) + 1), escape(flat)]
    return {memory.id.encode()} | _distinctive_phrases(own, session_texts.other_texts(database, (), but=[memory[:2]]))


def identify_texts(database: Database, own: Iterable[str]) -> set[bytes]:
    """Returns phrases of texts whose rows are deleted that nothing in the index has."""
    return _distinctive_phrases(own, session_texts.other_texts(database, ()))


def _distinctive_phrases(texts: Iterable[str], others: Iterable[str]) -> set[bytes]:
    of_texts = [one for one in (list(dict.fromkeys(phrases(text))) for text in texts) if one]
    if not of_texts:
        return set()
    share = max(1, MOST_PHRASES // len(of_texts))
    chosen = {phrase: phrase.encode("utf-8", "replace") for one in of_texts for phrase in _spread(one, share)}
    telling = {phrase: raw for phrase, raw in chosen.items() if len(raw) >= SURE}
    if len(telling) < _FEW:
        short = [phrase for phrase in chosen if phrase not in telling]
        telling |= {phrase: chosen[phrase] for phrase in sorted(short, key=len, reverse=True)[:_FEW]}
    sieve = Sieve(telling.values())
    common: set[bytes] = set()
    for text in others:
        common |= sieve.caught(text.encode("utf-8", "replace"))
    rare = [(phrase, raw) for phrase, raw in telling.items() if raw not in common]
    return {form for phrase, raw in rare for form in (raw, json.dumps(phrase)[1:-1].encode("ascii"))}


def _spread(items: Sequence[str], count: int) -> list[str]:
    """Returns at most `count` of the items, at equal distances."""
    count = min(count, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def foreign_files(workspace: Workspace, needles: Iterable[bytes], tombstone: str) -> list[str]:
    """Returns files of the workspace that are not ours and contain one of the needles; they are not changed.

    They include a generated page with people's own text around our block, or one held back. A file that only points to
    the tombstone, as the event log of entities does, is left out.
    """
    sieve, pointer = Sieve(needles), tombstone.encode()
    overlap = max(sieve.longest, len(pointer)) - 1
    database = os.path.realpath(workspace.database.path)
    ours = {os.path.realpath(workspace.state.path), *(database + suffix for suffix in ("", "-wal", "-shm", "-journal"))}
    return sorted(
        display(path)
        for path, descriptor in files.foreign_files(workspace.root, ours)
        if any(sieve.caught(piece.replace(pointer, b"")) for piece in files.pieces(descriptor, overlap))
    )
