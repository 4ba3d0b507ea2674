"""Settings are set in a file without touching any other line."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ("[projection]\nx = 7 # a\n\n# of n\n[n]\n", "[projection]\nx = 7 # a\ntakeover = true\n\n# of n\n[n]\n"),
    ],
)
def test_one_is_set(before: str, after: str) -> None:
    assert set_in_text(before, ON, True, "config.toml") == after == set_in_text(after, ON, True, "config.toml")


@pytest.mark.parametrize("text", ["projection = 3\n", "[projection\n"])
def test_what_cannot_be_changed_safely_is_left(text: str) -> None:
    with pytest.raises(ConfigError):
        set_in_text(text, ON, True, "config.toml")


NAMES = st.sampled_from(["a", "b", "projection", "noise", "x.y"])
VALUES = st.one_of(st.booleans(), st.integers(-9, 9), st.text("ab \"'#\\é", max_size=6), st.just(("x", "y")))
LINES = st.sampled_from(
    ["# a comment", "", "[a]", "[noise] # n", "[projection]", "[x.y]", "[a.b]", "b = 1", "projection.b = 2 # two",
     "y = [\n1,\n]"]
)  # fmt: skip


@given(lines=st.lists(LINES, max_size=8), table=NAMES, name=NAMES.filter(lambda name: "." not in name), value=VALUES)
def test_whatever_the_file_it_says_the_new_value_and_else_what_it_said(lines, table, name, value) -> None:
    text = "\n".join(lines)
    try:
        before = tomllib.loads(text)
        after = set_in_text(text, f"{table}.{name}", value, "config.toml")
    except (ValueError, ConfigError):
        return
    found = tomllib.loads(after)
    for step in table.split("."):
        before, found = before.get(step, {}), found[step]
    assert found.pop(name) == (list(value) if isinstance(value, tuple) else value)
    assert [one for one in text.splitlines() if one.startswith("#")] == [
        one for one in after.splitlines() if one.startswith("#")
    ]
    before.pop(name, None)
    assert found == before
