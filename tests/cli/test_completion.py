"""`completion`: each script says where it belongs, is one that its shell reads, and offers what the vault holds."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from click.shell_completion import get_completion_class
from workbench import call

from signet_sync.cli.main import group


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "~/.local/share/bash-completion/completions/signet-sync"),
        ("zsh", "~/.zfunc/_signet-sync"),
        ("fish", "~/.config/fish/completions/signet-sync.fish"),
    ],
)
def test_the_first_lines_say_where_to_put_the_script(shell: str, place: str) -> None:
    script = call("completion", shell)
    assert (script.code, script.err) == (0, "")
    head = script.out.splitlines()[:4]
    assert f"#   signet-sync completion {shell} > {place}" in head
    assert all(line.startswith("#") for line in head[:3])
    assert head[0].startswith("#compdef signet-sync") is (shell == "zsh"), "zsh looks at the first line alone"
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
