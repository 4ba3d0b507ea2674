"""Finds the transcripts of harnesses, read-only: where each keeps them, which belong to the user, and their lines."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.reader import TOO_LONG
from signet_sync.capture.sources import LINE_LIMIT, TranscriptSource, is_own_file, require_own_file, unreadable
from signet_sync.formats.snapshot import storable
from signet_sync.host.harness_settings.facts import DEPTH, Environ, HarnessFacts
from signet_sync.storage.durable import READ

CHUNK = 1024 * 1024
# Sub-agents are part of their session: Claude Code's old files are next to it, newer ones in a folder of their own.
_PART_OF_ANOTHER = re.compile(r"(?:^|/)(?:agent-[^/]*\.jsonl$|subagents/)")


def sources(harness: str, environ: Environ = os.environ, where: str | None = None) -> Iterator[TranscriptSource]:
    """Yields every transcript of a harness, oldest change first, from its own folder or a file or folder (`where`).

    Files are skipped if they are links, not regular, owned by another user, or a sub-agent's. Raises `UsageError` for
    an unknown harness, `HarnessError` if `where` or OpenCode's database cannot be read.
    """
    yield from files(harness, environ, where)[0]


def files(
    harness: str, environ: Environ = os.environ, where: str | None = None
) -> tuple[list[TranscriptSource], list[tuple[str, str]]]:
    """Returns what `sources` yields, and the paths of other files there, each with the reason why it is left out."""
    facts = registry.facts(harness)
    found, left = _list_files(harness, facts, environ, where)
    if facts.keeps_database:
        found = [row for file in found for row in registry.database(harness).list_sources(file.path)]
    return sorted(found, key=lambda source: (source.mtime_ns, source.path, source.session_id)), left


def _list_files(
    harness: str, facts: HarnessFacts, environ: Environ, where: str | None
) -> tuple[list[TranscriptSource], list[tuple[str, str]]]:
    if where is not None:
        # A link is followed because a person named it; links below it are not.
        try:
            where = os.path.realpath(os.path.expanduser(where))
            status = os.stat(where)
        except (OSError, ValueError) as error:
            raise unreadable(where, error) from error
        if not stat.S_ISDIR(status.st_mode):
            require_own_file(where, status)
            return [_source(harness, where, status)], []
        roots = [(where, "", DEPTH)]
    else:
        places = [(os.path.join(home, one), one) for home in facts.homes(environ) for one in facts.folders]
        roots = list({(os.path.realpath(path), one, facts.depth): None for path, one in places})
    found: list[TranscriptSource] = []
    left: list[tuple[str, str]] = []
    for root, folder, depth in roots:
        for path, seen in _walk(root, depth):
            place = f"{folder}/{path}".lstrip("/")
            named = re.search(facts.ending, path) if where else re.fullmatch(facts.pattern, place)
            reason = seen if isinstance(seen, str) else _odd(path, seen) or ("" if named else _OTHER)
            if not reason and not isinstance(seen, str):
                found.append(_source(harness, os.path.join(root, path), seen))
            elif named or facts.depth:  # a folder of other things is not told
                left.append((os.path.join(root, path), reason))
    return found, left


def find_renamed(harness: str, path: str) -> str:
    """Returns where a transcript is that its harness renamed after a reset; its own path if it did not."""
    renamed = registry.facts(harness).renamed
    if os.path.lexists(path) or not renamed:
        return path
    with suppress(OSError):
        folder, name = os.path.split(path)
        found = [one for one in os.listdir(folder) if one.startswith(f"{name}.") and re.search(renamed, one)]
        # The times in their names sort.
        return os.path.join(
            folder, max(found, key=lambda one: one.rpartition(".jsonl.")[2].partition(".")[2], default=name)
        )
    return path


def list_installed(environ: Environ = os.environ) -> list[str]:
    """Returns the harnesses whose folder exists on this machine, in the order of their names."""
    return [one for one in registry.names() if any(map(os.path.isdir, registry.facts(one).homes(environ)))]


def _source(harness: str, path: str, status: os.stat_result) -> TranscriptSource:
    return TranscriptSource(harness, path, "", status.st_size, storable(status.st_mtime_ns))


_OTHER = "no transcript by its name"


def _walk(root: str, depth: int, below: str = "") -> Iterator[tuple[str, os.stat_result | str]]:
    """Yields the files below a folder, by their paths in it, with their status or why they cannot be examined."""
    try:
        with os.scandir(os.path.join(root, below)) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        if below or not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            yield below, "it cannot be read"
        return
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            yield path, "it cannot be read"
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield path, status
        elif depth > 0:
            yield from _walk(root, depth - 1, path)


def _odd(path: str, status: os.stat_result) -> str:
    """Returns why a file is never a session, whatever its name; empty if it may be one."""
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if not is_own_file(status):
        return "it belongs to another user"
    return "a sub-agent's file: it is part of another session" if _PART_OF_ANOTHER.search(path) else ""


def lines(source_path: str) -> Iterator[bytes]:
    """Yields the lines of a transcript with line feeds (a torn last line has none), without loading the whole file.

    Lines longer than 64 MiB are replaced (`TOO_LONG`). Raises `HarnessError` (at the first line) if the file is
    missing, a link, not regular, owned by another user, or unreadable.
    """
    try:
        descriptor = os.open(source_path, READ)
    except (OSError, ValueError) as error:
        raise unreadable(source_path, error) from error
    try:
        require_own_file(source_path, os.fstat(descriptor))
        yield from _split(_chunks(descriptor, source_path))
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, path: str) -> Iterator[bytes]:
    try:
        while chunk := os.read(descriptor, CHUNK):
            yield chunk
    except OSError as error:
        raise unreadable(path, error) from error


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields lines from chunks; never holds more of a line than the limit."""
    pieces: list[bytes] = []
    gathered = 0
    for chunk in chunks:
        for piece in _split_line_feeds(chunk):
            gathered += len(piece)
            if gathered <= LINE_LIMIT:
                pieces.append(piece)
            else:
                pieces.clear()
            if piece.endswith(b"\n"):
                yield b"".join(pieces) if gathered <= LINE_LIMIT else TOO_LONG
                pieces.clear()
                gathered = 0
    if gathered:
        yield b"".join(pieces) if gathered <= LINE_LIMIT else TOO_LONG


def _split_line_feeds(chunk: bytes) -> list[bytes]:
    """Splits at line feeds only: a carriage return ends a line in Python but not in JSON Lines."""
    parts = chunk.split(b"\n")
    whole = [part + b"\n" for part in parts[:-1]]
    return [*whole, parts[-1]] if parts[-1] else whole
