"""Reads the turns of a running session from the transcript that its harness writes, and from what its hook reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from signet_sync.capture import capture, transcripts
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.reader import Conversation, TranscriptEntry
from signet_sync.capture.sources import TranscriptSource
from signet_sync.capture.spool import Job
from signet_sync.errors import HarnessError
from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.formats.ids import token_of
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.sessions.input import session_input
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.operations import describe, refuse_removed, write_place
from signet_sync.sessions.live.store import LivePlace, LiveTurn
from signet_sync.sync.workspace import Workspace
from signet_sync.text.chunking import speaker_of
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.stored_names import session_name, session_value


def source_of(job: Job) -> TranscriptSource | None:
    """Returns the transcript of a job, or None if the job names none. Raises `HarnessError` if it is gone."""
    path = job.transcript_path
    if job.event == "session-start" or path is None:
        return None
    path = transcripts.find_renamed(job.harness, path)
    gone = HarnessError("the transcript is gone", path=path, hint="nothing of it can be captured")
    # It was a file when the hook checked it; a link or folder in its place may lead anywhere.
    if os.path.islink(path) or not os.path.isfile(path):
        raise gone
    for source in transcripts.sources(job.harness, where=path):
        if not source.session_id or session_name(source.session_id) == job.session_id:
            return source
    raise gone


def rest_of(workspace: Workspace, job: Job) -> Conversation | None:
    """Returns what was read of a session's transcript while it ran; None if nobody had answered yet."""
    names = job.agent_id, job.session_id, job.session_id
    turns = live.transcript(workspace.database, *names)
    place = next((one.place for one in live.running(workspace.database, *names)), LivePlace())
    entries = tuple(
        TranscriptEntry(kind, parse_instant(turn.at) or 0, turn.content)
        for turn in turns
        if (kind := speaker_of(turn.role)) == "user" or kind == "assistant"
    )
    if all(entry.kind == "user" for entry in entries):
        return None
    return Conversation(job.harness, job.session_id, place.project or job.cwd, entries)


def update_live_turns(
    workspace: Workspace, job: Job, wanted: Callable[[], bool] = lambda: True, now_us: int | None = None
) -> int:
    """Updates a running session's live turns to what no segment contains of its transcript; returns how many are new.

    The user's last prompt is included before the transcript contains it. `wanted` is called inside the transaction that
    writes the turns. The session's key is its id, as at its capture; if a client streams the session, nothing is done.
    Raises `HarnessError`, `UsageError` (`removed-session`), `DatabaseError`.
    """
    database, agent_id = workspace.database, job.agent_id
    conversation = _read(job, now_us)
    session_id = conversation.session_id if conversation is not None else ""
    if conversation is None or conversation.parent is not None or not session_id:
        return 0
    if capture.is_left_out(workspace, conversation):
        return 0
    conversation = capture.drop_copies(workspace, conversation, agent_id)
    token = token_of(agent_id, session_id)
    segments = live.segments(database, agent_id, token, session_id)
    turns = list(_turns(conversation, capture.unwritten(workspace, conversation, agent_id, job)))
    place = _place(conversation, job)
    with database.transaction():
        refuse_removed(workspace, agent_id, session_id, session_id)
        if segments != live.segments(database, agent_id, token, session_id):
            return 0  # it was ended meanwhile: the next look reads what is new since then
        if live.is_streamed(database, agent_id, session_id) or not wanted():
            return 0
        new = live.mirror(database, agent_id, session_id, session_id, turns)
        if turns:
            describe(workspace, agent_id, session_id, session_id, place, headless=conversation.headless)
        return new


def _place(conversation: Conversation, job: Job) -> LivePlace:
    """Returns where a session works, as its capture would name it."""
    named = {
        "session_id": conversation.session_id,
        "project": session_value(conversation.project or ""),
        "harness": conversation.harness,
        "transcript": "",
        **dict(zip(REPOSITORY_FIELDS, capture.repository_of(conversation, job) or (), strict=False)),
    }
    return write_place(session_input(named, now_us=0))


def _read(job: Job, now_us: int | None) -> Conversation | None:
    """Returns a job's conversation; an empty one if the user submitted a prompt and there is no transcript yet."""
    try:
        source = source_of(job)
    except HarnessError:
        if job.prompt is None or os.path.islink(job.transcript_path or ""):
            raise
        return Conversation(job.harness, job.session_id, job.cwd, ())
    return capture.read(source, now_us) if source is not None else None


def _turns(conversation: Conversation, fresh: Sequence[TranscriptEntry]) -> Iterator[LiveTurn]:
    """Yields words of the user and the assistant, numbered from 1 over the whole conversation, not by segment."""
    known = {id(entry) for entry in conversation.entries}
    unread = [entry for entry in fresh if id(entry) not in known]
    numbers = {id(entry) for entry in fresh}
    number = 0
    for entry in (*conversation.entries, *unread):
        if entry.kind not in ("user", "assistant") or not entry.text.strip():
            continue
        number += 1
        if id(entry) in numbers:
            # Role and time are stored next to the words.
            _, _, words = render((entry,)).partition("\n\n")
            yield LiveTurn(number, entry.kind, sanitize_transcript_v2(words), iso(entry.at))
