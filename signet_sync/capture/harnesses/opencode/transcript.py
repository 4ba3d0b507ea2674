"""Parses OpenCode's sessions: a session's row and its messages with their parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from signet_sync.capture.harnesses.reader import JsonLines, Reader, parse_line
from signet_sync.capture.harnesses.records import NO_TIME, Conversation, TranscriptEntry
from signet_sync.capture.harnesses.texts import (
    drop_injected,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)

# Known parts that are not what was said: thinking, bookkeeping of steps and files, mentions, retries.
_PASSED = ("reasoning", "step-start", "step-finish", "snapshot", "patch", "agent", "retry")
_YEAR_10000 = 253_402_300_800_000  # milliseconds since 1970
_TITLE_OF_OPENCODE = ("New session - ", "Child session - ")


class MessageRow(NamedTuple):
    """A row of `message` with its rows of `part` (id and data), in order; `data` is JSON text in both."""

    id: str
    data: str
    parts: Sequence[tuple[str, str]]


def read(session: Mapping[str, object], messages: Sequence[MessageRow]) -> Conversation:
    """Reads a session from its row and messages (tables and part types of OpenCode 1.18); never raises."""
    reader, source = _OpenCodeReader(), JsonLines(())  # its counts: rows, not lines, are read
    for message in _drop_reverted(messages, _object(text_of(session.get("revert"))) or {}):
        source.damaged += reader.take_message(message)
    title = text_of(session.get("title")).strip()
    reader.title = "" if title.startswith(_TITLE_OF_OPENCODE) else title
    reader.session, reader.project = text_of(session.get("id")), text_of(session.get("directory"))
    reader.parent = text_of(session.get("parent_id")) or None
    reader.begins = _time(session, "time_created")
    source.read = len(messages) - source.damaged
    found = reader.conversation(source)
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


class _OpenCodeReader(Reader):
    harness = "opencode"
    subagents = ("task",)

    def take_message(self, message: MessageRow) -> int:
        """Takes the next message; returns how many of its rows are damaged."""
        data = _object(message.data)
        if data is None:
            return 1
        role = data.get("role")
        if role not in ("user", "assistant"):
            self.count_unknown(role)
            return 0
        at = _time(data.get("time"), "created")
        parts = [_object(text) for _, text in message.parts]
        found = [entry for part in parts if part is not None for entry in self._part(part, str(role), at)]
        if role == "assistant" and (
            data.get("summary") is True or "compaction" in (data.get("mode"), data.get("agent"))
        ):
            self._compaction(at, found)
        else:
            self.entries.extend(_join_parts(found) if role == "user" else found)
            self.entries.extend(_trouble(data.get("error"), at))
        return parts.count(None)

    def _part(self, part: Mapping[str, object], role: str, at: int) -> Iterator[TranscriptEntry]:
        kind = part.get("type")
        if kind == "text":
            text = drop_injected(text_of(part.get("text")))
            if text.strip() and part.get("synthetic") is not True and part.get("ignored") is not True:
                yield TranscriptEntry(
                    "user" if role == "user" else "assistant", _time(part.get("time"), "start", at), text
                )
        elif kind == "tool":
            yield from self._tool(part, at)
        elif kind == "subtask":
            about = text_of(part.get("description")) or text_of(part.get("prompt"))
            yield TranscriptEntry("subagent", at, one_line(about), name=text_of(part.get("agent")))
        elif kind == "file":
            name = text_of(part.get("filename")) or text_of(part.get("mime")) or "a file"
            yield TranscriptEntry("event", at, f"attached {one_line(name)}")
        elif kind == "compaction":
            yield TranscriptEntry("compaction", at, "")
        elif kind not in _PASSED:
            self.count_unknown(kind)

    def _tool(self, part: Mapping[str, object], at: int) -> Iterator[TranscriptEntry]:
        state = mapping_of(part.get("state"))
        # The argument gets the name that other harnesses use, from which the line about the call is made.
        given = {"file_path" if key == "filePath" else key: one for key, one in mapping_of(state.get("input")).items()}
        name, call, status = text_of(part.get("tool")), text_of(part.get("callID")), state.get("status")
        failed = status == "error" or mapping_of(state.get("metadata")).get("exit") not in (0, None)
        began = _time(state.get("time"), "start", at)
        called = self.call(call, name, given, began, failed=failed)
        yield called if called.text else replace(called, text=one_line(text_of(state.get("title"))))
        if status in ("completed", "error"):
            said = text_of(state.get("error") if status == "error" else state.get("output"))
            yield self.result(call, said, _time(state.get("time"), "end", began), failed=failed)

    def _compaction(self, at: int, found: Sequence[TranscriptEntry]) -> None:
        """Merges the summary with the request for it, which precedes it: both are one compaction."""
        summary = join_paragraphs(entry.text for entry in found if entry.kind == "assistant")
        last = self.entries[-1] if self.entries else None
        if last is not None and last.kind == "compaction" and not last.text:
            self.entries[-1] = replace(last, at=max(at, last.at), text=summary)
        else:
            self.entries.append(TranscriptEntry("compaction", at, summary))


def _join_parts(entries: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """Joins the parts of a user's message into one turn."""
    words = [entry for entry in entries if entry.kind == "user"]
    others = [entry for entry in entries if entry.kind != "user"]
    if not words:
        return others
    return [replace(words[0], text=join_paragraphs(entry.text for entry in words)), *others]


def _trouble(error: object, at: int) -> Iterator[TranscriptEntry]:
    name = text_of(mapping_of(error).get("name"))
    said = text_of(mapping_of(mapping_of(error).get("data")).get("message"))
    if name or said:
        yield TranscriptEntry("event", at, one_line(": ".join(part for part in (name, said) if part)))


def _time(times: object, name: str, otherwise: int = NO_TIME) -> int:
    """Returns microseconds for a time that OpenCode stores in milliseconds."""
    value = mapping_of(times).get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _YEAR_10000:
        return int(value * 1000)
    return otherwise


def _object(text: str) -> Mapping[str, object] | None:
    return parse_line(text.encode("utf-8", "replace"))
