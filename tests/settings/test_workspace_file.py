"""Switches are set in `signet-sync.toml` without touching any other byte."""

from __future__ import annotations

import tomllib

import pytest

from signet_sync.errors import ConfigError
from signet_sync.settings.workspace_file import with_flags

ON = {"takeover": True, "yield": None}
OFF: dict[str, bool | None] = {"takeover": None, "yield": None}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[projection]\ntakeover = true\n"),
        ("# mine\n", "# mine\n\n[projection]\ntakeover = true\n"),
        ("[noise]\nprojects = []", "[noise]\nprojects = []\n\n[projection]\ntakeover = true\n"),
        ("[projection]\r\nwindow_days = 7\r\n", "[projection]\r\ntakeover = true\r\nwindow_days = 7\r\n"),
        ("[projection] # pages\nyield=true\n[noise]\n", "[projection] # pages\ntakeover = true\n[noise]\n"),
        ("projection.yield = true\n[noise]\n", "[noise]\n\n[projection]\ntakeover = true\n"),
        (
            "[projection]\ntakeover = false\n[x]\ntakeover = false\n",
            "[projection]\ntakeover = true\n[x]\ntakeover = false\n",
        ),
    ],
)
def test_one_is_set_and_the_other_taken_out(before: str, after: str) -> None:
    assert with_flags(before, "projection", ON) == after
    assert with_flags(after, "projection", ON) == after
    off = with_flags(after, "projection", OFF)
    assert not {"takeover", "yield"} & tomllib.loads(off).get("projection", {}).keys()


@pytest.mark.parametrize(
    "text",
    [
        "projection = 3\n",
        "projection = {yield = true}\n",
        "projection.window_days = 3\n",
        "[projection\n",
        '[projection]\nyield = """\ntakeover = true\n"""\n',
        "a = '''\n[projection]\n'''\n",
    ],
)
def test_what_cannot_be_changed_safely_is_left(text: str) -> None:
    with pytest.raises(ConfigError):
        with_flags(text, "projection", ON)
