"""Describes a harness in one class, which a hook imports: where its transcripts are, what it says and hears."""

from __future__ import annotations

import os
from collections.abc import Mapping

from signet_sync.host.folders import home

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from typing import Literal

Environ = Mapping[str, str]
Payload = Mapping[str, object]
DEPTH = 16  # a folder that a person names may be a tree; a deeper one is something else, or hostile


class HarnessFacts:
    """What is particular to one harness: the defaults are those of a program with a file for each session.

    Its own folder is `place` below the person's home, or the one that `variable` names. In each of its homes,
    transcripts are in `folders` (which a person may have linked elsewhere), at most `depth` folders deeper, under a
    path that matches `pattern`; `ending` is that of a transcript's name, also in copies elsewhere. `silence` is
    printed instead of nothing. `pathless` is what an event without a transcript's path means. A harness that
    `starts_at_prompts` gets what belongs to its start with the next prompt; after a compaction, so does one that
    never `reports_compaction`. If it `asks_in_compaction`, what is printed before one is added to the request for
    the summary. Without a named chat, others may read one that `carries_chats`. `first_prompt` are the words of a
    command that starts the program with the prompt that follows them. `memory` is what it remembers by itself, as
    patterns of paths below its homes, `memory_beside` below the folder of a transcript. It tells a session itself
    what its `instructions` say, files of the session's folder. Where no event tells that a command failed, `failed`
    matches what it gave back, the members `result` of the event of a tool that ran.
    """

    place = ""
    variable = ""
    folders: tuple[str, ...] = ()
    pattern = ""
    ending = r"\.jsonl$"
    depth = DEPTH
    silence = ""
    pathless: Literal["an error", "a database", "not to be kept"] = "an error"
    starts_at_prompts = False
    reports_compaction = True
    asks_in_compaction = False
    carries_chats = False
    first_prompt: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ("AGENTS.md",)
    memory: tuple[str, ...] = ()
    memory_beside: tuple[str, ...] = ()
    result = ("", "")
    failed = ""

    def homes(self, environ: Environ) -> tuple[str, ...]:
        """Returns the folders of which one exists if the harness is present; the first one is its own."""
        return (environ.get(self.variable) or os.path.join(home(environ), self.place),)

    def own(self, environ: Environ) -> str:
        """Returns its own folder."""
        return self.homes(environ)[0]

    def payload(self, given: Payload, environ: Environ) -> Payload:
        """Returns a hook's document with Claude Code's names."""
        return given

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether a person sits before the session of a hook's document; False if in doubt."""
        return False

    def printed(self, event: str, text: str) -> str:
        """Returns what a session gets in the form that the harness accepts: the text, or Claude Code's JSON."""
        return text


class JsonFacts(HarnessFacts):
    """A harness that takes what a session gets in Claude Code's JSON."""

    def printed(self, event: str, text: str) -> str:
        import json

        # No other keys: Codex treats an unknown key as an error.
        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
