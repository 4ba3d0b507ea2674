"""Says of a statement that it is done, not true or open again, and pins what a handle refers to; pages follow.

It is written into `memory/words/` first: rows follow from there, on every machine that has the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.handle import LETTERS, name_kind, row_id_of
from signet_sync.formats.ids import require_agent
from signet_sync.formats.statement import Word, newest_words
from signet_sync.formats.timestamps import iso
from signet_sync.graph.store import neighbours
from signet_sync.memories import operations
from signet_sync.memories.store import memories
from signet_sync.recall.store import references
from signet_sync.statements import store as statements_store
from signet_sync.statements import word_files
from signet_sync.statements.validity import ENDS, word_hashes
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Pinned:
    """The id that a handle refers to, and whether pinning or unpinning changed anything."""

    id: str
    changed: bool
    waiting: str


def pin(workspace: Workspace, agent_id: str, handle: str, now_us: int, *, remove: bool = False) -> Pinned:
    """Pins what a handle refers to in MEMORY.md, or removes its pin; a pinned thing that is gone needs its full id.

    Raises `UsageError` if it refers to nothing, or to something without a line; `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    with state_dir.workspace_lock(workspace.state):
        operations.first_pass(workspace, now_us)
        found = handle.strip().removeprefix("^")
        if not (pinned := memories.is_pinned(workspace.database, agent_id, found)):
            found = row_id_of(references.resolve(workspace.database, agent_id, handle))
            pinned = memories.is_pinned(workspace.database, agent_id, found)
        if not remove and found[0] not in "tfm":
            hint = "signet-sync remember TEXT keeps what matters of it"
            if LETTERS[found[0]] in KINDS:
                hint = f"signet-sync entity protect pin {found} prevents agents from changing it"
            raise UsageError(
                f"{found} is a {name_kind(LETTERS[found[0]])}; statements, memories and projects can be pinned",
                hint=hint,
                code="not-pinnable",
            )
        word = Word(agent_id, found, "unpinned" if remove else "pinned", iso(now_us))
        return Pinned(found, pinned == remove, _say(workspace, [word], now_us))


def list_pins(database: Database, agent_id: str) -> list[dict[str, Any]]:
    """Returns what an agent has pinned, the newest first: one line about each, None if it no longer exists."""
    found = memories.list_pinned(database, agent_id)
    texts = neighbours.labels(database, agent_id, list(found))
    return [{"id": one, "text": texts.get(one), "pinned_at": at} for one, at in found.items()]


def _say(workspace: Workspace, said: Sequence[Word], now_us: int) -> str:
    """Writes words of an agent, and has rows and the page follow; returns why the page waits."""
    word_files.say(workspace, said)
    return operations.settle(workspace, said[0].agent_id, now_us)


Mark = Literal["done", "withdrawn", "open"]
# What each is in a person's words.
IN_WORDS: dict[Mark, str] = {"done": "done", "withdrawn": "not true", "open": "holds again"}


class Marked(NamedTuple):
    """A statement with its new status, and why the page does not show that yet."""

    id: str
    text: str
    status: Mark
    waiting: str


def list_marked(database: Database, root: str, agent_id: str) -> list[dict[str, Any]]:
    """Returns the statements that an agent or its person said are done or not true, the newest word first."""
    last = [one for one in newest_words(word_files.read_words(root)).values() if one.agent_id == agent_id]
    ended = sorted((one for one in last if one.said in ("done", "withdrawn")), key=lambda one: one.at, reverse=True)
    known = {one.id: statements_store.get(database, agent_id, one.id) for one in ended}
    return [
        {"id": one.id, "status": one.said, "by": one.by, "at": one.at, "text": getattr(known[one.id], "text", None)}
        for one in ended
    ]


def mark(
    workspace: Workspace,
    agent_id: str,
    handle: str,
    status: Mark,
    now_us: int,
    *,
    by_agent: bool = False,
    keep: bool = False,
) -> Marked:
    """Marks a statement as `done`, `withdrawn` or `open`, and pins it with `keep`; the files of its session stay.

    An agent ends steps and blockers, and takes back no person's words.

    Raises `UsageError` if the handle refers to nothing or to something else; `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    database = workspace.database
    with state_dir.workspace_lock(workspace.state):
        operations.first_pass(workspace, now_us)
        statement_id = references.resolve(database, agent_id, handle)
        found = statements_store.get(database, agent_id, statement_id)
        if found is None:
            raise UsageError(
                f"{handle} is a {name_kind(LETTERS[statement_id[0]])}, and only a statement can be done or not true",
                hint=f"signet-sync forget {statement_id} forgets it"
                if statement_id[0] == "m"
                else "MEMORY.md and recall show the handles of statements (^f-…)",
                code="not-a-statement",
            )
        if by_agent and (found.speaker != "agent" if status == "withdrawn" else found.kind not in ENDS):
            what = "no agent's statement" if status == "withdrawn" else f"a {found.kind}, no step or blocker"
            verb = "withdraw" if status == "withdrawn" else "done"
            raise UsageError(
                f"{handle} is {what}, so only a person can say that it is {IN_WORDS[status]}",
                hint=f"ask the person to run: signet-sync statements {verb} {statement_id}",
                code="not-an-agents",
            )
        hashes = " ".join(sorted(word_hashes(found.text)))
        by: Literal["person", "agent"] = "agent" if by_agent else "person"
        said = [Word(agent_id, found.id, status, iso(now_us), by, found.kind, hashes, *found.session[1:])]
        said += [Word(agent_id, found.id, "pinned", iso(now_us))] if keep else []
        return Marked(found.id, found.text, status, _say(workspace, said, now_us))
