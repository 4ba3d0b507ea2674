"""Describes a harness in one class, which a hook imports: its transcripts, what it says and hears, its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from signet_sync.host.harness_settings.harness import Program

Environ = Mapping[str, str]
Payload = Mapping[str, object]
DEPTH = 16  # a folder that a person names may be a tree; a deeper one is something else, or hostile


def home(environ: Environ) -> str:
    """Returns the home folder of the user."""
    return environ.get("HOME") or os.path.expanduser("~")


def part_of_file(path: object, size: int) -> bytes:
    """Returns so many bytes of a file's beginning, or of its end if `size` is negative; nothing if that fails."""
    with suppress(OSError, ValueError):
        handle = os.open(path if isinstance(path, str) else "", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(handle, abs(size), max(os.fstat(handle).st_size + size, 0) if size < 0 else 0)
        finally:
            os.close(handle)
    return b""


class HarnessFacts:
    """What is particular to one harness: the defaults are those of a program with a file for each session.

    Its own folder is `place` below the person's home, or the one that `variable` names. In each of its homes,
    transcripts are in `folders` (which a person may have linked elsewhere), at most `depth` folders deeper, under a
    path that matches `pattern`; `ending` is that of a transcript's name, also in copies elsewhere. One that
    `keeps_database` has all sessions in such a file. `silence` is printed instead of nothing. `pathless` is what an
    event without a transcript's path means. A harness that `starts_at_prompts` gets what belongs to its start with the
    next prompt; after a compaction, so does one that never `reports_compaction`. Without a named chat, others may read
    one that `carries_chats`. `first_prompt` are the words of a command that starts the program with the prompt that
    follows them. `memory` is what it remembers by itself, as patterns of paths below its homes, `memory_beside` below
    the folder of a transcript. It tells a session itself what its `instructions` say, files of the session's folder.
    Where no event tells that a command failed, `failed` matches what it gave back, the members `result` of the event of
    a tool that ran. `parser` is the harness whose transcripts its own are like.

    Of what we write below its folder of settings: the file `hooks` has a handler for each of `events`, with the seconds
    that it may take and the tools that it is for. A harness without such a file runs `scripts` at `script_events`:
    their places, the main one first, and what is shipped for them beside its parser. One with neither has no
    hooks. `servers` is the file that lists MCP servers; `asks` is what the harness itself will ask the person.
    """

    place = ""
    variable = ""
    folders: tuple[str, ...] = ()
    pattern = ""
    ending = r"\.jsonl$"
    depth = DEPTH
    keeps_database = False
    silence = ""
    pathless: Literal["an error", "a database", "not to be kept"] = "an error"
    starts_at_prompts = False
    reports_compaction = True
    carries_chats = False
    first_prompt: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ("AGENTS.md",)
    memory: tuple[str, ...] = ()
    memory_beside: tuple[str, ...] = ()
    result = ("", "")
    failed = ""
    parser = ""
    hooks = ""
    events: tuple[tuple[str, int, str], ...] = ()
    scripts: tuple[tuple[str, str], ...] = ()
    script_events: tuple[str, ...] = ()
    servers = ""
    asks = ""

    def homes(self, environ: Environ) -> tuple[str, ...]:
        """Returns the folders of which one exists if the harness is present; the first one is its own."""
        return (environ.get(self.variable) or os.path.join(home(environ), self.place),)

    def own(self, environ: Environ) -> str:
        """Returns its own folder."""
        return self.homes(environ)[0]

    def settings_folder(self, environ: Environ) -> str:
        """Returns its own folder of settings."""
        return self.own(environ)

    def handler(self, command: str, seconds: int) -> dict[str, Any]:
        """Returns the handler of an event that calls a command."""
        return {"type": "command", "command": command, "timeout": seconds}

    def server_file(self, environ: Environ) -> str:
        """Returns the file that lists its MCP servers."""
        return os.path.join(self.settings_folder(environ), self.servers)

    def server_way(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the members of that file that lead to the list."""
        return ("mcpServers",)

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        """Returns the entry for the words that start a server."""
        return {"command": words[0], "args": list(words[1:])}

    def fresh_entry(self, environ: Environ) -> dict[str, Any]:
        """Returns what only a new entry has: a person's later changes are kept."""
        return {}

    def manual_steps(self, program: Program, flags: Sequence[str] | None) -> tuple[str, ...]:
        """Returns what a person has to do after an installation."""
        return ()

    def leftovers(self, environ: Environ) -> tuple[str, ...]:
        """Returns what a person has to do after a removal."""
        return ()

    def payload(self, given: Payload, environ: Environ) -> Payload:
        """Returns a hook's document with Claude Code's names."""
        return given

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether a person sits before the session of a hook's document; False if in doubt."""
        return False

    def format_output(self, event: str, text: str) -> str:
        """Returns what a session gets in the form that the harness accepts: the text, or Claude Code's JSON."""
        return text


class JsonFacts(HarnessFacts):
    """A harness that takes what a session gets in Claude Code's JSON."""

    def format_output(self, event: str, text: str) -> str:
        import json

        # No other keys: Codex treats an unknown key as an error.
        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
