"""Parses GitHub Copilot CLI's sessions: a log of events, one JSON object a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signet_sync.capture.harnesses.reader import LineReader, time_of
from signet_sync.capture.harnesses.texts import mapping_of, text_of
from signet_sync.formats.lazy_pattern import late

_ENDED_BADLY = late(r"<shellId: \S{1,40} completed with exit code -?[1-9]\d*>\s*\Z")
_TOOLS = {"create": "create_file"}  # the name by which it is known that a file was written


class _CopilotReader(LineReader):
    """The log contains the session's id."""

    harness = "copilot"
    subagents = ("task",)

    def __init__(self, file_name: str = "") -> None:
        super().__init__()
        self.events: list[str] = []  # the event of each entry: a rewind cuts at one

    def take(self, record: Mapping[str, Any]) -> None:
        kind, event, data = text_of(record.get("type")), text_of(record.get("id")), mapping_of(record.get("data"))
        if record.get("agentId"):  # of a sub-agent
            return
        self.at = time_of(record.get("timestamp"))
        if kind == "session.start":
            self.session = self.session or text_of(data.get("sessionId"))
        elif kind == "session.snapshot_rewind":
            target = text_of(data.get("upToEventId"))
            place = self.events.index(target) if target in self.events else len(self.events)
            del self.entries[place:], self.events[place:]
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self.project = self.project or text_of(mapping_of(data.get("context")).get("cwd"))
        self._add_event(kind, data)
        self.events += [event] * (len(self.entries) - len(self.events))

    def _add_event(self, kind: str, data: Mapping[str, Any]) -> None:
        call = text_of(data.get("toolCallId"))
        if kind == "user.message":
            if data.get("source") in (None, "", "user") and data.get("isAutopilotContinuation") is not True:
                self.add("user", text_of(data.get("content")))
        elif kind == "assistant.message" and not data.get("parentToolCallId"):
            self.add("assistant", text_of(data.get("content")))
        elif kind in ("tool.execution_start", "tool.user_requested"):
            name = text_of(data.get("toolName"))
            server = f"{text_of(data.get('mcpServerName'))}_{text_of(data.get('mcpToolName'))}"
            self.call(call, _TOOLS.get(name, name), data.get("arguments"), server)
        elif kind == "tool.execution_complete":
            code = mapping_of(data.get("shellExecution")).get("exitCode")
            said = text_of(mapping_of(data.get("result")).get("content"))
            failed = data.get("success") is False or code not in (None, 0) or _ENDED_BADLY.search(said) is not None
            self.result(call, said or text_of(mapping_of(data.get("error")).get("message")), failed=failed)
        elif kind == "session.compaction_complete" and data.get("success") is True:
            self.add("compaction", text_of(data.get("summaryContent")))
        elif kind == "session.error":
            self.add("event", f"error: {text_of(data.get('message'))}")
        elif kind == "abort":
            self.add("event", "interrupted by the user")


read = _CopilotReader.read
