"""Parses pi's sessions, whose format OpenClaw's older ones have, too: JSON lines, a tree of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from signet_sync.capture.harnesses.jsonl import JsonLines
from signet_sync.capture.harnesses.records import Conversation, TranscriptEntry, conversation, count_unknown, time_of
from signet_sync.capture.harnesses.texts import (
    UUID,
    call_line,
    cut_middle,
    drop_injected,
    file_stem,
    items_of,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)
from signet_sync.capture.harnesses.tree import TreeRecord, branch
from signet_sync.text.own_calls import OwnCalls, runs_us

NAME = "pi"

# Known records that are not part of what was said: settings, bookmarks, state and messages of extensions.
_PASSED = ("model_change", "thinking_level_change", "label", "custom", "custom_message", "context_edit", "usage")
_PASSED_ROLES = ("system", "custom", "hookMessage")
_SUMMARY_LENGTH = 600


def read(lines: Iterable[bytes], *, file_name: str = "", harness: str = NAME) -> Conversation:
    """Reads a transcript from its lines, each line once; never raises.

    Records form a tree by `id` and `parentId`: the branch that leads to the last record is kept (a rewind abandons the
    others); all records are kept if the tree is broken or there is none (version 1 has no ids).
    """
    reading = _PiReader()
    source = JsonLines(lines)
    for record in source:
        reading.record(record)
    header = reading.header
    named = UUID.search(file_stem(file_name))
    return conversation(
        harness,
        text_of(header.get("id")) or (named[0] if named else ""),
        text_of(header.get("cwd")),
        branch(reading.records, header.get("id")),
        source=source,
        unknown=reading.unknown,
        title=reading.title,
        begins=time_of(header.get("timestamp")),
    )


class _PiReader:
    """The records read so far."""

    def __init__(self) -> None:
        self.header: Mapping[str, object] = {}
        self.records: list[TreeRecord] = []
        self.title: str | None = None
        self.ours = OwnCalls()
        self.unknown: dict[str, int] = {}

    def record(self, record: Mapping[str, object]) -> None:
        if record.get("type") == "session":
            self.header = self.header or record
            return
        parent = record.get("parentId")
        # A reset or compaction without a parent continues the session at its current position, and so does a record
        # appended by a program that does not know the tree.
        rooted = "parentId" in record and parent is None and record.get("type") not in ("reset", "compaction")
        linear = not rooted and not text_of(parent)
        entries = tuple(self._entries(record))
        self.records.append(TreeRecord(text_of(record.get("id")), text_of(parent), linear, entries))

    def _entries(self, record: Mapping[str, object]) -> Iterator[TranscriptEntry]:
        kind = record.get("type")
        at = time_of(record.get("timestamp"))
        if kind == "message":
            yield from self._message(mapping_of(record.get("message")), at)
        elif kind == "compaction":
            yield TranscriptEntry("compaction", at, drop_injected(text_of(record.get("summary"))))
        elif kind == "branch_summary":
            yield _read_left_branch(record.get("summary"), at)
        elif kind == "reset":
            yield TranscriptEntry("event", at, "session reset")
        elif kind == "session_info":
            self.title = text_of(record.get("name")).strip() or self.title
        elif kind not in _PASSED:
            count_unknown(self.unknown, kind)

    def _message(self, message: Mapping[str, object], at: int) -> Iterator[TranscriptEntry]:
        role = message.get("role")
        if role == "user":
            text = drop_injected(join_paragraphs(_texts(message.get("content"))))
            if text.strip():
                yield TranscriptEntry("user", at, text)
        elif role == "assistant":
            yield from self._assistant(message, at)
        elif role == "toolResult":
            said = "\n".join(_texts(message.get("content")))
            name, call = text_of(message.get("toolName")), text_of(message.get("toolCallId"))
            said = self.ours.kept(call, name, drop_injected(said))
            yield _result(at, said, name=name, call=call, failed=message.get("isError") is True)
        elif role == "bashExecution":
            code = message.get("exitCode")
            failed = message.get("cancelled") is True or (isinstance(code, int) and code != 0)
            command, said = text_of(message.get("command")), text_of(message.get("output"))
            yield TranscriptEntry("tool", at, one_line(command), name="bash", failed=failed)
            said = self.ours.left_out(said) if runs_us(command) else said
            yield _result(at, said, name="bash", call="", failed=failed)
        elif role == "compactionSummary":
            yield TranscriptEntry("compaction", at, drop_injected(text_of(message.get("summary"))))
        elif role == "branchSummary":
            yield _read_left_branch(message.get("summary"), at)
        elif role not in _PASSED_ROLES:
            count_unknown(self.unknown, role)

    def _assistant(self, message: Mapping[str, object], at: int) -> Iterator[TranscriptEntry]:
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            block = mapping_of(block)
            if block.get("type") == "text":
                text = drop_injected(text_of(block.get("text")))
                if text.strip():
                    yield TranscriptEntry("assistant", at, text)
            elif block.get("type") == "toolCall":
                name, call = text_of(block.get("name")), text_of(block.get("id"))
                self.ours.called(call, name, block.get("arguments"))
                yield TranscriptEntry("tool", at, call_line(block.get("arguments")), name=name, call=call)
        if message.get("stopReason") == "aborted":
            yield TranscriptEntry("event", at, "interrupted")
        elif message.get("stopReason") == "error":
            yield TranscriptEntry("event", at, one_line(f"error: {text_of(message.get('errorMessage'))}".rstrip(": ")))


def _result(at: int, text: str, *, name: str, call: str, failed: bool) -> TranscriptEntry:
    kept, omitted = cut_middle(drop_injected(text))
    return TranscriptEntry("result", at, kept, name=name, call=call, failed=failed, omitted=omitted)


def _texts(content: object) -> Iterator[str]:
    """Yields the texts of a message, whose content is a text or blocks; images and other blocks are left out."""
    if isinstance(content, str):
        yield content
    for block in items_of(content):
        if mapping_of(block).get("type") == "text":
            yield text_of(mapping_of(block).get("text"))


def _read_left_branch(summary: object, at: int) -> TranscriptEntry:
    said = one_line(text_of(summary), _SUMMARY_LENGTH)
    return TranscriptEntry(
        "event", at, f"came back from another branch: {said}" if said else "came back from another branch"
    )
