"""Other programs' settings edited as text: what goes in comes out again, and the rest stays, comments included."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.errors import ConfigError
from signet_sync.host.harness_settings import harness
from signet_sync.host.harness_settings.files import TomlText
from signet_sync.host.harness_settings.harness import OURS, Program
from signet_sync.host.harness_settings.settings_text import JsonText

PATH = "/home/mira/.claude/settings.json"
PROGRAM = Program(("/opt/py thon's/bin/python", "-P", "-m", "signet_sync"))
HANDLER = {"type": "command", "command": PROGRAM.command("claude-code"), "timeout": 10}
WANTED = {"SessionStart": HANDLER, "Stop": {**HANDLER, "async": True}, "SessionEnd": HANDLER}
FOREIGN = {"hooks": [{"type": "command", "command": "say done"}]}


def opened(text: str) -> JsonText:
    return JsonText(PATH, text.encode())


def merged(text: str, wanted: dict[str, Any] = WANTED) -> str:
    settings = opened(text)
    harness.merge(settings, wanted)
    return settings.text or ""


def stripped(text: str) -> str:
    settings = opened(text)
    harness.take_out(settings, harness.places(settings.data))
    return settings.text or ""


def lean(value: dict[str, Any]) -> dict[str, Any]:
    """A document without the lists and objects of hooks in which nothing is."""
    hooks = value.get("hooks")
    kept = {event: groups for event, groups in hooks.items() if groups} if isinstance(hooks, dict) else hooks
    rest = {key: found for key, found in value.items() if key != "hooks"}
    return rest | ({"hooks": kept} if kept else {})


ODD = {
    "tabs": '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}\n\t\t]\n\t}\n}\n',
    "one line": '{"model":"opus","hooks":{"Stop":[{"hooks":[]}]}}',
    "crlf": '{\r\n  "model": "opus",\r\n  "hooks": {\r\n  }\r\n}\r\n',
    "unicode escapes": '{\n  "caf\\u00e9": "\\ud83d\\ude00 \\/ ü",\n  "n": 1.50e+02\n}\n',
    "blank lines": '{\n\n\n  "model": "opus"\n\n\n,\n\n  "hooks": { "Stop": [\n\n{"hooks": [ ]}\n\n\n] }\n\n}\n\n\n',
    "empty": "{}", "empty, on two lines": "{\n}\n", "empty hooks": '{\n  "hooks": {}\n}\n',
    "byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "comments": '{\n  // one\n  "m": "o//pus", // two\n  "hooks": {\n    "Stop": [] /* three, */\n  }\n  // four\n}',
    "trailing commas": '{\n  "model": "a,]",\n  "hooks": {\n    "Stop": [{"hooks": [],},], // x\n  },\n}\n',
    "on one line with a comment": '{"model": "opus" /* } */, "hooks": {"Stop": [/* none */]}}',
    "a comment behind a bracket": '{"hooks": {"Stop": [1] // x\n}}',
    "switches of older Gemini": '{"hooks": {"enabled": true, "disabled": []}}',
}  # fmt: skip


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_formatting_survives(text: str) -> None:
    before, there = opened(text).data, opened(merged(text))
    assert sorted(place.event for place in harness.places(there.data)) == sorted(WANTED)
    assert all({"hooks": [WANTED[event]]} in there.data["hooks"][event] for event in WANTED)
    assert merged(there.text or "") == there.text
    left = opened(stripped(there.text or ""))
    assert lean(left.data) == lean(before)
    for mark in ("// one", "// two", "/* three, */", "// four", "// x", "/* none */", "/* } */", "\ufeff", "1.50e+02"):
        assert (mark in text) == (mark in (there.text or "")) == (mark in (left.text or ""))
    assert ("\r\n" in text) == ("\r\n" in (there.text or ""))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
GROUPS = st.lists(st.one_of(st.just(FOREIGN), st.just({"matcher": "*", "hooks": []}), VALUES), max_size=3)
HOOKS = st.dictionaries(st.sampled_from([*WANTED, "PreToolUse", "Ünknown"]), GROUPS, max_size=4)
DOCUMENTS = st.dictionaries(st.one_of(st.text(max_size=6), st.just("hooks")), VALUES, max_size=3).flatmap(
    lambda rest: st.one_of(
        st.just({key: value for key, value in rest.items() if key != "hooks"}),
        HOOKS.map(lambda hooks: {key: value for key, value in rest.items() if key != "hooks"} | {"hooks": hooks}),
        HOOKS.map(lambda hooks: {"hooks": hooks} | {key: value for key, value in rest.items() if key != "hooks"}),
    )
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    indent, ends = draw(st.sampled_from([(2, "\n"), ("\t", "\n"), (4, "\r\n"), (None, "\n")]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " :  ")]))
    text = json.dumps(draw(DOCUMENTS), indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return text.replace("\n", ends) + draw(st.sampled_from(["", "\n", " \n\n"]))


@given(texts())
def test_every_document_keeps_what_is_not_ours(text: str) -> None:
    there = merged(text)
    assert sorted(place.event for place in harness.places(opened(there).data)) == sorted(WANTED)
    assert merged(there) == there
    assert lean(opened(stripped(there)).data) == lean(json.loads(text))


def test_a_handler_that_shares_its_group_goes_alone() -> None:
    shared = {"matcher": "startup", "hooks": [FOREIGN["hooks"][0], {**HANDLER, "timeout": 1}, {"type": "prompt"}]}
    text = json.dumps({"hooks": {"SessionStart": [shared, {"hooks": [HANDLER]}]}}, indent=1)
    there = json.loads(merged(text))
    assert there["hooks"]["SessionStart"] == [
        {"matcher": "startup", "hooks": [FOREIGN["hooks"][0], HANDLER, {"type": "prompt"}]}
    ]
    left = {"hooks": {"SessionStart": [{**shared, "hooks": [FOREIGN["hooks"][0], {"type": "prompt"}]}]}}
    assert json.loads(stripped(text)) == left


@pytest.mark.parametrize(("text", "message"), [
    ("", "empty"), (" \n", "empty"), ('{\n  "a": 1, /* mine \n}', "line 2"), ('{\n  "a": 1\n  "b": 2}', "line 3"),
    ('{"a": NaN}', "NaN is no JSON"), ("[]", "not a JSON object"), ('{"hooks": []}', '"hooks" is not an object'),
    ('{"hooks": {"Stop": {}}}', '"hooks.Stop" is not a list'),
    ('{"hooks": {"Stop": 1}, "hooks": {"Stop": "x"}}', '"hooks.Stop" is not a list'),
    ("[" * 100_000, "line 1"),
])  # fmt: skip
def test_what_cannot_be_edited_safely_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        merged(text)
    assert message in caught.value.message
    assert caught.value.path == PATH
    assert "nothing was written" in caught.value.hint


def test_of_a_name_that_stands_twice_nothing_is_taken_out() -> None:
    own = json.dumps([{"hooks": [HANDLER]}])
    with pytest.raises(ConfigError, match="cannot be edited safely"):
        stripped(f'{{"hooks": {{"Stop": [1], "Stop": {own}}}}}')


@pytest.mark.parametrize(("command", "ours"), [
    (PROGRAM.command("claude-code"), True),
    (Program(PROGRAM.words, "/a b/'c'").command("codex"), True),
    ("signet-sync hook gemini", True),
    ("/usr/local/bin/signet-sync --workspace ~/x hook codex", True),
    ("signet hook session-start -H claude-code", False),
    ("echo signet-sync hooks install claude-code", False),
    ("say done", False),
])  # fmt: skip
def test_our_commands_are_known_again(command: str, ours: bool) -> None:
    assert (OURS.search(command) is not None) is ours


WAY = ("mcp_servers", "ours")


@pytest.mark.parametrize("text", [
    "", 'model = "gpt"\n', 'model = "gpt"\r\n\r\n[tui]\r\nx = 1\r\n', "# only a comment\n",
    '[mcp_servers.docs]  # docs\ncommand = "x"\n\n# about tui\n[tui]\nx = 1\n',
    "[mcp_servers]\n",
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "say done"\n\n\n',
])  # fmt: skip
def test_a_table_comes_and_goes(text: str) -> None:
    settings = TomlText("config.toml", text.encode())
    settings.put(WAY, {"command": 'é"x', "args": ["a", "b"]})
    assert (settings.text or "").startswith(text)
    assert tomllib.loads(settings.text or "")["mcp_servers"]["ours"] == {"command": 'é"x', "args": ["a", "b"]}
    assert ("\r\n" in text) == ("\r\n" in (settings.text or ""))
    added = "# theirs\n\n[mcp_servers.ours.tools.x]\na = 1\n\n# of z\n[z]\ny = 1\n"
    later = TomlText("config.toml", f"{settings.text}{added}".encode())
    settings.remove(WAY)
    assert settings.text == text
    later.put((*WAY, "args"), ["c"])
    assert later.find(WAY) == {"command": 'é"x', "args": ["c"], "tools": {"x": {"a": 1}}}
    later.remove(WAY)
    assert {"mcp_servers": {}} | (tomllib.loads(later.text or "")) == {"mcp_servers": {}} | tomllib.loads(text) | {
        "z": {"y": 1}
    }
    assert (later.text or "").endswith("# of z\n[z]\ny = 1\n") and (later.text or "").startswith(text)


@pytest.mark.parametrize("text", ["mcp_servers = {docs = {a = 1}}\n", "mcp_servers = 3\n", "[[mcp_servers]]\na = 1\n"])
def test_a_table_that_cannot_be_added_safely_is_refused(text: str) -> None:
    settings = TomlText("config.toml", text.encode())
    with pytest.raises(ConfigError) as caught:
        settings.put(WAY, {"command": "x"})
    assert "nothing was written" in caught.value.hint and settings.text == text


def test_what_leads_to_a_comment_is_not_taken_along() -> None:
    text = '{\n  "hooks": {\n    // mine\n    "Stop": [\n      // also\n    ]\n  }\n}\n'
    assert stripped(merged(text)) == text
    entry = '"hooks": [{"command": "signet-sync hook codex"}]'
    text = f'{{"hooks": {{"Stop": [\n  {{{entry}}}, // ours\n  // theirs\n  {{"hooks": []}}\n]}}}}'
    assert stripped(text) == '{"hooks": {"Stop": [\n  // ours\n  // theirs\n  {"hooks": []}\n]}}'
