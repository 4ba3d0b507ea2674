"""Reads the clock; everything that depends on the time gets it as an argument."""

from __future__ import annotations

from datetime import UTC, datetime

from signet_sync.formats.timestamps import instant_of


def now_us() -> int:
    """Returns the present, in microseconds since 1970 UTC."""
    return instant_of(datetime.now(UTC))
