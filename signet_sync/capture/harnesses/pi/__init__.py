"""pi: an extension of ours, and a JSON Lines file for each session."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.facts import Environ, HarnessFacts, Payload
from signet_sync.host.folders import home


class _Pi(HarnessFacts):
    folders = ("sessions",)
    pattern = r"sessions/[^/]+/[^/]+\.jsonl"
    pathless = "not to be kept"  # `--no-session`
    first_prompt = ("pi",)

    def homes(self, environ: Environ) -> tuple[str, ...]:
        return (environ.get("PI_CODING_AGENT_DIR") or os.path.join(home(environ), ".pi/agent"),)

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our extension sees the mode


FACTS = _Pi()
