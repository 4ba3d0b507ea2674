"""Functions that the engines of a fleet are given by tests; values are text, as URLs are."""

from __future__ import annotations

import os
import signal
import sys
import time


def upper(value: str) -> str:
    return value.upper()


def killed_once(marker: str) -> str:
    """Dies the first time that it gets a path at which nothing is."""
    if marker.startswith("/"):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return marker
        os.kill(os.getpid(), signal.SIGKILL)
    return marker


def killed_by_seven(value: str) -> str:
    if value == "7":
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def failing(value: str) -> str:
    if value == "7":
        raise ValueError(f"the secret of {value}")
    return value


def endless(started: str) -> str:
    """Never ends; leaves the number of its process beside `started` first."""
    with open(f"{started}.{os.getpid()}", "a", encoding="ascii"):
        time.sleep(600)
    return started


def endless_but_first(started: str) -> str:
    """Answers one call, and never ends any other."""
    try:
        os.close(os.open(f"{started}-first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return endless(started)
    return started


def path(_value: str) -> list[str]:
    return sys.path
