"""Signet's hooks in harnesses: named, reported beside ours, taken out to the byte, and put back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Answer, Vault, call, tree

from signet_sync.host.harness_settings import signet_hooks


def handler(event: str, harness: str = "claude-code", program: str = "signet") -> dict[str, Any]:
    return {"type": "command", "command": f'{program} hook {event} -H {harness} --project "$(pwd)"', "timeout": 3000}


EVENTS = {"SessionStart": "session-start", "UserPromptSubmit": "user-prompt-submit", "SessionEnd": "session-end"}


def written(program: str = "signet") -> str:
    """Settings as Signet leaves them, with what a person had in them in odd formatting."""
    own = {event: [{"hooks": [handler(name, program=program)]}] for event, name in EVENTS.items()}
    stop = '"Stop": [ {"hooks": [{"type": "command",  "command": "say done"}]} ]'
    lines = [f"    {json.dumps(event)}: {json.dumps(groups)}" for event, groups in own.items()]
    return '{\n  "model":  "opus",\n  "hooks": {\n' + ",\n".join([*lines[:2], f"    {stop}", lines[2]]) + "\n  }\n}\n"


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


def signet(*words: str, code: int = 0) -> Any:
    answer: Answer = call("signet", *words, "--json")
    assert answer.code == code, answer
    return answer.json


@pytest.mark.parametrize(
    "program", ["signet", "/usr/local/bin/signet", '"/opt/my signet/bin/signet"', "node /x/signet/dist/cli.js"]
)
def test_they_are_named_whatever_the_path(vault, settings, program):
    settings.write_text(written(program))
    (found,) = signet("status")["hooks"]
    assert (found["harness"], found["events"], found["path"]) == ("claude-code", list(EVENTS), str(settings))
    assert "calls Signet at SessionStart" in call("signet", "status").out


@pytest.mark.parametrize(
    "command",
    [
        "signet-sync hook claude-code",
        "/x/signet_sync hook session-end -H x",
        "designet hook session-end -H x",
        "signet",
    ],
)
def test_other_commands_are_not_signets(vault, settings, command):
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}))
    assert signet("status")["hooks"] == []


def test_takeover_takes_them_out_and_undo_puts_them_back_to_the_byte(vault, settings):
    before = settings.read_bytes()
    plan = call("signet", "takeover", "--dry-run")
    assert "Signet's hooks for SessionStart" in plan.out and settings.read_bytes() == before
    assert call("signet", "takeover").code == 2, "only on a person's word"
    assert settings.read_bytes() == before
    assert signet("takeover", "--yes", "--now", NOW)["hooks"] == ["claude-code"]
    left = settings.read_text()
    assert json.loads(left) == {"model": "opus", "hooks": {"Stop": json.loads(written())["hooks"]["Stop"]}}
    assert left.startswith('{\n  "model":  "opus",\n  "hooks": {\n    "Stop": [ {"hooks": [{"type": "command",  "com')
    assert signet("status")["taken_out"] == ["claude-code"]
    assert signet("takeover", "--yes", "--now", NOW)["hooks"] == []
    assert signet("takeover", "--undo", "--yes", "--now", NOW)["hooks"] == ["claude-code"]
    assert settings.read_bytes() == before
    assert signet("status")["taken_out"] == []


def test_yield_puts_them_back_too_even_where_the_file_has_changed(vault, settings):
    signet("takeover", "--yes", "--now", NOW)
    settings.write_text(settings.read_text().replace("opus", "other"))
    assert signet("yield", "--yes", "--now", NOW)["hooks"] == ["claude-code"]
    wanted = json.loads(written().replace("opus", "other"))
    assert json.loads(settings.read_text()) == wanted


def test_ours_stay_and_an_empty_rest_is_an_object(vault, home):
    codex = home / ".codex/hooks.json"
    codex.parent.mkdir()
    codex.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [handler("session-end", "codex")]}]}}))
    done = signet("takeover", "--yes", "--now", NOW)
    assert done["hooks"] == ["codex"] and any("position" in line for line in done["by_hand"])
    assert codex.read_text() == "{}\n"
    signet("takeover", "--undo", "--yes", "--now", NOW)
    assert call("hooks", "install", "codex").code == 0
    ours = json.loads(codex.read_text())
    signet("takeover", "--yes", "--now", NOW)
    kept = json.loads(codex.read_text())["hooks"]
    assert kept["Stop"] == ours["hooks"]["Stop"][1:] and len(kept) == len(ours["hooks"])


MINE = {"type": "stdio", "command": "mine", "args": ["--about", "signet"]}
SERVERS = {
    "claude-code": (".claude.json", "mcpServers", {"command": "signet", "args": ["mcp"]}),
    "gemini": (".gemini/settings.json", "mcpServers", {"httpUrl": "http://localhost:3850/mcp"}),
    "opencode": (".config/opencode/opencode.json", "mcp", {"type": "local", "command": ["/x/signet", "mcp"]}),
}


@pytest.mark.parametrize("harness", SERVERS)
def test_its_servers_are_taken_out_and_put_back_to_the_byte(vault, home, harness):
    place, way, entry = SERVERS[harness]
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    ours = {"command": "signet-sync", "args": ["mcp"]}
    servers = {"mine": MINE, "memory": entry, "signet": {"command": "x"}, "signet-sync": ours}
    before = json.dumps({"theme": "dark", way: servers}, indent=3).replace('"dark"', ' "dark"')
    if harness == "gemini":  # hooks in the same file
        before = before.replace('"theme"', f'"hooks": {json.dumps(json.loads(written())["hooks"])},\n   "theme"')
    path.write_text(before)
    (found,) = signet("status")["servers"]
    assert (found["harness"], found["path"], found["names"]) == (harness, str(path), ["memory", "signet"])
    assert f"{harness}: MCP server memory, signet is taken out" in call("signet", "takeover", "--dry-run").out
    assert signet("takeover", "--yes", "--now", NOW)["servers"] == [harness]
    assert json.loads(path.read_text())[way] == {"mine": MINE, "signet-sync": ours}
    assert signet("status")["servers"] == [] and signet("status")["taken_out"] == [harness]
    done = signet("takeover", "--undo", "--yes", "--now", NOW)
    assert done["servers"] == [harness] and path.read_text() == before
    signet("takeover", "--yes", "--now", NOW)
    path.write_text(path.read_text().replace("dark", "light"))
    signet("yield", "--yes", "--now", NOW)
    assert json.loads(path.read_text()) == json.loads(before.replace("dark", "light"))


def test_what_a_person_has_to_take_out_is_named(vault, home):
    """Servers of Codex, and plug-ins, which are programs: found by their names, ours and others are left."""
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text('[mcp_servers.signet]\ncommand = "signet"\nargs = ["mcp"]\n')
    for name in ("signet.mjs", "signet-sync.js", "designet.js"):
        (home / ".config/opencode/plugins").mkdir(parents=True, exist_ok=True)
        (home / ".config/opencode/plugins" / name).write_text("")
    (home / ".openclaw/extensions/signet-memory-openclaw").mkdir(parents=True)
    names = [
        str(home / name)
        for name in (".config/opencode/plugins/signet.mjs", ".openclaw/extensions/signet-memory-openclaw")
    ]
    before = tree(home / ".codex")
    assert signet("status")["plugins"] == names
    told = signet("takeover", "--yes", "--now", NOW)["by_hand"]
    assert "take out Signet's MCP server: codex mcp remove signet" in told
    assert [line.partition(":")[0] for line in told if "plug-in" in line] == names
    assert tree(home / ".codex") == before and all(Path(name).exists() for name in names)


def test_settings_that_cannot_be_read_are_left_and_said(vault, settings):
    settings.write_text("{ // mine\n}")
    done = signet("takeover", "--yes", "--now", NOW, code=1)
    assert done["hooks"] == [] and "still there" in done["failed"][0]
    assert settings.read_text() == "{ // mine\n}"


def test_a_kill_before_the_file_changes_is_undone_without_a_trace(vault, settings, monkeypatch):
    from signet_sync.host.harness_settings import files

    before = settings.read_bytes()

    def killed(edit: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(files, "apply", killed)
        assert "still there" in signet("takeover", "--yes", "--now", NOW, code=1)["failed"][0]
    assert signet("status")["taken_out"] == ["claude-code"]
    assert signet("takeover", "--undo", "--yes", "--now", NOW)["hooks"] == []
    assert settings.read_bytes() == before


def test_both_are_reported_while_the_daemon_lives(vault, settings, home):
    assert call("hooks", "install", "claude-code").code == 0
    signets = tuple(one["signet"] for one in call("hooks", "status", "claude-code", "--json").json["harnesses"])
    assert signets == (list(EVENTS),)
    assert signet("status")["both"] == ["claude-code"]
    assert "hooks uninstall claude-code" in signet("yield", "--yes", "--now", NOW)["by_hand"][0]
    assert "signet-too" not in told()
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        (vault / ".daemon").mkdir()
        (vault / ".daemon/pid").write_text(str(process.pid))
        assert "signet-too" in told()
        assert "each arrives twice" in call("hooks", "status", "claude-code").out
        findings = call("doctor", "--json").json["findings"]
        assert any("each arrives twice" in finding["message"] for finding in findings)
    finally:
        process.kill()
        process.wait()
    assert "signet-too" not in told()


def told() -> list[str]:
    (entry,) = call("hooks", "status", "claude-code", "--json").json["harnesses"]
    return [problem["code"] for problem in entry["problems"]]


def test_status_writes_nothing(vault, settings, home):
    before = tree(home)
    signet("status")
    changed = {path for path in tree(home) if tree(home)[path] != before.get(path)}
    assert not [path for path in changed if not path.endswith(("-wal", "-shm")) and os.path.isfile(home / path)]


def test_what_is_taken_out_can_be_saved_and_read_again(settings, home):
    planned = signet_hooks.taking_out("claude-code", {"HOME": str(home)})
    assert planned is not None
    _, removal = planned
    fields = json.loads(json.dumps({name: getattr(removal, name) for name in removal.__slots__}))
    assert signet_hooks.Removal.of(fields) == removal
