"""Reads the texts of some sessions, and those of all others: finds the phrases by which they are known elsewhere."""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from signet_sync.formats.frontmatter import FrontmatterProblem, parse, unpack_seal
from signet_sync.formats.paths import display
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.storage import files
from signet_sync.storage.database.batches import Scope, make_condition
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import list_distilled
from signet_sync.sync.store.texts import text_of
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import SURE, Sieve, phrases
from signet_sync.text.sentences import escape, flatten

MOST_PHRASES = 1000
_FEW = 16


class SessionText(NamedTuple):
    """A text of an artifact, its body or its sentence, and whose it is."""

    path: str
    session: tuple[str, str]  # token and id
    captured_us: int
    text: str


def _exclude_scopes(scopes: Sequence[Scope]) -> tuple[str, list[str]]:
    parts = [make_condition(scope) for scope in scopes]
    clauses = [f"not ({where})" for where, _ in parts]
    return " and ".join(clauses) or "1", [value for _, values in parts for value in values]


def texts(database: Database, scope: Scope) -> Iterator[str]:
    """Returns bodies and sentences of the sessions of a scope, and what is remembered of them alone.

    Of files that have vanished, what was sealed of them.
    """
    where, bindings = make_condition(scope)
    yield from _read_artifacts(database, where, bindings)
    for (packed,) in database.execute(
        f"select packed from seals where {where} and path not in (select source_path from memory_artifacts)", bindings
    ):
        with suppress(FrontmatterProblem):
            document = parse(unpack_seal(packed) or b"")
            # Other fields (key, project, times) other sessions have too.
            yield from (document.body, str(document.fields.get("memory_sentence") or ""))
    for memory in memories.find_orphans(database, *scope):
        yield memory.content


def artifact_texts(database: Database, scopes: Sequence[Scope]) -> Iterator[SessionText]:
    """Returns what the artifacts of some scopes' sessions say, and where; without manifests and made-up sentences."""
    for scope in scopes:
        yield from _texts_of(database, *make_condition(scope), fallbacks=False)


def artifact_texts_of_others(database: Database, agent_id: str, scopes: Sequence[Scope]) -> Iterator[SessionText]:
    """Returns the same of an agent's sessions outside of some scopes."""
    outside, bindings = _exclude_scopes(scopes)
    yield from _texts_of(database, f"agent_id = ? and {outside}", [agent_id, *bindings], fallbacks=True)


def _texts_of(database: Database, where: str, bindings: Sequence[str], *, fallbacks: bool) -> Iterator[SessionText]:
    rows = database.execute(
        f"select source_path, session_token, session_id, captured_us, {text_of()}, memory_sentence,"
        f" memory_sentence_quality from memory_artifacts where source_kind <> 'manifest' and {where}",
        bindings,
    )
    for path, token, session_id, captured_us, content, sentence, quality in rows:
        yield SessionText(path, (token, session_id), captured_us, content)
        if sentence and (fallbacks or quality == "ok"):
            yield SessionText(path, (token, session_id), captured_us, sentence)


def outlines(database: Database, scope: Scope) -> Iterator[tuple[str, int, str, str | None]]:
    """Yields id, time, sentence and project of the sessions of a scope."""
    yield from database.execute(
        "select t.session_id, t.latest_us, t.sentence, (select max(project) from memory_artifacts a where"
        " a.agent_id = ?1 and a.session_token = ?2 and a.session_id = t.session_id) from thread_sessions t"
        " where t.agent_id = ?1 and t.session_token = ?2",
        scope[:2],
    )


def names(database: Database, scope: Scope) -> set[str]:
    """Returns ids of the sessions of a scope, the names of their files, and their token and keys that no other has."""
    where, bindings = make_condition(scope)
    found = set()
    for path, session_id in database.execute(
        f"select source_path, session_id from memory_artifacts where {where}"
        f" union select path, session_id from seals where {where}",
        [*bindings, *bindings],
    ):
        found |= {path.rpartition("/")[2], session_id}
    if not found:
        return found
    outside, others = _exclude_scopes([scope])
    of_token = f"select 1 from memory_artifacts where agent_id = ? and session_token = ? and {outside}"
    if not database.value(of_token, [*scope[:2], *others]):
        found.add(scope[1])
    keys = database.column(
        f"select distinct session_key from memory_artifacts where {where} and session_key is not null and session_key"
        f" not in (select session_key from memory_artifacts where session_key is not null and {outside})",
        [*bindings, *others],
    )
    return found.union(keys)


def find_used_elsewhere(database: Database, scopes: Sequence[Scope], ids: Collection[str]) -> set[str]:
    """Returns the session ids that a session outside the scopes has too: another agent's, or under another key."""
    outside, bindings = _exclude_scopes(scopes)
    rows = database.execute(
        "select distinct session_id from memory_artifacts"
        f" where session_id in (select value from json_each(?)) and {outside}",
        [json.dumps(sorted(ids)), *bindings],
    )
    return {row[0] for row in rows}


def _read_artifacts(database: Database, where: str, bindings: Sequence[str]) -> Iterator[str]:
    for row in database.execute(
        f"select {text_of()}, coalesce(memory_sentence, '') from memory_artifacts where {where}", bindings
    ):
        yield from row


def _other_texts(database: Database, scopes: Sequence[Scope], gone: Collection[tuple[str, str]]) -> Iterator[str]:
    """Returns bodies and sentences of every session, of any agent, outside some scopes, and what else is remembered.

    `gone` are memories, agent and id, that are left out.
    """
    outside, bindings = _exclude_scopes(scopes)
    yield from _read_artifacts(database, outside, bindings)
    for agent_id, memory_id, content in database.execute("select agent_id, id, content from memories"):
        if (agent_id, memory_id) not in gone:
            yield content


def handles(database: Database, scopes: Sequence[Scope]) -> set[str]:
    """Returns ids of statements, threads and memories in which no session outside some scopes has part."""
    found = {memory_id for _, memory_id in _find_remembered_alone(database, scopes)}
    return found.union(*(list_derived_handles(database, scope, scopes) for scope in scopes))


def list_derived_handles(database: Database, scope: Scope, scopes: Sequence[Scope]) -> set[str]:
    """Ids of statements and threads in which sessions of a scope have a part, and none outside some scopes."""
    outside, others = _exclude_scopes(scopes)
    where, bindings = make_condition(scope)
    found = set()
    for table in list_distilled():
        ids = {row[0] for row in database.execute(f"select {table.handle} from {table.rows} where {where}", bindings)}
        shared = database.execute(
            f"select {table.handle} from {table.rows}"
            f" where agent_id = ? and {table.handle} in (select value from json_each(?)) and {outside}",
            [scope[0], json.dumps(sorted(ids)), *others],
        )
        found |= ids.difference(row[0] for row in shared)
    return found


def _find_remembered_alone(database: Database, scopes: Sequence[Scope]) -> set[tuple[str, str]]:
    """Returns agent and id of the memories that come from the sessions of some scopes and from nowhere else."""
    return {memory[:2] for scope in scopes for memory in memories.find_orphans(database, *scope)}


# ── phrases by which a text is known in other files ──


def distinctive(database: Database, scopes: Sequence[Scope]) -> set[bytes]:
    """Returns phrases of some scopes that no other session has, as bytes, raw and as JSON writes them.

    At most `MOST_PHRASES`, spread over the whole text. Every other text of the index is read once.
    """
    own = [text for scope in scopes for text in texts(database, scope)]
    return _distinctive_phrases(own, _other_texts(database, scopes, _find_remembered_alone(database, scopes)))


def identify_memory(database: Database, memory: Memory) -> set[bytes]:
    """Returns what identifies a memory: its handle, and phrases that nothing else in the index has."""
    # A page shows it flattened.
    own = [memory.content, flat := flatten(memory.content, limit=len(memory.content) + 1), escape(flat)]
    return {memory.id.encode()} | _distinctive_phrases(own, _other_texts(database, (), [memory[:2]]))


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
        common |= sieve.find(text.encode("utf-8", "replace"))
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
        if any(sieve.find(piece.replace(pointer, b"")) for piece in files.pieces(descriptor, overlap))
    )
