"""Parses pi's sessions, whose format OpenClaw's older ones have, too: JSON lines, a tree of records."""

from __future__ import annotations

from collections.abc import Mapping

from signet_sync.capture.harnesses.reader import TranscriptEntry, TreeReader, time_of
from signet_sync.capture.harnesses.texts import join_paragraphs, mapping_of, text_of, texts_of
from signet_sync.formats.ids import UUID
from signet_sync.text.own_calls import LEFT_OUT, runs_us

# How the prompts of OpenClaw's scheduled jobs and heartbeats begin.
_BY_CLOCK = ("[cron:", "Read HEARTBEAT.md")


class _PiReader(TreeReader):
    """Records form a tree by `id` and `parentId`; all are kept if there is none (version 1 has no ids)."""

    harness = "pi"

    def __init__(self, file_name: str = "") -> None:
        super().__init__(file_name)
        named = UUID.search(self.stem)
        self.stem = named[0] if named else ""

    def take(self, record: Mapping[str, object]) -> None:
        kind, parent = record.get("type"), record.get("parentId")
        self.at = time_of(record.get("timestamp"))
        if kind == "session":
            self.session = self.session or text_of(record.get("id"))
            self.project = self.project or text_of(record.get("cwd"))
            return
        # A reset or compaction without a parent continues the session at its current position, and so does a record
        # appended by a program that does not know the tree.
        rooted = "parentId" in record and parent is None and kind not in ("reset", "compaction")
        self.place(text_of(record.get("id")), text_of(parent), linear=not rooted and not text_of(parent))
        if kind == "message":
            self._message(mapping_of(record.get("message")))
        elif kind == "compaction":
            self.add("compaction", text_of(record.get("summary")))
        elif kind == "branch_summary":
            self._add_branch_summary(record.get("summary"))
        elif kind == "reset":
            self.add("event", "session reset")

    def choose(self) -> list[TranscriptEntry]:
        chosen = super().choose()
        prompts = [entry.text for entry in chosen if entry.kind == "user"]
        self.headless = bool(prompts) and all(text.lstrip().startswith(_BY_CLOCK) for text in prompts)
        return chosen

    def _message(self, message: Mapping[str, object]) -> None:
        role, content = message.get("role"), message.get("content")
        if role == "user":
            self.add("user", join_paragraphs(texts_of(content)))
        elif role == "assistant":
            for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
                block = mapping_of(block)
                if block.get("type") == "text":
                    self.add("assistant", text_of(block.get("text")))
                elif block.get("type") == "toolCall":
                    self.call(text_of(block.get("id")), text_of(block.get("name")), block.get("arguments"))
            if message.get("stopReason") == "aborted":
                self.add("event", "interrupted")
            elif message.get("stopReason") == "error":
                self.add("event", f"error: {text_of(message.get('errorMessage'))}".rstrip(": "))
        elif role == "toolResult":
            name, call = text_of(message.get("toolName")), text_of(message.get("toolCallId"))
            self.result(call, "\n".join(texts_of(content)), name=name, failed=message.get("isError") is True)
        elif role == "bashExecution":  # typed by the person
            code = message.get("exitCode")
            failed = message.get("cancelled") is True or (isinstance(code, int) and code != 0)
            command, said = text_of(message.get("command")), text_of(message.get("output"))
            self.call("", "bash", command, failed=failed)
            self.result("", LEFT_OUT if runs_us(command) else said, name="bash", failed=failed)
        elif role == "compactionSummary":
            self.add("compaction", text_of(message.get("summary")))
        elif role == "branchSummary":
            self._add_branch_summary(message.get("summary"))

    def _add_branch_summary(self, summary: object) -> None:
        self.add("event", f"came back from another branch: {text_of(summary)}".rstrip(": "))


read = _PiReader.read
