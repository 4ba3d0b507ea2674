"""Scrubs what a removal left in files that we write: database, WAL, backups, kept copies, entities."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from signet_sync.capture import injections, spool
from signet_sync.capture.spool import Job
from signet_sync.entities import erase
from signet_sync.entities import stage as entities_stage
from signet_sync.errors import WorkspaceError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import artifact_name, find_ignored_code
from signet_sync.formats.frontmatter import unpack_seal
from signet_sync.formats.handle import SHORT_LENGTH, short_handle
from signet_sync.formats.ids import UUID, hash_forgotten
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import drop_matching
from signet_sync.formats.paths import MEMORY, TEMPORARY, folder_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import iso
from signet_sync.memories.store import memories, session_texts
from signet_sync.memories.store.session_texts import find_used_elsewhere, names
from signet_sync.pages import conflict_copies, dreams_page, page_files
from signet_sync.pages.conflict_copies import keep_displaced
from signet_sync.pages.store.pages import page_states
from signet_sync.sessions import journal
from signet_sync.sessions.copied_history import exchanges_in, exchanges_of, mark_of_compaction, marks_of
from signet_sync.sessions.live import files as live_files
from signet_sync.sessions.live import operations as live
from signet_sync.sessions.live import store as live_store
from signet_sync.sessions.live.turns import SpokenTurn
from signet_sync.statements import word_files
from signet_sync.storage import files, state_dir, writing
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Scope
from signet_sync.storage.database.connection import Database
from signet_sync.storage.durable import sync_folder, unlink
from signet_sync.sync.database import back_up
from signet_sync.sync.index_records import Seal
from signet_sync.sync.store import artifacts, violations
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.tombstones import names_removed, path_of
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import Sieve
from signet_sync.text.redaction import redact_bytes, redacts
from signet_sync.text.sentences import flatten_cell, page_cell

_ARTIFACT = late(r"\d{4}-\d\d-\d\dT[^/]*?--[a-z2-7]{16}--(?:summary|transcript|compaction|manifest)", re.ASCII)


def scrub(workspace: Workspace, now_us: int) -> None:
    """Deletes pending inputs and damaged databases; cleans diaries, kept copies and full text; rewrites backups.

    Then empties the WAL, and overwrites free space in the database.

    If a reader blocks the WAL, or a file cannot be deleted, the scrub stays pending: the next pass tries again.
    """
    tombstones = tombstones_store.list_mirrored(workspace.database)
    try:
        left = keep_displaced(workspace, now_us, rest=0.0)
        state_dir.sweep(workspace.state)
        remembered = {*memories.ids(workspace.database)}

        @cache
        def stands(agent_id: str, one: str) -> bool:
            if one.startswith("m-"):
                return (agent_id, one) in remembered
            return one[0] in "upr" or tombstones_store.has_row(workspace.database, agent_id, one[:SHORT_LENGTH])

        injections.drop_gone(workspace.state, stands)
        if tombstones:
            _delete_inputs(workspace, tombstones)
            # A rebuild or a lost database forgets which pages existed: one without rows must not stay.
            for _, path, _ in list(page_files.strays(workspace)):
                page_files.withdraw(workspace, path)
        left = dreams_page.remove_forgotten(workspace, now_us) or left
        clean_kept_copies(workspace, tombstones, rows_are_made=True)
        if violations.is_redaction_due(workspace.database):
            _redact_copies(workspace)
        clean_entities(workspace, tombstones, now_us)
        word_files.forget(workspace, frozenset(memories.list_unscrubbed(workspace.database)))
        back_up(workspace, iso(now_us), force=True)
        _delete_damaged_databases(workspace.database.path)
        # Before the scrub is recorded as done: a power loss must not bring back deleted files after that.
        writing.sync_folders(workspace.root, {"", TEMPORARY})
        state_dir.sync_folders(workspace.state)
    except (OSError, WorkspaceError) as error:
        left = str(error)
    if left:
        workspace.events.append(
            f"some remains of what was removed could not be deleted; the next pass will try again: {left}"
        )
    if not workspace.database.checkpoint(truncate=True) or left:
        return
    with workspace.database.transaction():
        # After a write since the checkpoint, the next pass tries again.
        if batches.wipe(workspace.database) and tombstones_store.settle_lines(workspace.database):
            tombstones_store.mark_scrubbed(workspace.database)
    workspace.database.checkpoint(truncate=True)


def _delete_inputs(workspace: Workspace, tombstones: Sequence[Tombstone]) -> None:
    """Deletes inputs of removed sessions that are not written yet. Raises `OSError`."""

    def flow(document: Mapping[str, Any]) -> bool:
        return names_removed(tombstones, document["agent_id"], [document["session_id"]], document["token"])

    def job(document: Job) -> bool:
        return names_removed(tombstones, document.agent_id, [document.session_id])

    spool.sweep(workspace.state.spool)
    journal.drop(workspace.state.journal, flow)
    spool.drop(workspace.state.spool, job)
    live_files.drop(workspace.state.live, lambda one: names_removed(tombstones, one.agent_id, one[1:]))


def _delete_damaged_databases(database: str) -> None:
    """Deletes damaged databases that were moved aside. Raises `OSError`."""
    if database == ":memory:":
        return
    folder, base = os.path.split(database)
    for name in os.listdir(folder):
        if name.startswith(f"{base}.corrupt-") and unlink(os.path.join(folder, name)):
            sync_folder(folder)


def clean_kept_copies(workspace: Workspace, tombstones: Sequence[Tombstone], *, rows_are_made: bool = False) -> None:
    """Deletes lines of removed sessions and forgotten memories from kept copies of displaced pages.

    Lines are recognised by token, id, handle and file names; while the sessions have rows also by their words, and
    later by the digests of handles, and of lines that could not be deleted then. Where a removed session never had
    rows, every line of a former page goes whose handle has none. Raises `OSError`, `WorkspaceError`.
    """
    conflict_copies.clear(workspace)  # what it cannot do is told where pages are published
    handles = {memory_id.encode() for _, memory_id in memories.list_unscrubbed(workspace.database)}
    if (tombstones or handles) and conflict_copies.copies(workspace.root):
        lines = tombstones_store.read_remembered_lines(workspace.database)
        needles = (_needles(workspace, tombstones) if tombstones else set()) | handles
        # Carried out while its sessions had no rows: in an index just made, say.
        unknown = {
            agent_id
            for agent_id, token in (tombstones_store.list_unscrubbed(workspace.database) if rows_are_made else ())
            if not tombstones_store.are_kept(workspace.database, agent_id, token)
        }
        clean_of_words(workspace, needles, lines, unknown)


def _redact_copies(workspace: Workspace) -> None:
    """Applies redactions to kept copies and to conflict copies of artifacts.

    A copy of an artifact's earlier version becomes its redacted version; in other copies only secrets are replaced, and
    a person's words stay. Raises `OSError`, `WorkspaceError`.
    """
    seals: dict[str, Seal | None] = dict.fromkeys(conflict_copies.copies(workspace.root))
    for name in files.list_names(workspace.root, MEMORY, ""):
        original = _ARTIFACT.match(name) if find_ignored_code(name) == "conflict-copy" else None
        path = f"{MEMORY}/{original[0]}.md" if original else ""
        if violations.is_redacted(workspace.database, path):
            seals[f"{MEMORY}/{name}"] = artifacts.seal_of(workspace.database, path)
    for path, seal in seals.items():
        found = files.read(workspace.root, path, PAGE_LIMIT)
        if not isinstance(found, Found):
            continue
        sealed = unpack_seal(seal.packed) if seal is not None else None
        clean = sealed if sealed is not None and redacts(found.raw, sealed) else redact_bytes(found.raw)
        if clean != found.raw and writing.replace(workspace.root, path, clean, found.raw).displaced is not None:
            raise page_files.refuse_changed(path)


def lines_of_removed(workspace: Workspace, tombstones: Sequence[Tombstone]) -> set[str]:
    """Returns digests of lines in pages and kept copies that repeat removed sessions, while these have rows.

    For lines that cannot be deleted now: once the rows are gone the words are unknown, and they must not be stored.
    """
    sieve = Sieve(_needles(workspace, tombstones))
    found: set[str] = set()
    for path in (*page_states(workspace.database), *conflict_copies.copies(workspace.root)):
        page = files.read(workspace.root, path, PAGE_LIMIT)
        if isinstance(page, Found):
            found.update(_digest(line) for line in page.raw.split(b"\n") if sieve.find(line))
    return found


def clean_entities(workspace: Workspace, tombstones: Sequence[Tombstone], now_us: int) -> None:
    """Deletes from entities what is based on newly removed sessions, or repeats their words.

    While the sessions have rows, their words are searched for as well, later only paths, ids and names. Raises
    `OSError`, `WorkspaceError`.
    """
    fresh = tombstones_store.list_unscrubbed(workspace.database)
    for tombstone in tombstones:
        if tombstone.key not in fresh or not entities_stage.has_entities(workspace, tombstone.agent_id):
            continue
        known = (name for name in names(workspace.database, tombstone.scope) if artifact_name(name) is not None)
        gone = tombstones_store.list_gone_paths(workspace.database, tombstone)
        paths = {*gone, *(f"{MEMORY}/{name}" for name in known)}
        erase.erase(
            workspace,
            tombstone.agent_id,
            paths=sorted(paths),
            needles=_needles(workspace, [tombstone]),
            tombstone=path_of(*tombstone.key),
            now_us=now_us,
        )


def marks_of_removed(database: Database, tombstones: Sequence[Tombstone]) -> dict[tuple[str, str], set[str]]:
    """Returns by agent and token hashes of handles, prompts and compactions of removed sessions, while rows hold them.

    Memories have marks of their own.
    """
    found: dict[tuple[str, str], set[str]] = {}
    pending = tombstones_store.list_unscrubbed(database)
    scopes = [one.scope for one in tombstones if one.key in pending]
    for scope in scopes:
        agent_id, token = scope[:2]
        known = session_texts.list_derived_handles(database, scope, scopes)
        if known:  # by the beginning of its id a person names the session to lift its removal
            known.update(one for one in session_texts.names(database, scope) if not one.endswith(".md"))
        exchanges = [one for text in session_texts.texts(database, scope) for one in exchanges_in(text)]
        marks = found[agent_id, token] = marks_of(agent_id, token, exchanges)
        marks.update(hash_forgotten(agent_id, one[:SHORT_LENGTH]) for one in known)
        for text in session_texts.artifact_texts(database, [scope]):
            name = artifact_name(text.path.rpartition("/")[2])
            if name is not None and name.kind == "compaction":
                marks.add(mark_of_compaction(agent_id, text.captured_us))
    for tombstone in tombstones:
        for running in live.list_removed(database, tombstone):
            turns = [SpokenTurn(*turn[1:]) for turn in live_store.transcript(database, *running)]
            found.setdefault(tombstone.key, set()).update(marks_of(*tombstone.key, exchanges_of(turns)))
    return found


def clean_of_words(
    workspace: Workspace, needles: Iterable[bytes], digests: Collection[str] = (), unknown: Collection[str] = ()
) -> None:
    """Deletes lines from kept copies: by words that they hold or by digest, of `unknown` agents those without rows.

    Raises `OSError`, `WorkspaceError`.
    """
    copies = conflict_copies.copies(workspace.root)
    if not copies:
        return
    sieve = Sieve(needles)
    for path in copies:
        found = files.read(workspace.root, path, PAGE_LIMIT)
        if not isinstance(found, Found):
            continue
        agent_id = folder_agent(path)
        caught = sieve.find(found.raw)
        caught.update(tombstones_store.find_removed(workspace.database, agent_id, found.raw))
        if agent_id in unknown:
            caught.update(tombstones_store.find_rowless_handles(workspace.database, agent_id, found.raw))

        def goes(line: bytes, caught: Collection[bytes] = caught) -> bool:
            return any(needle in line for needle in caught) or (bool(digests) and _digest(line) in digests)

        left = drop_matching(found.raw, goes)
        if left == found.raw:
            continue
        if writing.replace(workspace.root, path, left, found.raw).displaced is not None:
            raise page_files.refuse_changed(path)


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest()


def _needles(workspace: Workspace, tombstones: Sequence[Tombstone]) -> set[bytes]:
    database = workspace.database
    gone = [path for one in tombstones for path in tombstones_store.list_gone_paths(database, one)]
    words = {tombstone.session_token for tombstone in tombstones if not tombstone.session_ids}
    # An id without rows may be any word, since anyone with access to the workspace can edit a tombstone.
    words.update(one for tombstone in tombstones for one in tombstone.session_ids if UUID.fullmatch(one))
    return needles(database, [one.scope for one in tombstones], gone, words)


def needles(
    database: Database, scopes: Sequence[Scope], paths: Iterable[str], words: Collection[str] = ()
) -> set[bytes]:
    """Returns texts that identify sessions in files: words, also as pages show them, handles, their own phrases."""
    known = {*words, *(path.rpartition("/")[2] for path in paths)}.union(*(names(database, one) for one in scopes))
    # A word that another agent's session also uses, such as an equal id, does not identify this one.
    known -= find_used_elsewhere(database, scopes, known)
    shown = {*known, *map(flatten_cell, known), *map(page_cell, known)}
    long = {word.encode("utf-8", "replace") for word in shown if len(word) >= 8}
    handles = session_texts.handles(database, scopes) if scopes else set()
    return long | {short_handle(one).encode("ascii") for one in handles} | session_texts.distinctive(database, scopes)
