"""Parses Qwen Code's sessions: JSON lines, a tree of records by `uuid` and `parentUuid`, with Gemini's parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signet_sync.capture.harnesses.gemini.transcript import result_of_parts, summary_text, texts_of_parts
from signet_sync.capture.harnesses.reader import LineReader, TreeRecord, choose_branch
from signet_sync.capture.harnesses.records import TranscriptEntry, time_of
from signet_sync.capture.harnesses.texts import (
    Tags,
    drop_injected,
    items_of,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)

_TYPED = ("", "mid_turn_user_message")  # subtypes of what a person wrote; of others the program is the author
_ADDED = Tags("qwen:user-prompt-submit-context", "system-reminder")


class _QwenReader(LineReader):
    """The file is named after the session."""

    harness = "qwen"
    subagents = ("agent", "task")

    def __init__(self, file_name: str = "") -> None:
        super().__init__(file_name)
        self.records: list[TreeRecord] = []

    def take(self, record: Mapping[str, Any]) -> None:
        self.session = self.session or text_of(record.get("sessionId"))
        self.project = self.project or text_of(record.get("cwd"))
        parent = text_of(record.get("parentUuid"))
        linear = not parent and not ("parentUuid" in record and record["parentUuid"] is None)
        entries = tuple(self._entries(record, time_of(record.get("timestamp"))))
        self.records.append(TreeRecord(text_of(record.get("uuid")), parent, linear, entries))

    def chosen(self) -> list[TranscriptEntry]:
        return choose_branch(self.records)

    def _entries(self, record: Mapping[str, Any], at: int) -> Iterator[TranscriptEntry]:
        kind, subtype = text_of(record.get("type")), text_of(record.get("subtype"))
        payload, parts = mapping_of(record.get("systemPayload")), mapping_of(record.get("message")).get("parts")
        if kind == "user":
            said = text_of(payload.get("displayText")) or join_paragraphs(texts_of_parts(parts))
            text, _ = _ADDED.split(drop_injected(said))
            if subtype in _TYPED and text.strip():
                yield TranscriptEntry("user", at, text.strip("\r\n"))
            elif subtype == "notification" and text.strip():
                yield TranscriptEntry("event", at, one_line(text))
        elif kind == "assistant":
            if text := join_paragraphs(drop_injected(one) for one in texts_of_parts(parts)):
                yield TranscriptEntry("assistant", at, text)
            for call in (mapping_of(mapping_of(part).get("functionCall")) for part in items_of(parts)):
                if call:
                    yield self.call(text_of(call.get("id")), text_of(call.get("name")), call.get("args"), at)
        elif kind == "tool_result":
            status = mapping_of(record.get("toolCallResult")).get("status")
            for part in items_of(parts):
                if answer := mapping_of(mapping_of(part).get("functionResponse")):
                    failed = status in ("error", "cancelled") or "error" in mapping_of(answer.get("response"))
                    key, name = text_of(answer.get("id")), text_of(answer.get("name"))
                    yield self.result(key, result_of_parts([part]), at, name=name, failed=failed)
        elif kind != "system":
            self.count_unknown(kind)
        elif subtype == "chat_compression":
            history = items_of(payload.get("compressedHistory"))
            summary = join_paragraphs(texts_of_parts(mapping_of(history[0]).get("parts"))) if history else ""
            yield TranscriptEntry("compaction", at, drop_injected(summary_text(summary)))
        elif subtype == "custom_title":
            self.title = one_line(text_of(payload.get("customTitle"))) or self.title


read = _QwenReader.read
