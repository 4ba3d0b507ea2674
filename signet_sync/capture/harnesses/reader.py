"""Reads a harness's transcript record by record: what all parsers share. Each says what its own records mean."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from signet_sync.capture.harnesses.records import NO_TIME, Conversation, TranscriptEntry, settle_times
from signet_sync.capture.harnesses.texts import (
    call_line,
    cut_middle,
    drop_injected,
    file_stem,
    mapping_of,
    one_line,
    text_of,
)
from signet_sync.text.own_calls import OwnCalls

# What a line is replaced by that is longer than 64 MiB.
TOO_LONG = b"(too long)\n"
UNKNOWN_KINDS = 100


class JsonLines:
    """Iterating yields the objects of JSON Lines, one a line, and counts what could not be read.

    `read` counts the objects; `damaged` counts the lines without one (no JSON, nested too deep, another kind of value),
    except the last line: that sets `torn`, because a running session may be in the middle of writing it. Invalid UTF-8
    becomes U+FFFD. `blank` counts the lines without a character, `too_long` those that were too long to read. No input
    raises.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.read = self.damaged = self.blank = self.too_long = 0
        self.torn = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._lines:
            if line.isspace() or not line:
                self.blank += 1
                continue
            self.too_long += line == TOO_LONG
            record = parse_line(line)
            self.damaged += self.torn
            self.torn = record is None
            if record is not None:
                self.read += 1
                yield record

    def why_empty(self) -> str:
        """Returns why no entry came of the file."""
        if self.read:
            records = "record" if self.read == 1 else "records"
            return f"no conversation in it: {self.read:,} {records} of bookkeeping only"
        if damaged := self.damaged + self.torn:
            why = f", {self.too_long:,} of them longer than 64 MiB" if self.too_long else ""
            return f"not a transcript: no JSON object in {damaged:,} {'line' if damaged == 1 else 'lines'}{why}"
        return "nothing but blank lines in it" if self.blank else "the file is empty"


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


class Reader:
    """The session as far as it was read. A harness's reader may choose among its entries at the end.

    `subagents` are the tools that start a sub-agent. `session` is the harness's own id, else its file's name is taken.
    `unknown` counts records of unknown types: at most `UNKNOWN_KINDS` names are kept, for hostile files. Nothing that
    a file holds raises.
    """

    harness: ClassVar[str]
    subagents: ClassVar[tuple[str, ...]] = ()

    def __init__(self, file_name: str = "") -> None:
        self.stem = file_stem(file_name)
        self.entries: list[TranscriptEntry] = []
        self.tools: dict[str, str] = {}  # names by call
        self.ours = OwnCalls()
        self.unknown: dict[str, int] = {}
        self.session = self.project = self.title = self.branch = ""
        self.parent: str | None = None
        self.begins = NO_TIME

    def chosen(self) -> Sequence[TranscriptEntry]:
        """Returns the entries that belong to the session."""
        return self.entries

    def conversation(self, source: JsonLines) -> Conversation:
        """Returns what was read."""
        entries = self.chosen()
        return Conversation(
            self.harness,
            self.session or self.stem,
            self.project or None,
            settle_times(entries, self.begins),
            title=self.title or None,
            parent=self.parent,
            begins=self.begins,
            unknown=self.unknown,
            damaged=source.damaged,
            torn=source.torn,
            remark="" if entries else source.why_empty(),
            branch=self.branch,
        )

    def count_unknown(self, kind: object) -> None:
        """Counts a record of an unknown type."""
        name = kind[:80] if isinstance(kind, str) and kind else "(none)"
        if name not in self.unknown and len(self.unknown) >= UNKNOWN_KINDS:
            name = "(others)"
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def call(
        self, key: str, name: str, given: object, at: int, server: str = "", *, failed: bool = False
    ) -> TranscriptEntry:
        """Returns the call of a tool, of an MCP `server` if that is named apart, or the start of a sub-agent."""
        if name not in self.subagents:
            self.ours.called(key, name, given, server)
            self.tools[key] = name = one_line(name, 80) or "tool"
            return TranscriptEntry("tool", at, call_line(given), name, key, failed)
        asked = mapping_of(given)
        self.tools[key] = name = one_line(first_text(asked, "subagent_type", "agent_type") or "agent", 80)
        about = one_line(first_text(asked, "description", "message", "task", "prompt"))
        return TranscriptEntry("subagent", at, about, name, key, failed)

    def result(self, key: str, text: str, at: int, *, name: str = "", failed: bool = False) -> TranscriptEntry:
        """Returns what a call gave back; of one of ours only that."""
        name = (self.tools.get(key, "") if key else "") or name
        kept, omitted = cut_middle(self.ours.kept(key, name, drop_injected(text)).strip("\r\n"))
        return TranscriptEntry("result", at, kept, name, key, failed, omitted)


class LineReader(Reader, ABC):
    """A reader of JSON Lines, which says what each record means."""

    @classmethod
    def read(cls, lines: Iterable[bytes], *, file_name: str = "") -> Conversation:
        """Reads the conversation from these lines; `file_name` (a path or its last part) may name the session."""
        source, reader = JsonLines(lines), cls(file_name)
        for record in source:
            reader.take(record)
        return reader.conversation(source)

    @abstractmethod
    def take(self, record: Mapping[str, Any]) -> None:
        """Takes the next record."""


def first_text(given: Mapping[str, Any], *names: str) -> str:
    """Returns the first of some members that is a text with characters."""
    return next(filter(None, (text_of(given.get(name)) for name in names)), "")


# ── records that form a tree ──


class TreeRecord(NamedTuple):
    """A record's entries and its position in the tree. Without `parent` it is a root or follows the previous record."""

    id: str
    parent: str
    after_the_one_before: bool
    entries: Sequence[TranscriptEntry]


def choose_branch(records: Sequence[TreeRecord], root: object = None) -> list[TranscriptEntry]:
    """Returns the entries from the root to the last record: a rewind abandons the other branches.

    All of them if a parent is missing; `root` is no record's id.
    """
    places: dict[str, int] = {record.id: place for place, record in enumerate(records) if record.id}
    everything = [entry for record in records for entry in record.entries]
    if len(places) < sum(1 for record in records if record.id):
        return everything
    kept: list[TreeRecord] = []
    place = len(records) - 1
    while place >= 0:
        record = records[place]
        kept.append(record)
        if len(kept) > len(records):
            return everything
        if record.after_the_one_before:
            place -= 1
        elif not record.parent or record.parent == root:
            break
        elif record.parent in places:
            place = places[record.parent]
        else:
            return everything
    return [entry for record in reversed(kept) for entry in record.entries]
