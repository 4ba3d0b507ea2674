"""loguru set up once: a rotating file in the state folder, stderr for people, levels for journald, no local values."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loguru import Record

_JOURNAL = {"DEBUG": 7, "INFO": 6, "SUCCESS": 5, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}


class _Limited:
    """Lets a message through at most a few times an hour, so that a permanent error cannot fill a disk."""

    def __init__(self, every: float = 600.0, burst: int = 3) -> None:
        self._every = every
        self._burst = burst
        self._seen: dict[str, tuple[int, float]] = {}

    def __call__(self, record: Record) -> bool:
        if record["level"].no < 30:
            return True
        now = time.monotonic()
        key = f"{record['name']}:{record['line']}:{record['message'][:200]}"
        count, first = self._seen.get(key, (0, now))
        if now - first > self._every:
            count, first = 0, now
        if len(self._seen) > 2000:
            self._seen.clear()
        self._seen[key] = (count + 1, first)
        return count < self._burst


def _escaped(record: Record) -> None:
    message = record["message"]
    if not message.isprintable():
        record["message"] = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in message
        )


def set_up(level: str, *, folder: str | None, rotation_bytes: int, keep: int, environ: Any = os.environ) -> str | None:
    """Configures the sinks; gives the path of the log file, if there is one.

    Under systemd (`JOURNAL_STREAM`) stderr carries journald's level prefixes and no time of its own.
    """
    from loguru import logger

    logger.remove()
    logger.configure(patcher=_escaped)
    limited = _Limited()
    if environ.get("JOURNAL_STREAM"):

        def journald(message: Any) -> None:
            record = message.record
            sys.stderr.write(f"<{_JOURNAL.get(record['level'].name, 6)}>{record['message']}\n")

        logger.add(journald, level=level, filter=limited, diagnose=False, backtrace=False)
    else:
        logger.add(
            sys.stderr,
            level=level,
            format="{time:HH:mm:ss} {level: <7} {message}",
            filter=limited,
            diagnose=False,
            backtrace=False,
            colorize=sys.stderr.isatty() and not environ.get("NO_COLOR"),
        )
    path = None
    if folder is not None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, "signet-sync.log")
        logger.add(
            path,
            level=level,
            format="{time:YYYY-MM-DDTHH:mm:ss.SSS!UTC}Z {level} {message}",
            rotation=rotation_bytes,
            retention=keep,
            filter=_Limited(),
            diagnose=False,
            backtrace=False,
            encoding="utf-8",
            opener=lambda p, flags: os.open(p, flags, 0o600),
        )
    # watchdog talks to the standard logging module; what it has to say reaches us as events.
    logging.getLogger("watchdog").setLevel(logging.ERROR)
    return path
