"""Parses Qwen Code's sessions: JSON lines, a tree of records by `uuid` and `parentUuid`, with Gemini's parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from signet_sync.capture.harnesses.gemini.transcript import result_of_parts, summary_text, texts_of_parts
from signet_sync.capture.harnesses.jsonl import JsonLines
from signet_sync.capture.harnesses.records import Conversation, TranscriptEntry, conversation, count_unknown, time_of
from signet_sync.capture.harnesses.texts import (
    Tags,
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
from signet_sync.text.own_calls import OwnCalls

NAME = "qwen"

_SUBAGENT_TOOLS = ("agent", "task")
_TYPED = ("", "mid_turn_user_message")  # subtypes of what a person wrote; of others the program is the author
_ADDED = Tags("qwen:user-prompt-submit-context", "system-reminder")


def read(lines: Iterable[bytes], *, file_name: str = "") -> Conversation:
    """Reads a session from its lines; no input raises. The file is named after the session."""
    source = JsonLines(lines)
    reader = _QwenReader()
    for record in source:
        reader.take(record)
    return conversation(
        NAME,
        reader.session or file_stem(file_name),
        reader.project,
        branch(reader.records),
        source=source,
        unknown=reader.unknown,
        title=reader.title,
    )


class _QwenReader:
    """The records read so far."""

    def __init__(self) -> None:
        self.records: list[TreeRecord] = []
        self.tools: dict[str, str] = {}
        self.ours = OwnCalls()
        self.unknown: dict[str, int] = {}
        self.session = self.project = self.title = ""

    def take(self, record: Mapping[str, Any]) -> None:
        self.session = self.session or text_of(record.get("sessionId"))
        self.project = self.project or text_of(record.get("cwd"))
        parent = text_of(record.get("parentUuid"))
        linear = not parent and not ("parentUuid" in record and record["parentUuid"] is None)
        entries = tuple(self._entries(record, time_of(record.get("timestamp"))))
        self.records.append(TreeRecord(text_of(record.get("uuid")), parent, linear, entries))

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
                    yield self._call(call, at)
        elif kind == "tool_result":
            yield from self._results(parts, mapping_of(record.get("toolCallResult")), at)
        elif kind != "system":
            count_unknown(self.unknown, kind)
        elif subtype == "chat_compression":
            history = items_of(payload.get("compressedHistory"))
            summary = join_paragraphs(texts_of_parts(mapping_of(history[0]).get("parts"))) if history else ""
            yield TranscriptEntry("compaction", at, drop_injected(summary_text(summary)))
        elif subtype == "custom_title":
            self.title = one_line(text_of(payload.get("customTitle"))) or self.title

    def _call(self, call: Mapping[str, Any], at: int) -> TranscriptEntry:
        key, name, given = text_of(call.get("id")), text_of(call.get("name")), call.get("args")
        self.ours.called(key, name, given)
        if name in _SUBAGENT_TOOLS:
            asked = mapping_of(given)
            self.tools[key] = name = one_line(text_of(asked.get("subagent_type")) or "agent", 80)
            about = text_of(asked.get("description")) or text_of(asked.get("prompt"))
            return TranscriptEntry("subagent", at, one_line(about), name=name, call=key)
        self.tools[key] = name = one_line(name, 80) or "tool"
        return TranscriptEntry("tool", at, call_line(given), name=name, call=key)

    def _results(self, parts: object, details: Mapping[str, Any], at: int) -> Iterator[TranscriptEntry]:
        for part in items_of(parts):
            answer = mapping_of(mapping_of(part).get("functionResponse"))
            if not answer:
                continue
            key = text_of(answer.get("id"))
            name = self.tools.get(key, text_of(answer.get("name")))
            failed = details.get("status") in ("error", "cancelled") or "error" in mapping_of(answer.get("response"))
            kept, omitted = cut_middle(self.ours.kept(key, name, result_of_parts([part])))
            yield TranscriptEntry("result", at, kept, name, key, failed, omitted)
