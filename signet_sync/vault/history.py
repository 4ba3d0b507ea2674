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
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {
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
    """Whether some commit of the workspace's repository holds one of the paths."""
    inside = _git(root, "rev-parse", "--is-inside-work-tree")
    if inside is None:
        return "unknown" if os.path.exists(os.path.join(root, ".git")) else "no-repository"
    if inside.returncode != 0:
        return "unknown" if os.path.exists(os.path.join(root, ".git")) else "no-repository"
    if not paths:
        return "clean"
    found = _git(
        root,
        "rev-list",
        "--all",
        "--max-count=1",
        "--",
        *(f":(top,literal){p}" for p in _from_top(root, paths)),
    )
    if found is None or found.returncode != 0:
        return "unknown"
    return "contains" if found.stdout.strip() else "clean"


def _from_top(root: str, paths: Sequence[str]) -> list[str]:
    prefix = _git(root, "rev-parse", "--show-prefix")
    text = prefix.stdout.decode("utf-8", "replace").strip() if prefix is not None and prefix.returncode == 0 else ""
    return [text + path for path in paths]


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
        stdin=b"\0".join(p.encode("utf-8", "replace") for p in paths) + b"\0",
    )
    if answer is None or answer.returncode not in (0, 1):
        return frozenset()
    return frozenset(answer.stdout.decode("utf-8", "replace").split("\0")) - {""}
