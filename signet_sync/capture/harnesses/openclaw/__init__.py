"""OpenClaw: a hook of ours in its gateway, and (in older versions) a JSON Lines file for each session."""

from __future__ import annotations

from signet_sync.capture.harnesses.facts import HarnessFacts

# Names of transcripts that ended by a reset or were deleted.
ARCHIVED = r"\.jsonl\.(?:reset|deleted)\.[0-9A-Za-z.:-]{1,40}$"


class _OpenClaw(HarnessFacts):
    place = ".openclaw"
    folders = ("agents",)
    pattern = rf"agents/[^/]+/sessions/[^/]+(?:\.jsonl|{ARCHIVED})"
    ending = rf"\.jsonl$|{ARCHIVED}"
    pathless = "a database"
    instructions = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")
    carries_chats = True
    memory = ("workspace/MEMORY.md", "workspace/USER.md", "workspace/memory/*.md")


FACTS = _OpenClaw()
