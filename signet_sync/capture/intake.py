"""Works off what hooks have spooled, and sweeps the transcripts that no hook told of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loguru import logger

from signet_sync.capture import capture, live_transcript, spool
from signet_sync.capture import store as capture_store
from signet_sync.capture.capture import Captured, Handed
from signet_sync.capture.harnesses import opencode
from signet_sync.capture.live_transcript import source_of
from signet_sync.capture.spool import Job
from signet_sync.capture.store import Mark
from signet_sync.capture.stores import transcripts
from signet_sync.capture.stores.transcripts import Source
from signet_sync.capture.worker import LONGEST_REST, due, running, shape_of
from signet_sync.errors import DatabaseError, HarnessError, SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.formats.paths import display
from signet_sync.formats.session_token import token_of
from signet_sync.formats.timestamps import SECOND, iso, parse_instant
from signet_sync.sessions.live import refuse_removed
from signet_sync.sessions.model_proposals import proposer
from signet_sync.sessions.states import Propose
from signet_sync.sessions.store import live
from signet_sync.settings.model import asks_anybody
from signet_sync.storage import state_dir
from signet_sync.sync.tombstones.removed import is_removed, removed_session
from signet_sync.sync.workspace import Workspace

# At the hook's time a harness has not yet written the record of its compaction.
RECORD_WAIT, RECORD_LOOKS = 0.5, 4
# A running session is read again no sooner than this, and a long one so that reading takes a twentieth of the time.
LIVE_REST = 3 * SECOND
LIVE_SHARE = 20


@dataclass(slots=True)
class Intake:
    """What was taken: one outcome a transcript; `failed` is what has to be tried again."""

    captured: list[Captured] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Look:
    """How often a transcript was looked at for the record of a compaction, and how it looked then."""

    count: int = 0
    shape: str = ""


def take(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    sweep: bool = False,
    environ: Mapping[str, str] = os.environ,
    rest: Callable[[float], None] = time.sleep,
) -> Intake:
    """Works off the jobs that are due; with `sweep`, or where a session has begun, looks for forgotten transcripts.

    Jobs of one session are one piece of work, and each session has its turn before any has a second one. Then the turns
    of sessions that are at work are read, so that they can be asked for before anything is written. One process at a
    time does this for a workspace; another one finds nothing to do. Trouble with one job never stops the others: it is
    tried again later, a bounded number of times.
    """
    done = Intake()
    spool.sweep(workspace.state.spool, now_us())
    propose = proposer(workspace.settings, workspace.root, environ)
    looks: dict[str, _Look] = {}
    waiting = True
    while waiting:
        unrecorded = False
        try:
            with state_dir.intake_lock(workspace.state):
                for jobs in by_session(due(workspace, now_us())):
                    sweep |= any(job.event == "session-start" for job in jobs)
                    unrecorded |= not _jobs(workspace, jobs, done, now_us(), propose, environ, looks)
                if sweep:
                    _sweep(workspace, done, now_us(), propose, environ)
                    sweep = False
                _follow(workspace, now_us())
        except WorkspaceError as error:
            if error.code != "busy":
                raise
            return done
        if unrecorded:
            # With the lock let go of: whatever comes meanwhile is taken in.
            rest(RECORD_WAIT)
        # One that has come while we held the lock has found nobody to take it.
        waiting = any(True for _ in due(workspace, now_us()))
    _enrich(workspace, now_us, environ)
    return done


def by_session(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs by session, the one that waits longest first; the jobs of one as they came."""
    found: dict[tuple[str | None, ...], list[Job]] = {}
    for job in jobs:
        found.setdefault((job.agent_id, job.harness, job.session_id, job.transcript_path), []).append(job)
    return list(found.values())


def _enrich(workspace: Workspace, now_us: Callable[[], int], environ: Mapping[str, str]) -> None:
    """Facts and paragraphs of a language model, once nobody waits, where there is one; see `graph.enrichment`."""
    if not asks_anybody(workspace.settings):
        return  # nearly everybody: nothing of a model is imported
    from signet_sync.graph import enrichment

    def waiting() -> bool:
        instant = now_us()
        return any(True for _ in due(workspace, instant)) or any(True for _ in running(workspace, instant))

    enrichment.enrich(workspace, now_us=now_us, environ=environ, waiting=waiting)


def _jobs(
    workspace: Workspace,
    jobs: Sequence[Job],
    done: Intake,
    now_us: int,
    propose: Propose | None,
    environ: Mapping[str, str],
    looks: dict[str, _Look],
) -> bool:
    """Works off the jobs of one session; False where the record of a compaction is still to be waited for."""
    left = _superseded(jobs)
    ends = [job for job in left if job.event in ("stop", "end")]
    look = looks.setdefault(left[-1].place, _Look())
    if not ends and look.shape and look.shape == _looks(left[-1]):
        if look.count < RECORD_LOOKS - 1:
            look.count += 1
            return False
        if all(job.compaction is None for job in left):
            # It says now what it said at the first look: nothing.
            spool.finish(*left)
            return True
    begun = [job for job in left if look.count or spool.begin(job, now_us)]
    for job in left:
        if job not in begun:
            logger.warning("{} of {} {}: given up", job.event, job.harness, short(job.session_id))
    if not begun:
        return True
    last = begun[-1]
    look.shape = _looks(last)
    # One that is tried again has waited long enough.
    final = bool(ends) or look.count >= RECORD_LOOKS - 1 or last.tries > 1
    try:
        if is_removed(workspace, last.agent_id, token_of(last.agent_id, last.session_id), last.session_id):
            raise removed_session(last.session_id)
        source = None if _is_not_there(last) else source_of(last)
        if source is not None:
            captured = capture.capture(
                workspace,
                source,
                now_us=now_us,
                agent_id=last.agent_id,
                propose=propose,
                end=bool(ends),
                handed=[one for job in begun if (one := _handed(job, final=final)) is not None],
                prompt=spool.marker(workspace.state.spool, last) if ends else None,
                environ=environ,
            )
            handed = any(job.compaction is not None for job in begun)
            if not final and not (captured.recorded if handed else captured.wrote):
                look.count += 1
                _add(done, captured, once=True)
                return False
            _add(done, captured)
        elif last.prompt is not None:
            # Its harness never wrote a word of it down: it is not to be kept.
            live.forget_now(workspace.database, last.agent_id, last.session_id)
        spool.finish(*begun)
    except UsageError as error:
        # Nothing that waits can help: the session was removed, the transcript is none.
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


def _superseded(jobs: Sequence[Job]) -> list[Job]:
    """The jobs of one session without those that a later one does along; these are taken away.

    A summary that was handed over stands in its job alone.
    """
    ends = [job for job in jobs if job.event in ("stop", "end")]
    last = ends[-1] if ends else jobs[-1]
    left = [job for job in jobs if job is last or job.compaction is not None]
    spool.finish(*(job for job in jobs if job not in left))
    return sorted(left, key=lambda job: job is last)


def _looks(job: Job) -> str:
    """How a job's transcript looks; of a database nobody can say whether it moved."""
    return "" if job.harness == opencode.NAME else shape_of(job)


def _is_not_there(job: Job) -> bool:
    """Whether a harness has never made the transcript of what a user submitted."""
    return job.event == "stop" and job.prompt is not None and not os.path.lexists(job.transcript_path or "")


def _follow(workspace: Workspace, now_us: int) -> None:
    """Reads the turns of the sessions that are at work; their stop markers and marks of captures stay as they are."""
    try:
        for job, shape in running(workspace, now_us):
            look(workspace, job, shape, now_us)
        live.keep_marks(workspace.database, spool.markers(workspace.state.spool))
    except DatabaseError as error:
        logger.debug("running sessions are read later: {}", error.message)


def look(workspace: Workspace, job: Job, shape: str, now_us: int) -> None:
    """Reads the turns of one session that is at work. Raises `DatabaseError`."""
    name, began = os.path.basename(job.place), time.monotonic()
    # Before it is read: one that kills whoever reads it must not do so again at once.
    begun = live.Mark("", job.at, now_us + LONGEST_REST)
    live.set_mark(workspace.database, name, begun)
    try:
        refuse_removed(workspace, job.agent_id, job.session_id, job.session_id)
        # Whoever began to read it later has read more of it.
        live_transcript.follow(workspace, job, lambda: live.mark_of(workspace.database, name) == begun)
    except (OSError, HarnessError, UsageError) as error:
        # As it is it can't be read; its capture will tell.
        logger.debug("a running session of {} {}: {}", job.harness, short(job.session_id), reason(error))
        if isinstance(error, UsageError) and error.code == "removed-session":
            spool.finish(job)
    took = int((time.monotonic() - began) * LIVE_SHARE * SECOND)
    rest = min(max(LIVE_REST, took), LONGEST_REST)
    live.set_mark(workspace.database, name, live.Mark(shape, job.at, now_us + rest))


def length(job: Job) -> int:
    """How many bytes are read for a job; those of a database are not all of them its session's."""
    try:
        return 0 if job.harness == opencode.NAME else os.stat(job.transcript_path or "").st_size
    except (OSError, ValueError):
        return 0


def _handed(job: Job, *, final: bool) -> Handed | None:
    """The summary that a hook handed over; `final` once no record of it is waited for any more."""
    if job.compaction is None:
        return None
    return Handed(job.compaction, parse_instant(job.at) or 0, final=final)


def _sweep(
    workspace: Workspace, done: Intake, now_us: int, propose: Propose | None, environ: Mapping[str, str]
) -> None:
    """Transcripts of the harnesses that feed this workspace, changed since they were plugged in, idle and unread."""
    for harness, since_us in feeding(workspace).items():
        try:
            sources = list(transcripts.sources(harness, environ))
        except SignetSyncError as error:
            logger.warning("{}: {}", harness, error.message)
            continue
        for source in sources:
            quiet_us = now_us - source.mtime_ns // 1000
            if source.mtime_ns // 1000 < since_us or quiet_us < workspace.settings.capture_idle * SECOND:
                continue
            known = _mark(workspace, source)
            if known is not None and _is_as(known, source):
                continue
            # A hook may have known by its harness's environment whose it is.
            agent_id = known.agent_id or None if known is not None else None
            one(workspace, source, done, now_us=now_us, agent_id=agent_id, propose=propose, environ=environ)


def one(
    workspace: Workspace,
    source: Source,
    done: Intake,
    *,
    now_us: int,
    agent_id: str | None = None,
    propose: Propose | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Captured | None:
    """Captures one transcript; what can't be read or is refused is remembered, so that it is not read again as it is.

    Gives None where it failed; other trouble is raised.
    """
    try:
        captured = capture.capture(
            workspace, source, now_us=now_us, agent_id=agent_id, propose=propose, environ=environ
        )
    except (UsageError, HarnessError) as error:
        done.failed.append(f"{source.path}: {error.message}")
        logger.warning("a transcript of {}: {}", source.harness, error.code)
        # A wrong setting says nothing about the transcript.
        if error.code != "agent-invalid":
            seen = Mark(source.size, source.mtime_ns, agent_id or "", error.code)
            capture_store.mark(workspace.database, source.harness, source.place, source.session_id, seen, iso(now_us))
        return None
    _add(done, captured)
    return captured


def _add(done: Intake, captured: Captured, *, once: bool = False) -> None:
    """Notes what became of a transcript; with `once` only where something was written."""
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
    """So much of an id as tells it from others: a log outlives the removal of a session."""
    return display(session_id if len(session_id) <= 8 else f"{session_id[:8]}…")


def is_read(workspace: Workspace, source: Source, agent_id: str | None = None) -> bool:
    """Whether a transcript was read as it is now, for this agent where one is named."""
    mark = _mark(workspace, source)
    return mark is not None and _is_as(mark, source) and (not mark.agent_id or agent_id in (None, mark.agent_id))


def _mark(workspace: Workspace, source: Source) -> Mark | None:
    return capture_store.mark_of(workspace.database, source.harness, source.place, source.session_id)


def _is_as(mark: Mark, source: Source) -> bool:
    return (mark.size, mark.mtime_ns) == (source.size, source.mtime_ns)


def feeding(workspace: Workspace) -> dict[str, int]:
    """The harnesses whose hooks were installed for this workspace, and since when (µs since 1970 UTC)."""
    found = {}
    for harness, entry in (state_dir.read_json(workspace.state.harnesses) or {}).items():
        since = entry.get("since") if isinstance(entry, dict) else None
        if harness in transcripts.HARNESSES and isinstance(since, str):
            found[harness] = parse_instant(since) or 0
    return found
