"""Parses OpenClaw's older transcripts: JSON lines in the format of pi."""

from __future__ import annotations

from signet_sync.capture.harnesses.pi.transcript import PiReader
from signet_sync.capture.harnesses.reader import TranscriptEntry

# How the prompts of scheduled jobs and heartbeats begin.
_BY_CLOCK = ("[cron:", "Read HEARTBEAT.md")


class _OpenClawReader(PiReader):
    harness = "openclaw"

    def choose(self) -> list[TranscriptEntry]:
        chosen = super().choose()
        prompts = [entry.text for entry in chosen if entry.kind == "user"]
        self.headless = bool(prompts) and all(text.lstrip().startswith(_BY_CLOCK) for text in prompts)
        return chosen


read = _OpenClawReader.read
