"""Works off what hooks have spooled, and sweeps the transcripts that no hook told of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loguru import logger

from signet_sync import spool, state
from signet_sync.agent import capture as capturing
from signet_sync.agent import following
from signet_sync.agent.capture import Captured, Handed
from signet_sync.agent.live import refuse_removed
from signet_sync.agent.proposals import proposer
from signet_sync.agent.removed import is_removed, removed_session
from signet_sync.agent.worker import LONGEST_REST, due, running
from signet_sync.agent.workspace import Workspace
from signet_sync.config import asks_anybody
from signet_sync.contracts.identities import session_name
from signet_sync.contracts.places import display
from signet_sync.contracts.timestamps import SECOND, iso, parse_instant
from signet_sync.contracts.tokens import token_of
from signet_sync.errors import DatabaseError, HarnessError, SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.harness import opencode
from signet_sync.host import stores
from signet_sync.host.stores import Source
from signet_sync.index import captures, live
from signet_sync.index.captures import Mark
from signet_sync.sessions import Propose
from signet_sync.spool import Job

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


def take(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    sweep: bool = False,
    environ: Mapping[str, str] = os.environ,
    rest: Callable[[float], None] = time.sleep,
) -> Intake:
    """Works off the jobs that are due; with `sweep`, or where a session has begun, looks for forgotten transcripts.

    Then the turns of sessions that are at work are read, so that they can be asked for before anything is written. One
    process at a time does this for a workspace; another one finds nothing to do. Trouble with one job never stops the
    others: it is tried again later, a bounded number of times.
    """
    done = Intake()
    spool.sweep(workspace.state.spool, now_us())
    propose = proposer(workspace.settings, workspace.root, environ)
    waiting = True
    while waiting:
        try:
            with state.intake_lock(workspace.state):
                for job in due(workspace, now_us()):
                    sweep |= job.event == "session-start"
                    _job(workspace, job, done, now_us(), propose, environ, rest)
                if sweep:
                    _sweep(workspace, done, now_us(), propose, environ)
                    sweep = False
                _follow(workspace, now_us())
        except WorkspaceError as error:
            if error.code != "busy":
                raise
            return done
        # One that came while we held the lock has found nobody to take it.
        waiting = any(True for _ in due(workspace, now_us()))
    _enrich(workspace, now_us, environ)
    return done


def _enrich(workspace: Workspace, now_us: Callable[[], int], environ: Mapping[str, str]) -> None:
    """Facts and paragraphs of a language model, once nobody waits, where there is one; see `agent.distillation`."""
    if not asks_anybody(workspace.settings):
        return  # nearly everybody: nothing of a model is imported
    from signet_sync.agent import distillation

    def waiting() -> bool:
        instant = now_us()
        return any(True for _ in due(workspace, instant)) or any(True for _ in running(workspace, instant))

    distillation.enrich(workspace, now_us=now_us, environ=environ, waiting=waiting)


def _job(
    workspace: Workspace,
    job: Job,
    done: Intake,
    now_us: int,
    propose: Propose | None,
    environ: Mapping[str, str],
    rest: Callable[[float], None],
) -> None:
    if not spool.begin(job, now_us):
        logger.warning("{} of {} {}: given up", job.event, job.harness, short(job.session_id))
        return
    try:
        if is_removed(workspace, job.agent_id, token_of(job.agent_id, job.session_id), job.session_id):
            raise removed_session(job.session_id)
        source = _source(job)
        if source is not None:
            for look in range(RECORD_LOOKS if job.event == "compact" else 1):
                captured = capturing.capture(
                    workspace,
                    source,
                    now_us=now_us,
                    agent_id=job.agent_id,
                    propose=propose,
                    end=job.event != "compact",
                    handed=_handed(job, last=look == RECORD_LOOKS - 1),
                    environ=environ,
                )
                if job.event != "compact" or _is_told(job, captured):
                    break
                rest(RECORD_WAIT)
            _add(done, captured)
        spool.finish(job)
    except UsageError as error:
        # Nothing that waits can help: the session was removed, the transcript is none.
        logger.warning("{} of {} {}: refused, {}", job.event, job.harness, short(job.session_id), error.code)
        done.failed.append(error.message)
        spool.finish(job)
    except (OSError, SignetSyncError) as error:
        whose = short(job.session_id)
        logger.warning("{} of {} {}: {}; tried again later", job.event, job.harness, whose, reason(error))
        done.failed.append(str(error))
        spool.retry_later(job, type(error).__name__, now_us)


def _follow(workspace: Workspace, now_us: int) -> None:
    """Reads the turns of the sessions that are at work; their stop markers and marks of captures stay as they are."""
    try:
        for job, shape in running(workspace, now_us):
            _look(workspace, job, shape, now_us)
        live.keep_marks(workspace.database, spool.markers(workspace.state.spool))
    except DatabaseError as error:
        logger.debug("running sessions are read later: {}", error.message)


def _look(workspace: Workspace, job: Job, shape: str, now_us: int) -> None:
    name, began = os.path.basename(job.place), time.monotonic()
    # Before it is read: one that kills whoever reads it must not do so again at once.
    live.set_mark(workspace.database, name, live.Mark("", job.at, now_us + LONGEST_REST))
    try:
        refuse_removed(workspace, job.agent_id, job.session_id, job.session_id)
        source = _source(job)
        if source is not None:
            following.follow(workspace, source, job.agent_id)
    except (OSError, HarnessError, UsageError) as error:
        # As it is it can't be read; its capture will tell.
        logger.debug("a running session of {} {}: {}", job.harness, short(job.session_id), reason(error))
        if isinstance(error, UsageError) and error.code == "removed-session":
            spool.finish(job)
    took = int((time.monotonic() - began) * LIVE_SHARE * SECOND)
    rest = min(max(LIVE_REST, took), LONGEST_REST)
    live.set_mark(workspace.database, name, live.Mark(shape, job.at, now_us + rest))


def _source(job: Job) -> Source | None:
    """The transcript of a job; None where the job tells of none. Raises `HarnessError` where it is gone."""
    path = job.transcript_path
    if job.event == "session-start" or path is None:
        return None
    gone = HarnessError("the transcript is gone", path=path, hint="nothing of it can be captured")
    # It was a file when the hook looked; a link or a folder in its place may lead to what nobody meant.
    if os.path.islink(path) or not os.path.isfile(path):
        raise gone
    for source in stores.sources(job.harness, where=path):
        if job.harness != opencode.NAME or session_name(source.session_id) == job.session_id:
            return source
    raise gone


def _is_told(job: Job, captured: Captured) -> bool:
    """Whether the transcript holds the compaction that a job tells of."""
    return captured.recorded if job.compaction is not None else captured.wrote


def _handed(job: Job, *, last: bool) -> Handed | None:
    """The summary that a hook handed over, once no record of it is waited for any more."""
    if job.compaction is None:
        return None
    return Handed(job.compaction, parse_instant(job.at) or 0, final=last)


def _sweep(
    workspace: Workspace, done: Intake, now_us: int, propose: Propose | None, environ: Mapping[str, str]
) -> None:
    """Transcripts of the harnesses that feed this workspace, changed since they were plugged in, idle and unread."""
    for harness, since_us in feeding(workspace).items():
        try:
            sources = list(stores.sources(harness, environ))
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
        captured = capturing.capture(
            workspace, source, now_us=now_us, agent_id=agent_id, propose=propose, environ=environ
        )
    except (UsageError, HarnessError) as error:
        done.failed.append(f"{source.path}: {error.message}")
        logger.warning("a transcript of {}: {}", source.harness, error.code)
        # A wrong setting says nothing about the transcript.
        if error.code != "agent-invalid":
            seen = Mark(source.size, source.mtime_ns, agent_id or "", error.code)
            captures.mark(workspace.database, source.harness, source.place, source.session_id, seen, iso(now_us))
        return None
    _add(done, captured)
    return captured


def _add(done: Intake, captured: Captured) -> None:
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
    return captures.mark_of(workspace.database, source.harness, source.place, source.session_id)


def _is_as(mark: Mark, source: Source) -> bool:
    return (mark.size, mark.mtime_ns) == (source.size, source.mtime_ns)


def feeding(workspace: Workspace) -> dict[str, int]:
    """The harnesses whose hooks were installed for this workspace, and since when (µs since 1970 UTC)."""
    found = {}
    for harness, entry in (state.read_json(workspace.state.harnesses) or {}).items():
        since = entry.get("since") if isinstance(entry, dict) else None
        if harness in stores.HARNESSES and isinstance(since, str):
            found[harness] = parse_instant(since) or 0
    return found
