"""Reads the JSON Lines in which Signet keeps transcripts beside its database: one turn a line, sessions one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from signet_sync.capture.harnesses.jsonl import JsonLines
from signet_sync.capture.harnesses.texts import text_of
from signet_sync.capture.stores.files import lines
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT
from signet_sync.formats.timestamps import parse_instant
from signet_sync.migration.session_text import SessionText
from signet_sync.sessions.live_turns import SpokenTurn
from signet_sync.storage import files
from signet_sync.text.sanitizer import sanitize_transcript_v2


def transcript_files(root: str, database: str) -> Iterator[tuple[str, str]]:
    """Yields `memory/<harness>/transcripts/*.jsonl` of a workspace, and of that of the database.

    Each is given as an absolute path and as it is shown. Links are not followed.
    """
    folder = os.path.dirname(database)
    theirs = os.path.dirname(folder) if os.path.basename(folder) == "memory" else folder
    own = os.path.realpath(root)
    for place in dict.fromkeys((own, os.path.realpath(theirs))):
        for harness in files.listing(place, "memory", ""):
            where = f"memory/{harness}/transcripts"
            for name in files.listing(place, where, "") if not harness.endswith(".md") else ():
                if name.endswith(".jsonl"):
                    path = os.path.join(place, where, name)
                    yield path, f"{where}/{name}" if place == own else path


def sessions_in(source: JsonLines, now_us: int) -> Iterator[tuple[SessionText | None, int]]:
    """Yields the sessions of a file with the number of their lines, None for lines that are no turn of a session."""
    for who, group in groupby(source, _who):
        records = list(group)
        yield (None if who is None else _session(who, records, now_us)), len(records)


def read(path: str) -> JsonLines:
    """Returns the records of a file. While they are read, raises `HarnessError` if the file cannot be read."""
    return JsonLines(lines(path))


def _who(record: dict[str, Any]) -> tuple[str, str, str] | None:
    agent_id = text_of(record.get("agent_id")).strip() or DEFAULT_AGENT
    key, session_id = text_of(record.get("session_key")).strip(), text_of(record.get("session_id")).strip()
    if not isinstance(record.get("content"), str) or not (key or session_id) or AGENT_ID.fullmatch(agent_id) is None:
        return None
    return agent_id, session_id or key, key


def _session(who: tuple[str, str, str], records: list[dict[str, Any]], now_us: int) -> SessionText:
    """Makes a session of its records. A line without a speaker goes on with what the one before it said."""
    said: list[SpokenTurn] = []
    for record in records:
        role, text = text_of(record.get("role")).lower(), sanitize_transcript_v2(record["content"])
        if role in ("", "unknown") and said:
            said[-1] = said[-1]._replace(text=f"{said[-1].text}\n{text}")
        else:
            said.append(SpokenTurn("user" if role in ("user", "human") else "assistant", text))
    times = [parse_instant(text_of(record.get("captured_at")).strip()) for record in records]
    known = [min(max(at, 0), now_us) for at in times if at is not None] or [now_us]
    harness, project = (next((text for one in records if (text := text_of(one.get(name)))), None) for name in _NAMES)
    return SessionText(*who, harness, project, min(known), max(known), tuple(said))


_NAMES = ("harness", "project")
