"""Writes what other programs remember: memories, each once; sessions whose words no artifact has; after a backup.

A memory that was forgotten is never brought again, and a session goes through the flow of every session's end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from signet_sync.backup import operations as backups
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.reader import EntryKind, JsonLines, TranscriptEntry
from signet_sync.capture.harnesses.texts import text_of
from signet_sync.errors import UsageError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import artifact_file_name
from signet_sync.formats.ids import derive_token, is_session_id, token_of
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT, artifact_path
from signet_sync.formats.statement import Word
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.memories import operations as memories_operations
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.migration.items import EMPTY, NOT_VALID, OF_REMOVED, Item, Left, Report, own_tags, parts_of
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import compaction_input, session_input
from signet_sync.sessions.live.turns import find_missing, turns_in
from signet_sync.statements import word_files
from signet_sync.storage import files, state_dir
from signet_sync.sync.store import artifacts
from signet_sync.sync.store import sessions as sessions_store
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.tombstones import all_tombstones
from signet_sync.sync.workspace import Workspace
from signet_sync.text.chunking import Speaker, speaker_of
from signet_sync.text.memory import TYPES, derive_tags, memory_id
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.stored_names import session_name, session_value


def back_up_once(workspace: Workspace, report: Report, now_us: int) -> None:
    """Writes a backup before the first thing is brought; one from before a removal would be cleaned by that."""
    if report.backup is None:
        report.backup = backups.create(workspace, None, now_us)[0] if workspace.own_place else ""
        report.notes += [] if report.backup else ["no backup was written: this database has no folder for one"]


class MemoryWriter:
    """Writes items; without `write` it only decides, as if each had been brought."""

    def __init__(self, workspace: Workspace, report: Report, now_us: int, *, write: bool) -> None:
        self.workspace = workspace
        self.report = report
        self.now_us = now_us
        self.write = write
        # What is here, or was decided.
        self._here = set(memories.ids(workspace.database))
        self._waiting: list[tuple[Item, Memory]] = []

    def bring(self, item: Item) -> bool:
        """Brings an item, unless its words are here; returns whether. Raises `Left`."""
        if item.left:
            raise Left(item.left)
        parts, redactions = parts_of(item.text)
        said = {memory.id: memory for memory in (self._memory(item, part) for part in parts)}
        new = [memory for memory in said.values() if memory[:2] not in self._here]
        if not new:
            return False
        gone = memories.find_forgotten(self.workspace.database, item.agent_id, [memory.id for memory in new])
        new = [memory for memory in new if memory.id not in gone]
        if not new:
            raise Left("forgotten here")
        self._here.update(memory[:2] for memory in new)
        self.report.redactions.update(redactions)
        if self.write:
            self._waiting += [(item, memory) for memory in new]
        return True

    def finish(self) -> None:
        """Writes what waits, in one transaction, and updates pages and the automatic backup."""
        if not self._waiting:
            return
        back_up_once(self.workspace, self.report, self.now_us)
        database, at = self.workspace.database, iso(self.now_us)
        stored, pinned = list[Memory](), list[Word]()
        with state_dir.workspace_lock(self.workspace.state), database.transaction(durable=True):
            for item, memory in self._waiting:
                if memories.get(database, *memory[:2]) is None:  # else a person said the same meanwhile
                    concepts = derive_tags(memory.content)
                    new = memories.store(database, memory._replace(concepts=concepts), item.origin, indexed=False)
                    stored.append(new[0])
                    if item.pinned:
                        pinned.append(Word(memory.agent_id, memory.id, "pinned", at))
            memories.index(database, stored)
            word_files.add(self.workspace, pinned)
            word_files.follow(self.workspace)
        for agent_id in sorted({memory.agent_id for memory in stored}):
            with state_dir.workspace_lock(self.workspace.state):
                memories_operations.first_pass(self.workspace, self.now_us)
                waiting = memories_operations.settle(self.workspace, agent_id, self.now_us)
            self.report.notes += [waiting] if waiting else []

    def _memory(self, item: Item, part: str) -> Memory:
        """Returns a memory; its type is that of a memory with the same words that is here."""
        agent_id = item.agent_id
        known = (kind for kind in TYPES if (agent_id, memory_id(agent_id, kind, part)) in self._here)
        kind = next(known, item.kind)
        handle = memory_id(agent_id, kind, part)
        return Memory(agent_id, handle, kind, part, own_tags(item.tags), item.private, iso(item.at_us))


# ── sessions ──


class RemovedSessions:
    """The sessions that must not come back, by the names that Signet has for them."""

    def __init__(self, workspace: Workspace) -> None:
        self._tombstones = all_tombstones(workspace)
        self._others: dict[tuple[str, str], set[str]] = {}
        for ref in sessions_store.every(workspace.database):
            self.know(ref.agent_id, {ref.session_id, ref.session_key or "", ref.session_token})

    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Adds removals that are about to be enforced."""
        for one in tombstones:
            self._tombstones[one.key] = one

    def know(self, agent_id: str, names: Collection[str]) -> None:
        """Notes that several names are those of one session."""
        for name in {*names} - {""}:
            self._others.setdefault((agent_id, name), set()).update(names)

    def covers(self, agent_id: str, name: str, key: str = "") -> bool:
        """Returns whether the session with this name was removed; one that is known by its id only may have a key.

        A name that several sessions have counts as removed if one of them was.
        """
        every = ({name, key} | self._others.get((agent_id, name), set())) - {""}
        for token in {token_of(agent_id, one) for one in every} | every:
            found = self._tombstones.get((agent_id, token))
            if found is not None and (not found.session_ids or not every.isdisjoint(found.session_ids)):
                return True
        return False


class SessionBringer:
    """Brings sessions one by one; without `write` it only decides: a session that it would bring counts as here."""

    def __init__(
        self, workspace: Workspace, report: Report, removed: RemovedSessions, now_us: int, *, write: bool
    ) -> None:
        self.workspace = workspace
        self.report = report
        self.removed = removed
        self.now_us = now_us
        self.write = write
        self._decided: set[tuple[str, str]] = set()
        self._by_id: dict[tuple[str, str], SessionRef] = {}
        self._by_key: dict[tuple[str, str], SessionRef] = {}
        for ref in sessions_store.every(workspace.database):
            self._add(ref)

    def find_session(self, agent_id: str, *names: str) -> SessionRef | None:
        """Returns the session whose id is one of these names, else the newest with such a key; None without any."""
        keys = [(agent_id, session_name(name.replace("\0", ""))) for name in names if name]
        return next((known[key] for known in (self._by_id, self._by_key) for key in keys if key in known), None)

    def transcript(self, given: SessionText, summary: str | None = None) -> bool:
        """Brings what no artifact of a session contains; returns whether there was anything. Raises `Left`.

        The summary comes with it, if there is any.
        """
        session, ref = self._resolve_names(given)
        decided = (session.agent_id, session.session_id) in self._decided
        if decided or is_held(session.text, self._bodies(ref, "transcript")):
            return False
        # What goes on from a transcript that is here is cut off by the flow.
        self._bring(session, ref, {"transcript": session.text, "summary": summary})
        self._decided.update([(session.agent_id, session.session_id)] if not self.write else [])
        return True

    def summary(self, given: SessionText) -> bool:
        """Brings a summary that no artifact of its session contains, as a compaction. Raises `Left`."""
        session, ref = self._resolve_names(given)
        if holds(session.text, self._bodies(ref, "summary", "transcript", "compaction")):
            return False
        self._bring(session, ref, {"compaction": session.text})
        return True

    def _add(self, ref: SessionRef) -> None:
        self._by_id[ref.agent_id, ref.session_id] = ref
        if ref.session_key:
            self._by_key[ref.agent_id, ref.session_key] = ref

    def _resolve_names(self, given: SessionText) -> tuple[SessionText, SessionRef | None]:
        """Returns a session under the names that it has here, and the session that is here. Raises `Left`."""
        if self.removed.covers(given.agent_id, given.session_id, given.session_key):
            raise Left(OF_REMOVED)
        names = [session_name(name.replace("\0", "")) for name in (given.session_id, given.session_key)]
        if not is_session_id(names[0]):
            raise Left(NOT_VALID)
        if not given.text.strip():
            raise Left(EMPTY)
        ref = self.find_session(given.agent_id, *names)
        if ref is None:
            return replace(given, session_id=names[0], session_key=names[1]), None
        # The token of a session that is here may come from its id alone: the key would make another session of it.
        key = ref.session_key or ""
        if derive_token(ref.agent_id, key, ref.session_id) != ref.session_token:
            key = ""
        if self.removed.covers(ref.agent_id, ref.session_id, ref.session_key or ""):
            raise Left(OF_REMOVED)
        return replace(given, session_id=ref.session_id, session_key=key), ref

    def _bodies(self, ref: SessionRef | None, *kinds: str) -> list[str]:
        rows = artifacts.session_rows(self.workspace.database, *ref[:3]) if ref is not None else []
        return [row.content for row in rows if row.source_kind in kinds]

    def _bring(self, session: SessionText, ref: SessionRef | None, bodies: dict[str, str | None]) -> None:
        """Writes texts of a session as its artifacts, at its time or the next one that is free. Raises `Left`."""
        if not self.write:
            return
        kinds = ("compaction",) if "compaction" in bodies else ("summary", "transcript")
        rows = artifacts.session_rows(self.workspace.database, *ref[:3]) if ref is not None else []
        token = derive_token(session.agent_id, session.session_key, session.session_id)
        moment = session.ended_us // 1000 * 1000
        moment = max([moment, *(row.captured_us // 1000 * 1000 + 1000 for row in rows if row.source_kind in kinds)])
        while any(
            files.status_of(self.workspace.root, artifact_path(artifact_file_name(iso(moment), token, kind)))
            for kind in kinds
        ):
            moment += 1000
        document = {
            "agent_id": session.agent_id,
            "session_id": session.session_id,
            "session_key": session.session_key or None,
            "project": session_value((session.project or "").replace("\0", "")) or None,
            "harness": session_value((session.harness or "").replace("\0", "")) or None,
            "captured_at": iso(moment),
            "started_at": iso(min(session.started_us, session.ended_us)),
            "ended_at": iso(session.ended_us),
            **bodies,
        }
        back_up_once(self.workspace, self.report, self.now_us)
        try:
            read = compaction_input if "compaction" in bodies else session_input
            given = read(document, now_us=self.now_us)
            answer = sessions_operations.write(self.workspace, given, now_us=self.now_us)
        except UsageError as error:
            raise Left(OF_REMOVED if error.code == "removed-session" else f"{NOT_VALID}: {error.message}") from error
        self._add(SessionRef(session.agent_id, token, session.session_id, session.session_key or None))
        self.report.redactions.update(answer["redactions"])


_KINDS: dict[Speaker, EntryKind] = {"user": "user", "assistant": "assistant", "harness": "event", "tool": "result"}


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session's words, sanitized. Times are microseconds since 1970 UTC; `is_live`: written while it ran."""

    agent_id: str
    session_id: str
    session_key: str
    harness: str | None
    project: str | None
    started_us: int
    ended_us: int
    text: str
    is_live: bool = False


def sessions_in(source: JsonLines, now_us: int) -> Iterator[tuple[SessionText | None, int]]:
    """Yields the sessions of a file with the number of their lines, None for lines that are no turn of a session."""
    for who, group in groupby(source, _who):
        records = list(group)
        if who is None:
            yield None, len(records)
            continue
        times = [parse_instant(text_of(record.get("captured_at")).strip()) for record in records]
        known = [min(max(at, 0), now_us) for at in times if at is not None] or [now_us]
        said: list[TranscriptEntry] = []
        for record in records:
            role, text = text_of(record.get("role")).lower(), sanitize_transcript_v2(record["content"])
            if role in ("", "unknown") and said:  # it goes on with what the line before it said
                said[-1] = replace(said[-1], text=f"{said[-1].text}\n{text}")
            else:
                said.append(TranscriptEntry(_KINDS[speaker_of(role or "assistant")], known[0], text, name=role))
        harness, project = (
            next((text for one in records if (text := text_of(one.get(name)))), None) for name in ("harness", "project")
        )
        text = render([one for one in said if one.text.strip()])
        is_live = all(record.get("source_format") == "live" for record in records)
        yield SessionText(*who, harness, project, min(known), max(known), text, is_live), len(records)


def _who(record: dict[str, Any]) -> tuple[str, str, str] | None:
    agent_id = text_of(record.get("agent_id")).strip() or DEFAULT_AGENT
    key, session_id = text_of(record.get("session_key")).strip(), text_of(record.get("session_id")).strip()
    if not isinstance(record.get("content"), str) or not (key or session_id) or AGENT_ID.fullmatch(agent_id) is None:
        return None
    return agent_id, session_id or key, key


def is_held(transcript: str, bodies: Sequence[str]) -> bool:
    """Returns whether some texts contain each turn of a transcript, or each line."""
    said = turns_in(transcript) if bodies else []
    return (bool(said) and not find_missing("\n\n".join(bodies), said)) or holds(transcript, bodies)


def holds(text: str, bodies: Sequence[str]) -> bool:
    """Returns whether each line of a text is a line, or part of one, in some texts."""
    folded = "\n".join(" ".join(line.split()) for body in bodies for line in body.split("\n"))
    return bool(folded) and all(" ".join(line.split()) in folded for line in text.split("\n"))
