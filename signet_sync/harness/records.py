"""What every harness's transcript is turned into: a conversation of entries, each from one record with one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

EntryKind = Literal["user", "assistant", "tool", "result", "event", "compaction", "subagent"]

# A tool's result is an excerpt anyway; what is longer is cut while it is read, so that memory follows the words.
RESULT_LIMIT = 4_000

# What we inject stands between these marks, and is taken out again when the transcript is read: MEMORY.md must never
# feed on itself.
OPENING, CLOSING = "<signet-memory>", "</signet-memory>"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened in a session, from one record of its transcript.

    `at` is microseconds since 1970 UTC and never runs backwards: where a record's time does (or is missing), the time
    of the record before counts. `text` is raw, unsanitized text: Markdown of a user or assistant, one line about a tool
    call, (the beginning of) a tool's result, one line about an event, the summary of a compaction (may be empty: a
    boundary alone), one line about a sub-agent. `name` is a tool's or sub-agent's name, `call` links a result to its
    tool, `failed` says that the tool did. `omitted` is how many characters of a result were left out.
    """

    kind: EntryKind
    at: int
    text: str
    name: str = ""
    call: str = ""
    failed: bool = False
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """A transcript file, read.

    `session_id` is the harness's own id, empty where the file names none. `parent` is the session that started this one
    where it is a sub-agent's file (such files are no sessions of their own). `unknown` counts records of types that are
    not on the allow-list, `damaged` lines that are no JSON; `torn` says that the last line ends in the middle (the
    session may still be writing it). `remark` says for a person why there are no entries, where there are none.
    """

    harness: str
    session_id: str
    project: str | None
    entries: tuple[Entry, ...]
    title: str | None = None
    parent: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    unknown: Mapping[str, int] = field(default_factory=dict)
    damaged: int = 0
    torn: bool = False
    remark: str = ""

    @property
    def turns(self) -> int:
        """How many entries are words of the user or the assistant; a session without any is not worth keeping."""
        return sum(1 for entry in self.entries if entry.kind in ("user", "assistant") and entry.text.strip())
