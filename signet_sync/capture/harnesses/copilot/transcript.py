"""Parses GitHub Copilot CLI's sessions: a log of events, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from signet_sync.capture.harnesses.jsonl import JsonLines
from signet_sync.capture.harnesses.records import Conversation, TranscriptEntry, conversation, count_unknown, time_of
from signet_sync.capture.harnesses.texts import (
    call_line,
    cut_middle,
    drop_injected,
    mapping_of,
    one_line,
    prompt_of,
    text_of,
)
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.own_calls import OwnCalls

NAME = "copilot"

# Families of events that tell of the program, not of what was said.
_LEFT_OUT = frozenset(
    (
        *("assistant", "auto_mode_switch", "capabilities", "command", "commands", "elicitation", "exit_plan_mode"),
        *("external_tool", "factory", "hook", "mcp", "model", "pending_messages", "permission", "sampling", "session"),
        *("session_limits_exhausted", "skill", "subagent", "system", "tool", "tool_search", "ui", "user_input"),
    )
)
_ENDED_BADLY = late(r"<shellId: \S{1,40} completed with exit code -?[1-9]\d*>\s*\Z")
_TOOLS = {"create": "create_file"}  # the name by which it is known that a file was written


def read(lines: Iterable[bytes], *, file_name: str = "") -> Conversation:
    """Reads a session's events; no input raises. The log contains the session's id, so `file_name` is not needed."""
    source = JsonLines(lines)
    reader = _CopilotReader()
    for record in source:
        reader.take(record)
    return conversation(
        NAME,
        reader.session,
        reader.project,
        [entry for _, entry in reader.entries],
        source=source,
        unknown=reader.unknown,
        title=reader.title,
        begins=reader.begins,
    )


class _CopilotReader:
    """The entries so far, each with the id of its event, at which a rewind cuts."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, TranscriptEntry]] = []
        self.tools: dict[str, str] = {}
        self.ours = OwnCalls()
        self.unknown: dict[str, int] = {}
        self.session = self.project = self.title = ""
        self.begins = time_of(None)

    def take(self, record: Mapping[str, Any]) -> None:
        kind, event, data = text_of(record.get("type")), text_of(record.get("id")), mapping_of(record.get("data"))
        if record.get("agentId"):  # of a sub-agent
            return
        if kind == "session.start":
            self.session = self.session or text_of(data.get("sessionId"))
            self.begins = max(self.begins, time_of(data.get("startTime")))
        elif kind == "session.title_changed":
            self.title = one_line(text_of(data.get("title")))
        elif kind == "session.snapshot_rewind":
            target = data.get("upToEventId")
            place = next((n for n, (known, _) in enumerate(self.entries) if known == target), len(self.entries))
            del self.entries[place:]
        elif kind.partition(".")[0] not in _LEFT_OUT and kind not in ("user.message", "abort"):
            count_unknown(self.unknown, kind)
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self.project = self.project or text_of(mapping_of(data.get("context")).get("cwd"))
        self.entries += ((event, entry) for entry in self._entries(kind, data, time_of(record.get("timestamp"))))

    def _entries(self, kind: str, data: Mapping[str, Any], at: int) -> Iterator[TranscriptEntry]:
        text = prompt_of(text_of(data.get("content")))
        if kind == "user.message":
            typed = data.get("source") in (None, "", "user") and data.get("isAutopilotContinuation") is not True
            if text.strip() and typed:
                yield TranscriptEntry("user", at, text)
        elif kind == "assistant.message":
            if text.strip() and not data.get("parentToolCallId"):
                yield TranscriptEntry("assistant", at, text)
        elif kind in ("tool.execution_start", "tool.user_requested"):
            yield self._call(data, at)
        elif kind == "tool.execution_complete":
            yield self._result(data, at)
        elif kind == "session.compaction_complete" and data.get("success") is True:
            yield TranscriptEntry("compaction", at, drop_injected(text_of(data.get("summaryContent"))))
        elif kind == "session.error":
            yield TranscriptEntry("event", at, one_line(f"error: {text_of(data.get('message'))}"))
        elif kind == "abort":
            yield TranscriptEntry("event", at, "interrupted by the user")

    def _call(self, data: Mapping[str, Any], at: int) -> TranscriptEntry:
        call, name, given = text_of(data.get("toolCallId")), text_of(data.get("toolName")), data.get("arguments")
        server = f"{text_of(data.get('mcpServerName'))}_{text_of(data.get('mcpToolName'))}"
        self.ours.called(call, name, given, server)
        if name == "task":
            asked = mapping_of(given)
            self.tools[call] = name = one_line(text_of(asked.get("agent_type")) or "agent", 80)
            about = text_of(asked.get("description")) or text_of(asked.get("prompt"))
            return TranscriptEntry("subagent", at, one_line(about), name=name, call=call)
        self.tools[call] = name = one_line(_TOOLS.get(name, name), 80) or "tool"
        return TranscriptEntry("tool", at, call_line(given), name=name, call=call)

    def _result(self, data: Mapping[str, Any], at: int) -> TranscriptEntry:
        call = text_of(data.get("toolCallId"))
        name = self.tools.get(call, "")
        code = mapping_of(data.get("shellExecution")).get("exitCode")
        said = text_of(mapping_of(data.get("result")).get("content"))
        failed = data.get("success") is False or code not in (None, 0) or _ENDED_BADLY.search(said) is not None
        said = said or text_of(mapping_of(data.get("error")).get("message"))
        kept, omitted = cut_middle(self.ours.kept(call, name, drop_injected(said)).strip("\r\n"))
        return TranscriptEntry("result", at, kept, name, call, failed, omitted)
