"""Reads the history: its commits, and what changed since one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.formats.invisible import CONTROLS, UNSEEN
from signet_sync.formats.paths import display, escaped_character
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.history.git import objects, repository
from signet_sync.history.git.objects import TreeEntry
from signet_sync.history.git.repository import OpenRepository
from signet_sync.text.sanitizer import redact, sanitize_line, sanitize_transcript_v2

if TYPE_CHECKING:
    import pygit2

LOG_LIMIT = 100
DIFF_LIMIT = 1024 * 1024  # characters
_COMPARED = 1024 * 1024  # bytes of a file that is compared line by line; the worst case takes seconds


class CommitSummary(NamedTuple):
    """A commit for display: texts are sanitized; `timestamp` is Unix seconds.

    `committer` is name and address: the agent, whatever the author's name.
    """

    oid: str
    short_oid: str
    subject: str
    body: str
    author: str
    timestamp: int
    committer: tuple[str, str] = ("", "")

    def document(self) -> dict[str, Any]:
        """Returns the commit as `history --json` shows it."""
        document = self._asdict() | {"timestamp": iso(self.timestamp * SECOND)}
        del document["committer"]
        return document


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff for display; `cut` names what was left out (empty: nothing)."""

    text: str
    cut: str = ""


# ── commits ──


def log(place: OpenRepository, limit: int) -> list[CommitSummary]:
    """Returns the newest commits first, `limit` clamped to 1..100; none before the first commit."""
    import pygit2

    with repository.readable():
        newest = repository.tip(place)
        if newest is None:
            return []
        commits = place.git.walk(pygit2.Oid(raw=newest), pygit2.enums.SortMode.NONE)
        return [_shown(commit) for commit in islice(commits, max(1, min(limit, LOG_LIMIT)))]


def _shown(commit: pygit2.Commit) -> CommitSummary:
    subject, _, body = commit.raw_message.decode("utf-8", "replace").strip().partition("\n\n")
    return CommitSummary(
        str(commit.id),
        str(commit.id)[:7],
        sanitize_line(subject),
        sanitize_transcript_v2(body).strip(),
        _name(commit.author.raw_name),
        commit.commit_time,
        (_name(commit.committer.raw_name), _name(commit.committer.raw_email)),
    )


def _name(raw: bytes) -> str:
    return sanitize_line(raw.decode("utf-8", "replace"))


def _commit(place: OpenRepository, oid: bytes) -> pygit2.Commit:
    import pygit2

    return place.git[pygit2.Oid(raw=oid)].peel(pygit2.Commit)


def _named(place: OpenRepository, folder: TreeEntry) -> Iterator[tuple[str, TreeEntry]]:
    for mode, name, oid in objects.read_tree(place.git, folder.oid):
        yield os.fsdecode(name), TreeEntry(int(mode, 8), oid)


# ── what changed ──


# Returns how much of a file's patch (path, patch) is shown; "" leaves it out.
PatchFilter = Callable[[str, str], str]


def diff(place: OpenRepository, oldest: str, *, limit: int = DIFF_LIMIT, visible: PatchFilter | None = None) -> Diff:
    """Returns what changed from one commit's tree (`oldest` is its id) to the newest, at most `limit` characters.

    Uses only bytes: attributes and drivers of the repository have no effect. Secrets that others committed are
    redacted, control characters shown as escapes.
    """
    with repository.readable():
        newest = repository.tip(place)
        if newest is None:
            return Diff("")
        trees_of = (_commit(place, oid).tree_id.raw for oid in (bytes.fromhex(oldest), newest))
        changes = sorted(_changes(place, "", *trees_of))
        parts: list[str] = []
        room = limit
        for number, (path, old, new) in enumerate(changes):
            patch = _patch(place, path, old, new)
            patch = patch if visible is None else visible(path, patch)
            if len(patch) > room:
                left = len(changes) - number
                cut = f"cut after {limit:,} characters: {left:,} of {len(changes):,} changed files are not shown"
                return Diff("".join(parts), cut)
            parts.append(patch)
            room -= len(patch)
        return Diff("".join(parts))


Change = tuple[str, TreeEntry | None, TreeEntry | None]


def _changes(place: OpenRepository, where: str, old: bytes | None, new: bytes | None) -> Iterator[Change]:
    """Yields paths whose entries differ; equal folders are not opened."""
    if old == new:
        return
    before, after = (dict(_named(place, TreeEntry(objects.FOLDER, oid))) if oid else {} for oid in (old, new))
    for name in before.keys() | after.keys():
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        folders = [entry.oid if entry is not None and entry.mode == objects.FOLDER else None for entry in (was, now)]
        if any(folders):
            yield from _changes(place, f"{where}{name}/", *folders)
        files = [None if entry is None or entry.mode == objects.FOLDER else entry for entry in (was, now)]
        if any(files):
            yield f"{where}{name}", files[0], files[1]


def _patch(place: OpenRepository, path: str, old: TreeEntry | None, new: TreeEntry | None) -> str:
    import pygit2

    shown = display(path)
    if any(entry is not None and entry.mode == objects.REPOSITORY for entry in (old, new)):
        return f"diff --git a/{shown} b/{shown}\nanother repository\n"
    before, after = (_compared(place, entry) for entry in (old, new))
    if isinstance(before, _TooLarge) or isinstance(after, _TooLarge):
        return f"diff --git a/{shown} b/{shown}\nlarge files differ\n"
    patch = pygit2.Patch.create_from(before, after, old_as_path=shown, new_as_path=shown)
    return presentable(patch.data)


def presentable(raw: bytes) -> str:
    """Returns a version's text for a diff: without secrets, control characters as escapes."""
    return _CONTROL.sub(lambda match: escaped_character(match[0]), redact(raw.decode("utf-8", "replace"))[0])


class _TooLarge:
    """Replaces the bytes of a file that is too large to compare."""


def _compared(place: OpenRepository, entry: TreeEntry | None) -> bytes | _TooLarge | None:
    import pygit2

    if entry is None:
        return None
    oid = pygit2.Oid(raw=entry.oid)
    if place.git.odb.read_header(oid)[1] > _COMPARED:
        return _TooLarge()
    return place.git.odb.read(oid)[1]


_CONTROL = re.compile(f"[{CONTROLS}{UNSEEN}]")
