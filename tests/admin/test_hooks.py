"""`hooks`: what stands in the settings of harnesses afterwards, what is said, and that all of it can be undone."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from workbench import ROOT, Answer, Vault, call, contents

from signet_sync.capture.harnesses import registry
from signet_sync.host.harness_settings.harness import Program
from signet_sync.storage import state_dir

PYTHON = Program.identify(None).words[0]

SETTINGS = """{
\t"model": "opus",
\t"hooks": {
\t\t"Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ]
\t}
}
"""


@pytest.fixture
def vault(home: Path) -> Vault:
    """The default workspace."""
    return Vault(home / ".agents")


def put(path: Path, text: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def all_harnesses(home: Path) -> None:
    for name in registry.list_hooked():
        Path(registry.settings(name).folder({"HOME": str(home)})).mkdir(parents=True)


def conditions(*arguments: str) -> dict[str, Any]:
    answer = call(*arguments, "hooks", "status", "auto", "--json")
    assert answer.code == 0, answer
    return {entry["harness"]: entry for entry in answer.json["harnesses"]}


def codes(condition: Any) -> list[str]:
    return [problem["code"] for problem in condition["problems"]]


def fed(vault: Vault) -> dict[str, Any]:
    """What the workspace remembers of who feeds it."""
    place = Path(state_dir.locate(str(vault.root)).harnesses)
    return json.loads(place.read_text()) if place.exists() else {}


def commands(path: Path) -> dict[str, list[str]]:
    hooks = json.loads(path.read_bytes())["hooks"]
    return {
        event: [handler["command"] for group in groups for handler in group["hooks"]] for event, groups in hooks.items()
    }


def good(answer: Answer) -> Answer:
    assert answer.code == 0, answer
    return answer


def test_claude_code_and_back_to_the_byte(home: Path, vault: Vault) -> None:
    path = put(home / ".claude/settings.json", SETTINGS)
    path.chmod(0o640)
    answer = good(call("hooks", "install", "claude-code"))
    hooks = json.loads(path.read_bytes())["hooks"]
    ours = {"type": "command", "command": f"{PYTHON} -P -m signet_sync hook claude-code", "timeout": 10}
    assert hooks.pop("Stop") == [{"hooks": [{"type": "command", "command": "say done"}]}, {"hooks": [ours]}]
    assert hooks.pop("UserPromptSubmit") == [{"hooks": [{**ours, "timeout": 5}]}]
    for event, tools in (("PreToolUse", "Edit|Write|Bash"), ("PostToolUseFailure", "Bash")):
        assert hooks.pop(event) == [{"matcher": tools, "hooks": [{**ours, "timeout": 1}]}]
    assert hooks == {event: [{"hooks": [ours]}] for event in ("SessionStart", "PostCompact", "SessionEnd")}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for word in (str(path), "changed", "7 events", str(vault.root), "signet-sync hooks uninstall claude-code"):
        assert word in answer.out
    assert conditions()["claude-code"]["installed"]
    since = fed(vault)
    assert since.keys() == {"claude-code"} and since["claude-code"]["since"].endswith("Z")

    before = path.stat()
    assert "already up to date" in good(call("hooks", "install", "claude-code")).out
    assert path.stat() == before and fed(vault) == since

    assert "changed" in good(call("hooks", "uninstall", "claude-code")).out
    assert path.read_text() == SETTINGS
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert fed(vault) == {}
    assert "nothing to remove" in good(call("hooks", "uninstall", "claude-code")).out
    assert [entry.name for entry in path.parent.iterdir()] == ["settings.json"]


def test_auto_means_what_is_here_and_leaves_no_trace(home: Path, vault: Vault) -> None:
    all_harnesses(home)
    put(home / ".gemini/settings.json", "{}")
    put(home / ".codex/config.toml", 'model = "gpt"')
    for name in (".claude", ".codex", ".config/opencode/plugins", ".openclaw/hooks"):
        put(home / name / "neighbour", "x")
    before = contents(home, but=[".agents"])
    answer = good(call("hooks", "install", "auto"))
    assert answer.err == "" and [line for line in answer.out.split("\n") if line in registry.list_hooked()] == [
        *registry.list_hooked()
    ]
    assert fed(vault).keys() == set(registry.list_hooked())
    for condition in conditions().values():
        assert condition["found"] and condition["installed"] and condition["problems"] == [], condition
    made = re.findall(r"^  (/.*): created$", answer.out, re.MULTILINE)
    assert len(made) >= 5
    assert all(stat.S_IMODE(os.stat(path).st_mode) == 0o600 for path in made)
    good(call("hooks", "uninstall", "auto"))
    assert contents(home, but=[".agents"]) == before
    assert not any(condition["events"] for condition in conditions().values())


def test_the_command_that_was_installed_works_from_any_folder(home: Path, vault: Vault, tmp_path: Path) -> None:
    good(call("hooks", "install", "claude-code"))
    (command,) = commands(home / ".claude/settings.json")["Stop"]
    transcript = put(home / ".claude/projects/-code/5e551000.jsonl", "{}\n")
    project = put(tmp_path / "checkout/json.py", "raise SystemExit('a module of the checkout was run')\n").parent
    event = {
        "hook_event_name": "Stop", "session_id": "5e551000", "transcript_path": str(transcript), "cwd": str(project),
    }  # fmt: skip
    done = subprocess.run(
        ["sh", "-c", command], input=json.dumps(event), cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list(Path(state_dir.locate(str(vault.root)).spool).iterdir())) == 1


def test_another_workspace_takes_over_in_place(home: Path, vault: Vault, tmp_path: Path) -> None:
    path = put(home / ".claude/settings.json", SETTINGS)
    good(call("hooks", "install", "claude-code"))
    other = Vault(tmp_path / "other")
    seen_from_there = conditions("--workspace", str(other.root))["claude-code"]
    assert codes(seen_from_there) == ["hooks-elsewhere"]
    hint = f"signet-sync --workspace {other.root} hooks install claude-code points them to this one"
    assert seen_from_there["problems"][0]["hint"] == hint
    good(other.call("hooks", "install", "claude-code"))
    assert all(sum("signet_sync" in command for command in found) == 1 for found in commands(path).values())
    assert (list(fed(vault)), list(fed(other))) == ([], ["claude-code"])
    assert codes(conditions()["claude-code"]) == ["hooks-elsewhere"]
    good(call("hooks", "uninstall", "claude-code"))
    assert fed(other) == {}
    assert path.read_text() == SETTINGS


def test_an_older_installation_is_renewed(home: Path, vault: Vault) -> None:
    old = {"hooks": [{"type": "command", "command": "/gone/python -m signet_sync hook claude-code", "timeout": 5}]}
    path = put(home / ".claude/settings.json", json.dumps({"hooks": {"SessionStart": [old], "SubagentStop": [old]}}))
    condition = conditions()["claude-code"]
    assert not condition["installed"]
    assert codes(condition) == ["hooks-gone", "hooks-partly"]
    good(call("hooks", "install", "claude-code"))
    assert codes(conditions()["claude-code"]) == []
    assert "SubagentStop" not in commands(path)
    assert "/gone/python" not in path.read_text()


def test_a_link_is_followed_and_kept(home: Path, vault: Vault) -> None:
    target = put(home / "dotfiles/claude.json", SETTINGS)
    link = home / ".claude/settings.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/claude.json")
    good(call("hooks", "install", "claude-code"))
    assert link.is_symlink() and "signet_sync" in target.read_text()
    names = sorted(entry.name for entry in target.parent.iterdir())
    assert names == ["claude.json", "claude.json.signet-sync.bak"]
    good(call("hooks", "uninstall", "claude-code"))
    assert link.is_symlink() and target.read_text() == SETTINGS


def test_a_copy_from_before_the_first_change_is_kept_and_never_put_back(home: Path, vault: Vault) -> None:
    path = put(home / ".claude/settings.json", SETTINGS)
    path.chmod(0o640)
    copy = path.with_name("settings.json.signet-sync.bak")
    good(call("hooks", "install", "claude-code", "--dry-run"))
    assert not copy.exists()
    good(call("hooks", "install", "claude-code"))
    assert copy.read_text() == SETTINGS and stat.S_IMODE(copy.stat().st_mode) == 0o640
    path.write_text(path.read_text().replace("opus", "other").replace("10", "7"))
    good(call("hooks", "install", "claude-code"))
    assert copy.read_text() == SETTINGS
    good(call("hooks", "uninstall", "claude-code"))
    assert path.read_text() == SETTINGS.replace("opus", "other") and copy.read_text() == SETTINGS
    path.write_text(SETTINGS)
    good(call("hooks", "install", "claude-code"))
    good(call("hooks", "uninstall", "claude-code"))
    assert path.read_text() == SETTINGS and not copy.exists(), "a copy of what is there is of no use"


@pytest.mark.parametrize(
    ("text", "told"),
    [(b'{\n  "model": "opus"\n  "x": 1}\n', "line 3"), (b'{"model": "caf\xe9"}', "not UTF-8"), (b"", "empty")],
)
def test_settings_that_cannot_be_edited_stay_as_they_are(home: Path, vault: Vault, text: bytes, told: str) -> None:
    path = put(home / ".claude/settings.json", text)
    (home / ".codex").mkdir()
    for command in ("install", "uninstall"):
        answer = call("hooks", command, "claude-code")
        assert answer.code == 2
        assert told in answer.err and str(path) in answer.err and "nothing was written" in answer.err
    assert codes(conditions()["claude-code"]) == ["settings-unparsable"]
    answer = call("hooks", "install", "auto")
    assert answer.code == 2
    assert told in answer.err and "codex" in answer.out
    assert fed(vault).keys() == {"codex"}
    assert path.read_bytes() == text
    assert [entry.name for entry in path.parent.iterdir()] == ["settings.json"]


def test_dry_run_shows_a_diff_and_writes_nothing(home: Path, vault: Vault) -> None:
    all_harnesses(home)
    put(home / ".claude/settings.json", SETTINGS.rstrip("\n"))
    before = contents(home.parent)
    out = good(call("hooks", "install", "auto", "--dry-run")).out
    assert contents(home.parent) == before
    assert f"--- {home}/.claude/settings.json\n+++ {home}/.claude/settings.json\n" in out
    assert f"--- /dev/null\n+++ {home}/.codex/hooks.json\n" in out
    assert "\\ No newline at end of file\n" in out
    if shutil.which("patch") is None:
        pytest.skip("patch is not on this machine")
    patched = subprocess.run(["patch", "-p0", "-d", "/"], input=out, capture_output=True, text=True, check=False)
    assert patched.returncode == 0, patched
    assert "nothing would change" in good(call("hooks", "install", "auto", "--dry-run")).out
    out = good(call("hooks", "uninstall", "claude-code", "--dry-run")).out
    assert '-\t\t"SessionStart": [' in out


def test_a_file_of_somebody_else_is_left_alone(home: Path, vault: Vault) -> None:
    path = put(home / ".config/opencode/plugins/signet-sync.js", "export const Mine = 1\n")
    answer = call("hooks", "install", "opencode")
    assert answer.code == 2
    assert "is not ours" in answer.err
    assert codes(conditions()["opencode"]) == ["foreign-file"]
    good(call("hooks", "uninstall", "opencode"))
    assert path.read_text() == "export const Mine = 1\n"


def test_a_script_of_another_version_is_renewed(home: Path, vault: Vault) -> None:
    name = "opencode"
    good(call("hooks", "install", name))
    path = Path(conditions()[name]["path"])
    text = path.read_text()
    path.write_text(text + "// older\n")
    assert codes(conditions()[name]) == ["hooks-outdated"]
    path.write_text(text.replace(PYTHON, "/gone/python"))
    assert codes(conditions()[name]) == ["hooks-gone"]
    good(call("hooks", "install", name))
    assert path.read_text() == text


def test_without_a_workspace_nothing_is_installed(home: Path) -> None:
    put(home / ".claude/settings.json", SETTINGS)
    answer = call("hooks", "install", "claude-code")
    assert answer.code == 3
    assert "signet-sync setup" in answer.err
    assert (home / ".claude/settings.json").read_text() == SETTINGS
    good(call("hooks", "uninstall", "claude-code"))


def test_status_says_what_came_of_the_hooks(home: Path, vault: Vault) -> None:
    good(call("hooks", "install", "claude-code"))
    assert "transcripts read: none yet" in call("hooks", "status", "claude-code").out
    turn = {"type": "user", "uuid": "u1", "parentUuid": None, "isSidechain": False, "sessionId": "s-1", "cwd": "/w"}
    said = {"timestamp": "2026-03-28T10:00:00.000Z", "message": {"role": "user", "content": "Fix the queue"}}
    transcript = put(home / ".claude/projects/-w/s-1.jsonl", json.dumps(turn | said) + "\n")
    assert "1 segment of 1 session" in good(call("import", "claude-code", str(transcript))).out
    assert call("recall", "queue").out, "it is indexed by then"
    found = conditions()["claude-code"]
    assert found["transcripts_read"] == 1
    told = call("hooks", "status", "claude-code").out
    assert f"transcripts read: last {found['last_read']}, 1 in total" in told


def test_the_command_runs_in_a_shell_whatever_the_path(home: Path, tmp_path: Path) -> None:
    root = Vault(tmp_path / 'my "own" vault\'s $HOME & é').root
    good(call("--workspace", str(root), "hooks", "install", "claude-code"))
    (command,) = commands(home / ".claude/settings.json")["SessionEnd"]
    assert shlex.split(command)[1:] == ["-P", "-m", "signet_sync", "--workspace", str(root), "hook", "claude-code"]
    seen = subprocess.run(
        ["sh", "-c", "python() { printf '%s\\n' \"$@\"; }; python " + command],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert seen.stdout.splitlines() == shlex.split(command)
