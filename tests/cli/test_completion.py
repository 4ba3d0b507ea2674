"""`completion`: each script says where it belongs, and is one that its shell reads."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from workbench import call


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
