"""Sends messages to the user: a desktop notification, or a program of theirs; text is never inserted into a script.

Each runs with a time limit in a process group of its own, which is killed as a whole at the limit. An error is
returned,
never raised: reporting a problem must not cause another one.
"""

from __future__ import annotations

import html
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from signet_sync.host.service_manager import with_runtime_folder

TITLE = "signet-sync"
LIMIT = 15.0  # seconds
_REAPING = 1.0
# The text is passed as an argument: in the script itself a quote would end the string.
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def on_desktop(text: str, environ: Mapping[str, str] = os.environ, *, limit: float = LIMIT) -> str:
    """Shows a line on the desktop; returns why it could not be shown, or an empty text."""
    return _ran(_desktop(text), environ, limit)


def by_program(
    command: Sequence[str], text: str, environ: Mapping[str, str] = os.environ, *, limit: float = LIMIT
) -> str:
    """Runs a program with a line as its last argument; returns why that failed, or an empty text."""
    return _ran([os.path.expanduser(command[0]), *command[1:], text], environ, limit)


def _desktop(text: str) -> list[str]:
    if sys.platform == "darwin":
        return ["osascript", *(word for line in _SCRIPT for word in ("-e", line)), TITLE, text]
    # A notification server may parse the text as markup (source: Desktop Notifications Specification, *Markup*).
    return ["notify-send", f"--app-name={TITLE}", "--", TITLE, html.escape(text, quote=False)]


def _ran(command: Sequence[str], environ: Mapping[str, str], limit: float) -> str:
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath))
    if program is None:
        return f"there is no program {command[0]}"
    home = os.path.expanduser("~")
    try:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home if os.path.isdir(home) else "/",
            # If the program starts a harness, its hooks have to ignore that session.
            env={**with_runtime_folder(environ), "SIGNET_SYNC_CHILD": "1"},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its arguments cannot be passed on"
        return f"{command[0]} cannot be started: {reason}"
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAPING)
        return f"{command[0]} did not end within {limit:g} s"
    return f"{command[0]} ended with {status}" if status else ""
