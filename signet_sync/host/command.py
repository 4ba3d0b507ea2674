"""Starts our own commands in processes that may outlive this one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_SAID = 600  # characters that are kept of what a command said


class Command:
    """One of our commands, in a process that may outlive this one."""

    def __init__(self, *words: str) -> None:
        from subprocess import PIPE

        self.said = ""  # the end of what it wrote on stderr
        self._process = start(*words, stderr=PIPE)
        os.set_blocking(descriptor(self._process.stderr), False)

    def poll(self) -> int | None:
        """Returns the exit code, None as long as it runs; takes what it wrote: a full pipe would stop it."""
        code = self._process.poll()
        with suppress(BlockingIOError):
            while told := os.read(descriptor(self._process.stderr), 1 << 16):
                self.said = (self.said + told.decode("utf-8", "replace"))[-_SAID:]
        if code is not None:
            self.leave()
        return code

    def leave(self) -> None:
        """Stops tracking the process, which goes on."""
        leave(self._process)


def start(*words: str, **pipes: int) -> subprocess.Popen[bytes]:
    """Starts one of our commands in a process that holds none of our files, but for the `pipes` that it is given."""
    import subprocess  # slow import, needed by the agent

    return subprocess.Popen(
        [sys.executable, "-m", "signet_sync", *words],
        stdin=pipes.get("stdin", subprocess.DEVNULL),
        stdout=pipes.get("stdout", subprocess.DEVNULL),
        stderr=pipes.get("stderr", subprocess.DEVNULL),
        cwd="/",
        env={**os.environ, "SIGNET_SYNC_CHILD": "1"},
        start_new_session=True,
    )


def leave(process: subprocess.Popen[bytes]) -> None:
    """Stops waiting for a process, which may outlive this one, and prevents a warning about it."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.poll()
    process.returncode = process.returncode or 0


def descriptor(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()
