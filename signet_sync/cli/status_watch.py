"""`status --watch`: the same status again and again, in place on a terminal, line by line anywhere else."""

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
from signet_sync.formats.timestamps import instant_of, iso

Document = Mapping[str, Any]

# A look is followed by a rest of so many times its own length at least: to watch a large vault must not tire a machine.
_SHARE = 20


def watch(look: Callable[[], Document], every: float, *, as_json: bool) -> int:
    """Shows what `look` gives until Ctrl-C, or until whoever reads it has gone; gives the exit code."""
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
    """Waits; False as soon as nobody reads our stdout any more: nothing may change for hours that would tell us."""
    reader = select.poll()
    try:
        reader.register(sys.stdout.fileno(), 0)  # no event but the end is asked for
    except OSError:
        time.sleep(seconds)
        return True
    return not reader.poll(seconds * 1000)


class _Changes:
    """One line whenever something has changed; that time goes by is no change."""

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
    """The whole status, drawn over what was drawn before."""

    def __init__(self, every: float) -> None:
        self._footer = f"every {every:g} s · Ctrl-C ends"
        self._drawn = 0
        self._size = shutil.get_terminal_size()
        self._plain = click.get_current_context().color is False  # NO_COLOR

    def show(self, document: Document) -> None:
        size = shutil.get_terminal_size()
        up = f"\x1b[{self._drawn}F" if self._drawn else "\r"
        if size != self._size:  # the terminal has broken the old lines anew
            up, self._size = "\x1b[H\x1b[2J", size
        text = [*lines(document), "", click.style(f"{_now()} · {self._footer}", dim=True)][: max(size.lines - 1, 1)]
        if self._plain:
            text = [click.unstyle(line) for line in text]
        # Long lines are cut off by the terminal itself: broken ones would be more lines than we know of.
        drawn = "".join(f"{line}\x1b[K\n" for line in text)
        sys.stdout.write(f"\x1b[?7l{up}{drawn}\x1b[J\x1b[?7h")
        sys.stdout.flush()
        self._drawn = len(text)


def _now() -> str:
    from datetime import UTC, datetime

    return iso(instant_of(datetime.now(UTC)))
