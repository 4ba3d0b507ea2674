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


def running(database: Database, agent: str, session: str) -> dict[str, Any] | None:
    """Returns the document of a session that has nothing but live turns yet; None for any other."""
    live_sessions = [one for one in live.sessions(database, agent) if session in (one.session_key, one.session_id)]
    if not live_sessions or sessions.find(database, agent, session):
        return None
    newest = live_sessions[0]
    return {
        "agent_id": agent,
        "session_id": newest.session_id,
        "session_key": newest.session_key,
        "session_token": derive_token(agent, newest.session_key, newest.session_id),
        "project": None,
        "harness": None,
        "segments": [],
        "compactions": [],
        "manifest": None,
        "sentence": "It runs: its files are written when it ends.",
        "verdicts": {},
        "live": sum(one.turns for one in live_sessions),
        "status": None,
        **_describe_deeds([], None),
        "quotes": [],
    }


def describe(database: Database, agent: str, session: str) -> dict[str, Any]:
    """Returns the document of `open --json`."""
    return describe_one(database, sessions.one(database, agent, session))


def describe_one(database: Database, ref: SessionRef) -> dict[str, Any]:
    """Returns the document of a session that has artifacts."""
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
    best = max(files, key=lambda f: (rank[f.source_kind], f.captured_us))
    place = nodes.place_of(database, ref[:3])
    return {
        "agent_id": ref.agent_id,
        "session_id": ref.session_id,
        "session_key": best.session_key,
        "session_token": ref.session_token,
        "project": best.project,
        "harness": best.harness,
        "segments": [segments[key] for key in sorted(segments)],
        "compactions": [f.source_path for f in content if f.source_kind == "compaction"],
        "manifest": manifests[-1].source_path if manifests else None,
        "sentence": place.sentence if place is not None else best.sentence or "",
        "verdicts": sessions.verdicts(database, [f.source_path for f in files]),
        "live": sum(
            one.turns
            for one in live.sessions(database, ref.agent_id)
            if ref.session_id in (one.session_id, one.session_key)
            or (not one.session_id and one.session_key == best.session_key)
        ),
        # What no page shows has no place in a thread; its summary says how it ended.
        "status": place.status if place else digest_mark.status_of(text_at(database, best.source_path)),
        **_describe_deeds([text_at(database, path) for path in transcripts(database, ref)], best.project),
        "quotes": [
            {
                "turn": one.turn,
                "speaker": one.speaker,
                "at": None if one.at_us is None else iso(one.at_us),
                "text": one.text,
            }
            for one in quotes.read_of_session(database, ref[:3])
        ],
    }


def transcripts(database: Database, ref: SessionRef) -> list[str]:
    """Returns the paths of a session's transcripts, oldest first."""
    return [file.source_path for file in sessions.files(database, ref) if file.source_kind == "transcript"]


def _describe_deeds(transcripts: list[str], project: str | None) -> dict[str, list[dict[str, Any]]]:
    """Returns commits, pull requests and changed files, as transcripts tell them; paths within the project."""
    each = [deeds_of(turns_of(text)) for text in transcripts]
    files = {path.removeprefix(f"{project}/"): times for deeds in each for path, times in deeds.files.items()}
    return {
        "commits": [{"commit": one.name, "subject": one.subject} for deeds in each for one in deeds.commits],
        "pull_requests": [
            {"number": one.number, "title": one.title, "merged": one.merged}
            for deeds in each
            for one in deeds.requests.values()
        ],
        "files": [{"path": path, "edits": times} for path, times in files.items()],
    }
