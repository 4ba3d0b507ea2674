"""Remembers, forgets, pins and unpins on request; each operation updates the agent's MEMORY.md."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import Any

from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.handle import HANDLE, ID_LENGTH, LETTERS, handle
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import MEMORY, dream_page, head_page
from signet_sync.formats.session_token import token_of
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.formats.timestamps import iso
from signet_sync.history import purge_plan
from signet_sync.history.git import versions
from signet_sync.history.git.repository import RepositoryRefused
from signet_sync.memories import text_match
from signet_sync.memories.store import memories, pins, recall_events
from signet_sync.memories.store.memories import OWN_WORD, Memory, Origin
from signet_sync.privacy import past_versions, scrub
from signet_sync.recall.store import references
from signet_sync.sessions import flow
from signet_sync.storage import files, state_dir
from signet_sync.sync import deriving, engine
from signet_sync.sync.request import Outcome, Request
from signet_sync.sync.store import sessions
from signet_sync.sync.workspace import Workspace, back_up
from signet_sync.text import tags as text_tags
from signet_sync.text.memory import cleaned, memory_id, tags_of

_SHOWN = 8
_FULL = re.compile(r"m-[a-z2-7]{12}")


@dataclass(frozen=True, slots=True)
class Remembered:
    """A memory as stored; `new`: there was no equal one. `waiting` is the reason why the page does not show it yet."""

    memory: Memory
    new: bool
    redactions: dict[str, int]
    waiting: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of forgetting; `pending`: the next pass has to delete remaining bytes.

    `memory` is None if it was forgotten earlier, and only pages or the history still contained it. `git_history` states
    whether versions of the page in the workspace's repository may still show it.
    """

    id: str
    memory: Memory | None
    pending: bool
    git_history: str
    waiting: str
    purged: purge_plan.Done | None = None


@dataclass(frozen=True, slots=True)
class Pinned:
    """The id that a handle refers to, and whether pinning or unpinning changed anything."""

    id: str
    changed: bool
    waiting: str


def remember(
    workspace: Workspace,
    agent_id: str,
    text: str,
    *,
    kind: str,
    tags: tuple[str, ...],
    private: bool,
    session: str | None,
    now_us: int,
) -> Remembered:
    """Remembers a text for an agent, sanitized, as a person's own or a session's. An equal text is stored once.

    Raises `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    content, redactions = cleaned(text)
    told = memory_id(agent_id, kind, content)
    asked = Memory(agent_id, told, kind, content, tags_of(tags), private, iso(now_us), text_tags.derive(content))
    with state_dir.workspace_lock(workspace.state):
        look(workspace, now_us)
        origin = OWN_WORD if session is None else _origin(workspace, agent_id, session)
        with workspace.database.transaction(durable=True):
            memory, new = memories.store(workspace.database, asked, origin)
        waiting = _settle(workspace, agent_id, now_us)
    return Remembered(memory, new, redactions, waiting)


def forget(workspace: Workspace, agent_id: str, name: str, now_us: int, *, purge_history: bool = False) -> Forgotten:
    """Forgets a memory to the last byte. After a crash, the next pass deletes the rest.

    If the history cannot be purged as requested, the memory is deleted anyway, and the answer gives the reason. Raises
    `UsageError` if the name refers to no memory or to several; `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    with state_dir.workspace_lock(workspace.state):
        try:
            memory = _named(workspace, agent_id, name)
        except UsageError as error:
            bare = name.strip().removeprefix("^")
            if error.code != "unknown-memory" or not _FULL.fullmatch(bare):
                raise
            return _forget_earlier(workspace, agent_id, bare, now_us, error, purge_history=purge_history)
        # This pass moves text that a person wrote into the managed block to a copy beside the page, where it can be
        # cleaned.
        _pass(workspace, agent_id, now_us)
        words = text_match.of_memory(workspace.database, memory)
        asked = text_match.queries_of_memory(workspace.database, memory)
        done = _take_away(workspace, agent_id, memory.id, words, asked, now_us, purge_history=purge_history)
    return replace(done, memory=memory)


def _forget_earlier(
    workspace: Workspace, agent_id: str, memory_id: str, now_us: int, unknown: UsageError, *, purge_history: bool
) -> Forgotten:
    """Deletes a memory without a row from DREAMS.md, where another database left it, and from the history.

    Raises the error `unknown` if neither contains it.
    """
    mark = handle(memory_id).encode()
    found = files.read(workspace.root, dream_page(agent_id), PAGE_LIMIT)
    shown = [line for line in found.raw.split(b"\n") if mark in line] if isinstance(found, Found) else []
    past = past_versions.Past(agent_id, memory_id=memory_id)
    if purge_history:
        try:
            past_versions.look(workspace, past)
        except RepositoryRefused as refused:
            if not shown:
                raise unknown if refused.code == "no-repository" else refused from None
    if not shown and memory_id not in past.memories:
        raise unknown
    past.lines += [line.partition(mark)[0].decode("utf-8", "replace") for line in shown]
    words = past_versions.words_of_memory(workspace, past)
    return _take_away(workspace, agent_id, memory_id, words, set(), now_us, purge_history=purge_history)


def _take_away(
    workspace: Workspace,
    agent_id: str,
    memory_id: str,
    words: set[bytes],
    asked: set[str],
    now_us: int,
    *,
    purge_history: bool,
) -> Forgotten:
    """Deletes all traces of a memory, given by id and words, and the events of the queries `asked`."""
    verdicts, note = purge_plan.Verdicts(words, [memory_id]), purge_plan.note_of_memory(agent_id, memory_id)
    held = functools.partial(versions.holds, workspace.root, [head_page(agent_id), dream_page(agent_id)])
    begun = purge_plan.begin(workspace, lambda: verdicts, note, held) if purge_history else None
    try:
        # First, because after the row is gone it is unknown what a crash has left in these copies.
        scrub.clean_of_words(workspace, words)
    except OSError as error:
        raise WorkspaceError(
            f"a kept copy of {head_page(agent_id)} cannot be cleaned, and nothing was forgotten: {error}",
            hint="delete the copy, or make it writable, and try again",
        ) from error
    with workspace.database.transaction(durable=True):
        memories.forget(workspace.database, agent_id, [memory_id])
        recall_events.forget_queries(workspace.database, asked)
    outcome = _pass(workspace, agent_id, now_us)
    if outcome.cliff is not None:  # a halted pass does not reach the scrub
        scrub.scrub(workspace, iso(now_us))
    try:
        scrub.clean_of_words(workspace, words)  # copies made since then
    except (OSError, WorkspaceError) as error:
        workspace.events.append(f"a kept copy of the page may still hold its words: {error}")
    waiting = _waiting(agent_id, outcome)
    # A page that could not be rewritten still shows it.
    pending = bool(memories.forgotten(workspace.database) or waiting)
    purged = None if begun is None else purge_plan.finish(workspace, begun, note)
    git = held() if purged is None else purged.history(held)
    return Forgotten(memory_id, None, pending, git, waiting, purged)


def pin(workspace: Workspace, agent_id: str, handle: str, now_us: int) -> Pinned:
    """Pins what a handle refers to in MEMORY.md.

    Raises `UsageError` if it refers to nothing, or to something without a line; `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    with state_dir.workspace_lock(workspace.state):
        look(workspace, now_us)
        found = references.resolve(workspace.database, agent_id, handle).id
        if LETTERS[found[0]] == "entity":
            raise UsageError(
                f"{found} is a name that things are said of, and has no line of its own",
                hint="pin one of its facts; signet-sync expand shows them",
                code="not-pinnable",
            )
        if LETTERS[found[0]] in KINDS:
            raise UsageError(
                f"{found} is an entity file, which is ranked and kept by other rules",
                hint=f"signet-sync entity pin {found} keeps agents from changing it",
                code="not-pinnable",
            )
        with workspace.database.transaction(durable=True):
            changed = pins.pin(workspace.database, agent_id, found, iso(now_us))
        return Pinned(found, changed, _settle(workspace, agent_id, now_us))


def unpin(workspace: Workspace, agent_id: str, handle: str, now_us: int) -> Pinned:
    """Unpins what a handle refers to. A pinned thing that no longer exists needs its full id.

    Raises `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    with state_dir.workspace_lock(workspace.state):
        bare = handle.strip().removeprefix("^")
        pinned = pins.is_pinned(workspace.database, agent_id, bare)
        found = bare if pinned else references.resolve(workspace.database, agent_id, handle).id
        with workspace.database.transaction(durable=True):
            changed = pins.unpin(workspace.database, agent_id, found)
        return Pinned(found, changed, _settle(workspace, agent_id, now_us))


def look(workspace: Workspace, now_us: int) -> None:
    """Runs the first pass over the vault if there was none; without it the page would show no sessions."""
    if deriving.is_stale(workspace.database, workspace.pipeline) and files.look(workspace.root, MEMORY) is not None:
        engine.run_locked(workspace, Request(now_us=now_us))


def _origin(workspace: Workspace, agent_id: str, name: str) -> Origin:
    """Returns the session that a memory comes from. Raises `UsageError` if it is unknown, ambiguous, or was removed."""
    removed = flow.is_removed(workspace, agent_id, token_of(agent_id, name), name)
    ref = None if removed else sessions.one(workspace.database, agent_id, name)
    if ref is None or flow.is_removed(workspace, agent_id, ref.session_token, ref.session_id):
        raise UsageError(
            f"the session {name!r} was removed",
            hint="leave --session out to remember this as your own word",
            code="removed-session",
        )
    return ref.session_token, ref.session_id


def _named(workspace: Workspace, agent_id: str, name: str) -> Memory:
    """Returns the memory that a handle refers to. Raises `UsageError` if there is none, several, or something else."""
    wanted = name.strip().removeprefix("^")
    if HANDLE.fullmatch(wanted) and LETTERS[wanted[0]] in KINDS:
        raise UsageError(
            f"{name} is an entity file and no memory",
            hint=f'signet-sync entity deprecate {wanted} --reason "…"',
            code="not-a-memory",
        )
    if HANDLE.fullmatch(wanted) and wanted[0] != "m":
        raise UsageError(
            f"{name} is a {LETTERS[wanted[0]]} and no memory: it comes from the markdown of a session",
            hint="signet-sync remove takes a whole session away",
            code="not-a-memory",
        )
    found = memories.beginning(workspace.database, agent_id, wanted, _SHOWN + 1) if HANDLE.fullmatch(wanted) else []
    if len(found) > 1:
        raise UsageError(
            f"{name!r} may mean {', '.join(found[:_SHOWN])}{' and more' if len(found) > _SHOWN else ''}",
            hint=f"give all {ID_LENGTH} characters of one",
            code="ambiguous-handle",
        )
    memory = memories.get(workspace.database, agent_id, found[0]) if found else None
    if memory is None:
        raise UsageError(
            f"agent {agent_id} remembers nothing called {name!r}",
            hint="MEMORY.md shows the ids (^m-…), signet-sync recall finds them; --agent chooses another agent",
            code="unknown-memory",
        )
    return memory


def _settle(workspace: Workspace, agent_id: str, now_us: int) -> str:
    """Updates the page, and the backup, because memories and pins are in no file. Returns why the page waits."""
    outcome = _pass(workspace, agent_id, now_us)
    back_up(workspace, iso(now_us))
    return _waiting(agent_id, outcome)


def _pass(workspace: Workspace, agent_id: str, now_us: int) -> Outcome:
    """Runs a pass over the agent's page only."""
    paths = frozenset({head_page(agent_id)})
    return engine.run_locked(workspace, Request(now_us=now_us, paths=paths, resume=False))


def _waiting(agent_id: str, outcome: Outcome) -> str:
    """Returns the reason why the page is out of date, or an empty string."""
    if outcome.held:
        return f"{head_page(agent_id)} is held back: {outcome.held}"
    if outcome.trouble:
        return f"{head_page(agent_id)} follows with the next pass: {outcome.trouble[0]}"
    return ""


# ── as JSON ──


def remembered_document(done: Remembered) -> dict[str, Any]:
    """Returns the JSON document of `remember --json`."""
    memory = done.memory
    return {
        "id": memory.id,
        "agent_id": memory.agent_id,
        "tags": list(memory.tags),
        "concept_tags": list(memory.concepts or ()),
        "redactions": done.redactions,
        "type": memory.type,
        "private": memory.private,
        "new": done.new,
    }


def forgotten_document(done: Forgotten) -> dict[str, Any]:
    """Returns the JSON document of `forget --json`, without the result of purging the history."""
    return {"id": done.id, "forgotten": True, "pending": done.pending, "git_history": done.git_history}
