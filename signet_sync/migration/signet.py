"""Brings over what Signet remembers: removals first, then sessions, memories, and what it says of names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from signet_sync.errors import HarnessError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.body import text_sha256
from signet_sync.migration import proposals, signet_rows, signet_transcripts
from signet_sync.migration.items import Item, Left, parts_of
from signet_sync.migration.report import Report
from signet_sync.migration.session_text import SessionText, split
from signet_sync.migration.sessions import RemovedSessions, SessionBringer
from signet_sync.migration.signet_rows import (
    DELETED,
    NOT_VALID,
    OF_REMOVED,
    Row,
    agent_of,
    is_set,
    time_of,
)
from signet_sync.migration.writer import MemoryWriter, back_up_once
from signet_sync.privacy import signet_tombstones
from signet_sync.storage.database.foreign import ForeignDatabase
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.workspace import Workspace

_LIFTED = "its removal was lifted here"
_ORPHAN = "it belongs to nothing that is there"


class SignetMigration:
    """One run over a database of Signet; with `aside`, a temporary file, it only reports what a run would bring."""

    def __init__(
        self, workspace: Workspace, signet: ForeignDatabase, report: Report, now_us: int, aside: IO[bytes] | None = None
    ) -> None:
        self.workspace = workspace
        self.signet = signet
        self.report = report
        self.now_us = now_us
        self.removed = RemovedSessions(workspace)
        self.sessions = SessionBringer(workspace, report, self.removed, now_us, aside)
        self.memories = MemoryWriter(workspace, report, now_us, write=aside is None)
        # Why the words of some memories are not brought, wherever else they are; hashes of the others with their words.
        self._unwelcome: dict[str, str] = {}
        self._said: set[int] = set()
        # The summaries that came with the transcripts of their sessions.
        self._with_transcripts: set[str] = set()

    # ── removals ──

    def removals(self) -> list[Tombstone]:
        """Returns the removals that are not in force here yet, and holds all that follows to them."""
        new = []
        known = RemovedSessions(self.workspace)
        for row in self.signet.rows(signet_tombstones.TABLE):
            with self.report.accounted(signet_tombstones.TABLE) as account:
                found = signet_tombstones.tombstone(row)
                if found is None:
                    raise Left(NOT_VALID)
                account.is_new = not known.covers(found.agent_id, found.session_token)
                if account.is_new and tombstones_files.lifted(self.workspace.root, [found]):
                    raise Left(_LIFTED)
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
        self._transcripts()
        self._transcript_files()
        self._summaries_of_sessions()
        self._memories()
        self._summaries()
        self._thread_heads()
        self._entities()
        self.memories.finish()

    # ── sessions ──

    def _transcripts(self) -> None:
        summaries = self._summaries_by_session()
        for row in self.signet.rows("session_transcripts"):
            with self.report.accounted("session_transcripts") as account:
                given = self._session(row)
                one = summaries.get((given.agent_id, given.session_key))
                account.is_new = self.sessions.transcript(given, self._summary_called(one, given))
                self._with_transcripts.update([one] if one and account.is_new else [])

    def _transcript_files(self) -> None:
        for path, shown in signet_transcripts.transcript_files(self.workspace.root, self.report.place):
            source = signet_transcripts.read(path)
            try:
                for given, number in signet_transcripts.sessions_in(source, self.now_us):
                    with self.report.accounted(shown, number) as account:
                        if given is None:
                            raise Left("no turn of a session")
                        account.is_new = self.sessions.transcript(given)
            except HarnessError as error:
                self.report.notes.append(f"{shown} was left: {error.message}")
            self.report.left(shown, "the line breaks off", int(source.torn))
            self.report.left(shown, "the line is damaged", source.damaged)

    def _session(self, row: Row) -> SessionText:
        """Returns the transcript of a row. Raises `Left`."""
        agent_id, key = agent_of(row), (row.get("session_key") or "").strip()
        if row.get("bytes"):
            raise Left("longer than 64 MiB")
        said, raw = split(row.get("content") or "")
        started = time_of(row, "created_at", "updated_at", now_us=self.now_us)
        ended = max(started, time_of(row, "updated_at", "created_at", now_us=self.now_us))
        session_id = (row.get("session_id") or "").strip() or key
        return SessionText(agent_id, session_id, key, row.get("harness"), row.get("project"), started, ended, said, raw)

    def _summaries_by_session(self) -> dict[tuple[str, str], str]:
        """Returns the id of the first summary of each single session, by agent and key."""
        found: dict[tuple[str, str], str] = {}
        for row in self.signet.rows("session_summaries"):
            with suppress(Left):
                if _is_of_one(row) and row["id"] and not row.get("bytes"):
                    found.setdefault((agent_of(row), (row["session_key"] or "").strip()), row["id"])
        return found

    def _summary_called(self, summary_id: str | None, session: SessionText) -> str | None:
        """Returns the text of a session's summary."""
        for row in self.signet.rows("session_summaries", named=summary_id) if summary_id else ():
            with suppress(Left):
                given = self._summary(row)
                if (given.agent_id, given.session_key) == (session.agent_id, session.session_key):
                    return given.raw
        return None

    def _summary(self, row: Row) -> SessionText:
        """Returns the summary of a session. Raises `Left`."""
        agent_id, key = agent_of(row), (row.get("session_key") or "").strip()
        if row.get("bytes"):
            raise Left("longer than 64 MiB")
        raw = signet_rows.clean(row.get("content") or "")
        started = time_of(row, "earliest_at", "created_at", now_us=self.now_us)
        ended = max(started, time_of(row, "latest_at", "created_at", now_us=self.now_us))
        return SessionText(agent_id, key, key, row.get("harness"), row.get("project"), started, ended, raw=raw)

    def _summaries_of_sessions(self) -> None:
        for row in self.signet.rows("session_summaries"):
            if _is_of_one(row):
                with self.report.accounted("session_summaries") as account:
                    given = self._summary(row)
                    account.is_new = row["id"] in self._with_transcripts or self.sessions.summary(given)

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
                if is_set(row["is_deleted"]):
                    self._unwelcome[memory_id] = DELETED
                names = [*filter(None, [row["source_id"]]), *of_memory.get(memory_id, [])]
                if any(self.removed.covers(agent_of(row), name) for name in names):
                    self._unwelcome.setdefault(memory_id, OF_REMOVED)
                    raise Left(self._unwelcome[memory_id])
                item = signet_rows.memory(row, now_us=self.now_us)
                self._said.add(_hash_of(memory_id, row.get("content")))
                ref = self.sessions.known.called(item.agent_id, *names)
                if ref is not None:
                    item = item._replace(origin=(ref.session_token, ref.session_id))
                account.is_new = self.memories.bring(item)

    def _summaries(self) -> None:
        children: dict[str, set[str]] = {}
        for row in self.signet.rows("session_summary_children"):
            children.setdefault(row["parent_id"] or "", set()).add(row["child_id"] or "")
        keys = {row["id"]: row["session_key"] for row in self.signet.rows("session_summaries")}
        for row in self.signet.rows("session_summaries"):
            if _is_of_one(row):
                continue
            with self.report.accounted("session_summaries") as account:
                told = [keys.get(one) or "" for one in signet_rows.below(children, row["id"] or "")]
                if any(self.removed.covers(agent_of(row), key) for key in told if key):
                    raise Left("it tells of a removed session")
                account.is_new = self.memories.bring(signet_rows.summary(row, now_us=self.now_us))

    def _thread_heads(self) -> None:
        for row in self.signet.rows("memory_thread_heads"):
            with self.report.accounted("memory_thread_heads") as account:
                agent_id, key = agent_of(row), row["session_key"] or ""
                if self.removed.covers(agent_id, key):
                    raise Left(OF_REMOVED)
                item = signet_rows.thread_head(row, now_us=self.now_us)
                if not self.sessions.tells(agent_id, key, signet_rows.clean(row["sample"] or "")):
                    account.is_new = self.memories.bring(item)

    # ── what is said of names ──

    def _entities(self) -> None:
        entities: dict[str, Row] = {}
        for row in self.signet.rows("entities"):
            # What is said of it may be long, and is read again one by one.
            entities.setdefault(row["id"] or "", {**row, "description": None})
        aspects = {row["id"] or "": row for row in self.signet.rows("entity_aspects")}
        self._propose(entities, aspects)
        met = set()
        for row in self.signet.rows("entities"):
            with self.report.accounted("entities") as account:
                if row["id"] in met:
                    raise Left("another one has its id")
                met.add(row["id"])
                account.is_new = self.memories.bring(self._described(row))
        for row in self.signet.rows("entity_attributes"):
            with self.report.accounted("entity_attributes") as account:
                _, item = self._attribute(row, entities, aspects)
                told = _hash_of(row["memory_id"] or "", row["content"]) in self._said
                account.is_new = not told and self.memories.bring(item)
        for table in ("entity_dependencies", "relations"):
            for row in self.signet.rows(table):
                with self.report.accounted(table) as account:
                    account.is_new = self.memories.bring(self._dependency(table, row, entities))

    def _described(self, row: Row) -> Item:
        self._require_not_removed(row)
        return signet_rows.described(row, now_us=self.now_us)

    def _attribute(self, row: Row, entities: Mapping[str, Row], aspects: Mapping[str, Row]) -> tuple[str, Item]:
        """Returns the entity of an attribute, and what is said of it. Raises `Left`."""
        aspect = aspects.get(row["aspect_id"] or "")
        entity = entities.get((aspect or {}).get("entity_id") or "")
        if aspect is None or entity is None:
            raise Left(_ORPHAN)
        if agent_of(entity) != agent_of(row):
            raise Left(_ORPHAN)
        if (row["memory_id"] or "") in self._unwelcome:
            raise Left(self._unwelcome[row["memory_id"] or ""])
        self._require_not_removed(row)
        return entity["id"] or "", signet_rows.attribute(row, entity, aspect, now_us=self.now_us)

    def _dependency(self, table: str, row: Row, entities: Mapping[str, Row]) -> Item:
        """Returns how two entities belong together. Raises `Left`."""
        source, target = (entities.get(row[f"{end}_entity_id"] or "") for end in ("source", "target"))
        if source is None or target is None or agent_of(source) != agent_of(target):
            raise Left(_ORPHAN)
        self._require_not_removed(row)
        return signet_rows.dependency(table, row, source, target, now_us=self.now_us)

    def _require_not_removed(self, row: Row) -> None:
        if self.removed.covers(agent_of(row), row.get("source_id") or ""):
            raise Left(OF_REMOVED)

    def _propose(self, entities: Mapping[str, Row], aspects: Mapping[str, Row]) -> None:
        """Proposes what is said of pinned entities, before it is brought: afterwards it would count as proposed."""
        pinned: dict[str, proposals.PinnedEntity] = {}
        for row in self.signet.rows("entities") if any(is_set(row["pinned"]) for row in entities.values()) else ():
            entity_id = row["id"] or ""
            if is_set(row["pinned"]) and entity_id not in pinned:
                with suppress(Left):
                    agent_id, text = agent_of(row), ""
                    with suppress(Left):
                        text = self._unknown(self._described(row))
                    pinned[entity_id] = proposals.PinnedEntity(agent_id, signet_rows.name_of(row), text, [])
        for row in self.signet.rows("entity_attributes") if pinned else ():
            with suppress(Left):
                entity_id, item = self._attribute(row, entities, aspects)
                if entity_id in pinned and (text := self._unknown(item)):
                    pinned[entity_id].items.append(text)
        for one in pinned.values():
            if self.memories.write and (one.description or one.items):
                back_up_once(self.workspace, self.report, self.now_us)
                proposals.propose(self.workspace, one, self.now_us)
            self.report.proposals += bool(one.description) + min(len(one.items), proposals.MOST_ITEMS)

    def _unknown(self, item: Item) -> str:
        """Returns the first part of an item that was not brought before, else "". Raises `Left`."""
        return "" if self.memories.is_known(item) else parts_of(item.text)[0][0]


def _is_of_one(row: Row) -> bool:
    """Returns whether a summary is of a single session that is named."""
    named = bool((row["session_key"] or "").strip())
    return named and (row["kind"] or "session").strip() == "session" and (row["depth"] or "0").strip() == "0"


def _hash_of(memory_id: str, text: str | None) -> int:
    return int(text_sha256(f"{memory_id}\0{' '.join((text or '').split())}")[:15], 16)
