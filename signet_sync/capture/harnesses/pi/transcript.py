"""Parses pi's sessions, whose format OpenClaw's older ones have, too: JSON lines, a tree of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from signet_sync.capture.harnesses.reader import LineReader, TreeRecord, choose_branch
from signet_sync.capture.harnesses.records import TranscriptEntry, time_of
from signet_sync.capture.harnesses.texts import (
    UUID,
    drop_injected,
    items_of,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)
from signet_sync.text.own_calls import runs_us

# Known records that are not part of what was said: settings, bookmarks, state and messages of extensions.
_PASSED = ("model_change", "thinking_level_change", "label", "custom", "custom_message", "context_edit", "usage")
_PASSED_ROLES = ("system", "custom", "hookMessage")
_SUMMARY_LENGTH = 600


class PiReader(LineReader):
    """Records form a tree by `id` and `parentId`; all are kept if there is none (version 1 has no ids)."""

    harness = "pi"

    def __init__(self, file_name: str = "") -> None:
        super().__init__(file_name)
        named = UUID.search(self.stem)
        self.stem = named[0] if named else ""
        self.records: list[TreeRecord] = []
        self.has_header = False

    def chosen(self) -> list[TranscriptEntry]:
        return choose_branch(self.records, self.session)

    def take(self, record: Mapping[str, object]) -> None:
        if record.get("type") == "session":
            if not self.has_header:
                self.has_header, self.begins = True, time_of(record.get("timestamp"))
                self.session, self.project = text_of(record.get("id")), text_of(record.get("cwd"))
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
            self.count_unknown(kind)

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
            yield self.result(call, said, at, name=name, failed=message.get("isError") is True)
        elif role == "bashExecution":
            code = message.get("exitCode")
            failed = message.get("cancelled") is True or (isinstance(code, int) and code != 0)
            command, said = text_of(message.get("command")), text_of(message.get("output"))
            yield TranscriptEntry("tool", at, one_line(command), name="bash", failed=failed)
            said = self.ours.left_out(said) if runs_us(command) else said
            yield self.result("", said, at, name="bash", failed=failed)
        elif role == "compactionSummary":
            yield TranscriptEntry("compaction", at, drop_injected(text_of(message.get("summary"))))
        elif role == "branchSummary":
            yield _read_left_branch(message.get("summary"), at)
        elif role not in _PASSED_ROLES:
            self.count_unknown(role)

    def _assistant(self, message: Mapping[str, object], at: int) -> Iterator[TranscriptEntry]:
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            block = mapping_of(block)
            if block.get("type") == "text":
                text = drop_injected(text_of(block.get("text")))
                if text.strip():
                    yield TranscriptEntry("assistant", at, text)
            elif block.get("type") == "toolCall":
                yield self.call(text_of(block.get("id")), text_of(block.get("name")), block.get("arguments"), at)
        if message.get("stopReason") == "aborted":
            yield TranscriptEntry("event", at, "interrupted")
        elif message.get("stopReason") == "error":
            yield TranscriptEntry("event", at, one_line(f"error: {text_of(message.get('errorMessage'))}".rstrip(": ")))


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


read = PiReader.read
