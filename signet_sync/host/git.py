"""Runs git so that nothing runs or is fetched that a repository could configure; asks it what changed since a time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

_PATIENCE = 0.02  # seconds: a tool waits for the answer

SAFE = (
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.pager=cat",
    "-c", "core.attributesFile=/dev/null",
    "-c", "core.excludesFile=/dev/null",
    "-c", "core.commitGraph=false",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Returns an environment without the caller's git settings, replacements, grafts or fetches.

    A fetch could run a program that a repository names for missing (\"promised\") objects; replacements and grafts hide
    what is in a repository. Relative folders are left out of `PATH`, so that no `git` in the current folder is run.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    places = kept.get("PATH", os.defpath).split(os.pathsep)
    return kept | {
        "PATH": os.pathsep.join(place for place in places if os.path.isabs(place)) or os.defpath,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def changed_since(folder: str, at_us: int, paths: Sequence[str]) -> int:
    """Returns how many of some files of the folder's repository a commit changed since; 0 if git is slow or unsure."""
    given = ["log", "-z", "--format=", "--name-only", f"--since={at_us // 1_000_000}", "HEAD", "--"]
    literal = [f":(literal){path}" for path in paths]
    try:
        found = subprocess.run(
            ["git", *SAFE, "-c", "log.showSignature=false", "-C", folder, *given, *literal],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
    return len({*found.stdout.split(b"\0")} - {b""}) if found.returncode == 0 else 0
