"""Signet's hooks in harnesses: named by what they run, reported beside ours, taken out with its servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from signet_writer import process_of
from workbench import NOW, Vault, call

from signet_sync.admin import signet


def handler(event: str, harness: str = "claude-code", program: str = "signet") -> dict[str, Any]:
    return {"type": "command", "command": f'{program} hook {event} -H {harness} --project "$(pwd)"', "timeout": 3000}


EVENTS = {"SessionStart": "session-start", "UserPromptSubmit": "user-prompt-submit", "SessionEnd": "session-end"}
STOP = [{"hooks": [{"type": "command", "command": "say done"}]}]


def written(program: str = "signet") -> str:
    """Settings as Signet leaves them, with what a person had in them."""
    own = {event: [{"hooks": [handler(name, program=program)]}] for event, name in EVENTS.items()}
    return json.dumps({"model": "opus", "hooks": {**own, "Stop": STOP}}, indent=2)


@pytest.fixture
def vault(home: Path) -> Vault:
    vault = Vault(home / ".agents")
    vault.session(1)
    vault.reindex()
    return vault


@pytest.fixture
def settings(home: Path) -> Path:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(written())
    return path


@pytest.mark.parametrize(
    "program", ["signet", "/usr/local/bin/signet", '"/opt/my signet/bin/signet"', "node /x/signet/dist/cli.js"]
)
def test_they_are_named_and_taken_out_whatever_the_path(vault, settings, program):
    settings.write_text(written(program))
    words = f"Signet's hooks for {', '.join(EVENTS)} in {settings}"
    assert signet.there() == [f"claude-code: {words}"]
    assert signet.take_out(str(vault.root)).done == [f"claude-code: taken out are {words}"]
    assert json.loads(settings.read_text()) == {"model": "opus", "hooks": {"Stop": STOP}}
    assert signet.there() == signet.take_out(str(vault.root)).done == []


@pytest.mark.parametrize("command", [
    "signet-sync hook claude-code", "/x/signet_sync hook session-end -H x", "designet hook session-end -H x", "signet",
])  # fmt: skip
def test_other_commands_are_not_signets(vault, settings, command):
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}))
    assert signet.there() == signet.take_out(str(vault.root)).done == []


def test_ours_stay(vault, home):
    codex = home / ".codex/hooks.json"
    codex.parent.mkdir()
    codex.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [handler("session-end", "codex")]}]}}))
    assert call("hooks", "install", "codex").code == 0
    ours = json.loads(codex.read_text())["hooks"]
    done = signet.take_out(str(vault.root))
    assert len(done.done) == 1 and done.by_hand == []
    kept = json.loads(codex.read_text())["hooks"]
    assert kept["Stop"] == ours["Stop"][1:] and len(kept) == len(ours)


MINE = {"type": "stdio", "command": "mine", "args": ["--about", "signet"]}
SERVERS = {
    "claude-code": (".claude.json", "mcpServers", {"command": "signet", "args": ["mcp"]}),
    "gemini": (".gemini/settings.json", "mcpServers", {"httpUrl": "http://localhost:3850/mcp"}),
    "opencode": (".config/opencode/opencode.json", "mcp", {"type": "local", "command": ["/x/signet", "mcp"]}),
}


@pytest.mark.parametrize("harness", SERVERS)
def test_its_servers_are_taken_out(vault, home, harness):
    place, way, entry = SERVERS[harness]
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    ours = {"command": "signet-sync", "args": ["mcp"]}
    servers = {"mine": MINE, "memory": entry, "signet": {"command": "x"}, "signet-sync": ours}
    path.write_text(json.dumps({"theme": "dark", way: servers}, indent=3))
    words = f"Signet's MCP servers memory, signet in {path}"
    assert signet.there() == [f"{harness}: {words}"]
    assert signet.take_out(str(vault.root)).done == [f"{harness}: taken out are {words}"]
    assert json.loads(path.read_text()) == {"theme": "dark", way: {"mine": MINE, "signet-sync": ours}}


def test_hooks_and_servers_of_one_file_go_together_and_comments_stay(vault, home):
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    hooks = json.dumps({"SessionStart": [{"hooks": [handler("session-start", "gemini")]}]})
    path.write_text(
        f'{{\n  // mine\n  "hooks": {hooks},\n  "mcpServers": {{"signet": {{"command": "x"}}}},\n  "a": 1,\n}}\n'
    )
    (done,) = signet.take_out(str(vault.root)).done
    assert done.endswith(f"hooks for SessionStart and MCP servers signet in {path}")
    assert path.read_text() == '{\n  // mine\n  "a": 1,\n}\n'
    assert "signet" in path.with_name("settings.json.signet-sync.bak").read_text()


def test_servers_of_codex_go_and_plug_ins_are_named(vault, home):
    """Plug-ins are programs: found by their names, ours and others are left."""
    config = home / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text('# mine\n[mcp_servers.signet]\ncommand = "signet"\nargs = ["mcp"]\n\n[tui]\nx = 1\n')
    for name in ("signet.mjs", "signet-sync.js", "designet.js"):
        (home / ".config/opencode/plugins").mkdir(parents=True, exist_ok=True)
        (home / ".config/opencode/plugins" / name).write_text("")
    (home / ".openclaw/extensions/signet-memory-openclaw").mkdir(parents=True)
    names = [
        str(home / name)
        for name in (".config/opencode/plugins/signet.mjs", ".openclaw/extensions/signet-memory-openclaw")
    ]
    told = signet.take_out(str(vault.root)).by_hand
    assert [line.partition(": ")[2] for line in told if "plug-in" in line] == names
    assert config.read_text() == "# mine\n\n[tui]\nx = 1\n" and all(Path(name).exists() for name in names)


def test_both_are_reported_while_the_daemon_lives(vault, settings, home):
    assert call("hooks", "install", "claude-code").code == 0
    signets = tuple(one["signet"] for one in call("hooks", "status", "claude-code", "--json").json["harnesses"])
    assert signets == (list(EVENTS),)
    assert "signet-too" not in told()
    with process_of(vault.root):
        assert "signet-too" in told()
        assert "each arrives twice" in call("hooks", "status", "claude-code").out
        findings = call("doctor", "--json").json["findings"]
        assert any("each arrives twice" in finding["message"] for finding in findings)
        assert any("migrate signet" in finding["remedy"] for finding in findings if finding["name"] == "signet-daemon")
    assert "signet-too" not in told() and not vault.reindex("--now", NOW)["held"]


def told() -> list[str]:
    (entry,) = call("hooks", "status", "claude-code", "--json").json["harnesses"]
    return [problem["code"] for problem in entry["problems"]]
