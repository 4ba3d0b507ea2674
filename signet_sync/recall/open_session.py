"""Describes one session: its files, verdicts, live turns, and what it did. Imports no slow module."""

from __future__ import annotations

from typing import Any

from signet_sync.digest.deeds import deeds_of
from signet_sync.digest.turns import turns_of
from signet_sync.formats.ids import derive_token
from signet_sync.formats.timestamps import iso
from signet_sync.graph.store import nodes, quotes
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.store.texts import text_at
from signet_sync.text import digest_mark


def describe(database: Database, agent: str, session: str) -> dict[str, Any]:
    """Returns the document of `open --json`; a session may have nothing but live turns yet."""
    newest = next((one for one in live.sessions(database, agent) if session in (one.session_key, one.session_id)), None)
    if newest is not None and not sessions.find(database, agent, session):
        token = derive_token(agent, newest.session_key, newest.session_id)
        running = describe_one(database, SessionRef(agent, token, newest.session_id, newest.session_key))
        return running | {"sentence": "It runs: its files are written when it ends."}
    return describe_one(database, sessions.one(database, agent, session))


def describe_one(database: Database, ref: SessionRef) -> dict[str, Any]:
    """Returns the document of a session."""
    files = sessions.files(database, ref)
    content = [f for f in files if f.source_kind != "manifest"]
    manifests = [f for f in files if f.source_kind == "manifest"]
    segments: dict[int, dict[str, Any]] = {}
    for file in content:
        if file.source_kind == "compaction":
            continue
        segment = segments.setdefault(
            file.captured_us, {"captured_at": file.captured_at, "ended_at": None, "summary": None, "transcript": None}
        )
        segment[file.source_kind] = file.source_path
        segment["ended_at"] = segment["ended_at"] or file.ended_at
    rank = {"summary": 3, "compaction": 2, "transcript": 1, "manifest": 0}
    best = max(files, key=lambda f: (rank[f.source_kind], f.captured_us), default=None)
    key, project = (best.session_key, best.project) if best is not None else (ref.session_key, None)
    place = nodes.place_of(database, ref[:3])
    # What no page shows has no place in a thread; its summary says how it ended.
    status = place.status if place else best and digest_mark.status_of(text_at(database, best.source_path))
    deeds = [deeds_of(turns_of(text_at(database, path))) for path in transcripts(database, ref)]
    # Paths are within the project.
    edits = {path.removeprefix(f"{project}/"): times for one in deeds for path, times in one.files.items()}
    return {
        "agent_id": ref.agent_id,
        "session_id": ref.session_id,
        "session_key": key,
        "session_token": ref.session_token,
        "project": project,
        "harness": best and best.harness,
        "segments": [segments[at] for at in sorted(segments)],
        "compactions": [f.source_path for f in content if f.source_kind == "compaction"],
        "manifest": manifests[-1].source_path if manifests else None,
        "sentence": place.sentence if place is not None else (best and best.sentence) or "",
        "verdicts": sessions.verdicts(database, [f.source_path for f in files]),
        "live": sum(
            one.turns
            for one in live.sessions(database, ref.agent_id)
            if (ref.session_id or key) in (one.session_id, one.session_key)
            or (not one.session_id and one.session_key == key)
        ),
        "status": status,
        "commits": [{"commit": one.name, "subject": one.subject} for each in deeds for one in each.commits],
        "pull_requests": [
            {"number": one.number, "title": one.title, "merged": one.merged}
            for each in deeds
            for one in each.requests.values()
        ],
        "files": [{"path": path, "edits": times} for path, times in edits.items()],
        "quotes": [
            {"turn": turn, "speaker": speaker, "at": None if at_us is None else iso(at_us), "text": text}
            for turn, speaker, at_us, text in quotes.read_of_session(database, ref[:3])
        ],
    }


def transcripts(database: Database, ref: SessionRef) -> list[str]:
    """Returns the paths of a session's transcripts, oldest first."""
    return [file.source_path for file in sessions.files(database, ref) if file.source_kind == "transcript"]
