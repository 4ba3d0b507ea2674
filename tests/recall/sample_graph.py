"""A small vault in which everything stands that the graph knows: long and short sessions, segments, two agents."""

from __future__ import annotations

from typing import Any

import artifacts_fixture as made
from workbench import Vault

LONG = "5e551001-0000-4000-8000-000000000001"
SEGMENTED = "5e551002-0000-4000-8000-000000000002"
COMPACTED = "5e551003-0000-4000-8000-000000000003"
TRANSCRIPT_ONLY = "5e551004-0000-4000-8000-000000000004"
SUMMARY_ONLY = "5e551005-0000-4000-8000-000000000005"
NOISE = "test-1"
SESSIONS = (LONG, SEGMENTED, COMPACTED, TRANSCRIPT_ONLY, SUMMARY_ONLY)
AGENTS = ("default", "scout")


def talk(topic: str, turns: int, words: int = 30, *, day: str = "2026-03-20") -> str:
    """A transcript whose turns all differ."""
    return "".join(
        f"## {'Assistant' if turn % 2 else 'User'} · {day}T10:{turn:02d}:00.000Z\n\n"
        f"{topic} turn {turn}: {' '.join(f'{topic}{turn}x{word}' for word in range(words))}.\n\n"
        for turn in range(turns)
    ).rstrip("\n")


def digest(topic: str, *, storage: str, step: str) -> str:
    return (
        f"# {topic}\n\nThe {topic} was settled.\n\n## Decisions\n\n- Storage: {storage}\n"
        f"- The {topic} ends after five tries.\n\n## Next steps\n\n- {step}\n"
    )


def fill(vault: Vault, agent: str) -> None:
    def put(kind: str, session: str, at: str, body: str, **more: Any) -> None:
        vault.put(made.content(kind, agent_id=agent, session_id=session, captured_at=at, body=body, **more))

    put("transcript", LONG, "2026-03-17T10:00:00.000Z", talk("queue", 24, 60, day="2026-03-17"))
    put("summary", LONG, "2026-03-17T10:00:00.000Z", digest("queue", storage="JSON files", step="measure the queue"))
    for day in ("18", "19"):
        at = f"2026-03-{day}T10:00:00.000Z"
        put("transcript", SEGMENTED, at, talk(f"lease{day}", 4, day=at[:10]))
        put("summary", SEGMENTED, at, digest(f"lease{day}", storage="SQLite", step="write the lease down"))
    put("transcript", COMPACTED, "2026-03-24T10:00:00.000Z", talk("ledger", 6, day="2026-03-24"))
    put("compaction", COMPACTED, "2026-03-24T10:00:00.000Z", digest("ledger", storage="SQLite", step="close the books"))
    put("transcript", TRANSCRIPT_ONLY, "2026-03-25T10:00:00.000Z", talk("glass", 3, day="2026-03-25"))
    put("summary", SUMMARY_ONLY, "2026-03-26T10:00:00.000Z", digest("lamp", storage="SQLite", step="light it"))
    put("transcript", NOISE, "2026-03-26T11:00:00.000Z", talk("noise", 2), project=None, harness="test")
