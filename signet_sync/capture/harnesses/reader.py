"""Reads a harness's transcript into a conversation of entries, record by record: what all parsers share.

Each parser says what its own records mean. Nothing that a file holds raises.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

from signet_sync.capture.harnesses.texts import (
    call_line,
    cut_middle,
    drop_injected,
    file_stem,
    first_text,
    mapping_of,
    one_line,
)
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.own_calls import OwnCalls

EntryKind = Literal["user", "assistant", "tool", "result", "event", "compaction", "subagent"]

# The time of an entry whose record has none, until `settle_times` assigns one.
NO_TIME = -1
UNNAMED = "unnamed"
# A past session for a harness: the file below its own folder, its records, and the command that continues it.
Restored = tuple[str, list[dict[str, Any]], str]
# What a line is replaced by that is longer than 64 MiB.
TOO_LONG = b"(too long)\n"


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One event of a session, from one record of its transcript.

    `at` is microseconds since 1970 UTC and never decreases: if a record's time does (or is missing), the time of the
    record before is used; 0 if nothing tells one. `text` is unsanitized: Markdown of a user or assistant, one line
    about a tool call, a tool's result (of a long one the beginning and the end), one line about an event, the summary
    of a compaction (may be empty: a boundary alone), one line about a sub-agent. `name` is the name of a tool or
    sub-agent, or what triggered a compaction. `call` links a result to its tool or sub-agent; `failed` means that the
    tool failed. `omitted` is how many characters were left out of the middle of a result.
    """

    kind: EntryKind
    at: int
    text: str
    name: str = ""
    call: str = ""
    failed: bool = False
    omitted: int = 0


class Conversation(NamedTuple):
    """A parsed transcript file.

    `session_id` is the harness's own id, empty if the file names none. `parent` is the session that started this one if
    it is a sub-agent's file (such files are not sessions of their own), `UNNAMED` if the file does not name it.
    `remark` explains to a person why there are no entries.
    `origin` is the session of which the file says that it is a fork, where the copied records have the time of the
    fork: those up to `copied_until`. `headless` means that the file shows that a program asked, and no person. If its
    folder is gone, the session is of the repository of the folder it was made a `worktree_of`, or of its `remote`.
    `branch` is its last one.
    """

    harness: str
    session_id: str
    project: str | None
    entries: tuple[TranscriptEntry, ...]
    parent: str | None = None
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


# ── times ──


def time_of(value: object) -> int:
    """Returns a record's ISO 8601 time; `NO_TIME` if it has none (or one before 1970)."""
    instant = parse_instant(value) if isinstance(value, str) else None
    return instant if instant is not None and instant >= 0 else NO_TIME


def settle_times(entries: Sequence[TranscriptEntry], latest: int | None = None) -> tuple[TranscriptEntry, ...]:
    """Returns the entries with times that never decrease: the last one so far; before the first known time, that time.

    A time after `latest`, which no clock can have shown yet, is none.
    """
    times = [entry.at if latest is None or entry.at <= latest else NO_TIME for entry in entries]
    last = next((at for at in times if at != NO_TIME), 0)
    placed = []
    for entry, at in zip(entries, times, strict=True):
        last = max(last, at)
        placed.append(entry if entry.at == last else replace(entry, at=last))
    return tuple(placed)


# ── lines ──


class JsonLines:
    """Iterating yields the objects of JSON Lines, one a line, and counts what could not be read.

    `read` counts the objects; `damaged` counts the lines without one (no JSON, nested too deep, another kind of value,
    or one that a running session is in the middle of writing). Invalid UTF-8 becomes U+FFFD.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.read = self.damaged = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._lines:
            if line.isspace() or not line:
                continue
            record = parse_line(line)
            if record is None:
                self.damaged += 1
            else:
                self.read += 1
                yield record

    def why_empty(self) -> str:
        """Returns why no entry came of the file."""
        if self.read:
            return "no conversation in it"
        return "it is no transcript" if self.damaged else "the file is empty"


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Returns the JSON object of a line or document, or None."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").lstrip(" \t\r\n")
    if not text.startswith("{"):
        return None
    try:
        # ValueError also covers integers with more digits than Python accepts.
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# ── records ──


class LineReader(ABC):
    """The session as far as its records were read. A harness's reader says what each means, and may choose at the end.

    `subagents` are the tools that start a sub-agent. `session` is the harness's own id, else its file's name is taken.
    `at` is the time of the record that is being taken. Other members are as in `Conversation`. Formats are not stable
    interfaces: what a reader does not know is left out.
    """

    harness: ClassVar[str]
    subagents: ClassVar[tuple[str, ...]] = ()

    def __init__(self, file_name: str = "") -> None:
        self.stem = file_stem(file_name)
        self.entries: list[TranscriptEntry] = []
        self.tools: dict[str, str] = {}  # names by call
        self.ours = OwnCalls()
        self.session = self.project = self.origin = self.worktree_of = self.remote = self.branch = ""
        self.parent: str | None = None
        self.at = self.copied_until = NO_TIME
        self.headless = False

    @classmethod
    def read(cls, lines: Iterable[bytes], *, file_name: str = "", latest: int | None = None) -> Conversation:
        """Reads the conversation from these lines; `file_name` (a path or its last part) may name the session.

        A time after `latest` is none.
        """
        source, reader = JsonLines(lines), cls(file_name)
        for record in source:
            reader.take(record)
        return reader.conversation(source, latest)

    @abstractmethod
    def take(self, record: Mapping[str, Any]) -> None:
        """Takes the next record."""

    def choose(self) -> list[TranscriptEntry]:
        """Returns the entries that belong to the session, once all records are taken."""
        return self.entries

    def conversation(self, source: JsonLines, latest: int | None) -> Conversation:
        """Returns what was read."""
        entries = self.choose()
        return Conversation(
            self.harness,
            self.session or self.stem,
            self.project or None,
            settle_times(entries, latest),
            self.parent,
            "" if entries else source.why_empty(),
            *(self.origin, self.copied_until, self.headless, self.worktree_of, self.remote, self.branch),
        )

    def add(self, kind: EntryKind, text: str, name: str = "", *, at: int | None = None) -> None:
        """Adds words or an event, without what nobody said; a blank one is none, but a compaction is."""
        text = drop_injected(text)
        text = one_line(text) if kind == "event" else text.strip("\r\n")
        if text.strip() or kind == "compaction":
            self.entries.append(TranscriptEntry(kind, self.at if at is None else at, text, name))

    def call(
        self, key: str, name: str, given: object, alias: str = "", *, failed: bool = False, at: int | None = None
    ) -> None:
        """Adds the call of a tool, which may have another name, too, or the start of a sub-agent."""
        at = self.at if at is None else at
        if name not in self.subagents:
            self.ours.record_call(key, name, given, alias)
            self.tools[key] = name = one_line(name, 80) or "tool"
            self.entries.append(TranscriptEntry("tool", at, call_line(given), name, key, failed))
            return
        asked = mapping_of(given)
        self.tools[key] = name = one_line(first_text(asked, "subagent_type", "agent_type") or "agent", 80)
        about = one_line(first_text(asked, "description", "message", "task", "prompt"))
        self.entries.append(TranscriptEntry("subagent", at, about, name, key, failed))

    def result(self, key: str, text: str, *, name: str = "", failed: bool = False, at: int | None = None) -> None:
        """Adds what a call gave back; of one of ours only that it did."""
        name = (self.tools.get(key, "") if key else "") or name
        kept, omitted = cut_middle(self.ours.filter_result(key, name, drop_injected(text)).strip("\r\n"))
        at = self.at if at is None else at
        self.entries.append(TranscriptEntry("result", at, kept, name, key, failed, omitted))


class TreeReader(LineReader):
    """A reader of records that form a tree: a rewind abandons the branches that do not lead to the last record."""

    def __init__(self, file_name: str = "") -> None:
        super().__init__(file_name)
        self.nodes: list[tuple[str, str, bool, int]] = []

    def place(self, key: str, parent: str, *, linear: bool) -> None:
        """Places a record before its entries are added; one without `parent` is a root, or `linear`: after the last."""
        self.nodes.append((key, parent, linear, len(self.entries)))

    def choose(self) -> list[TranscriptEntry]:
        """Returns the entries from the root to the last record; all of them if a parent is missing."""
        places = {key: place for place, (key, *_) in enumerate(self.nodes) if key}
        if len(places) < sum(1 for key, *_ in self.nodes if key):
            return self.entries
        branch: list[int] = []
        place = len(self.nodes) - 1
        while place >= 0:
            _, parent, linear, _ = self.nodes[place]
            branch.append(place)
            is_root = not linear and parent in ("", self.session)
            if len(branch) > len(self.nodes) or not (linear or is_root or parent in places):
                return self.entries
            place = place - 1 if linear else -1 if is_root else places[parent]
        ends = [*(first for *_, first in self.nodes[1:]), len(self.entries)]
        return [entry for place in reversed(branch) for entry in self.entries[self.nodes[place][3] : ends[place]]]
