"""Reads from the git history what it still contains of removed sessions and forgotten memories without rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from signet_sync.formats.frontmatter import FrontmatterProblem, parse
from signet_sync.formats.handle import handle
from signet_sync.formats.paths import page_agent
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.formats.timestamps import iso
from signet_sync.history import purge
from signet_sync.history.purge_plan import kept_page_agent
from signet_sync.memories import text_match
from signet_sync.memories.store import memories
from signet_sync.sync import deriving, planner
from signet_sync.sync.planner import JudgeContext, Tombstones
from signet_sync.sync.stages import SESSION, Source
from signet_sync.sync.store import artifacts
from signet_sync.sync.workspace import Workspace

_NOWHEN = Signature(0, 0, 0, 0)
_MEMORY = re.compile(rb"\^(m-[a-z2-7]{12})\b")
# What a page appends to a memory's words: MEMORY.md the score of a promoted one, DREAMS.md why it was promoted.
_TAIL = re.compile(r"(?: _\(score=.*\)_| — found \d+ times? by .*)?\s*\Z", re.DOTALL)


@dataclass(slots=True)
class HistorySearch:
    """The findings of a search through the history; `RewriteRules` that change nothing.

    `artifacts` are file versions that `wanted` accepts by path and bytes, in the order of the search; `memories` are
    ids that generated pages of the agent name; `lines` are the page lines that name the memory `memory_id`.
    """

    agent_id: str
    wanted: Callable[[str, bytes], bool] = lambda path, raw: False
    memory_id: str = ""
    artifacts: list[tuple[str, bytes]] = field(default_factory=list)
    memories: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)

    def file(self, path: str, raw: bytes) -> bytes | None:
        """Records a version of a file."""
        if self.wanted(path, raw):
            self.artifacts.append((path, raw))
        elif self.agent_id in (page_agent(path), kept_page_agent(path)):
            self.memories |= {found.decode("ascii") for found in _MEMORY.findall(raw)}
            mark = handle(self.memory_id).encode() if self.memory_id else b""
            if mark and mark in raw:
                named = [line for line in raw.split(b"\n") if mark in line]
                self.lines += [line.partition(mark)[0].decode("utf-8", "replace") for line in named]
        return raw

    def message(self, raw: bytes) -> bytes:
        """Keeps a message: messages name memories of any agent, and only those that pages name too."""
        return raw


def search(workspace: Workspace, past: HistorySearch) -> HistorySearch:
    """Searches the whole history. Raises `RepositoryRefused`, `WorkspaceError`."""
    purge.preview(workspace.root, workspace.state.key, past)
    return past


def session_of(raw: bytes) -> str | None:
    """Returns the session id in an artifact's frontmatter."""
    try:
        found = parse(raw).fields.get("session_id")
    except FrontmatterProblem:
        return None
    return found if isinstance(found, str) else None


@contextmanager
def with_removed(workspace: Workspace, found: Collection[tuple[str, bytes]], now_us: int) -> Iterator[Workspace]:
    """Yields the workspace with an in-memory index that also contains some removed artifacts.

    So the words of removed sessions are found in the same way as those of present ones. Raises `DatabaseError`.
    """
    context = JudgeContext(
        Tombstones([]), workspace.noise, lambda _: None, iso(now_us), workspace.settings.max_file_bytes
    )
    copy = workspace.database.in_memory()
    try:
        present = artifacts.rows_by_path(copy, [path for path, _ in found])
        judged = [planner.judge(path, Found(raw, _NOWHEN), context) for path, raw in found if path not in present]
        # Of several versions the oldest was sealed and shown; the search reaches it last.
        oldest = {one.path: one for one in judged if one.row is not None}
        with copy.transaction():
            artifacts.insert_rows(copy, list(oldest.values()), artifacts.next_row_id(copy), iso(now_us))
            rows = [one.row for one in oldest.values() if one.row is not None]
            moved = {Source(SESSION, row.agent_id, row.session_token, row.session_id) for row in rows}
            deriving.follow(copy, workspace.pipeline, moved)
        yield replace(workspace, database=copy)
    finally:
        copy.connection.close()


def unknown_memories(workspace: Workspace, past: HistorySearch) -> tuple[str, ...]:
    """Returns the ids that pages of the history name and that are no longer memories."""
    return tuple(sorted(one for one in past.memories if memories.get(workspace.database, past.agent_id, one) is None))


def words_of_memory(workspace: Workspace, past: HistorySearch) -> set[bytes]:
    """Returns what identifies a forgotten memory: its handle, and the words that only its page lines have."""
    texts = {_TAIL.sub("", line).strip() for line in past.lines}
    return {past.memory_id.encode()} | text_match.of_texts(workspace.database, sorted(texts))
