"""What every harness's transcript is turned into: a conversation of entries, each from one record with one time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from signet_sync.formats.timestamps import parse_instant

EntryKind = Literal["user", "assistant", "tool", "result", "event", "compaction", "subagent"]

# The time of an entry whose record has none, until `settled` gives it one.
NO_TIME = -1

UNKNOWN_KINDS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened in a session, from one record of its transcript.

    `at` is microseconds since 1970 UTC and never runs backwards: where a record's time does (or is missing), the time
    of the record before counts; 0 where no record has one. `text` is raw, unsanitized text: Markdown of a user or
    assistant, one line about a tool call, a tool's result (of a long one the beginning and the end), one line about an
    event, the summary of a compaction (may be empty: a boundary alone), one line about a sub-agent. `name` is a tool's
    or sub-agent's name, of a compaction what triggered it. `call` links a result to its tool or sub-agent, `failed`
    says that the tool did. `omitted` is how many characters of a result were left out of its middle.
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
    where it is a sub-agent's file (such files are no sessions of their own), `UNNAMED` where the file does not say
    which. `started_at` and `ended_at` are the times of the first and last entry, None where no record has a time.
    `unknown` counts records of types that are not on the allow-list, `damaged` lines that hold no JSON object; `torn`
    says that the last line ends in the middle (the session may still be writing it). `remark` says for a person why
    there are no entries, where there are none.
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


UNNAMED = "unnamed"


def time_of(value: object) -> int:
    """The instant that a record carries as ISO 8601; `NO_TIME` where it carries none (or one before 1970)."""
    instant = parse_instant(value) if isinstance(value, str) else None
    return instant if instant is not None and instant >= 0 else NO_TIME


def settled(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries with times that never run backwards: the latest so far; before the first known one, that one."""
    found = tuple(entries)
    latest = next((entry.at for entry in found if entry.at != NO_TIME), 0)
    placed = []
    for entry in found:
        latest = max(latest, entry.at)
        placed.append(entry if entry.at == latest else replace(entry, at=latest))
    return tuple(placed)


def span_of(entries: Iterable[Entry]) -> tuple[int | None, int | None]:
    """The times of the first and last of these entries, before they were settled; None where none has a time."""
    times = [entry.at for entry in entries if entry.at != NO_TIME]
    return (times[0], max(times)) if times else (None, None)


def count_unknown(unknown: dict[str, int], kind: object) -> None:
    """Count one record of a type that nobody knows; of hostile files no more than `UNKNOWN_KINDS` names are kept."""
    name = kind[:80] if isinstance(kind, str) and kind else "(none)"
    if name not in unknown and len(unknown) >= UNKNOWN_KINDS:
        name = "(others)"
    unknown[name] = unknown.get(name, 0) + 1


def remark_on(entries: int, read: int, damaged: int) -> str:
    """Why a file gave no entries; empty where it gave some."""
    if entries:
        return ""
    if read:
        return f"no conversation in it: {read:,} {'record' if read == 1 else 'records'} of bookkeeping only"
    return f"not a transcript: none of {damaged:,} lines is a JSON object" if damaged else "the file is empty"
