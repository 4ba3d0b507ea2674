"""Codex: command hooks that the person allows, and a rollout in JSON Lines for each session."""

from __future__ import annotations

import json
from contextlib import suppress

from signet_sync.capture.harnesses.facts import Environ, JsonFacts, Payload
from signet_sync.capture.notes import part_of_file

_WINDOWS = frozenset(("cli", "vscode"))  # `exec` is without a person
_FIRST_LINE = 256 * 1024


class _Codex(JsonFacts):
    place, variable = ".codex", "CODEX_HOME"
    folders = ("sessions", "archived_sessions")
    pattern = r"(?:archived_)?sessions/(?:.+/)?rollout-[^/]+\.jsonl"
    pathless = "not to be kept"  # an ephemeral session
    first_prompt = ("codex",)
    memory = ("memories/*.md", "memories/rollout_summaries/*.md")

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns how a session was begun, by the first record of its file, which exists when it starts."""
        with suppress(ValueError, TypeError, KeyError):
            first = part_of_file(payload.get("transcript_path"), _FIRST_LINE).split(b"\n", 1)[0]
            return json.loads(first)["payload"]["source"] in _WINDOWS
        return False


FACTS = _Codex()
