"""Defines what Signet holds of a session, reads its transcripts of one turn a line, and finds whether they are here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from signet_sync.capture.harnesses.jsonl import JsonLines
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.records import EntryKind, TranscriptEntry
from signet_sync.capture.harnesses.texts import text_of
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions.live_turns import missing_in, turns_in
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.turn_heads import Speaker, speaker_of

_KINDS: dict[Speaker, EntryKind] = {"user": "user", "assistant": "assistant", "harness": "event", "tool": "result"}


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session's words, sanitized. Times are microseconds since 1970 UTC."""

    agent_id: str
    session_id: str
    session_key: str
    harness: str | None
    project: str | None
    started_us: int
    ended_us: int
    text: str


def sessions_in(source: JsonLines, now_us: int) -> Iterator[tuple[SessionText | None, int]]:
    """Yields the sessions of a file with the number of their lines, None for lines that are no turn of a session."""
    for who, group in groupby(source, _who):
        records = list(group)
        if who is None:
            yield None, len(records)
            continue
        times = [parse_instant(text_of(record.get("captured_at")).strip()) for record in records]
        known = [min(max(at, 0), now_us) for at in times if at is not None] or [now_us]
        said: list[TranscriptEntry] = []
        for record in records:
            role, text = text_of(record.get("role")).lower(), sanitize_transcript_v2(record["content"])
            if role in ("", "unknown") and said:  # it goes on with what the line before it said
                said[-1] = replace(said[-1], text=f"{said[-1].text}\n{text}")
            else:
                said.append(TranscriptEntry(_KINDS[speaker_of(role or "assistant")], known[0], text, name=role))
        harness, project = (
            next((text for one in records if (text := text_of(one.get(name)))), None) for name in ("harness", "project")
        )
        text = render([one for one in said if one.text.strip()])
        yield SessionText(*who, harness, project, min(known), max(known), text), len(records)


def _who(record: dict[str, Any]) -> tuple[str, str, str] | None:
    agent_id = text_of(record.get("agent_id")).strip() or DEFAULT_AGENT
    key, session_id = text_of(record.get("session_key")).strip(), text_of(record.get("session_id")).strip()
    if not isinstance(record.get("content"), str) or not (key or session_id) or AGENT_ID.fullmatch(agent_id) is None:
        return None
    return agent_id, session_id or key, key


def is_held(transcript: str, bodies: Sequence[str]) -> bool:
    """Returns whether some texts contain each turn of a transcript, or each line."""
    said = turns_in(transcript) if bodies else []
    return (bool(said) and not missing_in("\n\n".join(bodies), said)) or holds(transcript, bodies)


def holds(text: str, bodies: Sequence[str]) -> bool:
    """Returns whether each line of a text is a line, or part of one, in some texts."""
    folded = "\n".join(" ".join(line.split()) for body in bodies for line in body.split("\n"))
    return bool(folded) and all(" ".join(line.split()) in folded for line in text.split("\n"))
