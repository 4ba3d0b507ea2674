"""`hooks install --mcp`: our server in the settings of harnesses beside the hooks, and out again to the byte."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_hooks import PYTHON, all_harnesses, codes, conditions, good, put
from workbench import Vault, call, contents, sampled

from signet_sync.capture.harnesses import registry
from signet_sync.host.harness_settings.harness import is_our_server

WORDS = [PYTHON, "-P", "-m", "signet_sync", "mcp"]
LISTS = {
    name: facts.server_file({"HOME": "/home"}).removeprefix("/home/")
    for name in registry.names()
    if (facts := registry.facts(name)).servers
}
# What a person has under our name: it is not ours, whatever it is called.
THEIRS = {
    "claude-code": '{"mcpServers": {"signet-sync": {"command": "npx", "args": ["their-server"]}}}',
    "codex": '[mcp_servers.signet-sync]\nurl = "https://memory.example/mcp"\n',
    "gemini": '{"mcpServers": {"signet-sync": {"httpUrl": "https://memory.example/mcp"}}}',
    "opencode": '{"mcp": {"signet-sync": {"type": "remote", "url": "https://memory.example/mcp"}}}',
}


@pytest.fixture
def vault(home: Path) -> Vault:
    """The default workspace."""
    return Vault(home / ".agents")


def registered(home: Path) -> dict[str, Any]:
    """The entry of our server in each list, as the harness reads it."""
    found = {}
    for name, path in LISTS.items():
        text = (home / path).read_text() if (home / path).exists() else ""
        data = tomllib.loads(text) if path.endswith("toml") else json.loads(text or "{}")
        servers = data.get("mcp_servers") or data.get("mcpServers") or data.get("mcp") or {}
        found[name] = servers.get("servers", servers).get("signet-sync")
    return found


def test_the_server_stands_beside_the_hooks_and_goes_with_them(home: Path, vault: Vault) -> None:
    all_harnesses(home)
    put(home / ".claude.json", '{\n  "numStartups": 34,\n  "mcpServers": {"docs": {}},\n  "projects": {"/x": {}}\n}')
    put(home / ".codex/config.toml", '# mine\n[mcp_servers.docs]\ncommand = "npx"\n')
    put(home / ".gemini/settings.json", '{\n\t"mcpServers": {\n\t\t"docs": {"command": "npx"}\n\t}\n}\n')
    put(home / ".config/opencode/opencode.jsonc", '{\n  // mine\n  "theme": "dark",\n}\n')
    before = contents(home, but=[".agents"])
    answer = good(call("hooks", "install", "auto", "--mcp", "--agent", "nova", "--scope", "shared"))
    assert "MCP server: memory of nova, scope shared" in answer.out
    words = [*WORDS, "--agent", "nova", "--scope", "shared"]
    parts = {"command": words[0], "args": words[1:]}
    handed_on = {"env_vars": ["SIGNET_CONFIG", "SIGNET_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"]}
    found = registered(home)
    wanted = {
        "claude-code": {"type": "stdio", **parts}, "codex": parts | handed_on, "gemini": parts,
        "opencode": {"type": "local", "command": words},
    }  # fmt: skip
    assert all(found.values()) and found | wanted == found
    for name, condition in conditions().items():
        mcp = condition["mcp"]
        assert condition["installed"] and condition["problems"] == []
        assert mcp == (
            {"path": str(home / LISTS[name]), "command": words, "agent_id": "nova", "scope": "shared"}
            if name in LISTS
            else None
        )
    assert call(*words[4:-4], "--help").code == 0
    good(call("hooks", "uninstall", "auto"))
    assert contents(home, but=[".agents"]) == before


def test_installed_again_without_it_the_server_stays_as_it_is(home: Path, vault: Vault) -> None:
    all_harnesses(home)
    good(call("hooks", "install", "auto", "--mcp"))
    there = contents(home, but=[".agents"])
    assert "nothing would change" in good(call("hooks", "install", "auto", "--dry-run")).out
    good(call("hooks", "install", "auto"))
    assert contents(home, but=[".agents"]) == there
    good(call("hooks", "install", "codex", "--mcp", "--agent", "nova", "--tools", "all"))
    assert registered(home)["codex"]["args"] == [*WORDS[1:], "--agent", "nova", "--tools", "all"]
    good(call("hooks", "install", "codex"))
    assert registered(home)["codex"]["args"] == [*WORDS[1:], "--agent", "nova", "--tools", "all"]
    assert "--tools need --mcp" in call("hooks", "install", "codex", "--tools", "all").err
    good(call("hooks", "uninstall", "auto"))
    assert not (home / ".claude.json").exists() and not any((home / ".codex").iterdir())


@pytest.mark.parametrize("name", sampled(THEIRS, 2))
def test_a_server_of_somebody_else_with_our_name_is_left_alone(home: Path, vault: Vault, name: str) -> None:
    path = put(home / LISTS[name], THEIRS[name])
    before = contents(home, but=[".agents"])
    answer = call("hooks", "install", name, "--mcp")
    assert answer.code == 2
    assert "is not ours" in answer.err and str(path) in answer.err and "give it another name" in answer.err
    assert contents(home, but=[".agents"]) == before
    good(call("hooks", "install", name))
    assert conditions()[name]["mcp"] is None
    good(call("hooks", "uninstall", name))
    assert path.read_text() == THEIRS[name]


def test_what_a_person_has_made_of_the_server_stays_when_it_is_renewed(home: Path, vault: Vault) -> None:
    all_harnesses(home)
    old = ["-P", "-m", "signet_sync", "--workspace", "/gone/vault", "mcp", "--read-only"]
    claude = {"command": "/gone/python3", "args": old, "env": {"A": "b"}}
    put(home / ".claude.json", json.dumps({"mcpServers": {"signet-sync": claude}}))
    mine = (
        f'[mcp_servers.signet-sync]\n# mine\ncommand = "/gone/python3"\nargs = {json.dumps(old)}\n'
        'startup_timeout_sec = 20\n\n[mcp_servers.signet-sync.tools.memory_search]\napproval_mode = "approve"\n'
    )
    config = put(home / ".codex/config.toml", f'model = "gpt"\n\n{mine}\n# tui\n[tui]\nx = 1\n')
    opencode_ = {"type": "local", "command": ["/gone/python3", *old], "enabled": False}
    put(home / ".config/opencode/opencode.json", json.dumps({"mcp": {"signet-sync": opencode_}}))
    found = conditions()
    assert codes(found["claude-code"]) == codes(found["codex"]) == ["server-gone"]
    assert codes(found["opencode"]) == ["server-gone"]
    good(call("hooks", "install", "auto"))
    renewed = {"command": PYTHON, "args": [*WORDS[1:], "--read-only"]}
    assert registered(home) == dict.fromkeys(LISTS) | {
        "claude-code": claude | renewed | {"type": "stdio"},
        "codex": renewed | {"startup_timeout_sec": 20, "tools": {"memory_search": {"approval_mode": "approve"}}},
        "gemini": None,
        "opencode": opencode_ | {"command": [*WORDS, "--read-only"]},
    }
    assert codes(conditions()["opencode"]) == [] and "# mine\n" in config.read_text()
    good(call("hooks", "uninstall", "auto"))
    assert config.read_text() == 'model = "gpt"\n\n# tui\n[tui]\nx = 1\n'
    assert registered(home) == dict.fromkeys(LISTS)


def test_a_person_may_start_our_server_in_a_way_of_their_own(home: Path, vault: Vault, monkeypatch: Any) -> None:
    """As the documentation has it for pasting; only where it cannot work it is told, and replaced when asked for."""
    text = '{"mcpServers": {"signet-sync": {"command": "signet-sync", "args": ["mcp"]}}}'
    path = put(home / ".claude.json", text)
    put(home / "bin/signet-sync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}/bin")
    good(call("hooks", "install", "claude-code"))
    assert path.read_text() == text and codes(conditions()["claude-code"]) == []
    monkeypatch.setenv("PATH", "/nowhere")
    assert codes(conditions()["claude-code"]) == ["server-gone"]
    good(call("hooks", "install", "claude-code", "--mcp"))
    assert registered(home)["claude-code"]["args"] == WORDS[1:]


def test_openclaw_edits_its_own_list(home: Path, vault: Vault) -> None:
    out = good(call("hooks", "install", "openclaw", "--mcp")).out
    assert f"""openclaw mcp set signet-sync '{{"command": "{PYTHON}",""" in out
    assert '"--scope", "shared"' in out  # one server for all chats
    assert '"--scope", "main"' in good(call("hooks", "install", "openclaw", "--mcp", "--scope", "main")).out
    put(home / ".openclaw/openclaw.json", '{mcp: {servers: {"signet-sync": {args: ["-m", "signet_sync"]}}}} // mine')
    assert "openclaw mcp unset signet-sync" in good(call("hooks", "uninstall", "openclaw")).out
    assert (home / ".openclaw/openclaw.json").exists() and not any((home / ".openclaw/hooks").iterdir())


@pytest.mark.parametrize("times", [1, 9])
def test_a_harness_that_writes_over_us_is_noticed(home: Path, vault: Vault, monkeypatch: Any, times: int) -> None:
    """What a running Claude Code does: it writes what it had read before."""
    text = '{\n  "numStartups": 34\n}'
    path = put(home / ".claude.json", text)
    written = []
    replace = os.replace

    def and_they_too(source: str, target: str) -> None:
        replace(source, target)
        if target == str(path) and len(written) < times:
            written.append(target)
            path.write_text(text)

    monkeypatch.setattr(os, "replace", and_they_too)
    answer = call("hooks", "install", "claude-code", "--mcp")
    if times == 1:
        assert good(answer) and registered(home)["claude-code"] and json.loads(path.read_text())["numStartups"] == 34
    else:
        assert answer.code == 3 and "close the programs that write it" in answer.err and path.read_text() == text


@pytest.mark.parametrize(("words", "ours"), [
    (WORDS, True), (["signet-sync", "mcp"], True),
    (["uvx", "--from", "signet-sync[mcp]", "signet-sync", "mcp", "--agent", "nova"], True),
    (["npx", "signet-sync-mcp"], False), (["npx", "un-signet-sync", "mcp"], False),
    (["signet-sync", "hook", "codex"], False), ([], False),
])  # fmt: skip
def test_our_server_is_known_again(words: list[str], ours: bool) -> None:
    assert is_our_server(words) is ours


def test_claude_code_with_a_folder_of_its_own_keeps_its_list_there(home: Path, vault: Vault, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    good(call("hooks", "install", "claude-code", "--mcp"))
    assert conditions()["claude-code"]["mcp"]["path"] == str(home / "elsewhere/.claude.json")
    put(home / "elsewhere/.config.json", "{}")
    good(call("hooks", "install", "claude-code", "--mcp"))
    assert conditions()["claude-code"]["mcp"]["path"] == str(home / "elsewhere/.config.json")


def test_leaving_a_workspace_takes_its_server_along(home: Path, vault: Vault) -> None:
    good(call("hooks", "install", "claude-code", "--mcp"))
    (home / ".claude/settings.json").unlink()
    assert "claude-code" in good(call("eject", "--dry-run")).out
    good(call("eject", "--yes"))
    assert not (home / ".claude.json").exists()
