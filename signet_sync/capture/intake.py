"""Processes the jobs that hooks spooled, and sweeps for transcripts that no hook reported."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from signet_sync.capture import capture, live_transcript, spool, transcripts
from signet_sync.capture import store as capture_store
from signet_sync.capture.capture import CaptureResult
from signet_sync.capture.harnesses import registry
from signet_sync.capture.live_transcript import rest_of, shorten, source_of
from signet_sync.capture.spool import Job
from signet_sync.capture.store import TranscriptState
from signet_sync.capture.transcripts import TranscriptSource
from signet_sync.capture.worker import due
from signet_sync.errors import HarnessError, SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import SECOND, iso, parse_instant
from signet_sync.log import logger
from signet_sync.sessions.live import store as live
from signet_sync.sessions.model_proposals import Propose, proposer
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync import engine
from signet_sync.sync.tombstones import is_removed, refuse_removed_session
from signet_sync.sync.workspace import Request, Workspace

_REMOVED = "its session was removed"


def run_capture(workspace: Workspace, *, now_us: Callable[[], int], sweep: bool = False) -> Intake:
    """Processes the jobs that are due; with `sweep`, or if a session has begun, looks for forgotten transcripts.

    Jobs of one session are processed together, and each session has its turn before any has a second one. Then the
    turns of running sessions are read, so that they can be searched before anything is written; statements and pages
    follow. Only one process at a time does this for a workspace; another returns at once. An error in one job never
    stops the others: it is retried later, a bounded number of times.
    """
    intake = Intake(workspace, now_us, proposer(workspace.settings, os.environ))
    spool.sweep(workspace.state.spool, now_us())
    waiting = True
    while waiting:
        try:
            with state_dir.intake_lock(workspace.state):
                with intake.defer_pages():
                    of_session: dict[tuple[str | None, ...], list[Job]] = {}
                    for job in due(workspace, now_us()):  # the session that waits longest comes first
                        names = job.agent_id, job.harness, job.session_id, job.transcript_path
                        of_session.setdefault(names, []).append(job)
                    for jobs in of_session.values():
                        sweep |= any(job.event == "session-start" for job in jobs)
                        intake.process_session(jobs)
                    if sweep:
                        intake.sweep()
                        sweep = False
                live_transcript.read_running_sessions(workspace, now_us())
                try:
                    if live.has_undistilled(workspace.database):
                        engine.run_pass(workspace, Request(now_us=now_us(), paths=frozenset()))
                except (OSError, SignetSyncError) as error:  # else the agent does it later
                    logger.debug("what running sessions state is distilled later: {}", reason(error))
        except WorkspaceError as error:
            if error.code != "busy":
                raise
            return intake
        # A job that arrived while the lock was held started no other worker.
        waiting = any(True for _ in due(workspace, now_us()))
    return intake


class Intake:
    """One run of capture, and its results: one for each transcript in `captured`; `failed` is to be tried again."""

    def __init__(
        self,
        workspace: Workspace,
        now_us: Callable[[], int],
        propose: Propose | None = None,
    ) -> None:
        self.workspace = workspace
        self.now_us = now_us
        self.propose = propose
        self.captured: list[CaptureResult] = []
        self.failed: list[str] = []

    def defer_pages(self) -> AbstractContextManager[None]:
        """Publishes pages once for many transcripts; while a model is asked about one, the pages show the others."""
        return engine.defer_pages(self.workspace, self.now_us) if self.propose is None else nullcontext()

    def process_session(self, jobs: Sequence[Job]) -> None:
        """Processes the jobs of one session, of which the last one covers the others."""
        now_us = self.now_us()
        last = next((job for job in reversed(jobs) if job.event in ("stop", "end")), jobs[-1])
        whose = shorten(last.session_id)
        spool.finish(*(job for job in jobs if job is not last))
        if not spool.begin(last, now_us):
            logger.warning("{} of {} {}: given up", last.event, last.harness, whose)
            return
        try:
            captured = self._capture_session(last)
            if captured is not None:
                self._add(captured)
            spool.finish(last)
        except UsageError as error:
            # Waiting cannot help: the session was removed, or the file is not a transcript.
            logger.warning("{} of {} {}: refused, {}", last.event, last.harness, whose, error.code)
            self.failed.append(error.message)
            spool.finish(last)
        except (OSError, SignetSyncError) as error:
            logger.warning("{} of {} {}: {}; tried again later", last.event, last.harness, whose, reason(error))
            self.failed.append(str(error))
            spool.retry_later(last, now_us)

    def _capture_session(self, last: Job) -> CaptureResult | None:
        """Captures a session from its transcript; of one that was deleted meanwhile, what was read of it.

        None if the job needs no transcript, or the harness never made one.
        """
        workspace = self.workspace
        if is_removed(workspace, last.agent_id, token_of(last.agent_id, last.session_id), last.session_id):
            raise refuse_removed_session(last.session_id)
        rest = None
        try:
            source = source_of(last)
        except HarnessError:
            rest = rest_of(workspace, last)
            if rest is not None:
                whose = shorten(last.session_id)
                logger.warning("the transcript of {} {} is gone: what was read of it is kept", last.harness, whose)
                source = TranscriptSource(last.harness, last.transcript_path or "", "", 0, 0)
            elif last.event == "stop" and not os.path.lexists(last.transcript_path or ""):
                source = None
            else:
                raise
        if source is None:
            return None
        return capture.capture(
            workspace,
            source,
            rest=rest,
            now_us=self.now_us(),
            agent_id=last.agent_id,
            propose=self.propose,
            end=last.event in ("stop", "end"),
            reported=last,
        )

    def sweep(self) -> None:
        """Captures transcripts of the connected harnesses that changed since then, are idle and unread."""
        workspace, now_us = self.workspace, self.now_us()
        for harness, entry in (state_dir.read_json(workspace.state.harnesses) or {}).items():
            since = entry.get("since") if isinstance(entry, dict) else None
            if harness not in registry.names() or not isinstance(since, str):
                continue
            try:
                sources = list(transcripts.sources(harness))
            except SignetSyncError as error:
                logger.warning("{}: {}", harness, error.message)
                continue
            for source in sources:
                changed_us = source.mtime_ns // 1000
                is_idle = now_us - changed_us >= workspace.settings.capture_idle * SECOND
                known = capture_store.mark_of(workspace.database, source.harness, source.place, source.session_id)
                unchanged = known is not None and (known.size, known.mtime_ns) == (source.size, source.mtime_ns)
                if changed_us < (parse_instant(since) or 0) or not is_idle or unchanged:
                    continue
                # A hook may have derived the agent from its harness's environment.
                agent_id = known.agent_id if known is not None else ""
                self.capture_one(source, agent_id or None)

    def capture_one(self, source: TranscriptSource, agent_id: str | None) -> None:
        """Captures one transcript; records one that is unreadable or refused, so that it is not read again unchanged.

        Other errors are raised.
        """
        database, now_us = self.workspace.database, self.now_us()
        try:
            captured = capture.capture(
                self.workspace,
                source,
                now_us=now_us,
                agent_id=agent_id,
                propose=self.propose,
            )
        except (UsageError, HarnessError) as error:
            if error.code == "removed-session":  # a person wanted that
                self.captured.append(CaptureResult(source, remark=_REMOVED))
            else:
                self.failed.append(f"{source.path}: {error.message}")
                logger.warning("a transcript of {}: {}", source.harness, error.code)
            # A wrong setting is not the transcript's fault.
            if error.code != "agent-invalid":
                seen = TranscriptState(source.size, source.mtime_ns, agent_id or "", error.code)
                capture_store.mark(database, source.harness, source.place, source.session_id, seen, iso(now_us))
            return
        self._add(captured)

    def _add(self, captured: CaptureResult) -> None:
        self.captured.append(captured)
        if captured.has_written:
            logger.info(
                "{} {}: written, segments {}, compactions {}",
                captured.source.harness,
                shorten(captured.session_id),
                len(captured.segments),
                len(captured.compactions),
            )


def outcome_of(database: Database, source: TranscriptSource, agent_id: str | None = None) -> str:
    """Returns what became of a transcript that was read in its present state, for this agent; empty if it was not."""
    mark = capture_store.mark_of(database, source.harness, source.place, source.session_id)
    if mark is None or (mark.size, mark.mtime_ns) != (source.size, source.mtime_ns):
        return ""
    if mark.agent_id and agent_id not in (None, mark.agent_id):
        return ""
    if mark.outcome == capture_store.REMOVED:
        return _REMOVED
    if mark.outcome == "written" or mark.outcome.startswith("nothing new"):
        return "read before, unchanged since"
    return mark.outcome if " " in mark.outcome else f"refused when it was read: {mark.outcome}"
