"""Reads what harnesses keep of their sessions, read-only: the list of transcripts, their lines, OpenCode's rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from signet_sync.capture.stores.files import HARNESSES, TranscriptSource, TranscriptStore, lines, stores
from signet_sync.capture.stores.opencode import opencode_session, opencode_sources
from signet_sync.errors import UsageError

__all__ = ("HARNESSES", "TranscriptSource", "homes", "installed", "lines", "opencode_session", "sources")


def sources(
    harness: str, environ: Mapping[str, str] = os.environ, where: str | None = None
) -> Iterator[TranscriptSource]:
    """Yields every transcript of a harness, oldest change first, from its own folder or a file or folder (`where`).

    Files are skipped if they are links, not regular, owned by another user, or a sub-agent's. Raises `UsageError` for
    an unknown harness, `HarnessError` if `where` or OpenCode's database cannot be read.
    """
    store = _store(harness, environ)
    found = store.found() if where is None else store.named(where)
    if harness == "opencode":
        found = [row for file in found for row in opencode_sources(file.path)]
    yield from sorted(found, key=lambda source: (source.mtime_ns, source.path, source.session_id))


def installed(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the harnesses whose folder exists on this machine, in the order of `HARNESSES`."""
    return [harness for harness in HARNESSES if any(os.path.isdir(home) for home in _store(harness, environ).homes)]


def homes(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the folders in which harnesses keep their transcripts, whether they exist or not."""
    return [_store(harness, environ).homes[0] for harness in HARNESSES]


def _store(harness: str, environ: Mapping[str, str]) -> TranscriptStore:
    try:
        return stores(environ)[harness]
    except KeyError:
        raise UsageError(
            f"no harness is called {harness[:60]!r}", hint="known: " + ", ".join(HARNESSES), code="harness-unknown"
        ) from None
