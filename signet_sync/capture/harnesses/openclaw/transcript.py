"""Parses OpenClaw's older transcripts: JSON lines in the format of pi."""

from __future__ import annotations

from signet_sync.capture.harnesses.pi.transcript import PiReader
from signet_sync.capture.harnesses.reader import JsonLines
from signet_sync.capture.harnesses.records import Conversation

# How the prompts of scheduled jobs and heartbeats begin.
_BY_CLOCK = ("[cron:", "Read HEARTBEAT.md")


class _OpenClawReader(PiReader):
    harness = "openclaw"

    def conversation(self, source: JsonLines) -> Conversation:
        found = super().conversation(source)
        prompts = [entry.text for entry in found.entries if entry.kind == "user"]
        return found._replace(headless=bool(prompts) and all(text.lstrip().startswith(_BY_CLOCK) for text in prompts))


read = _OpenClawReader.read
