"""Models of this machine: named by PATH, with the lines that turn them on, and nothing run or turned on."""

import os
import tomllib
from pathlib import Path

import pytest
from workbench import Vault

from signet_sync.llm.installed import is_undecided, list_models
from signet_sync.settings.model import Settings, load
from signet_sync.settings.model_choice import resolve


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs that leave a trace when they run, before all others on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("claude", "codex", "ollama"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_programs_are_found_by_path_alone(programs):
    assert [one.name for one in list_models(os.environ)] == ["claude -p", "codex exec", "Ollama"]
    (programs / "codex").chmod(0o644)
    (programs / "claude").unlink()
    assert [one.name for one in list_models(os.environ)] == ["Ollama"]
    assert list_models({"PATH": "/nowhere"}) == list_models({}) == []


def test_the_lines_are_settings_that_turn_it_on(programs, tmp_path):
    for one in list_models(os.environ):
        mine = tmp_path / "config.toml"
        mine.write_text("\n".join(one.lines) + "\n")
        tomllib.loads(mine.read_text())
        settings, remarks = load(str(tmp_path), environ={"SIGNET_CONFIG": str(mine)})
        assert not remarks and resolve(settings, None).kind in ("command", "http")
        assert not is_undecided(settings)
    assert is_undecided(Settings())
    assert not is_undecided(Settings(llm_provider="none"))


def test_init_hooks_and_doctor_name_them_and_run_none(programs, tmp_path, monkeypatch):
    vault = Vault(tmp_path / "vault")
    told = (vault.call("init"), vault.call("hooks", "install", "claude-code"), vault.call("doctor"))
    for answer in told:
        assert 'command = ["claude", "-p"]' in answer.out and 'provider = "ollama"' in answer.out, answer.out
        assert "[llm]" in answer.out and "config.toml" in answer.out
    findings = [one for one in vault.call("doctor", "--json").json["findings"] if one["name"] == "language-model-found"]
    assert {one["level"] for one in findings} == {"ok"} and len(findings) == 3
    assert not (programs / "ran").exists() and not Path(os.environ["SIGNET_CONFIG"]).exists()
    monkeypatch.setenv("SIGNET_LLM_PROVIDER", "none")
    assert all("claude" not in vault.call(*words).out.replace("claude-code", "") for words in (("init",), ("doctor",)))
