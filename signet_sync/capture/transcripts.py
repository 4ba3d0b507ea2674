"""Finds the transcripts of harnesses, read-only: where each keeps them, which belong to the user, and their lines."""

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.reader import TOO_LONG
from signet_sync.errors import HarnessError
from signet_sync.formats.body import fix_surrogates
from signet_sync.formats.ids import MODEL_FOLDER
from signet_sync.formats.paths import display
from signet_sync.formats.snapshot import storable
from signet_sync.host.harness_settings.facts import DEPTH
from signet_sync.storage.durable import READ

LINE_LIMIT = 64 * 1024 * 1024
# Sub-agents are part of their session: Claude Code's old files are next to it, newer ones in a folder of their own.
_PART_OF_ANOTHER = re.compile(r"(?:^|/)(?:agent-[^/]*\.jsonl$|subagents/)")


class TranscriptSource(NamedTuple):
    """One transcript of a harness: a file, or (OpenCode) a row of its database.

    `size` is bytes (0 for a row, where only the time shows a change), `mtime_ns` nanoseconds since 1970 UTC.
    """

    harness: str
    path: str
    session_id: str
    size: int
    mtime_ns: int

    @property
    def is_model_call(self) -> bool:
        """Returns whether its folder, which some harnesses name after a session's, is that of our own model calls."""
        return f"{MODEL_FOLDER}/" in self.path

    @property
    def place(self) -> str:
        """Returns the path in a form that a row can store: a name need not be UTF-8."""
        return display(self.path) if self.path != fix_surrogates(self.path) else self.path


def sources(harness: str, where: str | None = None) -> list[TranscriptSource]:
    """Returns every transcript of a harness, oldest change first, from its own folder or a file or folder (`where`).

    Files are skipped if they are links, not regular, owned by another user, or a sub-agent's. Raises `UsageError` for
    an unknown harness, `HarnessError` if `where` or OpenCode's database cannot be read.
    """
    return files(harness, where)[0]


def files(harness: str, where: str | None) -> tuple[list[TranscriptSource], list[tuple[str, str]]]:
    """Returns what `sources` does, and the paths of transcripts that are left out, each with the reason."""
    facts = registry.facts(harness)
    found: list[TranscriptSource] = []
    left: list[tuple[str, str]] = []
    if where is None:
        places = [(os.path.join(home, one), one) for home in facts.homes(os.environ) for one in facts.folders]
        roots = list({(os.path.realpath(path), one, facts.depth): None for path, one in places})
    else:
        # A link is followed because a person named it; links below it are not.
        try:
            where = os.path.realpath(os.path.expanduser(where))
            status = os.stat(where)
        except (OSError, ValueError) as error:
            raise unreadable(where, error) from error
        roots = [(where, "", DEPTH)]
        if not stat.S_ISDIR(status.st_mode):
            require_own_file(where, status)
            roots, found = [], [_describe_file(harness, where, status)]
    for root, folder, depth in roots:
        for path, seen in _walk(root, depth):
            named = (
                re.search(facts.ending, path) if where else re.fullmatch(facts.pattern, f"{folder}/{path}".lstrip("/"))
            )
            reason = seen if isinstance(seen, str) else _find_oddity(path, seen)
            if not reason and named and not isinstance(seen, str):
                found.append(_describe_file(harness, os.path.join(root, path), seen))
            elif named or isinstance(seen, str):
                left.append((os.path.join(root, path), reason))
    if facts.keeps_database:
        found = [row for file in found for row in registry.database(harness).list_sources(file.path)]
    return sorted(found, key=lambda source: (source.mtime_ns, source.path, source.session_id)), left


def _describe_file(harness: str, path: str, status: os.stat_result) -> TranscriptSource:
    return TranscriptSource(harness, path, "", status.st_size, storable(status.st_mtime_ns))


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


def _find_oddity(path: str, status: os.stat_result) -> str:
    """Returns why a file is never a session, whatever its name; empty if it may be one."""
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if not _is_own(status):
        return "it belongs to another user"
    return "a sub-agent's file: it is part of another session" if _PART_OF_ANOTHER.search(path) else ""


def list_installed() -> list[str]:
    """Returns the harnesses whose folder exists on this machine, in the order of their names."""
    return [one for one in registry.names() if any(map(os.path.isdir, registry.facts(one).homes(os.environ)))]


# ── one file ──


def require_own_file(path: str, status: os.stat_result) -> None:
    """Raises `HarnessError` unless it is a regular file of the user (or of root, who can read all files anyway)."""
    if not stat.S_ISREG(status.st_mode):
        raise HarnessError("it is not a regular file", path=path, hint="name a transcript file, or the folder of some")
    if not _is_own(status):
        raise HarnessError("it belongs to another user", path=path, hint="copy it if you trust it, and name the copy")


def own_path(path: str) -> str:
    """Returns the path of a file of the user, without links in its folder. Raises `HarnessError` for any other."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    try:
        require_own_file(path, os.lstat(path))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    return path


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def unreadable(path: str, error: OSError | ValueError) -> HarnessError:
    """Returns our exception for a file that cannot be opened or read."""
    why = error.strerror if isinstance(error, OSError) else "it is not a path"
    return HarnessError(f"it cannot be read: {why}", path=path, hint="check the path and its permissions")


def lines(source_path: str) -> Iterator[bytes]:
    """Yields the lines of a transcript with line feeds (a torn last line has none), without loading the whole file.

    Lines longer than 64 MiB are replaced (`TOO_LONG`). Raises `HarnessError` (at the first line) if the file is
    missing, a link, not regular, owned by another user, or unreadable.
    """
    try:
        with open(os.open(source_path, READ), "rb") as file:
            require_own_file(source_path, os.fstat(file.fileno()))
            while line := file.readline(LINE_LIMIT):
                whole = len(line) < LINE_LIMIT
                while len(line) == LINE_LIMIT and not line.endswith(b"\n"):
                    line = file.readline(LINE_LIMIT)
                yield line if whole else TOO_LONG
    except (OSError, ValueError) as error:
        raise unreadable(source_path, error) from error
