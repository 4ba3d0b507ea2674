"""Reads the turns of a running session from the transcript that its harness writes, and from what its hook reports."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import apsw

from signet_sync.capture import capture, spool, transcripts
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.reader import Conversation, TranscriptEntry
from signet_sync.capture.spool import Job
from signet_sync.capture.store import LiveMark, drop_other_live_marks, find_live_mark, set_live_mark
from signet_sync.capture.transcripts import TranscriptSource
from signet_sync.capture.worker import LONGEST_REST, list_changed, list_changed_sessions, stat_of
from signet_sync.errors import DatabaseError, HarnessError, SignetSyncError, UsageError, reason
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import SECOND, iso, parse_instant
from signet_sync.log import logger
from signet_sync.sessions.input import SessionInput
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.operations import describe, write_place
from signet_sync.sessions.live.store import LivePlace, LiveTurn
from signet_sync.storage.locations import now_us as clock_us
from signet_sync.sync.read_only import IndexPlace, open_index
from signet_sync.sync.tombstones import refuse_removed
from signet_sync.sync.workspace import Workspace
from signet_sync.text.chunking import speaker_of
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.stored_names import session_name

# The minimum between two reads of a running session; for a long one, reading takes at most a twentieth of the time.
LIVE_REST = 3 * SECOND
LIVE_SHARE = 20
# Transcripts of running sessions longer than this in total are left to the agent by a search.
_MOST_READ = 64 * 1024 * 1024  # bytes
_MOMENT_MS = 500


def source_of(job: Job) -> TranscriptSource | None:
    """Returns the transcript of a job, or None if the job names none. Raises `HarnessError` if it is gone."""
    path = job.transcript_path
    if job.event == "session-start" or path is None:
        return None
    # It was a file when the hook checked it; a link or folder in its place may lead anywhere.
    if not os.path.islink(path) and os.path.isfile(path):
        for source in transcripts.sources(job.harness, path):
            if not source.session_id or session_name(source.session_id) == job.session_id:
                return source
    raise HarnessError("the transcript is gone", path=path, hint="nothing of it can be captured")


def rest_of(workspace: Workspace, job: Job) -> Conversation | None:
    """Returns what was read of a session's transcript while it ran; None if that is nothing."""
    names = job.agent_id, job.session_id, job.session_id
    turns = live.transcript(workspace.database, *names)
    place = next((one.place for one in live.list_running(workspace.database, *names)), LivePlace())
    entries = tuple(
        TranscriptEntry(kind, parse_instant(turn.at) or 0, turn.content)
        for turn in turns
        if (kind := speaker_of(turn.role)) == "user" or kind == "assistant"
    )
    return Conversation(job.harness, job.session_id, place.project or job.cwd, entries) if entries else None


def read_running_sessions(workspace: Workspace, now_us: int) -> None:
    """Reads the turns of running sessions; their stop markers and capture rows are not changed."""
    try:
        for job, shape, wait in list_changed_sessions(workspace, now_us):
            if wait <= 0:
                read_running(workspace, job, shape, now_us)
        drop_other_live_marks(workspace.database, spool.markers(workspace.state.spool))
    except DatabaseError as error:
        logger.debug("running sessions are read later: {}", error.message)


def read_running(workspace: Workspace, job: Job, shape: str, now_us: int) -> None:
    """Reads the turns of one running session. Raises `DatabaseError`."""
    name, began = os.path.basename(job.place), time.monotonic()
    # Recorded before reading: a transcript that kills the process must not do so again at once.
    begun = LiveMark("", job.at, now_us + LONGEST_REST)
    set_live_mark(workspace.database, name, begun)
    try:
        # A process that began to read later has read more.
        update_live_turns(workspace, job, name, begun, now_us)
    except (OSError, HarnessError, UsageError) as error:
        # It is unreadable in this state; its capture will report that.
        logger.debug("a running session of {} {}: {}", job.harness, shorten(job.session_id), reason(error))
        if isinstance(error, UsageError) and error.code == "removed-session":
            spool.finish(job)
    took = int((time.monotonic() - began) * LIVE_SHARE * SECOND)
    rest = min(max(LIVE_REST, took), LONGEST_REST)
    set_live_mark(workspace.database, name, LiveMark(shape, job.at, now_us + rest))


def update_live_turns(workspace: Workspace, job: Job, name: str, begun: LiveMark, now_us: int) -> None:
    """Updates a running session's live turns to what no segment contains of its transcript.

    Nothing is done if another read has `begun` meanwhile, or a client streams the session. The session's key is its id,
    as at its capture. Raises `HarnessError`, `UsageError` (`removed-session`), `DatabaseError`.
    """
    database, agent_id, source = workspace.database, job.agent_id, source_of(job)
    conversation = capture.read(source, now_us) if source is not None else None
    session_id = conversation.session_id if conversation is not None else ""
    if conversation is None or conversation.parent is not None or not session_id:
        return
    if capture.is_left_out(workspace, conversation):
        return
    conversation = capture.drop_copies(workspace, conversation, agent_id)
    token = token_of(agent_id, session_id)
    segments = live.segments(database, agent_id, token, session_id)
    turns = list(_make_turns(conversation, capture.find_unwritten(workspace, conversation, agent_id)))
    repository = capture.repository_of(conversation, job)
    place = write_place(SessionInput(**capture.identify(conversation, agent_id, repository), transcript=""))
    with database.transaction():
        refuse_removed(workspace, agent_id, session_id, session_id)
        # It was ended meanwhile: the next look reads what is new since then.
        ended = segments != live.segments(database, agent_id, token, session_id)
        if ended or live.is_streamed(database, agent_id, session_id) or find_live_mark(database, name) != begun:
            return
        live.mirror(database, agent_id, session_id, session_id, turns)
        if turns:
            describe(workspace, agent_id, session_id, session_id, place, headless=conversation.headless)


def _make_turns(conversation: Conversation, fresh: Sequence[TranscriptEntry]) -> Iterator[LiveTurn]:
    """Yields words of the user and the assistant, numbered from 1 over the whole conversation, not by segment."""
    numbers = {id(entry) for entry in fresh}
    number = 0
    for entry in conversation.entries:
        if entry.kind not in ("user", "assistant") or not entry.text.strip():
            continue
        number += 1
        if id(entry) in numbers:
            # Role and time are stored next to the words.
            _, _, words = render((entry,)).partition("\n\n")
            yield LiveTurn(number, entry.kind, sanitize_transcript_v2(words), iso(entry.at))


def shorten(session_id: str) -> str:
    """Returns of an id what distinguishes it from others: logs outlive the removal of a session."""
    return display(session_id if len(session_id) <= 8 else f"{session_id[:8]}…")


def catch_up(place: IndexPlace, agent_id: str) -> None:
    """Reads what was added to an agent's running sessions since the last read, so that a search finds it.

    Works whether or not an agent is running, also for a session that was killed a moment ago. If nothing was added,
    nothing is opened to write; what cannot be read or written now is left to the agent, and so is a transcript that is
    being read at this moment, which may kill its reader.
    """
    folder, instant = place.state(), clock_us()
    with suppress(SignetSyncError, OSError, apsw.Error):
        with open_index(place) as database:
            seen = Workspace(place.root, place.settings(), folder, database, touch_nothing=True)
            changed = [one for one in list_changed(seen, instant) if one[0].agent_id == agent_id]
        moved = [
            (job, shape) for job, shape, mark in changed if mark is None or mark.shape or mark.rests_until <= instant
        ]
        if not moved:
            return
        left = _MOST_READ
        with place.open_workspace() as workspace:
            workspace.database.connection.set_busy_timeout(_MOMENT_MS)
            for job, shape in sorted(moved, key=lambda one: one[0].at, reverse=True):
                # Most of a database belongs to other sessions.
                status = None if registry.keeps_database(job.harness) else stat_of(job.transcript_path)
                left -= status.st_size if status is not None else 0
                if left >= 0:
                    read_running(workspace, job, shape, instant)
