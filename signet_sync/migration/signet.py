"""Brings over what Signet remembers: removals first, then sessions, memories, and what it says of names."""

from __future__ import annotations

import os
from contextlib import suppress

from signet_sync.capture.harnesses.jsonl import JsonLines
from signet_sync.capture.stores.files import lines
from signet_sync.errors import HarnessError
from signet_sync.formats.artifact import Tombstone
from signet_sync.migration import sessions as session_text
from signet_sync.migration import signet_rows
from signet_sync.migration.items import Left
from signet_sync.migration.report import Report
from signet_sync.migration.sessions import RemovedSessions, SessionBringer, SessionText
from signet_sync.migration.signet_rows import DELETED, NOT_VALID, OF_REMOVED, Row, agent_of, is_set, time_of
from signet_sync.migration.writer import MemoryWriter
from signet_sync.privacy import signet_tombstones
from signet_sync.storage import files
from signet_sync.storage.database.foreign import ForeignDatabase
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_transcript_v2


class SignetMigration:
    """One run over a database of Signet; without `write` it only reports what a run would bring."""

    def __init__(
        self, workspace: Workspace, signet: ForeignDatabase, report: Report, now_us: int, *, write: bool
    ) -> None:
        self.workspace = workspace
        self.signet = signet
        self.report = report
        self.now_us = now_us
        self.removed = RemovedSessions(workspace)
        self.sessions = SessionBringer(workspace, report, self.removed, now_us, write=write)
        self.memories = MemoryWriter(workspace, report, now_us, write=write)
        # Why each memory was left, "" for those that are here: what is said of names repeats them.
        self._left: dict[str, str] = {}

    def removals(self) -> list[Tombstone]:
        """Returns the removals that are not in force here yet, and holds all that follows to them."""
        new = []
        for row in self.signet.rows(signet_tombstones.TABLE):
            with self.report.accounted(signet_tombstones.TABLE) as account:
                found = signet_tombstones.tombstone(row)
                if found is None:
                    raise Left(NOT_VALID)
                account.is_new = not self.removed.covers(found.agent_id, found.session_token)
                if account.is_new and tombstones_files.lifted(self.workspace.root, [found]):
                    raise Left("its removal was lifted here")
                if account.is_new:
                    new.append(found)
        self.removed.add(new)
        for row in self.signet.rows("memory_artifacts"):
            with suppress(Left):
                names = {row[name] or "" for name in ("session_key", "session_id", "session_token")}
                self.removed.know(agent_of(row), names)
        return new

    def bring(self) -> None:
        """Brings everything else."""
        self._transcripts_and_summaries()
        self._transcript_files()
        self._memories()
        self._summaries_of_several()
        self._entities()
        for table, why in signet_rows.NOT_BROUGHT.items():
            self.report.left(table, why, self.signet.count(table))
        self.memories.finish()

    # ── sessions ──

    def _transcripts_and_summaries(self) -> None:
        """Brings transcripts, each with the first summary of its session; then the other summaries of one session."""
        ids: dict[tuple[str, str], str] = {}
        for row in self.signet.rows("session_summaries"):
            with suppress(Left):
                if _is_of_one(row) and row["id"]:
                    ids.setdefault((agent_of(row), (row["session_key"] or "").strip()), row["id"])
        brought = set()
        for row in self.signet.rows("session_transcripts"):
            with self.report.accounted("session_transcripts") as account:
                given = self._session(row, "created_at", "updated_at")
                summary_id = ids.get((given.agent_id, given.session_key), "")
                found = [one["content"] for one in self.signet.rows("session_summaries", named=summary_id)]
                summary = sanitize_transcript_v2(found[0]).strip("\n") if found and found[0] else None
                account.is_new = self.sessions.transcript(given, summary)
                brought.update([summary_id] if account.is_new and summary else [])
        for row in self.signet.rows("session_summaries"):
            if _is_of_one(row):
                with self.report.accounted("session_summaries") as account:
                    given = self._session(row, "earliest_at", "latest_at")
                    account.is_new = row["id"] in brought or self.sessions.summary(given)

    def _session(self, row: Row, begin: str, end: str) -> SessionText:
        """Returns the words of a row about one session. Raises `Left`."""
        agent_id, key = agent_of(row), (row.get("session_key") or "").strip()
        if row.get("bytes"):
            raise Left("longer than 64 MiB")
        text = sanitize_transcript_v2(row.get("content") or "").strip("\n")
        started = time_of(row, begin, "created_at", end, now_us=self.now_us)
        ended = max(started, time_of(row, end, "created_at", now_us=self.now_us))
        session_id = (row.get("session_id") or "").strip() or key
        return SessionText(agent_id, session_id, key, row["harness"], row["project"], started, ended, text)

    def _transcript_files(self) -> None:
        """Brings `memory/<harness>/transcripts/*.jsonl` of workspace and database; no link is followed."""
        own, theirs = os.path.realpath(self.workspace.root), os.path.dirname(self.report.place)
        theirs = os.path.dirname(theirs) if os.path.basename(theirs) == "memory" else theirs
        for place in dict.fromkeys((own, os.path.realpath(theirs))):
            for harness in files.listing(place, "memory", ""):
                where = f"memory/{harness}/transcripts"
                for name in files.listing(place, where, "") if not harness.endswith(".md") else ():
                    path = os.path.join(place, where, name)
                    if name.endswith(".jsonl"):
                        self._transcript_file(path, f"{where}/{name}" if place == own else path)

    def _transcript_file(self, path: str, shown: str) -> None:
        source = JsonLines(lines(path))
        try:
            for given, number in session_text.sessions_in(source, self.now_us):
                with self.report.accounted(shown, number) as account:
                    if given is None:
                        raise Left("no turn of a session")
                    account.is_new = self.sessions.transcript(given)
        except HarnessError as error:
            self.report.notes.append(f"{shown} was left: {error.message}")
        self.report.left(shown, "the line is damaged or breaks off", source.damaged + source.torn)

    # ── memories ──

    def _memories(self) -> None:
        keys = {row["id"]: row["session_key"] for row in self.signet.rows("session_summaries")}
        of_memory: dict[str, list[str]] = {}
        for row in self.signet.rows("session_summary_memories"):
            if key := keys.get(row["summary_id"]):
                of_memory.setdefault(row["memory_id"] or "", []).append(key)
        for row in self.signet.rows("memories"):
            with self.report.accounted("memories") as account:
                memory_id = row["id"] or ""
                names = [*filter(None, [row["source_id"]]), *of_memory.get(memory_id, [])]
                try:
                    if any(self.removed.covers(agent_of(row), name) for name in names):
                        raise Left(DELETED if is_set(row["is_deleted"]) else OF_REMOVED)
                    item = signet_rows.memory(row, now_us=self.now_us)
                    if ref := self.sessions.called(item.agent_id, *names):
                        item = item._replace(origin=(ref.session_token, ref.session_id))
                    account.is_new = self.memories.bring(item)
                except Left as why:
                    self._left[memory_id] = str(why)
                    raise
                self._left.setdefault(memory_id, "")

    def _summaries_of_several(self) -> None:
        children: dict[str, set[str]] = {}
        for row in self.signet.rows("session_summary_children"):
            children.setdefault(row["parent_id"] or "", set()).add(row["child_id"] or "")
        keys = {row["id"]: row["session_key"] for row in self.signet.rows("session_summaries")}
        for row in self.signet.rows("session_summaries"):
            if _is_of_one(row):
                continue
            with self.report.accounted("session_summaries") as account:
                below, waiting = {row["id"] or ""}, [row["id"] or ""]
                while waiting:
                    more = children.get(waiting.pop(), set()) - below
                    below |= more
                    waiting += more
                if any(self.removed.covers(agent_of(row), keys.get(one) or "") for one in below):
                    raise Left("it tells of a removed session")
                account.is_new = self.memories.bring(signet_rows.summary(row, now_us=self.now_us))

    def _entities(self) -> None:
        entities: dict[str, Row] = {}
        for row in self.signet.rows("entities"):
            entities.setdefault(row["id"] or "", {**row, "description": None})  # which may be long
            with self.report.accounted("entities") as account:
                self._require_not_removed(row)
                account.is_new = self.memories.bring(signet_rows.described(row, now_us=self.now_us))
        aspects = {row["id"]: row for row in self.signet.rows("entity_aspects")}
        for row in self.signet.rows("entity_attributes"):
            with self.report.accounted("entity_attributes") as account:
                aspect = aspects.get(row["aspect_id"], {})
                entity = entities.get(aspect.get("entity_id") or "")
                if entity is None or agent_of(entity) != agent_of(row):
                    raise Left("it belongs to nothing that is there")
                self._require_not_removed(row)
                of_memory = self._left.get(row["memory_id"]) if row["memory_id"] else None
                if of_memory:
                    raise Left(of_memory)
                item = signet_rows.attribute(row, entity, aspect, now_us=self.now_us)
                account.is_new = of_memory is None and self.memories.bring(item)

    def _require_not_removed(self, row: Row) -> None:
        if self.removed.covers(agent_of(row), row["source_id"] or ""):
            raise Left(OF_REMOVED)


def _is_of_one(row: Row) -> bool:
    """Returns whether a summary is of a single session that is named."""
    named = bool((row["session_key"] or "").strip())
    return named and (row["kind"] or "session").strip() == "session" and (row["depth"] or "0").strip() == "0"
