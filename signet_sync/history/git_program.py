"""Asks git about the workspace's files, with plumbing that runs nothing a repository could configure.

Needs the program `git`, not the extra. A repository that `repository.objection` refuses is not asked at all: its config
could name files that git would open, and a pipe among them would block us.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Literal

from signet_sync.history.repository import objection
from signet_sync.host import git


def top_of(root: str) -> str | None:
    """Returns the nearest folder, from the root upwards, that contains a `.git` of any kind."""
    where = os.path.realpath(root)
    while not os.path.lexists(os.path.join(where, ".git")):
        where, below = os.path.dirname(where), where
        if where == below:
            return None
    return where


def run_git(top: str, root: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes] | None:
    """Runs git in the workspace; None if it is not installed or takes longer than a minute."""
    # Given the repository's place, git does not search for one.
    place = (f"--git-dir={os.path.join(top, '.git')}", f"--work-tree={top}")
    try:
        return subprocess.run(
            ["git", *git.SAFE, *place, "-C", os.path.realpath(root), *arguments],
            input=stdin,
            capture_output=True,
            env=git.environment(),
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def holds(root: str, paths: Sequence[str]) -> Literal["clean", "contains", "unknown", "no-repository"]:
    """Returns whether a commit of the workspace's repository, on any branch or in the reflog, contains a path."""
    top = top_of(root)
    if top is None:
        return "no-repository"
    if objection(top):
        return "unknown"
    inside = run_git(top, root, "rev-parse", "--git-dir")
    if inside is None or inside.returncode != 0:
        return "unknown"
    if not paths:
        return "clean"
    # Without --full-history, a file added and deleted on a merged branch would not be found.
    found = run_git(
        top,
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
    """Returns those of the paths that the repository's ignore rules exclude; none without a local repository."""
    top = top_of(root) if paths else None
    if top is None or objection(top):
        return frozenset()
    answer = run_git(
        top,
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
