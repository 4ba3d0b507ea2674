"""A command beside the agent: what it writes is taken while it runs, for a full pipe would stop it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from agents import until

from signet_sync.host import command as host_command

CHATTY = "import sys; sys.stderr.write('x' * 300_000 + 'the end\\n'); sys.exit(3)"


def test_a_command_that_says_much_ends_and_its_last_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*words: str, **pipes: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", CHATTY], **pipes)

    monkeypatch.setattr(host_command, "start", start)
    command = host_command.Command("fleet", "share")
    assert until(command.poll, "its end") == 3
    assert command.said.endswith("xthe end\n") and len(command.said) == 600
