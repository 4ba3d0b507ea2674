"""Runs git so that nothing runs or is fetched that a repository could configure; asks it what became of commits."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress

# Seconds: a session waits for the answers, and for the end of a git that was killed.
PATIENCE, _LAST = 0.016, 0.004
_MOST = 1 << 20  # bytes of an answer
_COMMITS = 200

Logged = tuple[int, str, str, frozenset[str]]  # seconds since 1970, name, message, files below the folder

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


def log_since(folder: str, at_us: int, until: float) -> tuple[list[Logged], bool]:
    """Returns the newest commits of the folder's repository, back to an instant, and whether these are all.

    Those that git tells `until` a moment of the monotonic clock; none if it is slow or in trouble.
    """
    shown = "-z", "--format=%x00%x00%ct %H %B", "--name-only", "--no-renames", "--relative", "--no-show-signature"
    limits = f"--max-count={_COMMITS}", f"--since={at_us // 1_000_000}"
    told, whole = _ask(folder, until, "log", *shown, *limits, "--encoding=UTF-8", "HEAD", "--")
    records = told.split("\0\0")
    found: list[Logged] = []
    for record in records if whole else records[:-1]:
        head, *names = record.strip("\0").split("\0")
        at, _, rest = head.partition(" ")
        name, _, message = rest.partition(" ")
        if at.isdigit():
            found.append((int(at), name, message, frozenset(one.removeprefix("\n") for one in names)))
    return found, whole and len(found) < _COMMITS


def find_gone_branches(folder: str, made: Collection[tuple[str, str]], until: float) -> set[tuple[str, str]]:
    """Returns those of some commits, by branch and name, that are here on no branch, and whose branch is gone."""
    apart = "--not", "HEAD", "--branches", "--remotes", "--tags"
    told, whole = _ask(folder, until, "rev-list", "--ignore-missing", *(name for _, name in made), *apart)
    lost = {one for one in made if any(name.startswith(one[1]) for name in told.split())}
    if not whole or not lost:
        return set()
    named = {branch: (f"refs/heads/{branch}", f"refs/remotes/*/{branch}") for branch, _ in lost}
    told, whole = _ask(folder, until, "for-each-ref", "--format=%(refname)", *sum(named.values(), ()))
    if not whole:
        return set()
    return {one for one in lost if not any(name.endswith(f"/{one[0]}") for name in told.split())}


def _ask(folder: str, until: float, *arguments: str) -> tuple[str, bool]:
    """Returns what git prints of the folder's repository in time, and whether that is all; waits for nothing else."""
    told, ended = b"", False
    if time.monotonic() >= until:
        return "", ended
    try:
        process = subprocess.Popen(
            ["git", *SAFE, "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment() | {"GIT_FLUSH": "0"},
        )
    except (OSError, ValueError):
        return "", ended
    assert process.stdout is not None
    with process.stdout as out:
        readable = select.poll()
        readable.register(out)
        while not ended and len(told) < _MOST and (left := until - time.monotonic()) > 0 and readable.poll(left * 1000):
            piece = os.read(out.fileno(), 1 << 16)
            told, ended = told + piece, not piece
    with suppress(subprocess.TimeoutExpired):
        return os.fsdecode(told), process.wait(max(until - time.monotonic(), 0) if ended else 0) == 0
    process.kill()
    with suppress(subprocess.TimeoutExpired):  # not of one that hangs in the kernel
        process.wait(_LAST)
    return os.fsdecode(told), False
