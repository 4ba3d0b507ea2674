"""Brings over what Signet's database of any version remembers: removals first, then sessions and memories."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from signet_sync.capture.harnesses.reader import JsonLines
from signet_sync.capture.transcripts import lines, own_path
from signet_sync.errors import Halted, HarnessError, UsageError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import SIGNET_DATABASES
from signet_sync.migration import signet_rows
from signet_sync.migration.items import NOT_VALID, OF_REMOVED, Left, Report, Row, time_of
from signet_sync.migration.signet_rows import DELETED, NOT_ACTIVE, agent_of, is_of_several, is_set
from signet_sync.migration.writer import MemoryWriter, RemovedSessions, SessionBringer, SessionText, sessions_in
from signet_sync.privacy import signet_tombstones
from signet_sync.storage import files, state_dir
from signet_sync.storage.database import foreign
from signet_sync.storage.database.foreign import ForeignDatabase
from signet_sync.sync import engine
from signet_sync.sync import tombstones as tombstones_files
from signet_sync.sync.store import sessions as sessions_store
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Outcome, Request, Workspace
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitize_transcript_v2

_COLUMNS = {signet_tombstones.TABLE: signet_tombstones.COLUMNS, **signet_rows.COLUMNS}
# What is read of a program's database, and the table and columns by which it is recognised.
Format = tuple[str, Mapping[str, tuple[str, ...]], str, tuple[str, ...]]
SIGNET: Format = ("Signet", _COLUMNS, "memories", ("id", "content"))


@contextmanager
def open_database(path: str, written: Format) -> Iterator[ForeignDatabase]:
    """Opens the database in one read transaction, after a check of the tables that are read. Raises `HarnessError`."""
    path = own_path(path)
    program, columns, known, needed = written
    with foreign.open_to_read(path, program, columns) as database:
        # Another program's, an unknown version and a damaged file are refused before anything is brought.
        if not database.columns(known) >= {*needed}:
            what = f"it has no table `{known}` with {' and '.join(needed)}"
            hint = f"name {program}'s own database; if it is, upgrade signet-sync"
            raise HarnessError(what, path=path, hint=hint, code="database-unknown")
        if not all(database.is_sound(table) for table in database.tables if table in columns):
            raise foreign.make_damage_error(path, program)
        yield database


def find_database(root: str, given: str | None) -> str:
    """Returns the path of Signet's database: of the workspace, or of the file or folder that a person gives."""
    where = os.path.realpath(os.path.expanduser(given)) if given is not None else root
    if os.path.isfile(where):
        return where
    for place in SIGNET_DATABASES:
        path = os.path.join(where, place)
        if os.path.lexists(path):
            return path
    hint = "give its place: signet-sync migrate signet PATH (a memories.db, or the folder of a workspace)"
    raise UsageError("there is no database of Signet", path=where, hint=hint, code="no-database")


def migrate(
    workspace: Workspace, path: str, now_us: int, *, write: bool, confirm: Callable[[int], None], accept_removals: bool
) -> Report:
    """Brings what is not here yet from Signet's database at a path; without `write` only reports what would come.

    Ended early, it is finished by the same call. `confirm` is called if sessions that are here are about to be removed,
    with their number, and may raise. Raises `HarnessError`, `Halted`, `WorkspaceError`, `DatabaseError`.
    """
    report = Report(path, dry_run=not write)
    with open_database(path, SIGNET) as signet:
        if write:
            # What Signet removed is confirmed first.
            _require_whole(engine.run_pass(workspace, Request(now_us=now_us, follow_removals=False)))
        migration = SignetMigration(workspace, signet, report, now_us, write=write)
        tombstones = migration.removals()
        tokens = {(one.agent_id, one.session_token) for one in tombstones}
        covered = 0
        for agent_id, token, session_id, key in sessions_store.every(workspace.database):
            named = {token, *(token_of(agent_id, name) for name in (session_id, key) if name)}
            covered += any((agent_id, one) in tokens for one in named)
        if write and covered:
            cliff = None if accept_removals else signet_tombstones.cliff_of(workspace, tombstones)
            if cliff is not None:  # the database may be damaged, or another workspace's
                hint = "is it the database of this workspace? if they are to be removed: --accept-removals"
                raise Halted(f"{cliff.message}; nothing was brought", path=path, hint=hint)
            confirm(covered)
        if covered:
            report.notes.append(
                f"{'' if write else 'to be '}removed here, as in Signet: {count_noun(covered, 'session')}"
            )
        if write and tombstones:
            # Ended early, the next pass finishes what this has begun.
            with state_dir.workspace_lock(workspace.state):
                for one in tombstones:
                    tombstones_files.put(workspace.root, one)
                with workspace.database.transaction(durable=True):
                    tombstones_store.mirror(workspace.database, tombstones)
                _require_whole(engine.run_locked(workspace, Request(now_us=now_us)))
        migration.bring()
    return report


def _require_whole(outcome: Outcome) -> None:
    """Raises `Halted` if a pass was halted."""
    if outcome.cliff is not None:
        hint = "bring the files back, or first: signet-sync reindex --accept-removals"
        raise Halted(f"passes are halted: {outcome.cliff.message}; nothing was brought", hint=hint)


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
        self._ended: set[tuple[str, str]] = set()  # names of sessions that Signet ended
        counts = {table: signet.count(table) for table in signet.tables if table not in _COLUMNS}
        unread = [f"{table} ({count_noun(number, 'row')})" for table, number in counts.items() if number]
        report.notes += [f"not read: {', '.join(unread)}"] if unread else []

    def removals(self) -> list[Tombstone]:
        """Returns the removals that are not in force here yet, and holds all that follows to them."""
        new = []
        for row in self.signet.rows(signet_tombstones.TABLE):
            with self.report.account_for(signet_tombstones.TABLE) as account:
                found = signet_tombstones.tombstone(row)
                if found is None:
                    raise Left(NOT_VALID)
                account.is_new = not self.removed.covers(found.agent_id, found.session_token)
                if account.is_new and tombstones_files.list_lifted(self.workspace.root, [found]):
                    raise Left("its removal was lifted here")
                if account.is_new:
                    new.append(found)
        self.removed.add(new)
        for row in self.signet.rows("memory_artifacts"):
            with suppress(Left):
                names = {row[name] or "" for name in ("session_key", "session_id", "session_token")}
                self.removed.know(agent_of(row), names)
                self._ended.update((agent_of(row), name) for name in names if not is_set(row["is_deleted"]))
        return new

    def bring(self) -> None:
        """Brings everything else."""
        self._transcripts_and_summaries()
        self._transcript_files()
        self._memories()
        self._summaries_of_several()
        self._head()
        self.memories.finish()

    # ── sessions ──

    def _transcripts_and_summaries(self) -> None:
        """Brings transcripts, each with the summary of its session; then the other summaries of one session."""
        ids: dict[tuple[str, str], str] = {}
        for row in self.signet.rows("session_summaries"):
            with suppress(Left):
                if (key := _key_of_one(row)) and row["id"] and (row["source_type"] or "summary") == "summary":
                    ids.setdefault((agent_of(row), key), row["id"])
        for row in self.signet.rows("transcript_capture_jobs"):
            with suppress(Left):
                self._ended.update((agent_of(row), row[name] or "") for name in ("session_key", "session_id"))
        brought = set()
        # Older versions tell of no session whether it ended.
        is_told = bool(self._ended) or "completed_at" in self.signet.columns("session_transcripts")
        for row in self.signet.rows("session_transcripts"):
            with self.report.account_for("session_transcripts") as account:
                given = self._session(row, "created_at", "updated_at")
                summary_id = ids.get((given.agent_id, given.session_key), "")
                if is_told and not (row["completed_at"] or summary_id):
                    self._require_ended(given)
                self._ended.add((given.agent_id, given.session_key))
                found = [one["content"] for one in self.signet.rows("session_summaries", named=summary_id)]
                summary = sanitize_transcript_v2(found[0]).strip("\n") if found and found[0] else None
                account.is_new = self.sessions.transcript(given, summary)
                brought.update([summary_id] if account.is_new and summary else [])
        for row in self.signet.rows("session_summaries"):
            if key := _key_of_one(row):
                with self.report.account_for("session_summaries") as account:
                    given = self._session(row, "earliest_at", "latest_at")
                    if row["source_type"] == "checkpoint" and (given.agent_id, key) in ids:
                        raise Left("of a part of a session, whose summary is brought")
                    account.is_new = row["id"] in brought or self.sessions.summary(given)

    def _require_ended(self, given: SessionText) -> None:
        """Raises `Left` for a session of which nothing says that it ended."""
        names = given.session_id, given.session_key
        ended = any(name and (given.agent_id, name) in self._ended for name in names)
        if not ended and self.sessions.find_session(given.agent_id, *names) is None:
            raise Left("still runs, or was discarded in Signet")

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
        """Brings the files of turns of workspace and database, by harness; no link is followed."""
        own, theirs = os.path.realpath(self.workspace.root), os.path.dirname(self.report.place)
        theirs = os.path.dirname(theirs) if os.path.basename(theirs) in ("memory", "data") else theirs
        for place in dict.fromkeys((own, os.path.realpath(theirs))):
            for folder, inside in (("memory", "/transcripts"), ("transcripts", "")):
                for harness in files.list_names(place, folder, ""):
                    where = f"{folder}/{harness}{inside}"
                    for name in files.list_names(place, where, "") if not harness.endswith(".md") else ():
                        path = os.path.join(place, where, name)
                        if name.endswith(".jsonl"):
                            self._transcript_file(path, f"{where}/{name}" if place == own else path)

    def _transcript_file(self, path: str, shown: str) -> None:
        source = JsonLines(lines(path))
        try:
            for given, number in sessions_in(source, self.now_us):
                with self.report.account_for(shown, number) as account:
                    if given is None:
                        raise Left("no turn of a session")
                    if given.is_live:
                        self._require_ended(given)
                    account.is_new = self.sessions.transcript(given)
        except HarnessError as error:
            self.report.notes.append(f"{shown} was left: {error.message}")
        self.report.count_left(shown, "the line is damaged or breaks off", source.damaged)

    # ── memories ──

    def _memories(self) -> None:
        keys = {row["id"]: row["session_key"] for row in self.signet.rows("session_summaries")}
        of_memory: dict[str, list[str]] = {}
        for row in self.signet.rows("session_summary_memories"):
            if key := keys.get(row["summary_id"]):
                of_memory.setdefault(row["memory_id"] or "", []).append(key)
        for row in self.signet.rows("memories"):
            with self.report.account_for("memories") as account:
                names = [*filter(None, [row["source_id"]]), *of_memory.get(row["id"] or "", [])]
                if any(self.removed.covers(agent_of(row), name) for name in names):
                    raise Left(DELETED if is_set(row["is_deleted"]) else OF_REMOVED)
                item = signet_rows.memory(row, now_us=self.now_us)
                if ref := self.sessions.find_session(item.agent_id, *names):
                    item = item._replace(origin=(ref.session_token, ref.session_id))
                account.is_new = self.memories.bring(item)

    def _summaries_of_several(self) -> None:
        """Brings them as memories, but for those above a summary of a removed session."""
        above: defaultdict[str | None, list[str | None]] = defaultdict(list)
        for row in self.signet.rows("session_summary_children"):
            above[row["child_id"]].append(row["parent_id"])
        waiting, removed = list[str | None](), set[str | None]()
        for row in self.signet.rows("session_summaries"):
            with suppress(Left):
                if self.removed.covers(agent_of(row), row["session_key"] or row["source_ref"] or ""):
                    waiting.append(row["id"])
        while waiting:
            if (one := waiting.pop()) not in removed:
                removed.add(one)
                waiting += above[one]
        for row in self.signet.rows("session_summaries"):
            if not _key_of_one(row):
                with self.report.account_for("session_summaries") as account:
                    if row["id"] in removed:
                        raise Left("it tells of a removed session")
                    account.is_new = self.memories.bring(signet_rows.summary(row, now_us=self.now_us))

    def _head(self) -> None:
        """Brings what stands on the page that Signet's own reflection keeps; versions of it have two tables."""
        newest: dict[tuple[str | None, str | None], int] = {}
        for row in self.signet.rows("memory_head_revisions"):
            entry = row["agent_id"], row["entry_id"]
            newest[entry] = max(newest.get(entry, 0), int(row["revision"] or 0))
        for table in ("memory_head_entries", "memory_head_revisions"):
            for row in self.signet.rows(table):
                with self.report.account_for(table) as account:
                    if "revision" in row and int(row["revision"] or 0) < newest[row["agent_id"], row["entry_id"]]:
                        raise Left(NOT_ACTIVE)
                    account.is_new = self.memories.bring(signet_rows.head_entry(row, now_us=self.now_us))


def _key_of_one(row: Row) -> str:
    """Returns the key of the single session that a summary is of; "" for any other, or one that is not named."""
    return "" if is_of_several(row) else (row["session_key"] or "").strip()
