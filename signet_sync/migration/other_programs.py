"""Brings what other programs than Signet remember, as memories: each once, with a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from signet_sync.errors import HarnessError
from signet_sync.memories import operations as memories_operations
from signet_sync.migration import basic_memory, claude_mem, mem0_export, openclaw_memory
from signet_sync.migration.items import Item, LeftFile, marks_in
from signet_sync.migration.memories import MemoryBringer, Source
from signet_sync.migration.report import Report
from signet_sync.migration.signet_rows import Left, agent_of, said
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace

READERS: Mapping[str, Callable[[str, int], Iterator[Item | LeftFile]]] = {
    "claude-mem": claude_mem.read,
    "basic-memory": basic_memory.read,
    "openclaw-memory": openclaw_memory.read,
    "mem0-export": mem0_export.read,
}
# Files that are left are named up to this number; all are counted.
MOST_NAMED = 20


def bring(workspace: Workspace, program: str, path: str, now_us: int, *, write: bool) -> Report:
    """Brings what a program remembers at a path and is not here; without `write` only reports what would come.

    Ended early, it is finished by the same call. Raises `HarnessError`, `UsageError`, `WorkspaceError`,
    `DatabaseError`.
    """
    report = Report(path, dry_run=not write)
    memories = MemoryBringer(workspace, now_us, write=write)
    try:
        # What cannot be read as a whole is refused with the first item, before anything is written.
        for found in READERS[program](path, now_us):
            _account(report, memories, program, found)
    except HarnessError:  # it changed while it was read: what came of it is kept
        _finish(workspace, memories, report, now_us)
        raise
    _finish(workspace, memories, report, now_us)
    if "files" in report.accounts and report.accounts["files"].left[basic_memory.NOTHING_STATED]:
        report.notes.append("to keep what such a file says: signet-sync remember TEXT")
    report.redactions.update(memories.redactions)
    report.reworded = memories.reworded
    return report


def _finish(workspace: Workspace, memories: MemoryBringer, report: Report, now_us: int) -> None:
    """Writes what waits, and updates the pages and the backup."""
    memories.flush()
    for agent_id in sorted(memories.agents):
        with state_dir.workspace_lock(workspace.state):
            memories_operations.first_pass(workspace, now_us)
            waiting = memories_operations.settle(workspace, agent_id, now_us)
        report.notes += [waiting] if waiting else []


def _account(report: Report, memories: MemoryBringer, program: str, found: Item | LeftFile) -> None:
    """Brings one item and counts what became of it."""
    if isinstance(found, LeftFile):
        report.left("files", found.why)
        if report.of("files").rows <= MOST_NAMED:
            report.notes.append(f"{found.path} was left: {found.why}")
        return
    try:
        is_new = _bring(memories, program, found)
    except Left as why:
        report.left(found.account, str(why), called=found.name)
    else:
        (report.brought if is_new else report.here)(found.account)


def _bring(memories: MemoryBringer, program: str, item: Item) -> bool:
    """Brings one item; returns whether it is new. Raises `Left`."""
    if item.left:
        raise Left(item.left)
    agent_id = agent_of({"agent_id": item.agent_id})
    statement = said(agent_id, item.kind, item.text, item.tags, item.at_us, {}, item.private)
    is_new = memories.bring(statement, Source(f"{program} {item.account}", item.id, ("", program)))
    memories.redactions.update(marks_in(item.text) if is_new else ())
    return is_new
