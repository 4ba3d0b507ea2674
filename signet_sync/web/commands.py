"""Commands of ours, as the page shows them to be copied: it never does anything itself."""

from __future__ import annotations

import shlex

from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.web.request import Ask

# Where a person puts words of their own.
WORDS = "…"


def told(ask: Ask, *words: str, own_agent: bool = True) -> str:
    """A command line that can be pasted into a shell, whatever its words hold.

    It names the agent where that is another one than usual and the command takes it (`own_agent`).
    """
    agent = ["--agent", ask.agent] if own_agent and ask.agent != DEFAULT_AGENT else []
    return ask.site.place.command_line(shlex.join([*words, *agent]))
