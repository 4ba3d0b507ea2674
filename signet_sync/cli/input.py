"""Reads what a command takes from stdin or from a file."""

from __future__ import annotations

import json
import sys
from typing import Any

from signet_sync.errors import UsageError


def stdin_text(limit: int) -> str:
    """Reads stdin, UTF-8 with or without a byte order mark, at most the first `limit` bytes.

    Raises `UsageError` (`input-invalid`).
    """
    raw = sys.stdin.buffer.read(limit)
    try:
        # A text cut inside a character is too long in any case.
        return raw.decode("utf-8-sig", "strict" if len(raw) < limit else "replace")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the text is not UTF-8: byte {error.start}", hint="convert it first", code="input-invalid"
        ) from None


def read_json(source: str, command: str) -> Any:
    """Parses JSON from a file, or from stdin for `-`. Raises `UsageError`, which refers to the help of `command`."""
    try:
        if source == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(source, "rb") as handle:
                raw = handle.read()
    except OSError as error:
        raise UsageError(
            f"the input cannot be read: {error.strerror}", path=source, hint="give a file, or - for stdin"
        ) from None
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"the input is not UTF-8: byte {error.start}"
    except json.JSONDecodeError as error:
        problem = f"the input is not JSON: {error}"
    except RecursionError:
        problem = "the input is not JSON that can be parsed: it is nested too deeply"
    except ValueError:
        problem = "the input is not JSON that can be parsed: a number has too many digits"
    raise UsageError(
        problem,
        path=None if source == "-" else source,
        hint=f"see signet-sync {command} --help for the format",
        code="input-invalid",
    )
