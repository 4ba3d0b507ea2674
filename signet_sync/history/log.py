"""Reads the history: its commits and what changed since one of them; all of it, or as one agent may see it."""

import re
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.formats.body import CONTROLS, UNSEEN
from signet_sync.formats.paths import display, escape_character
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import SECOND, iso
from signet_sync.history import repository
from signet_sync.history.commit import AGENTS_ADDRESS
from signet_sync.recall.store.references import owns_path
from signet_sync.storage import files, state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.files import require_root
from signet_sync.sync.read_only import IndexPlace, open_index
from signet_sync.sync.store import sessions
from signet_sync.text.sanitizer import redact, sanitize_line, sanitize_transcript_v2

if TYPE_CHECKING:
    import pygit2

LOG_LIMIT = 100
DIFF_LIMIT = 1024 * 1024  # characters
ANOTHER_AGENT = "another"
_COMPARED = 1024 * 1024  # bytes of a file that is compared line by line; the worst case takes seconds
_SIZE_LIMIT = 4 * 1024 * 1024  # bytes of a present file whose lines may be shown
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


class CommitList(NamedTuple):
    """The newest commits first; if requested the diff from the oldest to the newest of them, and what was cut of it."""

    commits: list[CommitSummary]
    diff: str | None = None
    cut: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the document of `history --json`."""
        entries = [commit.document() for commit in self.commits]
        return {"commits": entries} | ({} if self.diff is None else {"diff": self.diff})


def list_commits(root: str, limit: int, *, with_diff: bool, visible: PatchFilter | None = None) -> CommitList:
    """Returns the newest commits (at most 100); none without a repository. Raises `RepositoryRefused`.

    `visible` returns how much of each file's patch is shown.
    """
    require_root(root)
    key = state_dir.locate(root).key
    found = repository.inspect(root, key)
    if found is not None and found.code in ("no-repository", "inside-repository"):
        return CommitList([], "" if with_diff else None)
    with repository.open_repository(root, key) as git:
        commits = log(git, limit)
        shown = diff(git, commits[-1].oid if commits else "", visible=visible) if with_diff else (None, "")
        return CommitList(commits, *shown)


def log(git: "pygit2.Repository", limit: int) -> list[CommitSummary]:
    """Returns the newest commits first, `limit` clamped to 1..100; none before the first commit."""
    import pygit2

    newest, found = repository.tip(git), list[CommitSummary]()
    commits = git.walk(newest.id, pygit2.enums.SortMode.NONE) if newest is not None else ()
    for commit in islice(commits, max(1, min(limit, LOG_LIMIT))):
        subject, _, body = commit.raw_message.decode("utf-8", "replace").strip().partition("\n\n")
        author, name, email = (
            sanitize_line(raw.decode("utf-8", "replace"))
            for raw in (commit.author.raw_name, commit.committer.raw_name, commit.committer.raw_email)
        )
        oid, words = str(commit.id), (sanitize_line(subject), sanitize_transcript_v2(body).strip())
        found.append(CommitSummary(oid, oid[:7], *words, author, commit.commit_time, (name, email)))
    return found


def diff(git: "pygit2.Repository", oldest: str, *, visible: PatchFilter | None = None) -> tuple[str, str]:
    """Returns what changed from one commit's tree (`oldest` is its id) to the newest, at most `DIFF_LIMIT` characters.

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
        path, patch = change.new_file.path, _make_patch(git, change)
        patch = patch if visible is None else visible(path, patch)
        if len(text) + len(patch) > DIFF_LIMIT:
            left = f"{len(changes) - number:,} of {len(changes):,} changed files are not shown"
            return text, f"cut after {DIFF_LIMIT:,} characters: {left}"
        text += patch
    return text, ""


def _make_patch(git: "pygit2.Repository", change: "pygit2.DiffDelta") -> str:
    import pygit2

    shown, sides = display(change.new_file.path), []
    for side in (change.old_file, change.new_file):
        absent = not int(str(side.id), 16)
        if not absent and (side.mode == pygit2.enums.FileMode.COMMIT or git.odb.read_header(side.id)[1] > _COMPARED):
            return f"diff --git a/{shown} b/{shown}\nlarge files or other repositories differ\n"
        sides.append(None if absent else git.odb.read(side.id)[1])
    old, new = sides
    return _presentable(pygit2.Patch.create_from(old, new, old_as_path=shown, new_as_path=shown).data)


def _presentable(raw: bytes) -> str:
    """Returns a version's text for a diff: without secrets, control characters as escapes."""
    return _CONTROL.sub(lambda match: escape_character(match[0]), redact(raw.decode("utf-8", "replace"))[0])


# ── as one agent may see it: its own commits and files, and nothing since removed ──


def list_visible_commits(place: IndexPlace, agent_id: str, limit: int, *, with_diff: bool = False) -> CommitList:
    """Returns the newest commits; of other agents' only time and kind, and of the diff only lines that still exist.

    Other lines are not shown: what was removed or forgotten must not come back through the history. Raises what
    `list_commits` and reading the index raise.
    """

    def show_patch(path: str, patch: str) -> str:
        """Returns the added lines of a patch that still exist; "" if there are none or the file is not the agent's."""
        found = files.read(place.root, path, _SIZE_LIMIT) if owns_path(database, agent_id, path) else None
        if not isinstance(found, Found):
            return ""
        present = set(_presentable(found.raw).split("\n"))
        head, *hunks = patch.split("\n@@")
        shown = [head]
        for numbers, *lines in (hunk.split("\n") for hunk in hunks):
            kept = [line for line in lines if line.startswith((" ", "+")) and line[1:] in present]
            if any(line.startswith("+") for line in kept):
                # After its numbers git repeats a line of the file.
                shown.append("\n".join((f"@@{numbers.partition('@@')[0]}@@", *kept)))
        return "\n".join((*shown, "")) if len(shown) > 1 else ""

    with open_index(place) as database:
        found = list_commits(place.root, limit, with_diff=with_diff, visible=show_patch)
        commits = [_show_commit(database, agent_id, commit) for commit in found.commits]
    return found._replace(commits=commits)


def _show_commit(database: Database, agent_id: str, commit: CommitSummary) -> CommitSummary:
    """Returns an own commit with its text, without sessions that are gone or others'; of others only the kind."""
    kind, colon, _ = commit.subject.partition(": ")
    if commit.committer != (agent_id, AGENTS_ADDRESS):
        return commit._replace(subject=kind if colon else "commit", body="", author=ANOTHER_AGENT)
    body = commit.body.partition("Not committed:")[0].strip()
    if kind != "session-close":
        return commit._replace(body=body)
    names = []
    for name, _, whose in (line.removeprefix("- ").rpartition(" (agent ") for line in body.split("\n")):
        known = sessions.find(database, agent_id, name.removesuffix("…"))
        names += [name] if known and whose == f"{agent_id})" else []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    subject = f"{kind}: {names[-1]}{more}" if names else kind
    return commit._replace(subject=subject, body="\n".join(f"- {name}" for name in names))
