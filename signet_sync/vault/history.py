"""The workspace's own git repository, asked with plumbing that runs nothing a repository could configure."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Literal

_SAFE = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "core.attributesFile=/dev/null",
)


def _environment() -> dict[str, str]:
    """No setting of the caller's git; and no fetch: a repository may call missing objects \"promised\" by a program."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _git(root: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            ["git", *_SAFE, "-C", root, *arguments],
            input=stdin,
            capture_output=True,
            env=_environment(),
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def holds(root: str, paths: Sequence[str]) -> Literal["clean", "contains", "unknown", "no-repository"]:
    """Whether some commit of the workspace's repository holds one of the paths, on any branch or in the reflog."""
    inside = _git(root, "rev-parse", "--git-dir")
    if inside is None or inside.returncode != 0:
        absent = inside is None or b"not a git repository" in inside.stderr
        return "no-repository" if absent and not os.path.lexists(os.path.join(root, ".git")) else "unknown"
    if not paths:
        return "clean"
    # Without --full-history, a file that came and went on a merged branch would not be found.
    found = _git(
        root,
        "rev-list",
        "--all",
        "--reflog",
        "--full-history",
        "--max-count=1",
        "--",
        *(f":(literal){path}" for path in paths),
    )
    if found is None or found.returncode != 0:
        return "unknown"
    return "contains" if found.stdout.strip() else "clean"


def ignored(root: str, paths: Sequence[str]) -> frozenset[str]:
    """Those of the paths that the repository's ignore rules leave out; none where there is no repository."""
    if not paths:
        return frozenset()
    answer = _git(
        root,
        "check-ignore",
        "--no-index",
        "-z",
        "--stdin",
        stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
    )
    if answer is None or answer.returncode not in (0, 1):
        return frozenset()
    return frozenset(os.fsdecode(answer.stdout).split("\0")) - {""}
