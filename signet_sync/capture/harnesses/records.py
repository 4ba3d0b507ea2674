"""Defines the form of all parsed transcripts: a conversation of entries, each from one record, each with one time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from signet_sync.formats.timestamps import parse_instant

EntryKind = Literal["user", "assistant", "tool", "result", "event", "compaction", "subagent"]

# The time of an entry whose record has none, until `settle_times` assigns one.
NO_TIME = -1


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One event of a session, from one record of its transcript.

    `at` is microseconds since 1970 UTC and never decreases: if a record's time does (or is missing), the time of the
    record before is used; 0 if nothing tells one. `text` is unsanitized: Markdown of a user or assistant, one line
    about a tool call, a tool's result (of a long one the beginning and the end), one line about an event, the summary
    of a compaction (may be empty: a boundary alone), one line about a sub-agent. `name` is the name of a tool or
    sub-agent, or what triggered a compaction. `call` links a result to its tool or sub-agent; `failed` means that the
    tool failed. `omitted` is how many characters were left out of the middle of a result. `recorded` is the record's
    own time if that is not `at`.
    """

    kind: EntryKind
    at: int
    text: str
    name: str = ""
    call: str = ""
    failed: bool = False
    omitted: int = 0
    recorded: int | None = field(default=None, compare=False)

    @property
    def recorded_at(self) -> int:
        """Returns the time that the record itself has, `NO_TIME` if it has none."""
        return self.at if self.recorded is None else self.recorded


class Conversation(NamedTuple):
    """A parsed transcript file.

    `session_id` is the harness's own id, empty if the file names none. `parent` is the session that started this one if
    it is a sub-agent's file (such files are not sessions of their own), `UNNAMED` if the file does not name it.
    `begins` is the header's time (`NO_TIME` if there is none). `unknown`
    counts records whose type is not on the allow-list, `damaged` counts lines without a JSON object; `torn` means that
    the last line is incomplete (the session may still be writing it). `remark` explains to a person why there are no
    entries. `origin` is the session of which the file says that it is a fork, where the copied records have the time of
    the fork: those up to `copied_until`. `headless` means that the file shows that a program asked, and no person. If
    its folder is gone, the session is of the repository of the folder it was made a `worktree_of`, or of its `remote`.
    `branch` is the last one that it names.
    """

    harness: str
    session_id: str
    project: str | None
    entries: tuple[TranscriptEntry, ...]
    title: str | None = None
    parent: str | None = None
    begins: int = NO_TIME
    unknown: Mapping[str, int] = {}
    damaged: int = 0
    torn: bool = False
    remark: str = ""
    origin: str = ""
    copied_until: int = NO_TIME
    headless: bool = False
    worktree_of: str = ""
    remote: str = ""
    branch: str = ""

    @property
    def turns(self) -> int:
        """Counts the entries with words of the user or the assistant; a session without any is not worth keeping."""
        return sum(1 for entry in self.entries if entry.kind in ("user", "assistant") and entry.text.strip())


UNNAMED = "unnamed"


def time_of(value: object) -> int:
    """Returns a record's ISO 8601 time; `NO_TIME` if it has none (or one before 1970)."""
    instant = parse_instant(value) if isinstance(value, str) else None
    return instant if instant is not None and instant >= 0 else NO_TIME


def settle_times(entries: Iterable[TranscriptEntry], begins: int = NO_TIME) -> tuple[TranscriptEntry, ...]:
    """Returns the entries with times that never decrease: the latest so far; before the first known time, that time.

    If none is known, all are of the time when the session began, else 0.
    """
    found = tuple(entries)
    latest = next((entry.at for entry in found if entry.at != NO_TIME), max(begins, 0))
    placed = []
    for entry in found:
        latest = max(latest, entry.at)
        placed.append(entry if entry.at == latest else replace(entry, at=latest, recorded=entry.recorded_at))
    return tuple(placed)


def drop_future_times(found: Conversation, latest: int, begins: int) -> Conversation:
    """Returns the conversation without the times after `latest`, which no clock can have shown yet.

    A record without a time has that of the one before; if none has any, all are of the time when the session `begins`.
    """
    times = (entry.recorded_at if entry.recorded_at <= latest else NO_TIME for entry in found.entries)
    unsettled = (replace(entry, at=at, recorded=at) for entry, at in zip(found.entries, times, strict=True))
    return found._replace(entries=settle_times(unsettled, begins))


def is_dated(found: Conversation) -> bool:
    """Returns whether any record has a time."""
    return any(entry.recorded_at != NO_TIME for entry in found.entries)
