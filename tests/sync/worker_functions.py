"""Functions that workers are given by tests: some answer, some do what no function should."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any


def doubled(value: int) -> int:
    return 2 * value


def odd(value: int) -> int | None:
    if value % 10 == 3:
        raise ValueError(value)
    return value if value % 2 else None


def killed(value: int) -> int:
    if value % 100 == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def loud(value: int) -> int:
    print("noise", value, flush=True)
    os.write(1, b"noise")
    sys.stderr.write("noise\n")
    os.write(2, b"noise\n")
    return value


def whoami(_value: int) -> int:
    return os.getpid()


def surroundings(_value: int) -> dict[str, Any]:
    descriptors = {}
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            descriptors[int(descriptor)] = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # that of the listing itself
            continue
    return {"open": descriptors, "folder": os.getcwd(), "path": sys.path}


def last_breath(_value: int) -> None:
    """Never ends, and is one of several at it."""
    time.sleep(600)
