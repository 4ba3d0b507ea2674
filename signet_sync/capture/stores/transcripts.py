"""Reads what harnesses keep of their sessions, read-only: the list of transcripts, their lines, OpenCode's rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.openclaw import ARCHIVED
from signet_sync.capture.stores import files as transcript_files
from signet_sync.capture.stores.files import TranscriptSource, lines

__all__ = ("TranscriptSource", "files", "find_renamed", "lines", "list_installed", "sources")


def sources(
    harness: str, environ: Mapping[str, str] = os.environ, where: str | None = None
) -> Iterator[TranscriptSource]:
    """Yields every transcript of a harness, oldest change first, from its own folder or a file or folder (`where`).

    Files are skipped if they are links, not regular, owned by another user, or a sub-agent's. Raises `UsageError` for
    an unknown harness, `HarnessError` if `where` or OpenCode's database cannot be read.
    """
    yield from files(harness, environ, where)[0]


def files(
    harness: str, environ: Mapping[str, str] = os.environ, where: str | None = None
) -> tuple[list[TranscriptSource], list[tuple[str, str]]]:
    """Returns what `sources` yields, and the paths of other files there, each with the reason why it is left out."""
    found, left = transcript_files.files(harness, registry.facts(harness), environ, where)
    if harness == "opencode":
        from signet_sync.capture.stores.opencode import opencode_sources  # slow import

        found = [row for file in found for row in opencode_sources(file.path)]
    return sorted(found, key=lambda source: (source.mtime_ns, source.path, source.session_id)), left


def find_renamed(harness: str, path: str) -> str:
    """Returns where a transcript is that its harness renamed after a reset; its own path if it did not."""
    if os.path.lexists(path) or harness != "openclaw":
        return path
    with suppress(OSError):
        folder, name = os.path.split(path)
        found = [one for one in os.listdir(folder) if one.startswith(f"{name}.") and re.search(ARCHIVED, one)]
        # The times in their names sort.
        return os.path.join(
            folder, max(found, key=lambda one: one.rpartition(".jsonl.")[2].partition(".")[2], default=name)
        )
    return path


def list_installed(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the harnesses whose folder exists on this machine, in the order of their names."""
    return [one for one in registry.names() if any(map(os.path.isdir, registry.facts(one).homes(environ)))]
