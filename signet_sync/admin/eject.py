"""Uninstalls: removes service and hooks, makes MEMORY.md plain markdown, deletes the state folder; the vault stays.

Each step looks at what is there and does the rest: after a kill, the same call continues where it ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from signet_sync.admin import hooks_install
from signet_sync.app.workspace import open_to_write
from signet_sync.capture import intake, spool
from signet_sync.capture.harnesses import registry
from signet_sync.capture.worker import due
from signet_sync.errors import AnotherAgent, Halted, WorkspaceError
from signet_sync.formats import managed_block
from signet_sync.formats.paths import (
    DEFAULT_AGENT,
    OWN,
    TEMPORARY,
    WORKSPACE_ID,
    head_page,
    page_agent,
    write_agent_option,
)
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.host import service
from signet_sync.pages import others
from signet_sync.pages.memory_page import HINT
from signet_sync.pages.store import pages
from signet_sync.settings.model import Settings
from signet_sync.storage import files, locations, state_dir, writing
from signet_sync.storage.files import require_root
from signet_sync.sync import engine
from signet_sync.sync.workspace import Request, Workspace

_ENDING = 10.0  # seconds: a stopped agent ends within two, unless the machine is busy
_WORKER = 60.0  # seconds: a hook's worker writes a session in a few, unless a model answers slowly
_ATTEMPTS = 5


@dataclass(slots=True)
class Parts:
    """What eject takes away, or took: services, harnesses with our hooks, pages with our markers, the state folder.

    `by_hand` are commands for what neither service manager nor harness let us do, `notes` are facts for the user.
    """

    services: list[str] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    state: str | None = None
    by_hand: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan(root: str) -> Parts:
    """Returns what `eject` would do. Writes nothing. Raises `WorkspaceError`."""
    require_root(root)
    folder, services = state_dir.locate(root), _list_services(root)
    there = any(os.path.lexists(place) for place in state_dir.remains(folder))
    pages = [path for path, _, _ in _pages(root)]
    running = _find_run(folder, services)
    notes = [] if running is None else [f"{running.message}: {running.hint}"]
    return Parts(services, _find_harnesses(root), pages, folder.path if there else None, notes=notes)


def eject(root: str, settings: Settings, *, now_us: int, database: str | None) -> Parts:
    """Uninstalls from a workspace.

    Raises `AnotherAgent` while a `run` is active that no service of ours would stop, `Halted` while files are away,
    `WorkspaceError`, `DatabaseError`, `OSError`; whatever can be known beforehand is raised before anything is done.
    """
    require_root(root)
    folder = state_dir.locate(root)
    done = Parts(_list_services(root))
    if (running := _find_run(folder, done.services)) is not None:
        raise running
    _raise_first(hooks_install.uninstall(root, _find_harnesses(root), dry_run=True))
    state_dir.require_own(folder, os.path.realpath(root))
    _write_what_waits(root, settings, folder, database, now_us)
    folder = state_dir.locate(root)  # that of a copy moves when it gets an id of its own
    for name in done.services:
        done.by_hand += service.uninstall(name=name).by_hand
    with _alone(folder, done) as locks:
        outcomes = hooks_install.uninstall(root, _find_harnesses(root))
        _raise_first(outcomes)
        for outcome in outcomes:
            done.hooks.append(outcome.harness)
            done.by_hand += [f"{outcome.harness}: {line}" for line in outcome.plan.by_hand]
        _write_what_waits(root, settings, folder, database, now_us)
        if os.path.isdir(folder.path):
            locks.enter_context(state_dir.intake_lock(folder, _WORKER))
            locks.enter_context(state_dir.workspace_lock(folder))
        done.pages = [_rewrite(root, path) for path, _, _ in list(_pages(root))]
        if pid := others.daemon_pid(root):
            done.notes.append(f"a Signet daemon (pid {pid}) runs on this workspace and may write MEMORY.md itself")
        if left := spool.count(folder.spool) + spool.count_given_up(folder.spool):
            words = "jobs of hooks that could not be processed are deleted, too; the transcripts stay"
            done.notes.append(f"{words} ({left}): signet-sync import HARNESS reads them")
        _discard(root, folder, done)
    if database is not None and os.path.exists(database):
        done.notes.append(f"the database {database} is not in the state folder; it is yours to delete")
    return done


# ── service and hooks ──


def _list_services(root: str) -> list[str]:
    real = os.path.realpath(root)
    units = service.list_installed()
    return [unit.name for unit in units if unit.workspace and os.path.realpath(unit.workspace) == real]


def _find_harnesses(root: str) -> list[str]:
    """Returns harnesses whose hooks feed this workspace, or whose agents have its memory as tools."""
    found = hooks_install.conditions(root, registry.list_hooked())
    return [each.harness for each in found if hooks_install.is_fed(each, root) or hooks_install.is_served(each, root)]


def _raise_first(outcomes: list[hooks_install.HookOutcome]) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


def _find_run(folder: state_dir.StateFolder, services: list[str]) -> AnotherAgent | None:
    """Returns the error for a `run` that no service of ours would stop."""
    served = any(unit.active for unit in service.list_installed() if unit.name in services)
    return _still_runs(folder) if not served and state_dir.run_lock_holder(folder) else None


@contextmanager
def _alone(folder: state_dir.StateFolder, done: Parts) -> Iterator[ExitStack]:
    """Holds the lock that keeps a `run` from starting. Without a state folder there is nothing to hold."""
    with ExitStack() as stack:
        if os.path.isdir(folder.path):
            deadline = time.monotonic() + (_ENDING if done.services else 0.0)
            while True:
                try:
                    stack.enter_context(state_dir.run_lock(folder))
                    break
                except AnotherAgent:
                    if time.monotonic() >= deadline:
                        raise _still_runs(folder, *done.by_hand) from None
                    time.sleep(0.1)
        yield stack


def _still_runs(folder: state_dir.StateFolder, *by_hand: str) -> AnotherAgent:
    pid = (state_dir.read_heartbeat(folder) or {}).get("pid")
    commands = [line for line in by_hand if not line.startswith("#")]
    ways = [*commands[:1], *([f"kill {pid}"] if pid else [])]
    how = " or ".join(ways) or "Ctrl-C where it was started"
    return AnotherAgent("an agent still runs on this workspace", hint=f"stop it ({how}), then eject again")


# ── the vault ──


def _write_what_waits(
    root: str, settings: Settings, folder: state_dir.StateFolder, database: str | None, now_us: int
) -> None:
    """Lets the worker of a hook end, and does what is left to do."""
    if os.path.isdir(folder.path):
        with state_dir.intake_lock(folder, _WORKER):
            pass
    if os.path.exists(database or folder.database):
        with open_to_write(root, settings, database=database) as workspace:
            _last_pass(workspace, now_us)


def _last_pass(workspace: Workspace, now_us: int) -> None:
    """Processes what waits to be written: it exists nowhere else.

    Pages stay as they are if one already lost its markers: an earlier eject made it plain, and it belongs to the user
    now.
    """
    known = pages.page_states(workspace.database)
    heads = [_read(workspace.root, path) for path in _heads(workspace.root) if path in known]
    been_here = any(managed_block.BEGIN not in found.raw for found in heads if found is not None)
    request = Request(now_us=now_us, project=not been_here)
    outcome = engine.run_pass_mending(workspace, request)
    if outcome.cliff is not None:
        raise Halted(
            f"files are missing, and their seals are in the state folder: {outcome.cliff.message}",
            path="memory",
            hint="bring memory/ back, or: signet-sync reindex --accept-removals; then eject again",
        )
    if next(due(workspace, locations.now_us()), None) is not None:
        intake.run_capture(workspace, now_us=locations.now_us)
        engine.run_pass_mending(workspace, request)


def _heads(root: str) -> list[str]:
    pages = [head_page(agent_id) for agent_id in (DEFAULT_AGENT, *files.list_names(root, "agents", ""))]
    return [path for path in pages if page_agent(path) is not None]


def _pages(root: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Yields the MEMORY.md pages with markers of ours, their present bytes and those without the markers.

    How a handle is opened is no longer true, and goes, too. Session log pages keep their markers: users do not write
    there, and the markers identify them later.
    """
    for path in _heads(root):
        found = _read(root, path)
        if found is None or not found.raw.strip():
            continue
        before, begin, block = found.raw.partition(managed_block.BEGIN)
        hint = HINT.format(write_agent_option(page_agent(path) or DEFAULT_AGENT))
        after = managed_block.drop_marks(before + begin + block.replace(f"{hint}\n\n".encode(), b"", 1))
        if after != found.raw:
            yield path, found.raw, after


def _read(root: str, path: str) -> Found | None:
    found = files.read(root, path, PAGE_LIMIT)
    return found if isinstance(found, Found) else None


def _rewrite(root: str, wanted: str) -> str:
    """Writes one page without our markers. Raises `WorkspaceError` if a program keeps writing to it."""
    for _ in range(_ATTEMPTS):
        page = next((page for page in _pages(root) if page[0] == wanted), None)
        if page is None or writing.replace(root, wanted, page[2], page[1]).displaced is None:
            return wanted
    raise WorkspaceError(
        "the page kept changing while it was written", path=wanted, hint="close it in other programs, then eject again"
    )


# ── the state folder ──


def _discard(root: str, folder: state_dir.StateFolder, done: Parts) -> None:
    """Deletes the state folder before the workspace's id, by which a call after a kill finds the rest of it."""
    if state_dir.discard(folder, os.path.realpath(root)):
        done.state = folder.path
    elif os.path.lexists(folder.path):
        done.notes.append(f"{folder.path} is a link, which is not followed: what it leads to stays")
    for path in (f"{OWN}/.gitignore", WORKSPACE_ID):
        writing.unlink(root, path)
    for path in (TEMPORARY, OWN):
        writing.remove_empty_folders(root, path)
    if files.status_of(root, OWN) is not None:
        done.notes.append(f"{OWN}/ holds files that are not ours, and stays")
