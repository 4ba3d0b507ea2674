"""Settings are set in a file without touching any other line."""

from __future__ import annotations

import pytest

from signet_sync.errors import ConfigError
from signet_sync.settings.user_settings import set_in_text

ON = "projection.takeover"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[projection]\ntakeover = true\n"),
        ("# mine\n", "# mine\n\n[projection]\ntakeover = true\n"),
        ("[noise]\nprojects = []", "[noise]\nprojects = []\n\n[projection]\ntakeover = true\n"),
        ("[projection]\r\nwindow_days = 7\r\n", "[projection]\r\nwindow_days = 7\r\ntakeover = true\r\n"),
        ("[projection] # pages\ntakeover=false\n[n]\n", "[projection] # pages\ntakeover=true\n[n]\n"),
        ("projection.window_days = 3\n", "projection.window_days = 3\nprojection.takeover = true\n"),
        ("projection = {takeover = false}\n", "projection = {takeover = true}\n"),
        ("a = '''\n[projection]\n'''\n", "a = '''\n[projection]\n'''\n\n[projection]\ntakeover = true\n"),
    ],
)
def test_one_is_set(before: str, after: str) -> None:
    assert set_in_text(before, ON, True, "config.toml") == after == set_in_text(after, ON, True, "config.toml")


@pytest.mark.parametrize("text", ["projection = 3\n", "[projection\n"])
def test_what_cannot_be_changed_safely_is_left(text: str) -> None:
    with pytest.raises(ConfigError):
        set_in_text(text, ON, True, "config.toml")
