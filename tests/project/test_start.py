"""Start-up is a budget: how many modules of ours each command may load, since no clock says the same twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from workbench import ROOT, Vault, numbered

# A command that needs more must make room first: two modules that are always loaded together are one.
LIMITS = {
    "--help": 17,
    "status": 82,
    "recall --words lantern": 63,
    "recall lantern": 106,
    "open ID": 85,
    "expand ID": 97,
    "context": 106,
    "reindex": 189,
    "reindex --full": 206,
    "hook claude-code SessionStart": 99,
    "hook claude-code UserPromptSubmit": 134,
    "hook claude-code Stop": 45,
}
# They take as long to load as everything of ours, and only the files that need them may.
HEAVY = {"pydantic", "loguru", "rich", "yaml", "frontmatter", "watchdog", "markdown_it"}
TELLING = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
runpy.run_module("signet_sync", run_name="__main__", alter_sys=True)
"""


def loaded(vault: Vault, line: str) -> set[str]:
    """The modules that a command loads."""
    command, _, event = line.partition(" claude-code ")
    words = [*command.split(), *(["claude-code"] if event else [])]
    words = [numbered(1)["session_id"] if word == "ID" else word for word in words]
    given = json.dumps({"hook_event_name": event, "session_id": "s", "prompt": "where is the lantern?"})
    done = subprocess.run(
        [sys.executable, "-c", TELLING, "--workspace", vault.root, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, input=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (line, done.stderr)
    return {*done.stderr.splitlines()[-1].split(), "__main__"}


def test_a_command_loads_no_more_than_its_budget(vault: Vault) -> None:
    vault.indexed(1)
    for line, limit in LIMITS.items():
        if line == "reindex":
            vault.session(2)  # a full pass derives anew what a pass over one change need not load
        found = loaded(vault, line)
        ours = sorted(name for name in found if name.partition(".")[0] == "signet_sync")
        assert len(ours) + 1 <= limit, (line, ours)
        assert line == "reindex --full" or not HEAVY & found, line
