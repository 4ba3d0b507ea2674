"""Parses Qwen Code's sessions: JSON lines, a tree of records by `uuid` and `parentUuid`, with Gemini's parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signet_sync.capture.harnesses.gemini.transcript import read_result, unwrap_summary
from signet_sync.capture.harnesses.reader import TreeReader, time_of
from signet_sync.capture.harnesses.texts import (
    Tags,
    drop_injected,
    items_of,
    join_paragraphs,
    mapping_of,
    text_of,
    texts_of,
)

_TYPED = ("", "mid_turn_user_message")  # subtypes of what a person wrote; of others the program is the author
_ADDED = Tags("qwen:user-prompt-submit-context", "system-reminder")


class _QwenReader(TreeReader):
    """The file is named after the session."""

    harness = "qwen"
    subagents = ("agent", "task")

    def take(self, record: Mapping[str, Any]) -> None:
        kind, subtype, parent = (text_of(record.get(name)) for name in ("type", "subtype", "parentUuid"))
        payload, parts = mapping_of(record.get("systemPayload")), mapping_of(record.get("message")).get("parts")
        self.at = time_of(record.get("timestamp"))
        self.session = self.session or text_of(record.get("sessionId"))
        self.project = self.project or text_of(record.get("cwd"))
        rooted = "parentUuid" in record and record["parentUuid"] is None
        self.place(text_of(record.get("uuid")), parent, linear=not parent and not rooted)
        if kind == "user":
            said = text_of(payload.get("displayText")) or join_paragraphs(texts_of(parts))
            text, _ = _ADDED.split(drop_injected(said))
            if subtype in _TYPED or subtype == "notification":
                self.add("user" if subtype in _TYPED else "event", text)
        elif kind == "assistant":
            self.add("assistant", join_paragraphs(map(drop_injected, texts_of(parts))))
            for call in (mapping_of(mapping_of(part).get("functionCall")) for part in items_of(parts)):
                if call:
                    self.call(text_of(call.get("id")), text_of(call.get("name")), call.get("args"))
        elif kind == "tool_result":
            status = mapping_of(record.get("toolCallResult")).get("status")
            for part in items_of(parts):
                if answer := mapping_of(mapping_of(part).get("functionResponse")):
                    failed = status in ("error", "cancelled") or "error" in mapping_of(answer.get("response"))
                    key, name = text_of(answer.get("id")), text_of(answer.get("name"))
                    self.result(key, read_result([part]), name=name, failed=failed)
        elif kind == "system" and subtype == "chat_compression":
            history = items_of(payload.get("compressedHistory"))
            summary = join_paragraphs(texts_of(mapping_of(history[0]).get("parts"))) if history else ""
            self.add("compaction", unwrap_summary(summary))


read = _QwenReader.read
