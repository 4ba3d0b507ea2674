"""Shows the workspace's history as one agent may see it: its own commits and files, and nothing since removed."""

from __future__ import annotations

from dataclasses import dataclass

from signet_sync.formats.snapshot import Found
from signet_sync.history import operations as history_operations
from signet_sync.history.log import CommitSummary, presentable
from signet_sync.history.operations import CommitList
from signet_sync.recall.store.references import owns_path
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.store import sessions
from signet_sync.text.phrases import count_noun

_SIZE_LIMIT = 4 * 1024 * 1024  # bytes of a file whose lines are compared
_NOT_COMMITTED = "Not committed:"
ANOTHER_AGENT = "another"


def list_commits(place: IndexPlace, agent_id: str, limit: int, *, with_diff: bool = False) -> CommitList:
    """Returns the newest commits; of other agents' only time and kind, and of the diff only lines that still exist.

    Other lines are not shown: what was removed or forgotten must not come back through the history. Raises what
    `history.listed` and reading the index raise.
    """
    with reading(place) as database:
        view = _AgentView(database, place.root, agent_id)
        found = history_operations.list_commits(place.root, limit, with_diff=with_diff, visible=view.patch)
        commits = [view.commit(commit) for commit in found.commits]
    left = [
        (view.lines_left, "line", "that no longer exist"),
        (view.files_left, "file", "that are gone or not this agent's"),
    ]
    cut = [f"{count_noun(count, what)} {which} are not shown" for count, what, which in left if count]
    return CommitList(commits, found.diff, "; ".join(filter(None, (found.cut, *cut))))


@dataclass(slots=True)
class _AgentView:
    """Filters commits and patches for an agent."""

    database: Database
    root: str
    agent_id: str
    files_left: int = 0
    lines_left: int = 0

    def commit(self, commit: CommitSummary) -> CommitSummary:
        """Returns an own commit with its text, without sessions that are gone or others'; of others only the kind."""
        kind, colon, _ = commit.subject.partition(": ")
        if commit.committer != (self.agent_id, history_operations.AGENTS_ADDRESS):
            return commit._replace(subject=kind if colon else "commit", body="", author=ANOTHER_AGENT)
        body = commit.body.partition(_NOT_COMMITTED)[0].strip()
        if kind != "session-close":
            return commit._replace(body=body)
        names = []
        for name, _, whose in (line.removeprefix("- ").rpartition(" (agent ") for line in body.split("\n")):
            known = sessions.find(self.database, self.agent_id, name.removesuffix("…"))
            names += [name] if known and whose == f"{self.agent_id})" else []
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        subject = f"{kind}: {names[-1]}{more}" if names else kind
        return commit._replace(subject=subject, body="\n".join(f"- {name}" for name in names))

    def patch(self, path: str, patch: str) -> str:
        """Returns the added lines of a patch that still exist; "" if there are none or the file is not this agent's."""
        found = files.read(self.root, path, _SIZE_LIMIT) if owns_path(self.database, self.agent_id, path) else None
        if not isinstance(found, Found):
            self.files_left += 1
            return ""
        present = set(presentable(found.raw).split("\n"))
        head, *hunks = patch.split("\n@@")
        shown = [hunk for text in hunks if (hunk := self._hunk(text, present))]
        return "\n".join((head, *shown, "")) if shown else ""

    def _hunk(self, text: str, present: set[str]) -> str:
        """Returns a hunk without the lines that no longer exist; "" if none of the rest was added."""
        numbers, *lines = text.split("\n")
        kept = [line for line in lines if line.startswith((" ", "+")) and line[1:] in present]
        self.lines_left += sum(line.startswith((" ", "+", "-")) for line in lines) - len(kept)
        if not any(line.startswith("+") for line in kept):
            return ""
        # After its numbers git repeats a line of the file.
        return "\n".join((f"@@{numbers.partition('@@')[0]}@@", *kept))
