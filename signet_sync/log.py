"""Sets up loguru once: a rotating file in the state folder, stderr for people, no local values."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from signet_sync.formats.paths import display
from signet_sync.storage.durable import private_folder

if TYPE_CHECKING:
    from loguru import Logger, Record

# A log file is rotated at this size in bytes; so many older ones are kept.
ROTATION_BYTES, KEEP = 5_000_000, 5


def _escape_record(record: Record) -> None:
    """Escapes text of files in messages and exceptions, so that it cannot forge a line, control a terminal, or leak.

    The traceback is rendered here, by the standard library, which shows no local values, and is added to the message as
    lines.
    """
    import traceback

    from signet_sync.text.sanitizer import redact  # slow imports; most processes log nothing

    lines = [display(record["message"])]
    exception = record["exception"]
    if exception is not None:
        text = "".join(traceback.format_exception(exception.type, exception.value, exception.traceback))
        lines += [display(line) for line in text.rstrip("\n").split("\n")]
        record["exception"] = None
    record["message"] = redact("\n    ".join(lines))[0]


class _Late:
    """Stands for loguru's logger: to load it takes longer than most commands, and most have nothing to say."""

    wanted = ""  # the level of plain lines for a person, until one is logged

    def __getattr__(self, name: str) -> Any:
        if self.wanted and name in ("debug", "info"):
            return lambda *_: None
        return getattr(_load_logger(), name)


def _make_late_logger() -> Logger:
    found: Any = _Late()
    return found  # type: ignore[no-any-return]


logger = _make_late_logger()


def _load_logger() -> Logger:
    from loguru import logger

    if _Late.wanted:
        level, _Late.wanted = _Late.wanted, ""
        _log_to_stderr(level)
    return logger


def log_for_people(level: str) -> None:
    """Logs plain lines to stderr and to no file: for a command that a person waits for."""
    if "loguru" in sys.modules:
        _log_to_stderr(level)
    else:
        _Late.wanted = level


def _log_to_stderr(level: str) -> None:
    logger.remove()
    logger.configure(patcher=_escape_record)
    if sys.stderr is not None:  # None if the caller closed it
        logger.add(
            sys.stderr,
            level=level,
            format=lambda record: f"{record['level'].name.lower()}: {{message}}\n",
            colorize=False,
        )


def set_up(level: str, *, folder: str | None, name: str = "signet-sync") -> None:
    """Configures the sinks.

    Every kind of process has a file of its own `name`: two that rotate one file lose lines.
    """
    _Late.wanted = ""
    logger.remove()
    logger.configure(patcher=_escape_record)
    if sys.stderr is not None:  # None if the caller closed it
        logger.add(
            sys.stderr,
            level=level,
            format="{time:HH:mm:ss} {level: <7} {message}",
            colorize=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        )
    if folder is not None:
        private_folder(folder)
        logger.add(
            os.path.join(folder, f"{name}.log"),
            level=level,
            format="{time:YYYY-MM-DDTHH:mm:ss.SSS!UTC}Z {level} {message}",
            rotation=ROTATION_BYTES,
            retention=KEEP,
            encoding="utf-8",
            opener=lambda p, flags: os.open(p, flags, 0o600),
        )
    import logging  # watchdog uses it; its problems reach us as events

    logging.getLogger("watchdog").setLevel(logging.ERROR)
