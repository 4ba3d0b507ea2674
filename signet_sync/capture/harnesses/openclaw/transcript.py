"""Parses OpenClaw's older transcripts: JSON lines in the format of pi."""

from __future__ import annotations

from collections.abc import Iterable

from signet_sync.capture.harnesses.pi import transcript as pi
from signet_sync.capture.harnesses.records import Conversation

NAME = "openclaw"

# How the prompts of scheduled jobs and heartbeats begin.
_BY_CLOCK = ("[cron:", "Read HEARTBEAT.md")


def read(lines: Iterable[bytes], *, file_name: str = "") -> Conversation:
    """Reads a transcript from its lines, each line once; never raises."""
    found = pi.read(lines, file_name=file_name, harness=NAME)
    prompts = [entry.text for entry in found.entries if entry.kind == "user"]
    return found._replace(headless=bool(prompts) and all(text.lstrip().startswith(_BY_CLOCK) for text in prompts))
