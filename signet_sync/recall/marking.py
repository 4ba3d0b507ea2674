"""Says of a statement that it is done, not true, or open again: pages and `recall` follow."""

from __future__ import annotations

from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.handle import LETTERS, in_words
from signet_sync.formats.ids import require_agent
from signet_sync.formats.statement import Status
from signet_sync.graph.statements_stage import settled
from signet_sync.memories import operations
from signet_sync.recall.store import references
from signet_sync.statements.store import marks, rows
from signet_sync.statements.validity import Mark
from signet_sync.storage import state_dir
from signet_sync.sync import deriving
from signet_sync.sync.store import composed
from signet_sync.sync.workspace import Workspace


class Marked(NamedTuple):
    """A statement with its new status, and why the page does not show that yet."""

    id: str
    text: str
    status: Status
    waiting: str


def mark(
    workspace: Workspace, agent_id: str, handle: str, status: Status, now_us: int, *, by_agent: bool = False
) -> Marked:
    """Marks a statement as `done`, `withdrawn` or `open`; the files of its session stay as they are.

    An agent takes back no person's words.

    Raises `UsageError` if the handle refers to nothing or to something else; `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    database = workspace.database
    with state_dir.workspace_lock(workspace.state):
        operations.first_pass(workspace, now_us)
        statement_id = references.resolve(database, agent_id, handle).id
        found = rows.get(database, agent_id, statement_id)
        if found is None:
            raise UsageError(
                f"{handle} is a {in_words(LETTERS[statement_id[0]])}, and only a statement can be done or not true",
                hint="MEMORY.md and recall show the handles of statements (^f-…)",
                code="not-a-statement",
            )
        if by_agent and status == "withdrawn" and found.speaker != "agent":
            raise UsageError(
                f"{handle} is no agent's statement, so only a person can say that it is not true",
                hint=f"ask the person to run: signet-sync forget {statement_id}",
                code="not-an-agents",
            )
        with database.transaction(durable=True):
            marks.add(database, found.session, Mark(found.id, found.kind, found.text, status, now_us))
            change = settled(database, rows.Moved({(agent_id, found.id)}, set(), set()))
            deriving.queue(database, workspace.pipeline, change.sources)
            composed.forget(database, [agent_id])
        return Marked(found.id, found.text, status, operations.settle(workspace, agent_id, now_us))


def marked_document(done: Marked) -> dict[str, Any]:
    """Returns the JSON document of `forget --json` for a statement."""
    return {"id": done.id, "text": done.text, "status": done.status}
