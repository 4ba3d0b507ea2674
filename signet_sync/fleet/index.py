"""Brings the open tables up to date with many workspaces; one that did not change costs a listing."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync import __version__
from signet_sync.app.pipeline import PIPELINE
from signet_sync.entities import stage as entities_stage
from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError, reason
from signet_sync.fleet import engines, targets
from signet_sync.fleet.engines import Engine
from signet_sync.fleet.places import Place, opened, why_not
from signet_sync.fleet.rows import OPEN_TABLES, VERSION, rows_of
from signet_sync.fleet.tables import ParquetTables, State
from signet_sync.formats.paths import MEMORY, SETTINGS, display
from signet_sync.integrity import check
from signet_sync.settings import model
from signet_sync.storage import files, locations, state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.files import Root
from signet_sync.sync import scan
from signet_sync.sync.engine import run_locked
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace
from signet_sync.text import digest_mark
from signet_sync.text.sanitizer import sanitizer_stamp


class IndexRequest(NamedTuple):
    """A workspace, the time in microseconds since 1970 UTC, where its tables are, and its last state there."""

    workspace: str
    now_us: int
    bodies: bool
    tables: str
    before: State | None


@contextmanager
def indexed(place: Place, now_us: int) -> Iterator[Database]:
    """Yields a database in memory with every derived row of a workspace, here or elsewhere, as of its files alone.

    What this machine knows of a workspace besides (seals, live turns, memories) is not in it: it is the same for every
    reader. No lock is needed, because nothing is shared. Raises `WorkspaceError`, `Unreachable`, `ConfigError`.
    """
    settings, _ = model.load(place.name, vault=place.vault)
    # A folder that never exists.
    nowhere = locations.by_path(locations.base(), f"index in memory of {place.name}")
    with closing(Database(":memory:")) as database:
        workspace = Workspace(
            place.name, settings, nowhere, database,
            touch_nothing=True, own_place=False, pipeline=PIPELINE, vault=place.vault or place.name,
        )  # fmt: skip
        # The engine has a process for every core.
        run_locked(workspace, Request(now_us, project=False, resume=False, follow_removals=False, workers=0))
        yield database


def index_one(asked: IndexRequest) -> tuple[State | None, str]:
    """Indexes one workspace, if its files or the rules changed since its last state; of the workspace only reads.

    Returns its state in the tables, or None and why it could not be reached; then its rows stay.
    """
    try:
        with opened(asked.workspace) as place:
            settings, _ = model.load(place.name, vault=place.vault)
            # Before anything is read: what changes meanwhile is another listing for the next run.
            listing = listing_of(place.vault or place.name)
            # What rows are made by; what another stamp made is made again.
            noise = settings.noise_projects, settings.noise_sessions, settings.noise_headless
            rules = (__version__, sanitizer_stamp(), digest_mark.VERSION, VERSION, noise, settings.max_file_bytes)
            stamp = sha256(repr((*rules, asked.bodies)).encode()).hexdigest()[:32]
            if asked.before is not None and (asked.before.listing, asked.before.stamp) == (listing, stamp):
                return asked.before, ""
            with indexed(place, asked.now_us) as database:
                problems = check.besides(place.name, asked.now_us, place.vault)
                made = rows_of(database, problems, bodies=asked.bodies)
        state = State(display(asked.workspace), listing, stamp, {table: len(rows) for table, rows in made.items()})
        ParquetTables(asked.tables).write(state, made)
        return state, ""
    except (SignetSyncError, OSError) as error:
        return None, why_not(error)


def index(
    named: Sequence[str],
    engine: Engine,
    now_us: int,
    *,
    place: str,
    bodies: bool = False,
    prune: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Returns the document of `fleet index --json`. With `prune` workspaces that no target names lose their rows.

    Raises `UsageError` for targets, `SignetSyncError` if tables cannot be read, `WorkspaceError` (`busy`) while another
    run of this machine writes tables.
    """
    wanted = targets.workspaces(named)
    tables = ParquetTables(place)
    for one in wanted if tables.local else ():
        vault = os.path.join(os.path.realpath(one), MEMORY)
        if os.path.commonpath((vault, os.path.realpath(tables.url))) == vault:
            # Each run would find those of the last one.
            hint = "name another folder"
            raise UsageError("tables inside memory/ would be taken for files of it", path=tables.url, hint=hint)
    states, rows = Counter[str](), Counter({table.name: 0 for table in OPEN_TABLES})
    unreachable = list[dict[str, str]]()
    with state_dir.fleet_lock(state_dir.base()):
        before = tables.states()
        asked = (IndexRequest(one, now_us, bodies, tables.url, before.get(display(one))) for one in wanted)
        for number, (item, result, failure) in enumerate(engines.run(index_one, asked, engine), 1):
            state, why = result or (None, failure)
            if state is None:
                unreachable.append({"workspace": display(item.workspace), "message": why})
            else:
                states["unchanged" if state == item.before else "indexed"] += 1
                rows.update(state.rows)
            if progress is not None:
                progress(number, len(wanted))
        dropped = sorted(before.keys() - set(map(display, wanted))) if prune else []
        tables.drop(dropped)
    return {
        "workspaces": len(wanted),
        "indexed": states["indexed"],
        "unchanged": states["unchanged"],
        "dropped": len(dropped),
        "rows": dict(rows),
        "unreachable": sorted(unreachable, key=lambda one: one["workspace"]),
    }


def listing_of(root: Root) -> str:
    """Returns a digest of path and signature of every file on which rows depend. Raises `WorkspaceError`."""
    found = scan.scan(root)
    if found.ground != "present":
        raise WorkspaceError(found.ground_message, path=MEMORY, hint="check that the workspace is mounted, and whole")
    entries: list[object] = [*sorted(found.files.items()), *sorted(found.odd.items())]
    # Problems of settings and entities are verdicts too.
    entries += sorted(files.signatures(root, [SETTINGS]).items())
    for agent in entities_stage.possible_agents(root):
        if entities_stage.has_folder(root, agent):
            try:
                entries.append((agent, sorted((entities_stage.scan(root, agent) or {}).items())))
                entries.append((agent, sorted(entities_stage.log_pages(root, agent).items())))
            except (SignetSyncError, OSError) as error:
                entries.append((agent, reason(error)))
    return sha256(json.dumps(entries, ensure_ascii=True).encode()).hexdigest()
