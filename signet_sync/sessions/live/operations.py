"""Buffers the turns that a harness streams while a session runs, in files; rows follow from these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from signet_sync.errors import UsageError
from signet_sync.formats.artifact import REPOSITORY_FIELDS, Tombstone
from signet_sync.formats.ids import token_of
from signet_sync.host.repository import holds_home, resolve
from signet_sync.sessions import store as results
from signet_sync.sessions.input import (
    CompactionInput,
    SessionInput,
    Turn,
    session_input,
    write_identity,
    write_repository,
)
from signet_sync.sessions.live import files as live_files
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.files import Buffer, LiveIdentity
from signet_sync.sessions.live.store import LivePlace, LiveTurn
from signet_sync.sessions.live.turns import SpokenTurn, find_missing, live_turns_in
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import artifacts
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.tombstones import names_removed, refuse_removed
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line, sanitize_line_counted
from signet_sync.text.stored_names import session_name

# Milliseconds to wait: a pass over a large vault may lock the database, and a turn must not be lost for that.
BUSY_TIMEOUT_MS = 60_000


def append(
    workspace: Workspace, turns: Iterable[Turn], *, agent_id: str, session_key: str, session_id: str | None = None
) -> dict[str, Any]:
    """Buffers the turns of a running session, all or none, sanitized; returns the answer of `transcript append`.

    Turns that are buffered already are counted as duplicates. The last turn that names a project tells where the
    session works. The turns are durable when this returns. Raises
    `UsageError` (`input-invalid`, `agent-invalid`, `turn-conflict`, `removed-session`), `DatabaseError`, `OSError`;
    after `OSError` the turns may be buffered all the same, and repeating the call finds them.
    """
    turns = list(turns)
    place = _place(agent_id, session_key, session_id or "", turns)
    session_key, session_id = session_name(session_key), session_name(session_id) if session_id else ""
    # Rows whose key is the session's id are those read from a transcript.
    session_id = "" if session_id == session_key else session_id
    counts = Counter[str]()
    clean = [_sanitize_turn(turn, counts) for turn in turns]
    database = workspace.database
    database.connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    identity = LiveIdentity(agent_id, session_key, session_id)
    # The file is locked within the transaction, so that a later removal finds the turns.
    with database.transaction():
        seen = live.shapes(database).get(identity.name)
        with live_files.lock_buffer(workspace.state.live, identity) as buffer:
            refuse_removed(workspace, agent_id, session_key, session_id)
            if buffer.shape != seen:
                _settle(workspace, buffer, alone=seen is None)
            fresh = live.find_new_turns(database, agent_id, session_key, clean, session_id=session_id)
            known = next((one.place for one in live.list_running(database, *identity)), None)
            buffer.append(fresh, place if place != known else None)
            live.buffer(database, agent_id, session_key, fresh, session_id=session_id)
            if clean:
                describe(workspace, *identity, place or known or LivePlace())
            live.set_shape(database, identity.name, buffer.shape)
            held = live.count(database, agent_id, session_key, session_id)
    return {
        "agent_id": agent_id,
        "session_key": session_key,
        "turns": held,
        "appended": len(fresh),
        "duplicates": len(clean) - len(fresh),
        "redactions": counts,
    }


# ── files and rows ──


def settle(workspace: Workspace) -> None:
    """Updates rows from files that changed; writes files for turns that exist only as rows.

    Such rows come from a backup. Raises `DatabaseError`, `OSError`.
    """
    database, folder = workspace.database, workspace.state.live
    if workspace.touch_nothing or live_files.is_settled(database, folder):
        return
    with database.transaction():
        known, present = live.shapes(database), live_files.fingerprints(folder)
        rows = {identity.name: identity for identity in map(LiveIdentity._make, live.list_handed_over(database))}
        tombstones = tombstones_store.list_mirrored(database)
        for name in sorted({*known, *present, *rows}):
            if name in known and known[name] == present.get(name):
                continue
            kept = None if name in rows else live_files.read(folder, name)
            identity = kept.identity if kept is not None else rows.get(name)
            if identity is None:
                live.set_shape(database, name, present.get(name, ""))
            elif names_removed(tombstones, identity.agent_id, identity[1:]):
                # A removal has got as far as its tombstone: the turns are not read again.
                _remove(workspace, identity)
                live.forget(database, *identity)
            else:
                with live_files.lock_buffer(folder, identity) as buffer:
                    _settle(workspace, buffer, alone=name not in known)


def _settle(workspace: Workspace, buffer: Buffer, *, alone: bool) -> None:
    """Makes a session's rows and file equal. The file decides, unless damaged or rows may exist `alone`."""
    database, kept = workspace.database, buffer.read()
    turns, place = kept.turns, kept.place
    if alone or kept.damaged:
        present = {turn.turn for turn in turns}
        missing = [turn for turn in live.transcript(database, *buffer.identity) if turn.turn not in present]
        turns = sorted([*turns, *missing])
        if kept.damaged:
            known = next((one.place for one in live.list_running(database, *buffer.identity)), LivePlace())
            place = known if place == LivePlace() else place
            buffer.replace(turns, place)
        else:
            buffer.append(missing)
    live.mirror(database, *buffer.identity, turns)
    if turns:
        describe(workspace, *buffer.identity, place)
    live.set_shape(database, buffer.identity.name, buffer.shape)


def describe(
    workspace: Workspace, agent_id: str, session_key: str, session_id: str, place: LivePlace, *, headless: bool = False
) -> None:
    """Stores where a session with live turns works, and whether it is noise. In the caller's transaction."""
    noise = headless or workspace.noise.is_noise(place.project, session_id or session_key, session_key, place.harness)
    live.describe(workspace.database, agent_id, session_key, session_id, place, noise=noise)


def _remove(workspace: Workspace, identity: LiveIdentity) -> None:
    """Deletes a session's file; each pass tries again if it cannot be deleted."""
    try:
        live_files.remove(workspace.state.live, [identity.name])
    except OSError as error:
        workspace.events.append(
            f"live turns of a removed session cannot be deleted; the next pass will try again: {error}"
        )
    live.set_shape(workspace.database, identity.name, "")


def forget(workspace: Workspace, agent_id: str, session_key: str, marks: Mapping[str, Collection[str]]) -> None:
    """Deletes turns that artifacts hold now: from the files (of the session's id, or of none), then the rows.

    Turns are matched by their marks, so that other words under the same number stay. Raises `DatabaseError`, `OSError`.
    """
    database = workspace.database
    with database.transaction(durable=True):
        for session_id, gone in marks.items():
            identity = LiveIdentity(agent_id, session_key, session_id)
            with live_files.lock_buffer(workspace.state.live, identity) as buffer:
                kept = buffer.read()
                left = [turn for turn in kept.turns if mark_of(turn) not in gone]
                if len(left) < len(kept.turns):
                    buffer.replace(left, kept.place)
                live.mirror(database, *identity, left)
                live.set_shape(database, identity.name, buffer.shape)


def forget_removed(workspace: Workspace, tombstones: Sequence[Tombstone]) -> None:
    """Deletes live files of sessions that tombstones cover, while rows still name them. In a transaction."""
    if not workspace.touch_nothing:
        for tombstone in tombstones:
            for one in list_removed(workspace.database, tombstone):
                _remove(workspace, LiveIdentity(*one))


def forget_removed_rows(database: Database, tombstone: Tombstone, of: Sequence[tuple[str, str | None]]) -> None:
    """Deletes buffered turns and recorded answers of removed sessions. In the caller's transaction."""
    for one in list_removed(database, tombstone, of):
        live.forget(database, *one)
    ids = {*tombstone.session_ids, *(session_id for session_id, _ in of)}
    results.forget_answers_of(database, tombstone.agent_id, ids)


def list_removed(
    database: Database, tombstone: Tombstone, of: Sequence[tuple[str, str | None]] | None = None
) -> list[tuple[str, str, str]]:
    """Returns agent, key and id of the buffered turns that a tombstone covers, `of` these sessions by their rows.

    Turns are covered by their ids, and by what they are called where the token covers all of it. Under a key that
    sessions outside the tombstone share, turns whose session nobody named may tell of the removed one: they go once,
    with the removal. Later ones are another session's.
    """
    agent_id, token = tombstone.key
    of = tombstones_store.sessions_of(database, tombstone.scope) if of is None else of
    ids = {*tombstone.session_ids, *(session_id for session_id, _ in of)}
    keys = {key for _, key in of if key is not None}
    fresh = tombstones_store.is_due(database, agent_id, token)
    found = []
    for key, session_id, *_ in live.sessions(database, agent_id):
        named = names_removed([tombstone], agent_id, [key, session_id])
        named |= not ids.isdisjoint((key, session_id))
        shared = not session_id and (token_of(agent_id, key) == token or key in keys)
        if named or (shared and fresh):
            found.append((agent_id, key, session_id))
    return found


def drop_recorded(workspace: Workspace, sessions: Iterable[tuple[str, str, str]]) -> None:
    """Deletes turns, restored from an older backup, that artifacts hold already; sessions by agent, key and id."""
    for agent_id, session_key, session_id in sessions:
        turns = live.transcript(workspace.database, agent_id, session_key, session_id)
        segments = artifacts.transcripts(
            workspace.database, agent_id, token_of(agent_id, session_key), session_id or None
        )
        absent = set(find_missing_turns([make_spoken_turn(turn) for turn in turns], segments, ""))
        held = [mark_of(turn) for place, turn in enumerate(turns) if place not in absent]
        if held:
            forget(workspace, agent_id, session_key, {session_id: held})


# ── turns and transcripts ──


def make_spoken_turn(turn: LiveTurn) -> SpokenTurn:
    """Returns a live turn as it is compared with and written into transcripts: sanitized by today's rules."""
    return SpokenTurn(sanitize_line(turn.role), sanitize_counted(turn.content)[0], turn.at)


def mark_of(turn: LiveTurn) -> str:
    """Returns the mark of a turn, which differs for other words under the same number."""
    words = f"{turn.role}\0{turn.content}".encode("utf-8", "replace")
    return f"{turn.turn} {sha256(words).hexdigest()[:16]}"


def marks_of(covered: Sequence[tuple[str, LiveTurn]]) -> dict[str, list[str]]:
    """Groups the marks of turns by session id."""
    found: dict[str, list[str]] = {}
    for session_id, turn in covered:
        found.setdefault(session_id, []).append(mark_of(turn))
    return found


def find_missing_turns(said: Sequence[SpokenTurn], segments: Sequence[tuple[str, int]], transcript: str) -> list[int]:
    """Finds the turns that neither a transcript nor an earlier segment holds; a segment is its text and its end in µs.

    A turn said after a segment's end is not in that segment, even if the words are equal.
    """
    absent = find_missing(transcript, said)
    for text, ends_us in segments:
        if not absent:
            break
        ends_us = max([ends_us, *(turn.at_us or 0 for turn in live_turns_in(text))])
        older = [place for place in absent if (said[place].at_us or 0) <= ends_us]
        left = {older[place] for place in find_missing(text, [said[place] for place in older])}
        absent = [place for place in absent if place in left or place not in older]
    return absent


def _place(agent_id: str, session_key: str, session_id: str, turns: Sequence[Turn]) -> LivePlace | None:
    """Returns where a session works, as its files would name it; None if no turn says so.

    Checks all names by the rules of an ending: else the session could never end.
    """
    named: Mapping[str, Any] = next((turn.place for turn in reversed(turns) if turn.place), {})
    names = {"agent_id": agent_id, "session_key": session_key, "session_id": session_id or "-", "transcript": ""}
    try:
        given = session_input({**named, **names}, now_us=0)
    except UsageError as error:
        raise _refuse(error.message, error.code) from None
    if given.session_key is None:
        raise _refuse("session_key must be a text that is not blank")
    return write_place(given) if named else None


def write_place(given: SessionInput) -> LivePlace:
    """Returns where a session works, as its files will name it."""
    identity = write_identity(given)
    repository = find_repository(given, identity)
    return LivePlace(identity["project"], identity["harness"], *(repository.get(name) for name in REPOSITORY_FIELDS))


def find_repository(given: SessionInput | CompactionInput, identity: Mapping[str, str | None]) -> dict[str, Any]:
    """Returns the fields of a session's repository as they are written: the one given, else that of its folder now.

    The branch of now is not that of a session that was captured at another time.
    """
    if given.repository_root is None and (found := resolve(given.project or "")) is not None:
        found = found._replace(branch=None) if given.captured_at is not None else found
        named: dict[str, Any] = dict(zip(REPOSITORY_FIELDS, found, strict=True))
        given = replace(given, **named)
    return {} if holds_home(given.repository_root or "/") else write_repository(given, identity)


def _refuse(message: str, code: str = "input-invalid") -> UsageError:
    return UsageError(message, hint="see signet-sync transcript append --help; nothing was written", code=code)


def _sanitize_turn(turn: Turn, counts: Counter[str]) -> LiveTurn:
    role, of_role = sanitize_line_counted(turn.role)
    text, of_text = sanitize_counted(turn.text)
    counts.update(of_role)
    counts.update(of_text)
    return LiveTurn(turn.turn, role, text, turn.at)
