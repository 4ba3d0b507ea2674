"""Completion by click: commands and options."""

from __future__ import annotations

import pytest
from click.shell_completion import get_completion_class

from signet_sync.cli.main import group


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash offers for the last word of a line."""
    words = ["signet-sync", *line.split(" ")]
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    kind = get_completion_class("bash")
    assert kind is not None
    said = kind(group, {}, "signet-sync", "_SIGNET_SYNC_COMPLETE").complete()
    return [entry.partition(",")[2] for entry in said.split("\n") if entry]


def test_commands_and_options_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("entity sh", monkeypatch) == ["show"]
    assert {"--workspace", "--agent", "--json"} <= set(completed("recall --", monkeypatch))
    assert "--agent" not in completed("init --", monkeypatch)
    assert completed("open ", monkeypatch) == [], "names of the workspace do not complete"
