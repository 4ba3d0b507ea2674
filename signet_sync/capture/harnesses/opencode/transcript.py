"""Parses OpenCode's sessions: a session's row and its messages with their parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from signet_sync.capture.harnesses.jsonl import JsonLines, parse_line
from signet_sync.capture.harnesses.records import NO_TIME, Conversation, TranscriptEntry, conversation, count_unknown
from signet_sync.capture.harnesses.texts import (
    call_line,
    cut_middle,
    drop_injected,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)
from signet_sync.text.own_calls import OwnCalls

NAME = "opencode"

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
    reading = _OpenCodeReader()
    for message in _drop_reverted(messages, _object(text_of(session.get("revert"))) or {}):
        reading.message(message)
    title = text_of(session.get("title")).strip()
    reading.source.read = len(messages) - reading.source.damaged
    found = conversation(
        NAME,
        text_of(session.get("id")),
        text_of(session.get("directory")),
        reading.entries,
        source=reading.source,
        unknown=reading.unknown,
        title="" if title.startswith(_TITLE_OF_OPENCODE) else title,
        parent=text_of(session.get("parent_id")) or None,
        begins=_time(session, "time_created"),
    )
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


class _OpenCodeReader:
    """The messages read so far."""

    def __init__(self) -> None:
        self.entries: list[TranscriptEntry] = []
        self.ours = OwnCalls()
        self.unknown: dict[str, int] = {}
        self.source = JsonLines(())  # its counts: rows, not lines, are read

    def message(self, message: MessageRow) -> None:
        data = _object(message.data)
        if data is None:
            self.source.damaged += 1
            return
        role = data.get("role")
        if role not in ("user", "assistant"):
            count_unknown(self.unknown, role)
            return
        at = _time(data.get("time"), "created")
        found = [entry for part in self._parts(message) for entry in self._part(part, str(role), at)]
        if role == "assistant" and (
            data.get("summary") is True or "compaction" in (data.get("mode"), data.get("agent"))
        ):
            self._compaction(at, found)
            return
        self.entries.extend(_join_parts(found) if role == "user" else found)
        self.entries.extend(_trouble(data.get("error"), at))

    def _parts(self, message: MessageRow) -> Iterator[Mapping[str, object]]:
        for _, text in message.parts:
            part = _object(text)
            if part is None:
                self.source.damaged += 1
            else:
                yield part

    def _part(self, part: Mapping[str, object], role: str, at: int) -> Iterator[TranscriptEntry]:
        kind = part.get("type")
        if kind == "text":
            text = drop_injected(text_of(part.get("text")))
            if text.strip() and part.get("synthetic") is not True and part.get("ignored") is not True:
                yield TranscriptEntry(
                    "user" if role == "user" else "assistant", _time(part.get("time"), "start", at), text
                )
        elif kind == "tool":
            yield from _tool(part, at, self.ours)
        elif kind == "subtask":
            about = text_of(part.get("description")) or text_of(part.get("prompt"))
            yield TranscriptEntry("subagent", at, one_line(about), name=text_of(part.get("agent")))
        elif kind == "file":
            name = text_of(part.get("filename")) or text_of(part.get("mime")) or "a file"
            yield TranscriptEntry("event", at, f"attached {one_line(name)}")
        elif kind == "compaction":
            yield TranscriptEntry("compaction", at, "")
        elif kind not in _PASSED:
            count_unknown(self.unknown, kind)

    def _compaction(self, at: int, found: Sequence[TranscriptEntry]) -> None:
        """Merges the summary with the request for it, which precedes it: both are one compaction."""
        summary = join_paragraphs(entry.text for entry in found if entry.kind == "assistant")
        last = self.entries[-1] if self.entries else None
        if last is not None and last.kind == "compaction" and not last.text:
            self.entries[-1] = replace(last, at=max(at, last.at), text=summary)
        else:
            self.entries.append(TranscriptEntry("compaction", at, summary))


def _tool(part: Mapping[str, object], at: int, ours: OwnCalls) -> Iterator[TranscriptEntry]:
    state = mapping_of(part.get("state"))
    # The argument gets the name that other harnesses use, from which the line about the call is made.
    given = {"file_path" if key == "filePath" else key: value for key, value in mapping_of(state.get("input")).items()}
    name, call = text_of(part.get("tool")), text_of(part.get("callID"))
    ours.called(call, name, given)
    status = state.get("status")
    failed = status == "error" or mapping_of(state.get("metadata")).get("exit") not in (0, None)
    began = _time(state.get("time"), "start", at)
    if name == "task":
        about = text_of(given.get("description")) or text_of(given.get("prompt"))
        agent = text_of(given.get("subagent_type"))
        yield TranscriptEntry("subagent", began, one_line(about), name=agent, call=call, failed=failed)
    else:
        line = call_line(given) or one_line(text_of(state.get("title")))
        yield TranscriptEntry("tool", began, line, name=name, call=call, failed=failed)
    if status in ("completed", "error"):
        said = text_of(state.get("error") if status == "error" else state.get("output"))
        kept, omitted = cut_middle(ours.kept(call, name, drop_injected(said)))
        ended = _time(state.get("time"), "end", began)
        yield TranscriptEntry("result", ended, kept, name=name, call=call, failed=failed, omitted=omitted)


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
