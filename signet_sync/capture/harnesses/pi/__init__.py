"""pi: an extension of ours, and a JSON Lines file for each session."""

from __future__ import annotations

from signet_sync.capture.harnesses.facts import Environ, HarnessFacts, Payload


class _Pi(HarnessFacts):
    place, variable = ".pi/agent", "PI_CODING_AGENT_DIR"
    folders = ("sessions",)
    pattern = r"sessions/[^/]+/[^/]+\.jsonl"
    pathless = "not to be kept"  # `--no-session`
    first_prompt = ("pi",)

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our extension sees the mode


FACTS = _Pi()
