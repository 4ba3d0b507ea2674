"""Composes commands of ours for the page to show and a person to copy; the page itself runs nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.history.forget import filter_line
from signet_sync.web.request import ViewRequest

# A placeholder for a person's own words.
WORDS = "…"


def command_line(request: ViewRequest, *words: str, own_agent: bool = True) -> str:
    """Returns a command line that can be pasted into a shell, whatever its words contain.

    It names the agent if that is not the default one and the command accepts it (`own_agent`).
    """
    agent = ["--agent", request.agent] if own_agent and request.agent != DEFAULT_AGENT else []
    return request.site.place.command_line(shlex.join([*words, *agent]))


def history_remedy(request: ViewRequest, paths: Iterable[str]) -> tuple[str, str]:
    """Returns a sentence and the command that takes files out of the git history which still contains them."""
    place = request.site.place
    line = filter_line(place.root, place.state().key, paths)
    where = " In a fresh clone of the repository, this takes it out:" if line else " This deletes the history:"
    return where, line or command_line(request, "history", "forget")
