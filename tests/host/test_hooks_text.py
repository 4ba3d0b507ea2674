"""Other programs' settings edited as text: what goes in comes out again, to the byte, whatever the formatting."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.errors import ConfigError
from signet_sync.host.harness_settings import codex_trust, hook_groups, json_text
from signet_sync.host.harness_settings.program import OURS, Program

PATH = "/home/mira/.claude/settings.json"
PROGRAM = Program(("/opt/py thon's/bin/python", "-P", "-m", "signet_sync"))
HANDLER = {"type": "command", "command": PROGRAM.command("claude-code"), "timeout": 10}
WANTED = {
    "SessionStart": {"hooks": [HANDLER]},
    "Stop": {"hooks": [{**HANDLER, "async": True}]},
    "SessionEnd": {"hooks": [HANDLER]},
}
FOREIGN = {"hooks": [{"type": "command", "command": "say done"}]}


def merged(text: str | None) -> str:
    return hook_groups.merged(text, WANTED, PATH)


def stripped(text: str) -> str | None:
    return hook_groups.stripped(text, PATH)


def foreign_part(value: dict) -> dict:
    """What is not ours in a document, without the lists and objects that stay empty without ours."""
    hooks = value.get("hooks", {})
    kept = {event: [g for g in found if g not in WANTED.values()] for event, found in hooks.items()}
    rest = {key: found for key, found in value.items() if key != "hooks"}
    return rest | {"hooks": {event: found for event, found in kept.items() if found}}


ODD = {
    "tabs": '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}\n\t\t]\n\t}\n}\n',
    "four spaces": '{\n    "hooks": {\n        "Stop": []\n    },\n    "model": "opus"\n}',
    "one line": '{"model":"opus","hooks":{"Stop":[{"hooks":[]}]}}',
    "one roomy line": '{ "model": "opus", "hooks": { "Stop": [ ] } }\n',
    "crlf": '{\r\n  "model": "opus",\r\n  "hooks": {\r\n  }\r\n}\r\n',
    "unicode escapes": '{\n  "caf\\u00e9": "\\ud83d\\ude00 \\/ ü",\n  "n": 1.50e+02\n}\n',
    "blank lines": '{\n\n\n  "model": "opus"\n\n\n,\n\n  "hooks": { "Stop": [\n\n{"hooks": [ ]}\n\n\n] }\n\n}\n\n\n',
    "empty": "{}",
    "empty with a line end": "{}\n",
    "empty, on two lines": "{\n}\n",
    "empty, indented": "{\n  \n}\n",
    "no hooks yet": '{\n  "model": "opus"\n}\n',
    "empty hooks": '{\n  "hooks": {}\n}\n',
    "byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "a name twice": '{"hooks": {"Stop": 1}, "hooks": {"Stop": []}}',
    "switches of older Gemini": '{"hooks": {"enabled": true, "disabled": []}}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_formatting_survives(text: str) -> None:
    there = merged(text)
    value = json.loads(there.removeprefix("\ufeff"))
    assert sorted(place.event for place in hook_groups.places(value)) == sorted(WANTED)
    assert all(WANTED[event] in value["hooks"][event] for event in WANTED)
    assert merged(there) == there
    assert stripped(there) == text


def test_a_document_of_our_own_goes_again() -> None:
    text = merged(None)
    assert json.loads(text) == {"hooks": {event: [group] for event, group in WANTED.items()}}
    assert merged(text) == text
    assert stripped(text) is None


def test_a_new_group_is_written_like_its_neighbours() -> None:
    text = '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}\n\t\t]\n\t}\n}\n'
    there = hook_groups.merged(text, {"Stop": FOREIGN | {}, "SessionEnd": {"hooks": []}}, PATH)
    assert there == (
        '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []},\n\t\t\t{\n\t\t\t\t"hooks": [\n\t\t\t\t\t{\n'
        '\t\t\t\t\t\t"type": "command",\n\t\t\t\t\t\t"command": "say done"\n\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t],\n'
        '\t\t"SessionEnd": [\n\t\t\t{\n\t\t\t\t"hooks": []\n\t\t\t}\n\t\t]\n\t}\n}\n'
    )


BLANKS = st.sampled_from(["", "", " ", "  ", "\n", "\n  ", "\n\t", "\r\n    ", "\r", " \n", "\n\n", " \n  "])
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


def formatted(draw: st.DrawFn, value: object) -> str:
    """A value as JSON with blanks of any kind wherever JSON allows them."""
    if isinstance(value, dict):
        parts = [
            f"{draw(BLANKS)}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(BLANKS)}:{draw(BLANKS)}"
            f"{formatted(draw, inner)}{draw(BLANKS)}"
            for key, inner in value.items()
        ]
        return "{" + (",".join(parts) or draw(BLANKS)) + "}"
    if isinstance(value, list):
        parts = [f"{draw(BLANKS)}{formatted(draw, inner)}{draw(BLANKS)}" for inner in value]
        return "[" + (",".join(parts) or draw(BLANKS)) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def texts(draw: st.DrawFn) -> str:
    value = draw(DOCUMENTS)
    kind = draw(st.sampled_from(["wild", "wild", "compact", "two", "tab", "four crlf"]))
    if kind == "wild":
        return draw(BLANKS) + formatted(draw, value) + draw(BLANKS)
    if kind == "compact":
        return json.dumps(value, separators=(",", ":"))
    text = json.dumps(value, indent={"two": 2, "tab": "\t"}.get(kind, 4)) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", "\r\n") if kind == "four crlf" else text


@given(texts())
def test_every_document_comes_back_to_the_byte(text: str) -> None:
    there = merged(text)
    value = json.loads(there)
    assert sorted(place.event for place in hook_groups.places(value)) == sorted(WANTED)
    assert foreign_part(value) == foreign_part(json.loads(text))
    assert merged(there) == there
    assert stripped(there) == text


@given(texts())
def test_a_reinstallation_elsewhere_changes_only_the_command(text: str) -> None:
    moved = Program(("/usr/bin/python3", "-P", "-m", "signet_sync"), "/vaults/my work")
    handler = {"type": "command", "command": moved.command("claude-code"), "timeout": 20}
    newer = {"SessionStart": {"hooks": [handler]}, "PreCompact": {"hooks": [handler]}}
    there = hook_groups.merged(merged(text), newer, PATH)
    found = hook_groups.places(json.loads(there))
    assert sorted(place.event for place in found) == ["PreCompact", "SessionStart"]
    assert all(place.own == handler for place in found)
    assert merged(there).count("signet_sync") == len(WANTED)
    assert stripped(there) == text


def test_what_was_added_after_ours_stays() -> None:
    there = json.loads(merged('{"model": "opus"}'))
    there["hooks"]["Stop"].append(FOREIGN)
    there["theme"] = "dark"
    left = stripped(json.dumps(there, indent=2))
    assert left is not None
    assert json.loads(left) == {"model": "opus", "hooks": {"Stop": [FOREIGN]}, "theme": "dark"}


def test_a_handler_that_shares_its_group_goes_alone() -> None:
    shared = {"matcher": "startup", "hooks": [FOREIGN["hooks"][0], {**HANDLER, "timeout": 1}, {"type": "prompt"}]}
    text = json.dumps({"hooks": {"SessionStart": [shared, {"hooks": [HANDLER]}]}}, indent=1)
    there = json.loads(merged(text))
    assert there["hooks"]["SessionStart"] == [
        {"matcher": "startup", "hooks": [FOREIGN["hooks"][0], HANDLER, {"type": "prompt"}]}
    ]
    left = json.loads(stripped(text) or "")
    assert left == {"hooks": {"SessionStart": [{**shared, "hooks": [FOREIGN["hooks"][0], {"type": "prompt"}]}]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('{\n  // mine\n  "hooks": {}\n}', "line 2: a comment"),
        ('{\n  "a": 1, /* mine */\n  "hooks": {}\n}', "line 2: a comment"),
        ('{\n  "a": 1,\n}', "line 3"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[]", "not a JSON object"),
        ('{"hooks": []}', '"hooks" is not an object'),
        ('{"hooks": {"Stop": {}}}', '"hooks.Stop" is not a list'),
        ("[" * 100_000, "line 1"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        merged(text)
    assert message in caught.value.message
    assert caught.value.path == PATH
    assert "nothing was written" in caught.value.hint


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (PROGRAM.command("claude-code"), True),
        (Program(PROGRAM.words, "/a b/'c'").command("codex"), True),
        ("signet-sync hook gemini", True),
        ("/usr/local/bin/signet-sync --workspace ~/x hook codex", True),
        ("signet hook session-start -H claude-code", False),
        ("echo signet-sync hooks install claude-code", False),
        ("say done", False),
    ],
)
def test_our_commands_are_known_again(command: str, ours: bool) -> None:
    assert (OURS.search(command) is not None) is ours


def test_the_form_with_arguments_is_known_again() -> None:
    handler = {"type": "command", "command": "/usr/bin/python3", "args": ["-m", "signet_sync", "hook", "claude-code"]}
    (place,) = hook_groups.places({"hooks": {"Stop": [{"hooks": [handler]}]}})
    assert place.words == ["/usr/bin/python3", "-m", "signet_sync", "hook", "claude-code"]


def test_children_are_found_between_any_blanks() -> None:
    text = '{ "a" :\n[1 , 2] ,"b":{"c":"}"}\r\n}'
    found = json_text.children(text, 0)
    assert [(child.key, child.data, text[child.value : child.end]) for child in found] == [
        ("a", [1, 2], "[1 , 2]"),
        ("b", {"c": "}"}, '{"c":"}"}'),
    ]


# ── what Codex trusts ──

STATES = {
    "/home/mira/.codex/hooks.json:session_start:0:0": "sha256:" + "a" * 64,
    "/home/mira/.codex/hooks.json:stop:1:0": "sha256:" + "b" * 64,
}
CONFIGS = [
    "",
    "\n",
    'model = "gpt"',
    'model = "gpt"\n',
    'model = "gpt"\r\n\r\n[tui]\r\nx = 1\r\n',
    "# only a comment",
    '[hooks.state."/elsewhere/hooks.json:stop:0:0"]\nenabled = true\ntrusted_hash = "sha256:c"\n',
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "say done"\n\n\n',
]


@pytest.mark.parametrize("text", CONFIGS)
def test_trust_comes_and_goes(text: str) -> None:
    there = codex_trust.written(text, STATES, "config.toml")
    state = tomllib.loads(there)["hooks"]["state"]
    assert {key: state[key] for key in STATES} == {
        key: {"enabled": True, "trusted_hash": value} for key, value in STATES.items()
    }
    assert codex_trust.written(there, STATES, "config.toml") == there
    assert codex_trust.without(there, STATES, "config.toml") == text


def test_trust_in_a_file_of_our_own() -> None:
    there = codex_trust.written(None, STATES, "config.toml")
    assert there.startswith("[hooks.state.")
    assert codex_trust.without(there, STATES, "config.toml") == ""


def test_a_stale_or_switched_off_trust_is_renewed() -> None:
    there = codex_trust.written("a = 1\n", dict.fromkeys(STATES, "sha256:old"), "config.toml")
    off = there.replace("enabled = true", "enabled = false", 1)
    renewed = codex_trust.written(off + "\n[tui]\nx = 1\n", STATES, "config.toml")
    assert codex_trust.all_trusted(tomllib.loads(renewed), STATES)
    assert not codex_trust.all_trusted(tomllib.loads(off), STATES)
    assert codex_trust.without(renewed, STATES, "config.toml") == "a = 1\n\n[tui]\nx = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'hooks = {state = {"x" = {enabled = true}}}\n',
        "[hooks\n",
        f'[hooks.state]\n"{next(iter(STATES))}" = {{trusted_hash = "sha256:old"}}\n',
    ],
)
def test_trust_that_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be edited safely|line 1"):
        codex_trust.written(text, STATES, "config.toml")


def test_the_hash_is_taken_over_canonical_json() -> None:
    import hashlib

    canonical = (
        '{"event_name":"session_start","hooks":[{"async":false,"command":"é x","timeout":10,"type":"command"}],'
        '"matcher":"startup"}'
    )
    expected = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    handler = {"type": "command", "command": "é x", "timeout": 10}
    assert codex_trust.trusted_hash("SessionStart", {"matcher": "startup", "hooks": [handler]}, handler) == expected
