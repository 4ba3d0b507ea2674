"""Composes commands of ours for the page to show and a person to copy; the page itself runs nothing."""

from __future__ import annotations

import shlex

from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.web.request import ViewRequest

# A placeholder for a person's own words.
WORDS = "…"


def command_line(request: ViewRequest, *words: str, own_agent: bool = True) -> str:
    """Returns a command line that can be pasted into a shell, whatever its words contain.

    It names the agent if that is not the default one and the command accepts it (`own_agent`).
    """
    agent = ["--agent", request.agent] if own_agent and request.agent != DEFAULT_AGENT else []
    return request.site.place.command_line(shlex.join([*words, *agent]))
