"""Migrates from Signet and from four other programs, or reports beforehand what would come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from signet_sync.errors import Halted
from signet_sync.formats.ids import token_of
from signet_sync.migration import databases, markdown_notes
from signet_sync.migration.items import FILES, NO_STATEMENT, Item, Report, statement
from signet_sync.migration.signet import SignetMigration
from signet_sync.migration.writer import MemoryWriter
from signet_sync.privacy import signet_tombstones
from signet_sync.storage import state_dir
from signet_sync.sync import engine
from signet_sync.sync import tombstones as tombstones_files
from signet_sync.sync.store import sessions as sessions_store
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Outcome, Request, Workspace
from signet_sync.text.phrases import count_noun

READERS: Mapping[str, Callable[[str, int], Iterator[Item]]] = {
    "claude-mem": databases.read_claude_mem,
    "basic-memory": markdown_notes.read_basic_memory,
    "openclaw-memory": markdown_notes.read_openclaw_memory,
    "mem0-export": databases.read_mem0,
}
# Files that are left are named up to this number; all are counted.
MOST_NAMED = 20


def bring(workspace: Workspace, program: str, path: str, now_us: int, *, write: bool) -> Report:
    """Brings what a program remembers at a path and is not here; without `write` only reports what would come.

    What cannot be read as a whole is refused before anything is written. Ended early, it is finished by the same call.
    Raises `HarnessError`, `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    report = Report(path, dry_run=not write)
    writer = MemoryWriter(workspace, report, now_us, write=write)
    for found in list(READERS[program](path, now_us)):
        said = found.text if found.account == FILES else statement(found.text)
        empty = NO_STATEMENT if found.text.strip() and not said else ""
        item = found._replace(text=said, origin=("", program), left=found.left or empty)
        with report.accounted(item.account) as account:
            account.is_new = writer.bring(item)
        if item.account == FILES and report.accounts[FILES].rows <= MOST_NAMED:
            report.notes.append(f"{item.text} was left: {item.left}")
    writer.finish()
    return report


# ── Signet ──


def migrate(
    workspace: Workspace, path: str, now_us: int, *, write: bool, confirm: Callable[[int], None], accept_removals: bool
) -> Report:
    """Brings what is not here yet from Signet's database at a path; without `write` only reports what would come.

    Ended early, it is finished by the same call. `confirm` is called if sessions that are here are about to be removed,
    with their number, and may raise. Raises `HarnessError`, `Halted`, `WorkspaceError`, `DatabaseError`.
    """
    report = Report(path, dry_run=not write)
    with databases.opened(path) as signet:
        if write:
            # What Signet removed is confirmed first.
            _require_whole(engine.run_pass(workspace, Request(now_us=now_us, follow_removals=False)))
        migration = SignetMigration(workspace, signet, report, now_us, write=write)
        tombstones = migration.removals()
        tokens = {(one.agent_id, one.session_token) for one in tombstones}
        covered = 0
        for agent_id, token, session_id, key in sessions_store.every(workspace.database):
            named = {token, *(token_of(agent_id, name) for name in (session_id, key) if name)}
            covered += any((agent_id, one) in tokens for one in named)
        if write and covered:
            cliff = None if accept_removals else signet_tombstones.cliff_of(workspace, tombstones)
            if cliff is not None:  # the database may be damaged, or another workspace's
                hint = "is it the database of this workspace? if they are to be removed: --accept-removals"
                raise Halted(f"{cliff.message}; nothing was brought", path=path, hint=hint)
            confirm(covered)
        if covered:
            report.notes.append(
                f"{'' if write else 'to be '}removed here, as in Signet: {count_noun(covered, 'session')}"
            )
        if write and tombstones:
            # Ended early, the next pass finishes what this has begun.
            with state_dir.workspace_lock(workspace.state):
                for one in tombstones:
                    tombstones_files.put(workspace.root, one)
                with workspace.database.transaction(durable=True):
                    tombstones_store.mirror(workspace.database, tombstones)
                _require_whole(engine.run_locked(workspace, Request(now_us=now_us)))
        migration.bring()
    return report


def _require_whole(outcome: Outcome) -> None:
    """Raises `Halted` if a pass was halted."""
    if outcome.cliff is not None:
        hint = "bring the files back, or first: signet-sync reindex --accept-removals"
        raise Halted(f"passes are halted: {outcome.cliff.message}; nothing was brought", hint=hint)
