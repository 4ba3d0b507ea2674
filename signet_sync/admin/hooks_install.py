"""Installs our hooks and MCP server into harnesses, removes them, and reports which harnesses feed a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

import apsw

from signet_sync.app.workspace import establish
from signet_sync.capture import store as capture_store
from signet_sync.capture.harnesses import registry
from signet_sync.errors import DatabaseError, SignetSyncError
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings.harness import Program
from signet_sync.host.harness_settings.settings_text import Condition, Server, SettingsPlan
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import DEFAULT_WORKSPACE

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What was done (or would be) at one harness; with an `error` nothing was.

    `before` is its condition before, `events` are those that call us afterwards, `server` is our MCP server afterwards.
    """

    harness: str
    before: Condition
    plan: SettingsPlan = SettingsPlan()  # noqa: RUF009 - it is frozen
    events: tuple[str, ...] = ()
    error: SignetSyncError | None = None
    server: Server | None = None


def choose_harnesses(name: str) -> list[str]:
    """Returns the harnesses that a name means: itself, or with `auto` every one whose folder exists."""
    if name != AUTO:
        return [name]
    return [each for each in registry.list_hooked() if os.path.isdir(registry.settings(each).folder(os.environ))]


def install(
    root: str,
    names: Iterable[str],
    *,
    now: str,
    flags: Sequence[str] | None = None,
    dry_run: bool = False,
) -> list[HookOutcome]:
    """Installs our hooks into each harness for this workspace, which records since when (`now`, ISO 8601).

    With `flags` our MCP server, too; without, one of ours that is registered is kept, and renewed if necessary.
    Settings that cannot be edited safely are left alone and reported as the outcome's `error`; other harnesses go on.
    Raises `WorkspaceError` without a workspace, `UsageError` for paths that settings cannot name, `OSError`.
    """
    require_root(root)
    program = program_for(root)
    outcomes = []
    for name in names:
        harness = registry.settings(name)
        before = harness.condition(program, os.environ)
        outcome = _carry_out(name, before, partial(harness.install, program, os.environ, flags), dry_run)
        if outcome.error is None and not dry_run:
            if before.events and not _same(_find_fed_root(before), root):
                _note(state_dir.locate(_find_fed_root(before)), name, None)
            _note(establish(root), name, now)
        after = harness.condition(program, os.environ)
        outcomes.append(replace(outcome, events=after.events, server=after.server))
    return outcomes


def uninstall(root: str, names: Iterable[str], *, dry_run: bool = False) -> list[HookOutcome]:
    """Removes our hooks and our MCP server from each harness, for whatever workspace, existing or not."""
    program = program_for(root)
    outcomes = []
    for name in names:
        harness = registry.settings(name)
        before = harness.condition(program, os.environ)
        outcome = _carry_out(name, before, partial(harness.uninstall, os.environ), dry_run)
        outcomes.append(outcome)
        if outcome.error is None and not dry_run:
            for fed in {root, _find_fed_root(before)} if before.events else {root}:
                _note(state_dir.locate(fed), name, None)
    return outcomes


def is_fed(condition: Condition, root: str) -> bool:
    """Returns whether the hooks installed at a harness feed this workspace."""
    return bool(condition.events) and _same(_find_fed_root(condition), root)


def is_served(condition: Condition, root: str) -> bool:
    """Returns whether the MCP server registered at a harness serves this workspace."""
    server = condition.server
    return server is not None and _same(server.flag("--workspace") or os.path.expanduser(DEFAULT_WORKSPACE), root)


def conditions(root: str, names: Iterable[str]) -> list[Condition]:
    """Returns the condition of our hooks at each harness, seen from this workspace."""
    program = program_for(root)
    return [registry.settings(name).condition(program, os.environ) for name in names]


def count_transcripts(path: str) -> dict[str, tuple[int, str]]:
    """Returns how many transcripts of a harness were read, and when the last one (ISO 8601), as the index has it."""
    with (
        suppress(FileNotFoundError, DatabaseError, apsw.Error),
        closing(Database(path, readonly=True, wait_ms=1000)) as database,
    ):
        return capture_store.read_counts(database)
    return {}


def program_for(root: str) -> Program:
    """Returns the program for a harness to call; names the workspace unless it is the default. Raises `UsageError`."""
    return Program.identify(None if _same(root, os.path.expanduser(DEFAULT_WORKSPACE)) else root)


def feeds_a_folder(condition: Condition) -> bool:
    """Returns whether the workspace that the present hooks feed exists."""
    return os.path.isdir(_find_fed_root(condition))


def _carry_out(name: str, before: Condition, plan: Callable[[], SettingsPlan], dry_run: bool) -> HookOutcome:
    """Makes the edits of a plan, again from the start if another program changed a file meanwhile."""
    for _ in range(3):
        try:
            planned = plan()
            for edit in planned.edits:
                if edit.kind != "unchanged" and not dry_run:
                    files.apply(edit)
            return HookOutcome(name, before, planned)
        except SignetSyncError as error:
            outcome = HookOutcome(name, before, error=error)
            if not isinstance(error, files.Changed):
                break
    return outcome


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _find_fed_root(condition: Condition) -> str:
    return condition.workspace or os.path.expanduser(DEFAULT_WORKSPACE)


def _note(folder: state_dir.StateFolder, name: str, since: str | None) -> None:
    """Records since when a harness feeds a workspace, unless it does already; with None it does no longer."""
    known = state_dir.read_json(folder.harnesses) or {}
    entry = known.pop(name, None)
    if since is not None:
        known[name] = {"since": entry.get("since", since) if isinstance(entry, dict) else since}
    if since is not None or entry is not None:
        state_dir.write_json(folder.harnesses, known)
