"""Decides what the next commit contains: each file as it is, as it was, or not at all, with the reason."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.history.git import ignore, objects, worktree
from signet_sync.history.git.objects import TreeEntry
from signet_sync.storage import files
from signet_sync.storage.files import signature_of
from signet_sync.text.sanitizer import sanitize_counted

# Clocks of file systems tick: a file written just now may change again without a change of its times.
_TICK_NS = 100_000_000
_COARSE_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What is committed: files of at most `max_bytes` bytes; transcripts only if wanted."""

    max_bytes: int = 1024 * 1024
    transcripts: bool = False


class Skipped(NamedTuple):
    """A file or folder that was not committed, or not in its present state.

    `why`: `too-large`, `secret`, `nested-repository`, `not-a-file` (a link, a pipe), `too-deep` (its path is too long
    for git), `unreadable`, `unsettled`. Ignored files and unwanted transcripts are not listed.
    """

    path: str
    why: str


class CachedBlob(NamedTuple):
    """What was found when a file was read: the hex id of its blob, or why it was skipped (the other is empty).

    Valid for one `sanitizer_stamp`; for another one the caller starts with an empty cache.
    """

    signature: Signature
    oid: str
    skipped: str


@dataclass(slots=True)
class Gathered:
    """The next tree, flat, with the stats of files on disk that are in it; and updates for the caller's cache."""

    flat: dict[str, TreeEntry] = field(default_factory=dict)
    stats: dict[str, os.stat_result] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    learnt: dict[str, CachedBlob] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gathering:
    """Scans the workspace, given the last tree, limits, cache, and `add`, which stores a blob and returns its id.

    `filemode`: whether the file system distinguishes executable files. `layers` are rules besides the `.gitignore`s.
    """

    root: str
    tracked: Mapping[str, TreeEntry]
    limits: Limits
    cache: Mapping[str, CachedBlob]
    add: Callable[[int, bytes], bytes]
    layers: tuple[ignore.Layer, ...]
    any_case: bool
    filemode: bool

    def gathered(self) -> Gathered:
        """Scans all files; reads only those that the cache does not know. Raises `OSError` if `add` does."""
        found = Gathered()
        seen = worktree.scan(self.root, self.layers, any_case=self.any_case)
        if self.limits.transcripts:
            self._add_transcripts(seen)
        now = time.time_ns()
        for path, status in seen.files.items():
            self._take(found, path, status, now)
        for path in self.tracked.keys() - seen.files.keys():
            self._keep(found, seen, path, now)
        found.skipped += (Skipped(path, why) for path, why in seen.odd.items() if path not in self._links(seen))
        found.skipped.sort()
        return found

    def some(self, paths: Collection[str]) -> Gathered:
        """Does the same for a few paths, ignored or not; skips those that do not exist."""
        found = Gathered()
        now = time.time_ns()
        for path in sorted(paths):
            status = files.status_of(self.root, path)
            if status is not None and stat.S_ISREG(status.st_mode):
                self._take(found, path, status, now)
        return found

    def _add_transcripts(self, seen: worktree.WorktreeScan) -> None:
        """Adds transcripts: only the setting decides on them, because the ignore rules that we wrote name them."""
        for name in files.listing(self.root, MEMORY, ""):
            path = f"{MEMORY}/{name}"
            if path not in seen.files and _is_transcript(path):
                status = files.status_of(self.root, path)
                if status is not None and stat.S_ISREG(status.st_mode):
                    seen.files[path] = status

    def _links(self, seen: worktree.WorktreeScan) -> set[str]:
        """Returns links that a person committed: they are kept as they are and not reported."""
        return {path for path in seen.odd if (entry := self.tracked.get(path)) and entry.mode == objects.LINK}

    def _keep(self, found: Gathered, seen: worktree.WorktreeScan, path: str, now: int) -> None:
        """Handles a tracked path that the scan did not find: ignored since, inside something odd, or gone."""
        entry = self.tracked[path]
        if _hidden(path, seen.odd):
            found.flat[path] = entry
            return
        try:
            status = worktree.state_of(self.root, path)
        except (WorkspaceError, NotADirectoryError):
            return  # its folder was replaced by a file or an ignored link
        if status is None:
            return
        if stat.S_ISREG(status.st_mode):
            self._take(found, path, status, now)
        elif not stat.S_ISDIR(status.st_mode) or entry.mode == objects.REPOSITORY:
            found.flat[path] = entry

    def _take(self, found: Gathered, path: str, status: os.stat_result, now: int) -> None:
        """Adds a regular file to the next tree."""
        before = self.tracked.get(path)
        if _is_transcript(path) and not self.limits.transcripts:
            why = "transcript"
        elif status.st_size > self.limits.max_bytes:
            why = "too-large"
        else:
            oid, why = self._blob(found, path, status, before, now)
            if not why:
                found.flat[path] = TreeEntry(self._mode(status, before), oid)
                return
        if why == "gone":
            return
        if before is not None:
            found.flat[path] = before
        if why != "transcript":
            found.skipped.append(Skipped(path, why))

    def _mode(self, status: os.stat_result, before: TreeEntry | None) -> int:
        if self.filemode:
            return objects.PROGRAM if status.st_mode & 0o100 else objects.FILE
        return before.mode if before is not None and before.mode == objects.PROGRAM else objects.FILE

    def _blob(
        self, found: Gathered, path: str, status: os.stat_result, before: TreeEntry | None, now: int
    ) -> tuple[bytes, str]:
        """Returns the id of a file's blob, or why there is none."""
        known = self.cache.get(path)
        if known is not None and known.signature == signature_of(status):
            if known.skipped:
                return b"", known.skipped
            # An id counts only if the last tree has it: then the object exists, whatever the cache says.
            if before is not None and before.oid.hex() == known.oid:
                found.stats[path] = status
                return before.oid, ""
        read = files.read(self.root, path, self.limits.max_bytes)
        if not isinstance(read, Found):
            return b"", read.code
        oid, why = b"", "secret" if holds_secret(path, read.raw) else ""
        if not why:
            oid = objects.object_id(objects.BLOB, read.raw)
            if before is None or before.oid != oid:
                self.add(objects.BLOB, read.raw)
        if read.signature == signature_of(status):
            found.stats[path] = status
        if _settled(read.signature, now):
            found.learnt[path] = CachedBlob(read.signature, oid.hex(), why)
        return oid, why


def _is_transcript(path: str) -> bool:
    """Returns whether a path is a transcript or a copy of one, whatever the ignore rules say."""
    return "--transcript" in path and fnmatchcase(path, f"{MEMORY}/*--transcript*.md")


def _hidden(path: str, odd: Mapping[str, str]) -> bool:
    """Returns whether the path, or a folder above it, is one that we do not enter; `""` is the root."""
    while path and path not in odd:
        path = path.rpartition("/")[0]
    return path in odd


def _settled(signature: Signature, now: int) -> bool:
    written = max(signature.mtime_ns, signature.ctime_ns)
    # Times in whole seconds: the file system has no finer ones.
    tick = _COARSE_TICK_NS if signature.mtime_ns % 10**9 == 0 else _TICK_NS
    return written + tick < now


_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def holds_secret(path: str, raw: bytes) -> bool:
    """Returns whether the sanitizer would redact anything in a file or its name."""
    text = raw.decode(_BYTE_ORDER_MARKS.get(raw[:2], "utf-8"), "replace")
    return bool(sanitize_counted(path)[1] or sanitize_counted(text)[1])
