"""The signet-sync that is installed now, perhaps not the one that runs: noticed, tried beside it, put in its place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import NamedTuple

import signet_sync

_TRIAL = """\
import json, sys
sys.path.append(sys.argv[1])
import signet_sync.agent.daemon
from signet_sync.index.schema import VERSION
print(json.dumps([signet_sync.__version__, VERSION]))
"""
_LINE = 200

Mark = tuple[int, int, int, int]  # device, inode, size and time of change


class Tried(NamedTuple):
    """What a trial has shown: the version and the database's schema that it knows, or in `trouble` why it is none."""

    version: str = ""
    schema: int = 0
    trouble: str = ""


def mark() -> Mark | None:
    """Changes with every installation, because each replaces the file that holds the version; None while it is away."""
    try:
        status = os.stat(signet_sync.__file__)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Trial:
    """A process that loads all that an agent is made of, from where this program was loaded, and changes nothing."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._trouble = ""
        try:
            self._process = subprocess.Popen(
                [_interpreter(), "-c", _TRIAL, os.path.dirname(os.path.dirname(signet_sync.__file__))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            self._trouble = error.strerror or str(error)

    def result(self) -> Tried | None:
        """What it has shown; None while it still works."""
        if self._process is None:
            return Tried(trouble=self._trouble)
        if self._process.poll() is None:
            return None
        told, complaint = self._process.communicate()
        try:
            version, schema = json.loads(told)
        except (ValueError, TypeError):
            said = complaint.strip().splitlines() or [f"it ended with {self._process.returncode}"]
            return Tried(trouble=said[-1][:_LINE])
        return Tried(version, schema)

    def end(self) -> None:
        """Ends it, whatever it is at."""
        if self._process is None:
            return
        with suppress(OSError):
            self._process.kill()
        self._process.communicate()
        self._process = None


def prepare_to_go() -> None:
    """From here on SIGTERM and SIGINT end the process at once, and a hangup waits for the one that comes."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start_again() -> None:
    """Puts what is installed in the place of this program: the same process, the same words. Raises `OSError`.

    All files and locks are let go of by that; a service manager sees one process that goes on.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os.execv(_interpreter(), [_interpreter(), *sys.orig_argv[1:]])  # noqa: S606 - a shell is what is not wanted


def _interpreter() -> str:
    """The Python of this program; where an upgrade has moved it, the one that the program's script names now."""
    if not os.path.isfile(sys.executable) and len(sys.orig_argv) > 1:
        named = interpreter_of(sys.orig_argv[1])
        if named is not None and os.path.isfile(named):
            return named
    return sys.executable


def interpreter_of(script: str) -> str | None:
    """The program that a script names in its first line to be read by; None where it names none."""
    try:
        with open(script, "rb") as file:
            first = file.readline(4096)
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    return os.fsdecode(words[0]) if first.startswith(b"#!") and words else None
