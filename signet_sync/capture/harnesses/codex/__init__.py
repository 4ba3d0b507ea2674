"""Codex: command hooks that the person allows, and a rollout in JSON Lines for each session."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress

from signet_sync.host.harness_settings.facts import Environ, JsonFacts, Payload, part_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WINDOWS = frozenset(("cli", "vscode"))  # `exec` is without a person
_FIRST_LINE = 256 * 1024
# It passes hardly any of its environment to a server, which would otherwise use other paths than a hook.
_PASSED = ("SIGNET_CONFIG", "SIGNET_DB", "SIGNET_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


class _Codex(JsonFacts):
    place, variable = ".codex", "CODEX_HOME"
    folders = ("sessions", "archived_sessions")
    pattern = r"(?:archived_)?sessions/(?:.+/)?rollout-[^/]+\.jsonl"
    pathless = "not to be kept"  # an ephemeral session
    first_prompt = ("codex",)
    memory = ("memories/*.md", "memories/rollout_summaries/*.md")
    hooks = "hooks.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),
        ("PreToolUse", 1, "Bash|apply_patch"),  # what comes after a tool does not say whether it failed
        ("PostCompact", 10, ""),
        ("Stop", 10, ""),
        ("SessionEnd", 3, ""),  # Codex cuts a longer time to three seconds and prints a warning at every start
    )
    servers = "config.toml"
    asks = "Codex asks you once, at its next start, whether these hooks may run; until then codex exec omits them"

    def settings_folder(self, environ: Environ) -> str:
        """Returns its folder as Codex names it: it resolves `CODEX_HOME`, but not the default path."""
        place = self.own(environ)
        return os.path.realpath(place) if environ.get("CODEX_HOME") else place

    def server_way(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        return ("mcp_servers",)

    def fresh_entry(self, environ: Environ) -> dict[str, Any]:
        passed = [each for each in _PASSED if environ.get(each)]
        return {"env_vars": passed} if passed else {}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns how a session was begun, by the first record of its file, which exists when it starts."""
        with suppress(ValueError, TypeError, KeyError):
            first = part_of_file(payload.get("transcript_path"), _FIRST_LINE).split(b"\n", 1)[0]
            return json.loads(first)["payload"]["source"] in _WINDOWS
        return False


FACTS = _Codex()
