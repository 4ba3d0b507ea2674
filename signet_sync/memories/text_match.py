"""Finds distinctive phrases of a session, used to locate its text in other files."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import display
from signet_sync.memories.store import recall_events, session_texts
from signet_sync.memories.store.memories import Memory
from signet_sync.storage import foreign_files as storage_foreign_files
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.removal import Scope
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import SURE, Sieve, phrases
from signet_sync.text.sentences import escape, flatten

MOST_PHRASES = 1000
_FEW = 16
_QUERIED = late(r"[^\W_]+")


def distinctive(database: Database, scopes: Sequence[Scope]) -> set[bytes]:
    """Returns phrases of some scopes that no other session has, as bytes, raw and as JSON writes them.

    At most `MOST_PHRASES`, spread over the whole text. Every other text of the index is read once.
    """
    own = (text for scope in scopes for text in session_texts.texts(database, scope))
    return _distinctive_phrases(own, session_texts.other_texts(database, scopes))


def of_memory(database: Database, memory: Memory) -> set[bytes]:
    """Returns what identifies a memory: its handle, and phrases that nothing else in the index has."""
    # A page shows it flattened.
    own = [memory.content, flat := flatten(memory.content, limit=len(memory.content) + 1), escape(flat)]
    return {memory.id.encode()} | _distinctive_phrases(own, session_texts.other_texts(database, (), but=[memory[:2]]))


def of_texts(database: Database, own: Iterable[str]) -> set[bytes]:
    """Returns phrases of texts whose rows are deleted that nothing in the index has."""
    return _distinctive_phrases(own, session_texts.other_texts(database, ()))


def queries_of(database: Database, scopes: Sequence[Scope]) -> set[str]:
    """Returns queries of recall events with a word that only the sessions of some scopes have."""
    own = (text for scope in scopes for text in session_texts.texts(database, scope))
    others = session_texts.other_texts(database, scopes)
    return _distinctive_queries(database, own, others, session_texts.remembered_alone(database, scopes))


def queries_of_memory(database: Database, memory: Memory) -> set[str]:
    """Returns queries of recall events with a word that only a memory has."""
    key = memory[:2]
    return _distinctive_queries(database, [memory.content], session_texts.other_texts(database, (), but=[key]), {key})


def queries_of_lost(database: Database, scopes: Sequence[Scope], lost: Sequence[Memory]) -> set[str]:
    """Returns the queries for sessions and memories of a database in which sessions are known from seals only."""
    keys = {memory[:2] for memory in lost}
    own = chain(
        (text for scope in scopes for text in session_texts.texts(database, scope)), (memory.content for memory in lost)
    )
    others = chain(session_texts.other_texts(database, scopes, but=keys), session_texts.sealed_texts(database, scopes))
    return _distinctive_queries(database, own, others, keys | session_texts.remembered_alone(database, scopes))


def _distinctive_queries(
    database: Database, own: Iterable[str], others: Iterable[str], gone: Collection[tuple[str, str]]
) -> set[str]:
    """Returns queries with a word that only `own`, or a tag of the memories in `gone`, has."""
    queries = recall_events.queries(database)
    words = {query: {word for word in _QUERIED.findall(query.casefold()) if len(word) > 2} for query in queries}
    left = set().union(*words.values())
    if not left:
        return set()
    tags = list(session_texts.tags(database))
    found: set[str] = set()
    for text in chain(own, (text for key, text in tags if key in gone)):
        folded = text.casefold()
        found |= {word for word in left if word in folded}
    for text in chain(others, (text for key, text in tags if key not in gone)):
        if not found:
            break
        folded = text.casefold()
        found = {word for word in found if word not in folded}
    return {query for query in queries if not found.isdisjoint(words[query])}


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
    found = set()
    for phrase, raw in telling.items():
        if raw not in common:
            found |= {raw, json.dumps(phrase)[1:-1].encode("ascii")}
    return found


def _spread(items: Sequence[str], count: int) -> Iterator[str]:
    """Yields at most `count` of the items, at equal distances."""
    if len(items) <= count:
        yield from items
        return
    for number in range(count):
        yield items[number * len(items) // count]


def foreign_files(workspace: Workspace, needles: Iterable[bytes], tombstone: str) -> list[str]:
    """Returns files of the workspace that are not ours and contain one of the needles; they are not changed.

    They include a generated page with people's own text around our block, or one held back. A file that only points to
    the tombstone, as the event log of entities does, is left out.
    """
    sieve, pointer = Sieve(needles), tombstone.encode()
    overlap = max(sieve.longest, len(pointer)) - 1
    database = os.path.realpath(workspace.database.path)
    ours = {os.path.realpath(workspace.state.path), *(database + suffix for suffix in ("", "-wal", "-shm", "-journal"))}
    found = []
    for path, descriptor in storage_foreign_files.foreign_files(workspace.root, ours):
        if any(
            sieve.caught(piece.replace(pointer, b"")) for piece in storage_foreign_files.pieces(descriptor, overlap)
        ):
            found.append(display(path))
    return sorted(found)
