"""Reads the history: its commits, and what changed since one of them."""

import re
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.formats.body import CONTROLS, UNSEEN
from signet_sync.formats.paths import display, escape_character
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.history import repository
from signet_sync.text.sanitizer import redact, sanitize_line, sanitize_transcript_v2

if TYPE_CHECKING:
    import pygit2

LOG_LIMIT = 100
DIFF_LIMIT = 1024 * 1024  # characters
_COMPARED = 1024 * 1024  # bytes of a file that is compared line by line; the worst case takes seconds
_CONTROL = re.compile(f"[{CONTROLS}{UNSEEN}]")
# Returns how much of a file's patch (path, patch) is shown; "" leaves it out.
PatchFilter = Callable[[str, str], str]


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


def log(git: "pygit2.Repository", limit: int) -> list[CommitSummary]:
    """Returns the newest commits first, `limit` clamped to 1..100; none before the first commit."""
    import pygit2

    newest = repository.tip(git)
    if newest is None:
        return []
    found = []
    for commit in islice(git.walk(newest.id, pygit2.enums.SortMode.NONE), max(1, min(limit, LOG_LIMIT))):
        subject, _, body = commit.raw_message.decode("utf-8", "replace").strip().partition("\n\n")
        author, name, email = (
            sanitize_line(raw.decode("utf-8", "replace"))
            for raw in (commit.author.raw_name, commit.committer.raw_name, commit.committer.raw_email)
        )
        oid, words = str(commit.id), (sanitize_line(subject), sanitize_transcript_v2(body).strip())
        found.append(CommitSummary(oid, oid[:7], *words, author, commit.commit_time, (name, email)))
    return found


def diff(
    git: "pygit2.Repository", oldest: str, *, limit: int = DIFF_LIMIT, visible: PatchFilter | None = None
) -> tuple[str, str]:
    """Returns what changed from one commit's tree (`oldest` is its id) to the newest, at most `limit` characters.

    Beside the unified diff what was cut from it, empty for nothing. Uses only bytes: attributes and drivers of the
    repository have no effect. Secrets that others committed are redacted, control characters shown as escapes.
    """
    import pygit2

    newest = repository.tip(git)
    if newest is None:
        return "", ""
    changes = list(git[oldest].peel(pygit2.Commit).tree.diff_to_tree(newest.tree).deltas)
    text = ""
    for number, change in enumerate(changes):
        path = change.new_file.path
        patch = _patch(git, path, change)
        patch = patch if visible is None else visible(path, patch)
        if len(text) + len(patch) > limit:
            left = f"{len(changes) - number:,} of {len(changes):,} changed files are not shown"
            return text, f"cut after {limit:,} characters: {left}"
        text += patch
    return text, ""


def _patch(git: "pygit2.Repository", path: str, change: "pygit2.DiffDelta") -> str:
    import pygit2

    shown, sides = display(path), []
    for side in (change.old_file, change.new_file):
        absent = not int(str(side.id), 16)
        if not absent and (side.mode == pygit2.enums.FileMode.COMMIT or git.odb.read_header(side.id)[1] > _COMPARED):
            return f"diff --git a/{shown} b/{shown}\nlarge files or other repositories differ\n"
        sides.append(None if absent else git.odb.read(side.id)[1])
    old, new = sides
    return presentable(pygit2.Patch.create_from(old, new, old_as_path=shown, new_as_path=shown).data)


def presentable(raw: bytes) -> str:
    """Returns a version's text for a diff: without secrets, control characters as escapes."""
    return _CONTROL.sub(lambda match: escape_character(match[0]), redact(raw.decode("utf-8", "replace"))[0])
