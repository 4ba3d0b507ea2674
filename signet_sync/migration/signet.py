"""Brings over what Signet remembers: removals first, then sessions, memories, and what it says of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from signet_sync.errors import HarnessError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.body import text_sha256
from signet_sync.memories.store.memories import Origin
from signet_sync.migration import proposals, signet_rows, signet_transcripts, store
from signet_sync.migration.memories import MemoryBringer, Source
from signet_sync.migration.report import Report
from signet_sync.migration.session_text import SessionText, split
from signet_sync.migration.sessions import RemovedSessions, SessionBringer
from signet_sync.migration.signet_database import SIGNET
from signet_sync.migration.signet_rows import (
    DELETED,
    FOLLOWS,
    NOT_VALID,
    OF_REMOVED,
    Left,
    Row,
    Statement,
    agent_of,
    is_set,
    time_of,
)
from signet_sync.privacy import signet_tombstones
from signet_sync.storage.database.foreign import ForeignDatabase
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.workspace import Workspace

_LIFTED = "its removal was lifted here"
_ORPHAN = "it belongs to nothing that is there"
_HEADING = "a heading, brought with what is said under it"


class SignetMigration:
    """One run over a database of Signet; with `aside`, a temporary file, it only reports what a run would bring."""

    def __init__(
        self,
        workspace: Workspace,
        signet: ForeignDatabase,
        report: Report,
        now_us: int,
        aside: IO[bytes] | None = None,
    ) -> None:
        self.workspace = workspace
        self.signet = signet
        self.report = report
        self.now_us = now_us
        self.removed = RemovedSessions(workspace)
        self.sessions = SessionBringer(workspace, self.removed, now_us, aside)
        self.memories = MemoryBringer(workspace, now_us, write=aside is None)
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
            with self._accounted(signet_tombstones.TABLE) as account:
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
        self.report.left("memory_artifacts", FOLLOWS, self.signet.count("memory_artifacts"))
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
        self.memories.flush()
        for table in ("session_summary_children", "session_summary_memories"):
            self.report.left(table, FOLLOWS, self.signet.count(table))
        for row in self.signet.rows("agents"):
            self.report.agents.append(signet_rows.policy(row))
        read = {*SIGNET.columns, "memory_history"}
        self.report.left("memory_history", "older versions are not brought", self.signet.count("memory_history"))
        self.report.not_read = {table: self.signet.count(table) for table in self.signet.tables if table not in read}
        self.report.redactions.update(self.sessions.redactions)
        self.report.redactions.update(self.memories.redactions)
        self.report.pins, self.report.reworded = self.memories.pins, self.memories.reworded

    @contextmanager
    def _accounted(self, name: str, rows: int = 1) -> Iterator[_Outcome]:
        """Accounts for rows by what becomes of them in the block: new, here already, or (`Left`) left."""
        outcome = _Outcome()
        try:
            yield outcome
        except Left as why:
            self.report.left(name, str(why), rows)
        else:
            (self.report.brought if outcome.is_new else self.report.here)(name, rows)

    # ── sessions ──

    def _transcripts(self) -> None:
        summaries = self._summaries_by_session()
        for row in self.signet.rows("session_transcripts"):
            with self._accounted("session_transcripts") as account:
                given = self._session(row)
                one = summaries.get((given.agent_id, given.session_key))
                account.is_new = self.sessions.transcript(given, self._summary_called(one, given))
                self._with_transcripts.update([one] if one and account.is_new else [])

    def _transcript_files(self) -> None:
        for path, shown in signet_transcripts.transcript_files(self.workspace.root, self.report.place):
            source = signet_transcripts.read(path)
            try:
                for given, number in signet_transcripts.sessions_in(source, self.now_us):
                    with self._accounted(shown, number) as account:
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
                with self._accounted("session_summaries") as account:
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
            with self._accounted("memories") as account:
                memory_id = row["id"] or ""
                if is_set(row["is_deleted"]):
                    self._unwelcome[memory_id] = DELETED
                names = [*filter(None, [row["source_id"]]), *of_memory.get(memory_id, [])]
                if any(self.removed.covers(agent_of(row), name) for name in names):
                    self._unwelcome.setdefault(memory_id, OF_REMOVED)
                    raise Left(self._unwelcome[memory_id])
                statement = signet_rows.memory(row, now_us=self.now_us)
                self._said.add(_hash_of(memory_id, row.get("content")))
                source = Source("memory", memory_id, self._origin(statement.agent_id, names), is_set(row["pinned"]))
                account.is_new = self.memories.bring(statement, source)

    def _origin(self, agent_id: str, names: list[str]) -> Origin:
        """Returns the session here that a memory comes from; that it comes from Signet, if there is none."""
        ref = self.sessions.known.called(agent_id, *names)
        return store.SIGNET if ref is None else (ref.session_token, ref.session_id)

    def _summaries(self) -> None:
        children: dict[str, set[str]] = {}
        for row in self.signet.rows("session_summary_children"):
            children.setdefault(row["parent_id"] or "", set()).add(row["child_id"] or "")
        keys = {row["id"]: row["session_key"] for row in self.signet.rows("session_summaries")}
        for row in self.signet.rows("session_summaries"):
            if _is_of_one(row):
                continue
            with self._accounted("session_summaries") as account:
                told = [keys.get(one) or "" for one in signet_rows.below(children, row["id"] or "")]
                if any(self.removed.covers(agent_of(row), key) for key in told if key):
                    raise Left("it tells of a removed session")
                statement = signet_rows.summary(row, now_us=self.now_us)
                account.is_new = self.memories.bring(statement, Source("summary", row["id"] or ""))

    def _thread_heads(self) -> None:
        for row in self.signet.rows("memory_thread_heads"):
            with self._accounted("memory_thread_heads") as account:
                agent_id, key = agent_of(row), row["session_key"] or ""
                if self.removed.covers(agent_id, key):
                    raise Left(OF_REMOVED)
                statement = signet_rows.thread_head(row, now_us=self.now_us)
                if not self.sessions.tells(agent_id, key, signet_rows.clean(row["sample"] or "")):
                    source = Source("thread", f"{agent_id}:{row['thread_key']}")
                    account.is_new = self.memories.bring(statement, source)

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
            with self._accounted("entities") as account:
                if row["id"] in met:
                    raise Left("another one has its id")
                met.add(row["id"])
                account.is_new = self.memories.bring(self._described(row), Source("entity", row["id"] or ""))
        for row in self.signet.rows("entity_attributes"):
            with self._accounted("entity_attributes") as account:
                _, statement = self._attribute(row, entities, aspects)
                told = _hash_of(row["memory_id"] or "", row["content"]) in self._said
                account.is_new = not told and self.memories.bring(statement, Source("attribute", row["id"] or ""))
        for table, kind in (("entity_dependencies", "dependency"), ("relations", "relation")):
            for row in self.signet.rows(table):
                with self._accounted(table) as account:
                    account.is_new = self.memories.bring(self._dependency(row, entities), Source(kind, row["id"] or ""))
        self.report.left("entity_aspects", _HEADING, self.signet.count("entity_aspects"))

    def _described(self, row: Row) -> Statement:
        self._require_not_removed(row)
        return signet_rows.described(row, now_us=self.now_us)

    def _attribute(self, row: Row, entities: Mapping[str, Row], aspects: Mapping[str, Row]) -> tuple[str, Statement]:
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

    def _dependency(self, row: Row, entities: Mapping[str, Row]) -> Statement:
        """Returns how two entities belong together. Raises `Left`."""
        source, target = (entities.get(row[f"{end}_entity_id"] or "") for end in ("source", "target"))
        if source is None or target is None or agent_of(source) != agent_of(target):
            raise Left(_ORPHAN)
        self._require_not_removed(row)
        return signet_rows.dependency(row, source, target, now_us=self.now_us)

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
                        if not self.memories.was_brought("entity", entity_id):
                            text = self._described(row).parts[0]
                    pinned[entity_id] = proposals.PinnedEntity(agent_id, signet_rows.name_of(row), text, [])
        for row in self.signet.rows("entity_attributes") if pinned else ():
            with suppress(Left):
                entity_id, statement = self._attribute(row, entities, aspects)
                if entity_id in pinned and not self.memories.was_brought("attribute", row["id"] or ""):
                    pinned[entity_id].items.append(statement.parts[0])
        for one in pinned.values():
            if self.memories.write:
                proposals.propose(self.workspace, one, self.now_us)
            self.report.proposals += bool(one.description) + min(len(one.items), proposals.MOST_ITEMS)


class _Outcome:
    """What became of a row; `is_new`: it was not here."""

    is_new = False


def _is_of_one(row: Row) -> bool:
    """Returns whether a summary is of a single session that is named."""
    named = bool((row["session_key"] or "").strip())
    return named and (row["kind"] or "session").strip() == "session" and (row["depth"] or "0").strip() == "0"


def _hash_of(memory_id: str, text: str | None) -> int:
    return int(text_sha256(f"{memory_id}\0{' '.join((text or '').split())}")[:15], 16)
