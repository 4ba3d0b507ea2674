"""Writes a harness's transcript to the vault: what is new since the last segment, and its compactions."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from signet_sync.capture import injections, transcripts
from signet_sync.capture import store as capture_store
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.markdown import entries_after, entries_after_text, render
from signet_sync.capture.harnesses.reader import Conversation, TranscriptEntry
from signet_sync.capture.harnesses.texts import file_stem
from signet_sync.capture.spool import Job
from signet_sync.capture.store import TranscriptState
from signet_sync.capture.transcripts import TranscriptSource
from signet_sync.errors import WorkspaceError
from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.formats.body import js_trim, utf8
from signet_sync.formats.ids import (
    agent_for,
    asks_model,
    is_excluded,
    is_in_model_folder,
    is_session_id,
    origin_of,
    token_of,
)
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import iso
from signet_sync.host.repository import Repository, resolve, views
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.copied_history import Exchange, HeldExchanges, exchanges_of
from signet_sync.sessions.input import FUTURE_US, CompactionInput, SessionInput
from signet_sync.sessions.live.turns import SpokenTurn, is_live
from signet_sync.sessions.model_proposals import Propose
from signet_sync.sync.index_records import Row
from signet_sync.sync.store import artifacts
from signet_sync.sync.tombstones import refuse_removed
from signet_sync.sync.workspace import Workspace
from signet_sync.text.passages import words_of
from signet_sync.text.redaction import alike
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.stored_names import session_name, session_value

# Larger notes are too long for a person to open, and each new segment is read back in full.
SEGMENT_BYTES = 8 * 1024 * 1024
_DRIVE = late(r"([A-Za-z]):[\\/](.*)", re.DOTALL)
_SHARE = late(r"\\\\wsl(?:\$|\.localhost)\\[^\\]+(\\.+)", re.DOTALL)
COPIED = "copied history: all of it stands in another session, or was removed with it"
EXCLUDED = "its project is left out of capture (`capture.exclude`)"
OWN_CALL = "our own question to a model: it is no session"


@dataclass(slots=True)
class CaptureResult:
    """The result for one transcript: paths of the files written, or why there are none (`remark`)."""

    source: TranscriptSource
    session_id: str = ""
    agent_id: str = ""
    segments: list[str] = field(default_factory=list)
    compactions: list[str] = field(default_factory=list)
    redactions: Counter[str] = field(default_factory=Counter)
    remark: str = ""
    repository: Repository | None = None

    @property
    def has_written(self) -> bool:
        """Checks whether anything was added to the vault."""
        return bool(self.segments or self.compactions)

    def add(self, answer: Mapping[str, Any]) -> None:
        """Adds what an operation answered; a replay wrote nothing."""
        if answer["idempotent_replay"]:
            return
        if "compaction" in answer:
            self.compactions.append(answer["compaction"])
        else:
            self.segments.append(answer["summary"])
        self.redactions.update(answer["redactions"])


def read(source: TranscriptSource, now_us: int | None = None) -> Conversation:
    """Reads a transcript in its harness's format, with the session id in our form; without our questions to a model.

    A record that is dated after `now_us` has the time of the one before; where none has a time, each has its file's.
    Raises `HarnessError`.
    """
    name, latest = os.path.basename(source.path), None if now_us is None else now_us + FUTURE_US
    if registry.keeps_database(source.harness):
        rows = registry.database(source.harness).read_session(source.path, source.session_id)
        found = registry.reader(source.harness)(*rows, latest=latest)
    else:
        found = registry.reader(source.harness)(transcripts.lines(source.path), file_name=name, latest=latest)
    if found.entries and found.entries[-1].at == 0:
        at = source.mtime_ns // 1000
        found = found._replace(entries=tuple(replace(entry, at=at) for entry in found.entries))
    found = found._replace(harness=source.harness, project=_translate_wsl_path(found.project))
    # What we asked a model goes, each question with all that follows up to the next one of a person.
    kept: list[TranscriptEntry] = []
    ours = own_folder = is_in_model_folder(found.project)
    for entry in found.entries:
        if entry.kind == "user":
            ours = own_folder or asks_model(entry.text)
        if not ours:
            kept.append(entry)
    if len(kept) < len(found.entries):
        found = found._replace(entries=tuple(kept), remark=OWN_CALL)
    if not found.session_id:
        return found
    session_id = session_name(found.session_id)
    if not is_session_id(session_id):  # blank id: the file name is used
        session_id = session_name(file_stem(source.path))
    return found._replace(session_id=session_id)


def _translate_wsl_path(project: str | None) -> str | None:
    """Returns a folder as Linux sees it beside a Windows whose program wrote the transcript; others as they are."""
    drive = _DRIVE.match(project or "")
    if drive is not None:
        return f"/mnt/{drive[1].lower()}/{drive[2]}".replace("\\", "/").rstrip("/")
    share = _SHARE.match(project or "")
    return share[1].replace("\\", "/") if share is not None else project


def capture(
    workspace: Workspace,
    source: TranscriptSource,
    *,
    now_us: int,
    agent_id: str | None,
    propose: Propose | None,
    end: bool = True,
    reported: Job | None = None,
    rest: Conversation | None = None,
) -> CaptureResult:
    """Writes what a transcript adds since its last segment, and each of its compactions once.

    With `end` false the session is still running: only its compactions are written. `reported` is the job of a hook,
    which has the repository as it was then; `rest` is what was read of a transcript that is gone. File names follow
    from the times of the records, so two machines that read the same transcript write the same files. Raises
    `HarnessError`, and what `sessions.operations.write` raises.
    """
    conversation = rest or read(source, now_us)
    done = CaptureResult(source, conversation.session_id)
    done.remark = EXCLUDED if is_left_out(workspace, conversation) else _why_empty(conversation)
    if not done.remark:
        done.repository = repository_of(conversation, reported)
        places = views(conversation.project, done.repository) if conversation.project is not None else []
        done.agent_id = agent_id or agent_for(places, os.environ, workspace.settings.agents_projects)
        refuse_removed(workspace, done.agent_id, conversation.session_id, conversation.session_id)
        conversation = drop_copies(workspace, conversation, done.agent_id)
        done.remark = _why_empty(conversation)
    if not done.remark:
        _write(workspace, conversation, done, now_us, propose, end=end)
        if done.compactions and not registry.facts(source.harness).reports_compaction:
            with suppress(OSError, WorkspaceError):
                injections.mark_compacted(workspace.state, done.agent_id, conversation.session_id)
    if end or done.has_written:
        outcome = done.remark or ("written" if done.has_written else "nothing new")
        size = source.size if end else capture_store.UNREAD
        folder = conversation.project or ""
        seen = TranscriptState(size, source.mtime_ns, done.agent_id, outcome, conversation.session_id, folder)
        capture_store.mark(workspace.database, source.harness, source.place, source.session_id, seen, iso(now_us))
    return done


def is_left_out(workspace: Workspace, conversation: Conversation) -> bool:
    """Returns whether the settings leave the project of a conversation out of capture."""
    return is_excluded(conversation.project, workspace.settings.capture_exclude, os.environ)


def drop_copies(workspace: Workspace, conversation: Conversation, agent_id: str) -> Conversation:
    """Drops the exchanges with which a conversation begins and that another session holds, or a removed one held."""
    entries = conversation.entries
    places = [place for place, entry in enumerate(entries) if entry.kind == "user" and entry.text.strip()]

    def exchanges() -> Iterator[tuple[Exchange, int, bool]]:
        for place in places:
            prompt = entries[place]
            words = sanitize_transcript_v2(words_of(prompt.text))
            turns = [SpokenTurn(prompt.kind, words, iso(prompt.at) if prompt.at > 0 else "")]
            behind = (one for one in islice(entries, place + 1, None) if one.kind != "event")
            answer = next(behind, None)
            if answer is not None:
                said = next((one for one in chain([answer], behind) if one.kind in ("assistant", "user")), answer)
                turns += [SpokenTurn(one.kind, "", iso(one.at)) for one in (answer, said)]
            for one in exchanges_of(turns):
                yield one, prompt.at, prompt.at <= conversation.copied_until

    held = HeldExchanges(workspace.database, agent_id, conversation.session_id, conversation.origin)
    (copies, text), rest = held.count_copies(exchanges()), entries
    if copies:
        last, end = places[copies - 1], [*places, len(entries)][copies]
        rest = (*entries_after_text(entries[last:end], text), *entries[end:])
    rest = tuple(
        entry
        for entry in rest
        if entry.kind != "compaction" or not held.has_compaction(entry.at, sanitize_transcript_v2(entry.text))
    )
    return conversation if len(rest) == len(entries) else conversation._replace(entries=rest, remark=COPIED)


def find_unwritten(workspace: Workspace, conversation: Conversation, agent_id: str) -> tuple[TranscriptEntry, ...]:
    """Returns the entries that no indexed segment contains yet."""
    rows = _list_indexed(workspace, conversation, agent_id)
    return () if _why_empty(conversation) else _find_fresh(conversation, rows)


def _why_empty(conversation: Conversation) -> str:
    """Returns why nothing of a transcript is kept; empty if it is worth keeping."""
    if is_in_model_folder(conversation.project):
        return OWN_CALL
    if conversation.parent is not None:
        return "a sub-agent's transcript: it is part of another session"
    if not conversation.turns:
        return conversation.remark or "no words of a user or an assistant in it"
    return "" if conversation.session_id else "it does not name a session"


def identify(conversation: Conversation, agent_id: str, repository: Repository | None) -> dict[str, Any]:
    """Returns the fields that every input of a session has."""
    return {
        "agent_id": agent_id,
        "session_id": conversation.session_id,
        "session_key": conversation.session_id,
        "project": conversation.project if js_trim(conversation.project or "") else None,
        "harness": conversation.harness,
        **dict(zip(REPOSITORY_FIELDS, repository or (), strict=False)),
    }


def _write(
    workspace: Workspace,
    conversation: Conversation,
    done: CaptureResult,
    now_us: int,
    propose: Propose | None,
    *,
    end: bool,
) -> None:
    """Writes the compactions that are not in the vault yet, and at an end the segments."""
    entries, token = conversation.entries, token_of(done.agent_id, conversation.session_id)
    identity = identify(conversation, done.agent_id, done.repository)
    propose = None if conversation.headless else propose  # rules do for what nobody reads
    compactions = [entry for entry in entries if entry.kind == "compaction" and entry.text.strip()]
    sessions_operations.refresh(workspace, done.agent_id, token)
    rows = _list_indexed(workspace, conversation, done.agent_id)
    for entry in compactions:
        if not _is_kept(entry, rows):
            at = iso(entry.at)
            kept = CompactionInput(**identity, compaction=entry.text, captured_at=at, ended_at=at)
            done.add(sessions_operations.write(workspace, kept, now_us=now_us, propose=propose))
    if not end:
        done.remark = "" if done.compactions else "it contains no new compaction"
        return
    fresh = _find_fresh(conversation, rows)
    if not fresh:
        done.remark = "" if done.compactions else "nothing new since it was captured"
        return
    # The first time that is not used in a segment's name yet.
    after = max((row.captured_us // 1000 * 1000 + 1000 for row in rows if row.source_kind == "transcript"), default=0)
    most = workspace.settings.max_file_bytes  # with room for headings and fences
    room = min(max(most - sessions_operations.HEADROOM, most // 2) * 3 // 4, SEGMENT_BYTES)
    chunks = [*_split_entries(fresh, room)]
    for chunk in chunks:
        text = render(chunk, [entry for entry in entries if entry.at < chunk[0].at])
        # A turn may be longer than a file: its parts get names some milliseconds before that of the last part.
        moment = max(chunk[-1].at, after + 2000 * (len(utf8(text)) // room))
        after = moment // 1000 * 1000 + 1000
        given = SessionInput(
            **identity,
            transcript=text,
            tail=True,
            more=chunk is not chunks[-1],
            headless=conversation.headless,
            captured_at=iso(moment),
            started_at=iso(chunk[0].at),
            ended_at=iso(chunk[-1].at),
        )
        done.add(sessions_operations.write(workspace, given, now_us=now_us, propose=propose))


def _split_entries(entries: Sequence[TranscriptEntry], limit: int) -> Iterator[Sequence[TranscriptEntry]]:
    """Splits entries into segments of at most about `limit` bytes, only between entries of different milliseconds.

    So each segment has its own time, and after a crash the last segment shows where to continue.
    """
    start = size = 0
    for number, entry in enumerate(entries):
        length = len(entry.text.encode("utf-8", "replace")) + 200
        if size + length > limit and number > start and entry.at // 1000 > entries[number - 1].at // 1000:
            yield entries[start:number]
            start, size = number, 0
        size += length
    yield entries[start:]


def _list_indexed(workspace: Workspace, conversation: Conversation, agent_id: str) -> list[Row]:
    session_id = conversation.session_id
    return artifacts.session_rows(workspace.database, agent_id, token_of(agent_id, session_id), session_id)


def _find_fresh(conversation: Conversation, rows: Sequence[Row]) -> tuple[TranscriptEntry, ...]:
    """Returns the entries that no segment contains yet; none if only events and compactions follow the last segment.

    A segment that consists of live turns contains some words but nothing else that happened up to then.
    """
    kept = [row for row in rows if row.source_kind == "transcript" and not is_live(row.content)]
    if not kept:
        return conversation.entries
    boundary = max(row.membership_us for row in kept)
    # If the clock was set back, several segments may end in the same millisecond.
    last = "\n\n".join(row.content for row in kept if row.membership_us == boundary)
    fresh = entries_after(conversation.entries, boundary, last)
    has_words = any(entry.kind not in ("event", "compaction") and entry.text.strip() for entry in fresh)
    return fresh if has_words else ()


def _is_kept(entry: TranscriptEntry, rows: Sequence[Row]) -> bool:
    moment, text = entry.at // 1000 * 1000, sanitize_transcript_v2(entry.text)
    kept = (row for row in rows if row.source_kind == "compaction")
    return any(row.captured_us == moment or alike(row.content, text) for row in kept)


# ── the repository ──


def repository_of(conversation: Conversation, reported: Job | None) -> Repository | None:
    """Returns the repository of a session's folder: as its hook found it, else as it is now.

    If the folder is gone, that of the folder it was made a worktree of or was in, unless the harness recorded another
    remote. Its branch is the one that its hook saw last, else its harness, not the one that is checked out now: the
    session may be long over.
    """
    project, branch = conversation.project, session_value(conversation.branch) or None
    known, cwd = (reported.repository, reported.cwd) if reported is not None else (None, None)
    if project is None:
        return None
    if known is not None and cwd == project:
        return known._replace(branch=known.branch or branch)
    if os.path.lexists(project):
        found = resolve(project)
        seen = known.branch if known is not None and found is not None and known.root == found.root else None
        return found and found._replace(branch=seen or branch)
    if known is not None:  # of a folder above it, or below
        ends = f"{cwd}/", f"{project.rstrip('/')}/"
        near = ends[0].startswith(ends[1]) or ends[1].startswith(ends[0])
        return known._replace(path="", branch=known.branch or branch) if near else None
    above = project
    while not os.path.isdir(above) and above not in ("", "/"):
        above = os.path.dirname(above)
    places = [resolve(one) for one in (conversation.worktree_of, above)]
    found, origin = next(filter(None, places), None), origin_of(conversation.remote)
    if origin is not None and (found is None or found.origin != origin):
        found = Repository(project, origin, "") if os.path.normpath(project) == project and project[:1] == "/" else None
    return found and found._replace(path="", branch=branch)
