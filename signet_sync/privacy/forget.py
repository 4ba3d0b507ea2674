"""Forgets a memory: its rows, and the pages and copies that show it."""

import re
from typing import Any, NamedTuple

from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.handle import HANDLE, LETTERS, handle, name_kind
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import dream_page, head_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.history import repository as history_repository
from signet_sync.memories import operations
from signet_sync.memories.store import memories, session_texts
from signet_sync.memories.store.memories import Memory
from signet_sync.privacy import scrub
from signet_sync.storage import files, state_dir
from signet_sync.sync.workspace import Workspace

_FULL = re.compile(r"m-[a-z2-7]{12}")
# What DREAMS.md appends to a memory's words: why it was promoted.
_TAIL = re.compile(r"(?: — found \d+ times? by .*)?\s*\Z", re.DOTALL)


class ForgetResult(NamedTuple):
    """The result of forgetting; `pending`: the next pass has to delete remaining bytes.

    `memory` is None if it was forgotten earlier, and only pages still contained it. `git_history` states whether
    versions of the page in the workspace's repository may still show it.
    """

    id: str
    memory: Memory | None
    pending: bool
    git_history: str
    waiting: str


def forget(workspace: Workspace, agent_id: str, name: str, now_us: int) -> ForgetResult:
    """Forgets a memory to the last byte. After a crash, the next pass deletes the rest.

    Raises `UsageError` if the name refers to no memory or to several; `WorkspaceError`, `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state):
        memory = find_memory(workspace, agent_id, name)
        memory_id = memory.id if memory is not None else name.strip().removeprefix("^")
        if memory is not None:
            # This pass moves text that a person wrote into the managed block to a copy beside the page, where it can
            # be cleaned.
            operations.update_page(workspace, agent_id, now_us)
            needles = session_texts.identify_memory(workspace.database, memory)
        else:
            needles = _identify_on_dream_page(workspace, agent_id, memory_id)
        # 1. Copies, because after the row is gone it is unknown what a crash has left in these.
        try:
            scrub.clean_of_words(workspace, needles)
        except OSError as error:
            raise WorkspaceError(
                f"a kept copy of {head_page(agent_id)} cannot be cleaned, so nothing was forgotten: {error}",
                hint="delete the copy, or make it writable, and try again",
            ) from error
        # 2. The row. From here on every pass completes it.
        with workspace.database.transaction(durable=True):
            memories.forget(workspace.database, agent_id, [memory_id])
        # 3. Pages, by a pass with its scrub, which a halted one does not reach; then the copies made since.
        outcome = operations.update_page(workspace, agent_id, now_us)
        if outcome.cliff is not None:
            scrub.scrub(workspace, now_us)
        try:
            scrub.clean_of_words(workspace, needles)
        except (OSError, WorkspaceError) as error:
            workspace.events.append(f"a kept copy of the page may still contain it: {error}")
        waiting = operations.waiting_for(agent_id, outcome)
        # A page that could not be rewritten still shows it.
        pending = bool(memories.forgotten(workspace.database) or waiting)
    git_history = history_repository.holds(workspace.root, [head_page(agent_id), dream_page(agent_id)])
    return ForgetResult(memory_id, memory, pending, git_history, waiting)


def find_memory(workspace: Workspace, agent_id: str, name: str) -> Memory | None:
    """Returns the memory that `forget` would forget; None if only pages may still have it. Raises `UsageError`."""
    require_agent(agent_id)
    try:
        return _require_named(workspace, agent_id, name)
    except UsageError as error:
        if error.code != "unknown-memory" or not _FULL.fullmatch(name.strip().removeprefix("^")):
            raise
        return None


def _identify_on_dream_page(workspace: Workspace, agent_id: str, memory_id: str) -> set[bytes]:
    """Identifies a memory without a row that another database left in DREAMS.md. Raises `UsageError` if none did."""
    mark = handle(memory_id).encode()
    found = files.read(workspace.root, dream_page(agent_id), PAGE_LIMIT)
    shown = [line for line in found.raw.split(b"\n") if mark in line] if isinstance(found, Found) else []
    if not shown:
        raise operations.refuse_unknown(agent_id, memory_id)
    texts = {_TAIL.sub("", line.partition(mark)[0].decode("utf-8", "replace")).strip() for line in shown}
    return {memory_id.encode()} | session_texts.identify_texts(workspace.database, sorted(texts))


def _require_named(workspace: Workspace, agent_id: str, name: str) -> Memory:
    """Returns the memory that a handle refers to. Raises `UsageError` if there is none, several, or something else."""
    wanted = name.strip().removeprefix("^")
    if HANDLE.fullmatch(wanted) and LETTERS[wanted[0]] in KINDS:
        raise UsageError(
            f"{name} is an entity file, not a memory",
            hint=f'signet-sync entity status {wanted} deprecated --reason "…"',
            code="not-a-memory",
        )
    if HANDLE.fullmatch(wanted) and wanted[0] != "m":
        raise UsageError(
            f"{name} is a {name_kind(LETTERS[wanted[0]])} and not a memory: it comes from a session's files",
            hint="signet-sync statements withdraw takes back what it states, signet-sync remove removes the session",
            code="not-a-memory",
        )
    return operations.require_named(workspace.database, agent_id, name)


def forgotten_document(done: ForgetResult) -> dict[str, Any]:
    """Returns the JSON document of `forget --json`."""
    return {"id": done.id, "forgotten": True, "pending": done.pending, "git_history": done.git_history}
