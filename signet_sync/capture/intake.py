"""Processes the jobs that hooks spooled, and sweeps for transcripts that no hook reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from signet_sync.capture import capture, live_transcript, spool, transcripts
from signet_sync.capture import store as capture_store
from signet_sync.capture.capture import CaptureResult, ReportedCompaction
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.reader import Conversation
from signet_sync.capture.live_transcript import rest_of, source_of
from signet_sync.capture.sources import TranscriptSource
from signet_sync.capture.spool import Job
from signet_sync.capture.store import TranscriptState
from signet_sync.capture.worker import LONGEST_REST, due, list_changed_sessions, shape_of
from signet_sync.errors import DatabaseError, HarnessError, SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import SECOND, iso, parse_instant
from signet_sync.log import logger
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.operations import refuse_removed
from signet_sync.sessions.model_proposals import proposer
from signet_sync.sessions.states import Propose
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync import engine
from signet_sync.sync.tombstones import is_removed, refuse_removed_session
from signet_sync.sync.workspace import Request, Workspace

# When the hook runs, the harness has not yet written the record of its compaction.
RECORD_WAIT, RECORD_LOOKS = 0.5, 4
# The minimum between two reads of a running session; for a long one, reading takes at most a twentieth of the time.
LIVE_REST = 3 * SECOND
LIVE_SHARE = 20
_REMOVED = "its session was removed"


def run_capture(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    sweep: bool = False,
    environ: Mapping[str, str] = os.environ,
    rest: Callable[[float], None] = time.sleep,
) -> Intake:
    """Processes the jobs that are due; with `sweep`, or if a session has begun, looks for forgotten transcripts.

    Jobs of one session are processed together, and each session has its turn before any has a second one. Then the
    turns of running sessions are read, so that they can be searched before anything is written. Only one process at a
    time does this for a workspace; another returns at once. An error in one job never stops the others: it is retried
    later, a bounded number of times.
    """
    intake = Intake(workspace, now_us, proposer(workspace.settings, workspace.root, environ), environ)
    spool.sweep(workspace.state.spool, now_us())
    waiting = True
    while waiting:
        unrecorded = False
        try:
            with state_dir.intake_lock(workspace.state):
                with intake.pages_at_end():
                    of_session: dict[tuple[str | None, ...], list[Job]] = {}
                    for job in due(workspace, now_us()):  # the session that waits longest comes first
                        names = job.agent_id, job.harness, job.session_id, job.transcript_path
                        of_session.setdefault(names, []).append(job)
                    for jobs in of_session.values():
                        sweep |= any(job.event == "session-start" for job in jobs)
                        unrecorded |= not intake.process_session(jobs)
                    if sweep:
                        intake.sweep()
                        sweep = False
                _read_running_sessions(workspace, now_us())
                _distil_running_sessions(workspace, now_us())
        except WorkspaceError as error:
            if error.code != "busy":
                raise
            return intake
        if unrecorded:
            # Without the lock: jobs that arrive meanwhile are accepted.
            rest(RECORD_WAIT)
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
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.workspace = workspace
        self.now_us = now_us
        self.propose = propose
        self.environ = environ
        self.captured: list[CaptureResult] = []
        self.failed: list[str] = []
        # By a job's place, how often its transcript was checked for the record of a compaction, and its shape then.
        self._looks: dict[str, tuple[int, str]] = {}

    def pages_at_end(self) -> AbstractContextManager[None]:
        """Publishes pages once for many transcripts; while a model is asked about one, the pages show the others."""
        return engine.pages_at_end(self.workspace, self.now_us) if self.propose is None else nullcontext()

    def process_session(self, jobs: Sequence[Job]) -> bool:
        """Processes the jobs of one session; False if the record of a compaction must still be waited for."""
        workspace, now_us = self.workspace, self.now_us()
        left = _drop_superseded(jobs)
        last = left[-1]
        ends = last.event in ("stop", "end")
        # A database does not show which of its sessions changed.
        shape = "" if registry.keeps_database(last.harness) else shape_of(last)
        looks, before = self._looks.get(last.place, (0, ""))
        if not ends and before and before == shape:
            if looks < RECORD_LOOKS - 1:
                self._looks[last.place] = looks + 1, before
                return False
            if all(job.compaction is None for job in left):
                # Unchanged since the first look, which found nothing.
                spool.finish(*left)
                return True
        begun = [job for job in left if looks or spool.begin(job, now_us)]
        for job in left:
            if job not in begun:
                logger.warning("{} of {} {}: given up", job.event, job.harness, short(job.session_id))
        if not begun:
            return True
        last, whose = begun[-1], short(last.session_id)
        self._looks[last.place] = looks, shape
        # A job that is retried has waited long enough.
        final = ends or looks >= RECORD_LOOKS - 1 or last.tries > 1
        try:
            if is_removed(workspace, last.agent_id, token_of(last.agent_id, last.session_id), last.session_id):
                raise refuse_removed_session(last.session_id)
            source, rest = _find_source_or_rest(workspace, last)
            if source is not None:
                handed = [job for job in begun if job.compaction is not None]
                captured = capture.capture(
                    workspace,
                    source,
                    rest=rest,
                    now_us=now_us,
                    agent_id=last.agent_id,
                    propose=self.propose,
                    end=ends,
                    handed=[
                        ReportedCompaction(job.compaction or "", parse_instant(job.at) or 0, final=final)
                        for job in handed
                    ],
                    prompt=spool.marker(workspace.state.spool, last) if ends else None,
                    reported=last,
                    environ=self.environ,
                )
                is_waited_for = not final and not (captured.recorded if handed else captured.wrote)
                if captured.wrote or not is_waited_for:
                    self._add(captured)
                if is_waited_for:
                    self._looks[last.place] = looks + 1, shape
                    return False
            elif last.prompt is not None:
                # The harness never wrote a transcript: the session is not to be kept.
                live.forget_now(workspace.database, last.agent_id, last.session_id)
            spool.finish(*begun)
        except UsageError as error:
            # Waiting cannot help: the session was removed, or the file is not a transcript.
            logger.warning("{} of {} {}: refused, {}", last.event, last.harness, whose, error.code)
            self.failed.append(error.message)
            spool.finish(*begun)
        except (OSError, SignetSyncError) as error:
            logger.warning("{} of {} {}: {}; tried again later", last.event, last.harness, whose, reason(error))
            self.failed.append(str(error))
            for job in begun:
                spool.retry_later(job, type(error).__name__, now_us)
        return True

    def sweep(self) -> None:
        """Captures transcripts of the connected harnesses that changed since then, are idle and unread."""
        workspace, now_us = self.workspace, self.now_us()
        for harness, entry in (state_dir.read_json(workspace.state.harnesses) or {}).items():
            since = entry.get("since") if isinstance(entry, dict) else None
            if harness not in registry.names() or not isinstance(since, str):
                continue
            try:
                sources = list(transcripts.sources(harness, self.environ))
            except SignetSyncError as error:
                logger.warning("{}: {}", harness, error.message)
                continue
            for source in sources:
                changed_us = source.mtime_ns // 1000
                is_idle = now_us - changed_us >= workspace.settings.capture_idle * SECOND
                known = _mark(workspace.database, source)
                if changed_us < (parse_instant(since) or 0) or not is_idle or (known and _is_unchanged(known, source)):
                    continue
                # A hook may have derived the agent from its harness's environment.
                self.capture_one(source, known.agent_id or None if known is not None else None)

    def capture_one(self, source: TranscriptSource, agent_id: str | None = None) -> None:
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
                environ=self.environ,
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
        if captured.wrote:
            logger.info(
                "{} {}: written, segments {}, compactions {}",
                captured.source.harness,
                short(captured.session_id),
                len(captured.segments),
                len(captured.compactions),
            )


def _drop_superseded(jobs: Sequence[Job]) -> list[Job]:
    """Drops the jobs of one session that a later one covers, and returns the others.

    A job with a summary is kept, because nothing else contains the summary.
    """
    ends = [job for job in jobs if job.event in ("stop", "end")]
    last = ends[-1] if ends else jobs[-1]
    left = [job for job in jobs if job is last or job.compaction is not None]
    spool.finish(*(job for job in jobs if job not in left))
    return sorted(left, key=lambda job: job is last)


def _find_source_or_rest(workspace: Workspace, job: Job) -> tuple[TranscriptSource | None, Conversation | None]:
    """Returns a job's transcript; of one that was deleted meanwhile, what was read of it. Raises `HarnessError`.

    Without either, the harness never made a transcript of what the user submitted, or the job needs none.
    """
    try:
        return source_of(job), None
    except HarnessError:
        rest = rest_of(workspace, job)
        if rest is not None:
            logger.warning(
                "the transcript of {} {} is gone: what was read of it is kept", job.harness, short(job.session_id)
            )
            return TranscriptSource(job.harness, job.transcript_path or "", "", 0, 0), rest
        if job.event == "stop" and job.prompt is not None and not os.path.lexists(job.transcript_path or ""):
            return None, None
        raise


def _read_running_sessions(workspace: Workspace, now_us: int) -> None:
    """Reads the turns of running sessions; their stop markers and capture rows are not changed."""
    try:
        for job, shape, wait in list_changed_sessions(workspace, now_us):
            if wait <= 0:
                read_running(workspace, job, shape, now_us)
        live.drop_other_marks(workspace.database, spool.markers(workspace.state.spool))
    except DatabaseError as error:
        logger.debug("running sessions are read later: {}", error.message)


def _distil_running_sessions(workspace: Workspace, now_us: int) -> None:
    """Brings statements and pages up to date with the turns that were read; else the agent does it later."""
    try:
        if live.any_to_distil(workspace.database):
            engine.run_pass(workspace, Request(now_us=now_us, paths=frozenset()))
    except (OSError, SignetSyncError) as error:
        logger.debug("what running sessions state is distilled later: {}", reason(error))


def read_running(workspace: Workspace, job: Job, shape: str, now_us: int) -> None:
    """Reads the turns of one running session. Raises `DatabaseError`."""
    name, began = os.path.basename(job.place), time.monotonic()
    # Recorded before reading: a transcript that kills the process must not do so again at once.
    begun = live.TranscriptMark("", job.at, now_us + LONGEST_REST)
    live.set_mark(workspace.database, name, begun)
    try:
        refuse_removed(workspace, job.agent_id, job.session_id, job.session_id)
        # A process that began to read later has read more.
        live_transcript.update_live_turns(
            workspace, job, lambda: live.mark_of(workspace.database, name) == begun, now_us
        )
    except (OSError, HarnessError, UsageError) as error:
        # It is unreadable in this state; its capture will report that.
        logger.debug("a running session of {} {}: {}", job.harness, short(job.session_id), reason(error))
        if isinstance(error, UsageError) and error.code == "removed-session":
            spool.finish(job)
    took = int((time.monotonic() - began) * LIVE_SHARE * SECOND)
    rest = min(max(LIVE_REST, took), LONGEST_REST)
    live.set_mark(workspace.database, name, live.TranscriptMark(shape, job.at, now_us + rest))


def length(job: Job) -> int:
    """Returns how many bytes are read for a job; 0 for a database, most of which belongs to other sessions."""
    try:
        return 0 if registry.keeps_database(job.harness) else os.stat(job.transcript_path or "").st_size
    except (OSError, ValueError):
        return 0


def short(session_id: str) -> str:
    """Shortens an id to what distinguishes it from others: logs outlive the removal of a session."""
    return display(session_id if len(session_id) <= 8 else f"{session_id[:8]}…")


def outcome_of(database: Database, source: TranscriptSource, agent_id: str | None = None) -> str:
    """Returns what became of a transcript that was read in its present state, for this agent; empty if it was not."""
    mark = _mark(database, source)
    if mark is None or not _is_unchanged(mark, source) or (mark.agent_id and agent_id not in (None, mark.agent_id)):
        return ""
    if mark.outcome == capture_store.REMOVED:
        return _REMOVED
    if mark.outcome == "written" or mark.outcome.startswith("nothing new"):
        return "read before, unchanged since"
    return mark.outcome if " " in mark.outcome else f"refused when it was read: {mark.outcome}"


def is_read(database: Database, source: TranscriptSource, agent_id: str | None = None) -> bool:
    """Checks whether a transcript was read in its present state, for this agent if one is named."""
    return bool(outcome_of(database, source, agent_id))


def _mark(database: Database, source: TranscriptSource) -> TranscriptState | None:
    return capture_store.mark_of(database, source.harness, source.place, source.session_id)


def _is_unchanged(mark: TranscriptState, source: TranscriptSource) -> bool:
    return (mark.size, mark.mtime_ns) == (source.size, source.mtime_ns)
