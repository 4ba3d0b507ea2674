"""Processes the jobs that hooks spooled, and sweeps for transcripts that no hook reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from signet_sync.capture import capture, live_transcript, spool
from signet_sync.capture import store as capture_store
from signet_sync.capture.capture import CaptureResult, ReportedCompaction
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.records import Conversation
from signet_sync.capture.live_transcript import rest_of, source_of
from signet_sync.capture.spool import Job
from signet_sync.capture.store import TranscriptState
from signet_sync.capture.stores import transcripts
from signet_sync.capture.stores.transcripts import TranscriptSource
from signet_sync.capture.worker import LONGEST_REST, due, due_sessions, shape_of
from signet_sync.errors import DatabaseError, HarnessError, SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import SECOND, iso, parse_instant
from signet_sync.log import logger
from signet_sync.sessions.live import refuse_removed
from signet_sync.sessions.model_proposals import proposer
from signet_sync.sessions.states import Propose
from signet_sync.sessions.store import live
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync import engine
from signet_sync.sync.tombstones.files import is_removed, refuse_removed_session
from signet_sync.sync.workspace import Request, Workspace

# When the hook runs, the harness has not yet written the record of its compaction.
RECORD_WAIT, RECORD_LOOKS = 0.5, 4
# The minimum between two reads of a running session; for a long one, reading takes at most a twentieth of the time.
LIVE_REST = 3 * SECOND
LIVE_SHARE = 20
_REMOVED = "its session was removed"


@dataclass(slots=True)
class IntakeResult:
    """The results of a run, one for each transcript; `failed` is to be tried again."""

    captured: list[CaptureResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _RecordWait:
    """How often a transcript was checked for the record of a compaction, and its shape then."""

    count: int = 0
    shape: str = ""


def run_capture(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    sweep: bool = False,
    environ: Mapping[str, str] = os.environ,
    rest: Callable[[float], None] = time.sleep,
) -> IntakeResult:
    """Processes the jobs that are due; with `sweep`, or if a session has begun, looks for forgotten transcripts.

    Jobs of one session are processed together, and each session has its turn before any has a second one. Then the
    turns of running sessions are read, so that they can be searched before anything is written. Only one process at a
    time does this for a workspace; another returns at once. An error in one job never stops the others: it is retried
    later, a bounded number of times.
    """
    done = IntakeResult()
    spool.sweep(workspace.state.spool, now_us())
    propose = proposer(workspace.settings, workspace.root, environ)
    looks: dict[str, _RecordWait] = {}
    waiting = True
    while waiting:
        unrecorded = False
        try:
            with state_dir.intake_lock(workspace.state):
                with pages_at_end(workspace, now_us, propose):
                    for jobs in group_by_session(due(workspace, now_us())):
                        sweep |= any(job.event == "session-start" for job in jobs)
                        unrecorded |= not _process_session(workspace, jobs, done, now_us(), propose, environ, looks)
                    if sweep:
                        _sweep(workspace, done, now_us(), propose, environ)
                        sweep = False
                _read_running_sessions(workspace, now_us())
                _distil_running_sessions(workspace, now_us())
        except WorkspaceError as error:
            if error.code != "busy":
                raise
            return done
        if unrecorded:
            # Without the lock: jobs that arrive meanwhile are accepted.
            rest(RECORD_WAIT)
        # A job that arrived while the lock was held started no other worker.
        waiting = any(True for _ in due(workspace, now_us()))
    return done


def pages_at_end(
    workspace: Workspace, now_us: Callable[[], int], propose: Propose | None
) -> AbstractContextManager[None]:
    """Publishes pages once for many transcripts; while a model is asked about one, the pages show the others."""
    return engine.pages_at_end(workspace, now_us) if propose is None else nullcontext()


def group_by_session(jobs: Iterable[Job]) -> list[list[Job]]:
    """Groups jobs by session, the one that waits longest first; the jobs of a session in their order."""
    found: dict[tuple[str | None, ...], list[Job]] = {}
    for job in jobs:
        found.setdefault((job.agent_id, job.harness, job.session_id, job.transcript_path), []).append(job)
    return list(found.values())


def _process_session(
    workspace: Workspace,
    jobs: Sequence[Job],
    done: IntakeResult,
    now_us: int,
    propose: Propose | None,
    environ: Mapping[str, str],
    looks: dict[str, _RecordWait],
) -> bool:
    """Processes the jobs of one session; False if the record of a compaction must still be waited for."""
    left = _drop_superseded(jobs)
    ends = [job for job in left if job.event in ("stop", "end")]
    look = looks.setdefault(left[-1].place, _RecordWait())
    if not ends and look.shape and look.shape == _record_shape(left[-1]):
        if look.count < RECORD_LOOKS - 1:
            look.count += 1
            return False
        if all(job.compaction is None for job in left):
            # Unchanged since the first look, which found nothing.
            spool.finish(*left)
            return True
    begun = [job for job in left if look.count or spool.begin(job, now_us)]
    for job in left:
        if job not in begun:
            logger.warning("{} of {} {}: given up", job.event, job.harness, short(job.session_id))
    if not begun:
        return True
    last = begun[-1]
    look.shape = _record_shape(last)
    # A job that is retried has waited long enough.
    final = bool(ends) or look.count >= RECORD_LOOKS - 1 or last.tries > 1
    try:
        if is_removed(workspace, last.agent_id, token_of(last.agent_id, last.session_id), last.session_id):
            raise refuse_removed_session(last.session_id)
        source, rest = _source_or_rest(workspace, last)
        if source is not None:
            captured = capture.capture(
                workspace,
                source,
                rest=rest,
                now_us=now_us,
                agent_id=last.agent_id,
                propose=propose,
                end=bool(ends),
                handed=[one for job in begun if (one := _read_reported_compaction(job, final=final)) is not None],
                prompt=spool.marker(workspace.state.spool, last) if ends else None,
                reported=last,
                environ=environ,
            )
            handed = any(job.compaction is not None for job in begun)
            if not final and not (captured.recorded if handed else captured.wrote):
                look.count += 1
                _add(done, captured, once=True)
                return False
            _add(done, captured)
        elif last.prompt is not None:
            # The harness never wrote a transcript: the session is not to be kept.
            live.forget_now(workspace.database, last.agent_id, last.session_id)
        spool.finish(*begun)
    except UsageError as error:
        # Waiting cannot help: the session was removed, or the file is not a transcript.
        logger.warning("{} of {} {}: refused, {}", last.event, last.harness, short(last.session_id), error.code)
        done.failed.append(error.message)
        spool.finish(*begun)
    except (OSError, SignetSyncError) as error:
        whose = short(last.session_id)
        logger.warning("{} of {} {}: {}; tried again later", last.event, last.harness, whose, reason(error))
        done.failed.append(str(error))
        for job in begun:
            spool.retry_later(job, type(error).__name__, now_us)
    return True


def _drop_superseded(jobs: Sequence[Job]) -> list[Job]:
    """Drops the jobs of one session that a later one covers, and returns the others.

    A job with a summary is kept, because nothing else contains the summary.
    """
    ends = [job for job in jobs if job.event in ("stop", "end")]
    last = ends[-1] if ends else jobs[-1]
    left = [job for job in jobs if job is last or job.compaction is not None]
    spool.finish(*(job for job in jobs if job not in left))
    return sorted(left, key=lambda job: job is last)


def _record_shape(job: Job) -> str:
    """Returns the shape of a job's transcript; empty for a database, which does not show which session changed."""
    return "" if job.harness == "opencode" else shape_of(job)


def _source_or_rest(workspace: Workspace, job: Job) -> tuple[TranscriptSource | None, Conversation | None]:
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
        for job, shape in due_sessions(workspace, now_us):
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
        return 0 if job.harness == "opencode" else os.stat(job.transcript_path or "").st_size
    except (OSError, ValueError):
        return 0


def _read_reported_compaction(job: Job, *, final: bool) -> ReportedCompaction | None:
    """Returns the summary that a hook delivered; `final` once its record is no longer waited for."""
    if job.compaction is None:
        return None
    return ReportedCompaction(job.compaction, parse_instant(job.at) or 0, final=final)


def _sweep(
    workspace: Workspace, done: IntakeResult, now_us: int, propose: Propose | None, environ: Mapping[str, str]
) -> None:
    """Captures transcripts of the connected harnesses that changed since they were connected, are idle and unread."""
    for harness, since_us in list_connected_harnesses(workspace).items():
        try:
            sources = list(transcripts.sources(harness, environ))
        except SignetSyncError as error:
            logger.warning("{}: {}", harness, error.message)
            continue
        for source in sources:
            quiet_us = now_us - source.mtime_ns // 1000
            if source.mtime_ns // 1000 < since_us or quiet_us < workspace.settings.capture_idle * SECOND:
                continue
            known = _mark(workspace.database, source)
            if known is not None and _is_unchanged(known, source):
                continue
            # A hook may have derived the agent from its harness's environment.
            agent_id = known.agent_id or None if known is not None else None
            capture_one(workspace, source, done, now_us=now_us, agent_id=agent_id, propose=propose, environ=environ)


def capture_one(
    workspace: Workspace,
    source: TranscriptSource,
    done: IntakeResult,
    *,
    now_us: int,
    agent_id: str | None = None,
    propose: Propose | None = None,
    environ: Mapping[str, str] = os.environ,
) -> CaptureResult | None:
    """Captures one transcript; records one that is unreadable or refused, so that it is not read again unchanged.

    Returns None if it failed; other errors are raised.
    """
    try:
        captured = capture.capture(
            workspace, source, now_us=now_us, agent_id=agent_id, propose=propose, environ=environ
        )
    except (UsageError, HarnessError) as error:
        if error.code == "removed-session":  # a person wanted that
            done.captured.append(CaptureResult(source, remark=_REMOVED))
        else:
            done.failed.append(f"{source.path}: {error.message}")
            logger.warning("a transcript of {}: {}", source.harness, error.code)
        # A wrong setting is not the transcript's fault.
        if error.code != "agent-invalid":
            seen = TranscriptState(source.size, source.mtime_ns, agent_id or "", error.code)
            capture_store.mark(workspace.database, source.harness, source.place, source.session_id, seen, iso(now_us))
        return None
    _add(done, captured)
    return captured


def _add(done: IntakeResult, captured: CaptureResult, *, once: bool = False) -> None:
    """Adds the result for a transcript; with `once` only if something was written."""
    if captured.wrote or not once:
        done.captured.append(captured)
    if captured.wrote:
        logger.info(
            "{} {}: written, segments {}, compactions {}",
            captured.source.harness,
            short(captured.session_id),
            len(captured.segments),
            len(captured.compactions),
        )


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


def list_connected_harnesses(workspace: Workspace) -> dict[str, int]:
    """Returns the harnesses whose hooks were installed for this workspace, and since when (µs since 1970 UTC)."""
    found = {}
    for harness, entry in (state_dir.read_json(workspace.state.harnesses) or {}).items():
        since = entry.get("since") if isinstance(entry, dict) else None
        if harness in registry.names() and isinstance(since, str):
            found[harness] = parse_instant(since) or 0
    return found
