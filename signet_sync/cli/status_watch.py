"""`status --watch`: repeats the status, in place on a terminal, line by line elsewhere."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import click

from signet_sync.cli.formats.status import lines, summary
from signet_sync.formats.timestamps import iso
from signet_sync.storage.clock import now_us

Document = Mapping[str, Any]

# After each look it waits at least so many times the look's duration, so that watching a large vault costs little.
_SHARE = 20


def watch(look: Callable[[], Document], every: float, *, as_json: bool) -> int:
    """Shows what `look` returns until Ctrl-C, or until the reader is gone; returns the exit code."""
    screen = not as_json and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    show = _Screen(every).show if screen else _Changes(as_json=as_json).show
    with suppress(KeyboardInterrupt):
        while _rest(max(every, _SHARE * _timed(lambda: show(look())))):
            pass
    return 0


def _timed(act: Callable[[], None]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _rest(seconds: float) -> bool:
    """Waits; False as soon as stdout has no reader, which hours without a change would not show otherwise."""
    reader = select.poll()
    try:
        reader.register(sys.stdout.fileno(), 0)  # only its end is reported
    except OSError:
        time.sleep(seconds)
        return True
    return not reader.poll(seconds * 1000)


class _Changes:
    """Prints one line whenever something has changed, other than elapsed time."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._last = ""

    def show(self, document: Document) -> None:
        steady = {key: value for key, value in document.items() if not key.endswith("_seconds")}
        line = json.dumps(steady, ensure_ascii=False) if self._as_json else summary(document)
        if line == self._last:
            return
        self._last = line
        text = json.dumps(document, ensure_ascii=False) if self._as_json else f"{_now()} {line}"
        click.echo(text.encode("utf-8", "backslashreplace"))


class _Screen:
    """Draws the whole status over the previous one."""

    def __init__(self, every: float) -> None:
        self._footer = f"every {every:g} s · Ctrl-C ends"
        self._drawn = 0
        self._size = shutil.get_terminal_size()
        self._plain = click.get_current_context().color is False  # NO_COLOR

    def show(self, document: Document) -> None:
        size = shutil.get_terminal_size()
        up = f"\x1b[{self._drawn}F" if self._drawn else "\r"
        if size != self._size:  # the terminal has rewrapped the old lines
            up, self._size = "\x1b[H\x1b[2J", size
        text = [*lines(document), "", click.style(f"{_now()} · {self._footer}", dim=True)][: max(size.lines - 1, 1)]
        if self._plain:
            text = [click.unstyle(line) for line in text]
        # The terminal cuts off long lines: wrapped ones would add lines that are not counted.
        drawn = "".join(f"{line}\x1b[K\n" for line in text)
        sys.stdout.write(f"\x1b[?7l{up}{drawn}\x1b[J\x1b[?7h")
        sys.stdout.flush()
        self._drawn = len(text)


def _now() -> str:
    return iso(now_us())
