"""Parses OpenCode's sessions: a session's row and its messages with their parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from signet_sync.capture.harnesses.reader import (
    NO_TIME,
    Conversation,
    JsonLines,
    LineReader,
    TranscriptEntry,
    parse_line,
)
from signet_sync.capture.harnesses.texts import (
    drop_injected,
    first_text,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)

_YEAR_10000 = 253_402_300_800_000  # milliseconds since 1970


class MessageRow(NamedTuple):
    """A row of `message` with its rows of `part` (id and data), in order; `data` is JSON text in both."""

    id: str
    data: str
    parts: Sequence[tuple[str, str]]


def read(session: Mapping[str, object], messages: Sequence[MessageRow], *, latest: int | None = None) -> Conversation:
    """Reads a session from its row and messages (tables and part types of OpenCode 1.18); never raises."""
    reader, source = _OpenCodeReader(), JsonLines(())  # its counts: rows, not lines, are read
    for row in _drop_reverted(messages, _read_object(text_of(session.get("revert"))) or {}):
        message, parts = _read_object(row.data), [_read_object(text) for _, text in row.parts]
        source.damaged += message is None
        source.read += message is not None
        if message is not None:
            reader.take({**message, "parts": [part for part in parts if part is not None]})
    reader.session, reader.project = text_of(session.get("id")), text_of(session.get("directory"))
    reader.parent = text_of(session.get("parent_id")) or None
    found = reader.conversation(source, latest)
    return found if messages else found._replace(remark="the session holds no messages")


def _drop_reverted(messages: Sequence[MessageRow], revert: Mapping[str, object]) -> Iterator[MessageRow]:
    """Yields the messages before the point that the user went back to; OpenCode deletes the rest at the next prompt."""
    message_id, part_id = revert.get("messageID"), revert.get("partID")
    for message in messages:
        if message.id != message_id:
            yield message
            continue
        ids = [part[0] for part in message.parts]
        if isinstance(part_id, str) and part_id in ids:
            yield message._replace(parts=message.parts[: ids.index(part_id)])
        return


class _OpenCodeReader(LineReader):
    """Each record is a message with its parts."""

    harness = "opencode"
    subagents = ("task",)

    def take(self, record: Mapping[str, Any]) -> None:
        role, parts, first = record.get("role"), record["parts"], len(self.entries)
        if role not in ("user", "assistant"):
            return
        self.at = _time(record.get("time"), "created")
        words = [
            part for part in parts if part.get("type") == "text" and not (part.get("synthetic") or part.get("ignored"))
        ]
        if role == "user" and words:  # the parts of what a person said are one turn
            at = _time(words[0].get("time"), "start", self.at)
            self.add("user", join_paragraphs(drop_injected(text_of(part.get("text"))) for part in words), at=at)
        for part in parts:
            if part.get("type") != "text":
                self._part(part)
            elif role == "assistant" and part in words:
                self.add("assistant", text_of(part.get("text")), at=_time(part.get("time"), "start", self.at))
        if role == "assistant" and (
            record.get("summary") is True or "compaction" in (record.get("mode"), record.get("agent"))
        ):
            summary = join_paragraphs(entry.text for entry in self.entries[first:] if entry.kind == "assistant")
            del self.entries[first:]
            last = self.entries[-1] if self.entries else None
            # The request for it precedes it: both are one compaction.
            if last is not None and last.kind == "compaction" and not last.text:
                self.at = max(self.at, self.entries.pop().at)
            self.add("compaction", summary)
        elif error := mapping_of(record.get("error")):
            said = (text_of(error.get("name")), text_of(mapping_of(error.get("data")).get("message")))
            self.add("event", ": ".join(filter(None, said)))

    def _part(self, part: Mapping[str, Any]) -> None:
        kind = part.get("type")
        if kind == "tool":
            self._tool(part)
        elif kind == "subtask":
            about = one_line(first_text(part, "description", "prompt"))
            self.entries.append(TranscriptEntry("subagent", self.at, about, name=text_of(part.get("agent"))))
        elif kind == "file":
            self.add("event", f"attached {first_text(part, 'filename', 'mime') or 'a file'}")
        elif kind == "compaction":
            self.add("compaction", "")

    def _tool(self, part: Mapping[str, Any]) -> None:
        state = mapping_of(part.get("state"))
        # The argument gets the name that other harnesses use, from which the line about the call is made.
        given = {"file_path" if key == "filePath" else key: one for key, one in mapping_of(state.get("input")).items()}
        name, call, status = text_of(part.get("tool")), text_of(part.get("callID")), state.get("status")
        failed = status == "error" or mapping_of(state.get("metadata")).get("exit") not in (0, None)
        began = _time(state.get("time"), "start", self.at)
        self.call(call, name, given, failed=failed, at=began)
        if not self.entries[-1].text:
            self.entries[-1] = replace(self.entries[-1], text=one_line(text_of(state.get("title"))))
        if status in ("completed", "error"):
            said = text_of(state.get("error") if status == "error" else state.get("output"))
            self.result(call, said, failed=failed, at=_time(state.get("time"), "end", began))


def _time(times: object, name: str, otherwise: int = NO_TIME) -> int:
    """Returns microseconds for a time that OpenCode stores in milliseconds."""
    value = mapping_of(times).get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _YEAR_10000:
        return int(value * 1000)
    return otherwise


def _read_object(text: str) -> dict[str, Any] | None:
    return parse_line(text.encode("utf-8", "replace"))
