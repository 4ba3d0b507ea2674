"""Detects a newly installed signet-sync, tries it in a separate process, and replaces the running one with it."""

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

Mark = tuple[int, int, int, int]  # device, inode, size and time of modification


class Tried(NamedTuple):
    """The result of a trial: the version and the database schema that it supports, or in `trouble` why it failed."""

    version: str = ""
    schema: int = 0
    trouble: str = ""


def mark() -> Mark | None:
    """Returns a value that changes with every installation, which replaces this file; None while it is missing."""
    try:
        status = os.stat(signet_sync.__file__)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Trial:
    """A process that imports everything an agent needs, from where this program was loaded, and changes nothing."""

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
        """Returns the result, or None while the process runs."""
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
        """Kills the process if it runs."""
        if self._process is None:
            return
        with suppress(OSError):
            self._process.kill()
        self._process.communicate()
        self._process = None


def prepare_to_go() -> None:
    """Makes SIGTERM and SIGINT end the process at once, and ignores SIGHUP until the new program runs."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start_again() -> None:
    """Replaces this program by the installed one: same process, same arguments. Raises `OSError`.

    This closes all files and locks; a service manager sees one process that continues.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os.execv(_interpreter(), [_interpreter(), *sys.orig_argv[1:]])  # noqa: S606 - without a shell on purpose


def _interpreter() -> str:
    """Returns this program's Python; if an upgrade has moved it, the one that the program's script names now."""
    if not os.path.isfile(sys.executable) and len(sys.orig_argv) > 1:
        named = interpreter_of(sys.orig_argv[1])
        if named is not None and os.path.isfile(named):
            return named
    return sys.executable


def interpreter_of(script: str) -> str | None:
    """Returns the interpreter that a script's first line names, or None."""
    try:
        with open(script, "rb") as file:
            first = file.readline(4096)
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    return os.fsdecode(words[0]) if first.startswith(b"#!") and words else None
