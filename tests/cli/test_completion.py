"""`completion`: each script says where it belongs, is one that its shell reads, and offers what the vault holds."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from click.shell_completion import get_completion_class
from workbench import call

from signet_sync.cli.main import group


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_says_where_it_belongs_and_is_one_that_its_shell_reads(shell: str) -> None:
    script = call("completion", shell)
    assert (script.code, script.err) == (0, "") and f"#   signet-sync completion {shell} > ~/" in script.out
    assert script.out.startswith("#compdef signet-sync") is (shell == "zsh"), "zsh looks at the first line alone"
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script.out, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash offers for the last word of a line."""
    words = ["signet-sync", *line.split(" ")]
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    kind = get_completion_class("bash")
    assert kind is not None
    said = kind(group, {}, "signet-sync", "_SIGNET_SYNC_COMPLETE").complete()
    return [entry.partition(",")[2] for entry in said.split("\n") if entry]


def test_commands_and_options_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("entity sh", monkeypatch) == ["show"]
    assert {"--workspace", "--agent", "--json"} <= set(completed("recall --", monkeypatch))
    assert "--agent" not in completed("init --", monkeypatch)
    assert completed("open ", monkeypatch) == [], "names of the workspace do not complete"
