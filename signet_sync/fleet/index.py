"""Brings the open tables up to date with many workspaces; one that did not change costs a listing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.fleet import engines, targets, workspaces
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.read_only_index import indexed
from signet_sync.fleet.tables import text_index
from signet_sync.fleet.tables.listing import listing_of, stamp_of
from signet_sync.fleet.tables.parquet import Commit, Manifest, ParquetTables
from signet_sync.fleet.tables.postgres import PostgresTables, is_database
from signet_sync.fleet.tables.rows import TableRow, WorkspaceState, rows_of
from signet_sync.fleet.tables.schema import OPEN_TABLES
from signet_sync.formats.paths import MEMORY, display
from signet_sync.integrity import check
from signet_sync.settings import model
from signet_sync.storage import state_dir
from signet_sync.storage.safe_paths import require_root


class Tables(Protocol):
    """Where tables are kept: of each workspace a commit, which changes together with its rows."""

    url: str

    def commits(self) -> Mapping[str, Commit]:
        """Returns the commit of every workspace."""

    def write(self, state: WorkspaceState, rows: Mapping[str, list[TableRow]], before: Commit | None) -> Commit:
        """Replaces the rows of a workspace."""

    def publish(self, commits: Mapping[str, Commit], dropped: Sequence[str], now_us: int) -> Manifest | None:
        """Ends a run: shows readers its commits, and deletes the rows of some workspaces. Returns what they see."""


class IndexRequest(NamedTuple):
    """A workspace, the time in microseconds since 1970 UTC, and by place of tables what was committed there last."""

    workspace: str
    now_us: int
    bodies: bool
    places: Mapping[str, Commit | None]


class IndexOutcome(NamedTuple):
    """What became of a workspace: its commit by place, or why it could not be reached; then its rows stay.

    It has the name that the tables give it: printable. `redacted`: how often the sanitizer still found a secret.
    """

    workspace: str
    commits: Mapping[str, Commit]
    redacted: int = 0
    unreachable: str = ""


def index_one(asked: IndexRequest) -> IndexOutcome:
    """Indexes one workspace, if its files or the rules changed since its commits; of the workspace only reads."""
    try:
        with workspaces.opened(asked.workspace) as root:
            return _indexed(root, asked)
    except (SignetSyncError, OSError) as error:
        return IndexOutcome(display(asked.workspace), {}, unreachable=workspaces.why_not(error))


def _indexed(root: str, asked: IndexRequest) -> IndexOutcome:
    require_root(root)
    name = display(asked.workspace)
    settings, _ = model.load(root)
    # Before anything is read: what changes meanwhile is another listing for the next run.
    listing, stamp = listing_of(root), stamp_of(settings, bodies=asked.bodies)
    current = {url: one for url, one in asked.places.items() if one is not None and one.is_current(listing, stamp)}
    if len(current) == len(asked.places):
        return IndexOutcome(name, current)
    with indexed(root, asked.now_us) as database:
        made = rows_of(database, check.besides(root, asked.now_us), bodies=asked.bodies)
    commits, state = dict(current), WorkspaceState(name, listing, stamp, asked.now_us)
    for url, before in asked.places.items():
        if url not in current:
            commits[url] = tables_at(url).write(state, made.tables, before)
    return IndexOutcome(name, commits, made.redacted)


def tables_at(url: str) -> Tables:
    """Returns the tables at a folder or URL, or in a PostgreSQL database. Raises `UsageError`."""
    return PostgresTables(url) if is_database(url) else ParquetTables(url)


def index(
    named: Sequence[str],
    engine: Engine,
    now_us: int,
    *,
    places: Sequence[str],
    bodies: bool = False,
    prune: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Returns the document of `fleet index --json`. With `prune` workspaces that no target names lose their rows.

    Raises `UsageError` for targets, `SignetSyncError` if tables cannot be read, `WorkspaceError` (`busy`) while another
    run of this machine writes tables.
    """
    if not places:
        raise UsageError(
            "no place for the tables is named", hint="--tables FOLDER, --to postgresql://… or `tables` in a fleet file"
        )
    wanted = targets.workspaces(named)
    # A worker may have another current folder.
    places = [os.path.abspath(os.path.expanduser(one)) if "://" not in one else one for one in places]
    _refuse_inside(wanted, places)
    with state_dir.fleet_lock(state_dir.base()):
        stores = {url: tables_at(url) for url in places}
        before = {url: store.commits() for url, store in stores.items()}
        asked = (
            IndexRequest(one, now_us, bodies, {url: known.get(display(one)) for url, known in before.items()})
            for one in wanted
        )
        counted = _Counted(before)
        for number, (item, result, failure) in enumerate(engines.run(index_one, asked, engine), 1):
            counted.add(result or IndexOutcome(display(item.workspace), {}, unreachable=failure))
            if progress is not None:
                progress(number, len(wanted))
        dropped = sorted(set().union(*before.values()).difference(map(display, wanted))) if prune else []
        for url, store in stores.items():
            _publish(store, counted.fresh[url], dropped, now_us)
    return counted.document(len(wanted), len(dropped))


def drop(named: Sequence[str], places: Sequence[str], now_us: int) -> None:
    """Deletes the rows of workspaces from tables, until they are indexed again.

    Raises `SignetSyncError` if tables cannot be changed, `WorkspaceError` (`busy`) while a run writes tables.
    """
    with state_dir.fleet_lock(state_dir.base()):
        for url in places:
            _publish(tables_at(url), {}, [display(one) for one in named], now_us)


def _publish(store: Tables, fresh: Mapping[str, Commit], dropped: Sequence[str], now_us: int) -> None:
    after = store.publish(fresh, dropped, now_us)
    if isinstance(store, ParquetTables) and after is not None:
        # What was removed must not be found in an index of before.
        text_index.discard(store, after)


def _refuse_inside(wanted: Sequence[str], places: Sequence[str]) -> None:
    """Raises `UsageError` for tables inside a vault: each run would find those of the last one."""
    for place in places:
        for one in wanted if "://" not in place else ():
            vault = os.path.join(os.path.realpath(one), MEMORY)
            if os.path.commonpath((vault, os.path.realpath(place))) == vault:
                raise UsageError(
                    "tables inside memory/ would be taken for files of it", path=place, hint="name another folder"
                )


class _Counted:
    """Adds up outcomes: what is to be published, and what the run did."""

    def __init__(self, before: Mapping[str, Mapping[str, Commit]]) -> None:
        self._before = before
        self.fresh: dict[str, dict[str, Commit]] = {url: {} for url in before}
        self._states: Counter[str] = Counter()
        self._rows: Counter[str] = Counter({table.name: 0 for table in OPEN_TABLES})
        self._redacted = 0
        self._unreachable: list[dict[str, str]] = []

    def add(self, outcome: IndexOutcome) -> None:
        """Counts one workspace."""
        name = outcome.workspace
        if outcome.unreachable:
            self._unreachable.append({"workspace": name, "message": outcome.unreachable})
            return
        self._redacted += outcome.redacted
        fresh = {url: one for url, one in outcome.commits.items() if one != self._before[url].get(name)}
        for url, commit in fresh.items():
            self.fresh[url][name] = commit
        self._states["indexed" if fresh else "unchanged"] += 1
        self._rows.update(next(iter(outcome.commits.values())).rows())

    def document(self, wanted: int, dropped: int) -> dict[str, Any]:
        """Returns what the command prints."""
        return {
            "workspaces": wanted,
            "indexed": self._states["indexed"],
            "unchanged": self._states["unchanged"],
            "dropped": dropped,
            "rows": dict(self._rows),
            "redacted": self._redacted,
            "unreachable": sorted(self._unreachable, key=lambda one: one["workspace"]),
        }
