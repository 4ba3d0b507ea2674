"""Runs git so that nothing runs or is fetched that a repository could configure; asks it for commits."""

import os
import select
import subprocess
import time
from contextlib import suppress
from typing import NamedTuple

# Seconds: a session waits for the answers, and for the end of a git that was killed.
PATIENCE, _LAST = 0.016, 0.004
_MOST = 1 << 20  # bytes of an answer
_COMMITS = 200


class Commit(NamedTuple):
    """A commit: when it was made in microseconds since 1970, its name, message, and files below the folder."""

    at_us: int
    name: str
    message: str
    files: frozenset[str]


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


def log_since(folder: str, at_us: int) -> tuple[list[Commit], bool]:
    """Returns the newest commits of the folder's repository, back to an instant, and whether these are all.

    Those that git tells in time; none if it is slow or in trouble.
    """
    shown = "-z", "--format=%x00%x00%ct %H %B", "--name-only", "--no-renames", "--relative", "--no-show-signature"
    limits = f"--max-count={_COMMITS}", f"--since={at_us // 1_000_000}"
    told, whole = _ask(folder, "log", *shown, *limits, "--encoding=UTF-8", "HEAD", "--")
    records = told.split("\0\0")
    found: list[Commit] = []
    for record in records if whole else records[:-1]:
        head, *names = record.strip("\0").split("\0")
        at, _, rest = head.partition(" ")
        name, _, message = rest.partition(" ")
        if at.isdigit():
            files = frozenset(one.removeprefix("\n") for one in names)
            found.append(Commit(int(at) * 1_000_000, name, message, files))
    return found, whole and len(found) < _COMMITS


def _ask(folder: str, *arguments: str) -> tuple[str, bool]:
    """Returns what git prints of the folder's repository in time, and whether that is all; waits for nothing else."""
    told, ended, until = b"", False, time.monotonic() + PATIENCE
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
