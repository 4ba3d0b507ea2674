"""Entities in a pass: what people changed since the last one, writes that were cut off, days that are over.

Nothing is opened but what moved: files and ledgers are told by their stats, and what reads them is imported only where
there is something to read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signet_sync.entities import scan
from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import parse_ledger_page, parse_path
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import DEFAULT_AGENT, OF_AGENT
from signet_sync.formats.snapshot import PAGE_LIMIT, Found, Signature
from signet_sync.formats.timestamps import day_of
from signet_sync.storage import files
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Eraser, Maintenance
from signet_sync.sync.store import passes
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone
    from signet_sync.storage.database.connection import Database

# Where entities stand, and every folder in there: one that came or went takes its files with it.
_FOLDER = late(rf"{OF_AGENT}entities(?:/(?:user|parts|relationships)(?:/[^/]+)?)?", re.ASCII)
# A clock that was set back makes files of the future; such a file would be young for ever.
_FUTURE_NS = 3600 * 10**9


@dataclass(slots=True)
class Tended:
    """What a pass did for entities: agents whose page may have to follow, paths for another look, and trouble."""

    agents: set[str] = field(default_factory=set)
    unsettled: set[str] = field(default_factory=set)
    trouble: list[str] = field(default_factory=list)


class Entities(Maintenance, Eraser):
    """Has events and pages of entities follow what people change in their files."""

    name = "entities"
    database_only = True

    def due(self, run: Pass) -> bool:
        """Says whether a path of entities was hinted at, or all are looked at."""
        return run.outcome.full or any(map(is_worth, run.request.paths or ()))

    def run(self, run: Pass) -> None:
        """Records what moved; in a pass that may write nothing else its rows alone."""
        workspace, request, outcome = run.workspace, run.request, run.outcome
        if workspace.touch_nothing:
            if outcome.full:
                mirror(workspace, request.now_us)
            return
        paths = None if outcome.full else request.paths
        settle = request.settle_seconds
        tended = tend(workspace, paths, request.now_us, settle_seconds=settle, confirmed=request.confirmed)
        outcome.change.agents |= tended.agents
        outcome.unsettled |= tended.unsettled
        outcome.trouble += tended.trouble

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> None:
        """Takes what newly removed sessions said out of entities, while rows still say it."""
        if run.workspace.touch_nothing:
            return
        from signet_sync.privacy import scrub  # heavy, and for removals alone

        # Later it is told by paths and names alone: a disk that fails is waited for, a forbidden file is not.
        with suppress(PermissionError, WorkspaceError):
            scrub.clean_gardens(run.workspace, removed, run.request.now_us)

    def sanitize(self, database: Database) -> None:
        """Has the rows follow their files again, in the same pass."""
        entities_store.doubt(database)


def is_worth(path: str) -> bool:
    """Whether a hinted path can mean something to entities."""
    return _agent_of(path) is not None


def tend(
    workspace: Workspace,
    paths: Collection[str] | None,
    now_us: int,
    *,
    settle_seconds: float = 0.0,
    confirmed: Collection[str] = frozenset(),
) -> Tended:
    """Looks at hinted paths (None: at every entity file), by somebody who holds the workspace's lock.

    A file that is younger than `settle_seconds`, or gone, is looked at once more (`confirmed`): a person who types
    saves every few seconds, and a rename takes two steps.
    """
    tended = Tended()
    if paths is not None and not any(map(is_worth, paths)):
        return tended
    known = entities_store.signatures(workspace.database)
    for agent_id, asked in _asked(workspace, paths, known).items():
        try:
            moved = _moved(workspace.root, agent_id, asked, known)
            if moved is None:
                continue
            doubtful = {} if settle_seconds <= 0 else _doubtful(moved, now_us, settle_seconds)
            tended.unsettled.update(path for path in doubtful if path not in confirmed)
            _agent(workspace, agent_id, sorted(moved.keys() - tended.unsettled), now_us, tended)
        except (OSError, UsageError, WorkspaceError) as error:
            tended.trouble.append(f"the entities of agent {agent_id} were not looked at: {error}")
    if paths is None and known:
        _close_days(workspace, now_us, tended)
    return tended


def has_garden(workspace: Workspace, agent_id: str) -> bool:
    """Whether there is anything of an agent's entities: files, a ledger, or rows of what was there."""
    return scan.stands(workspace.root, agent_id) or bool(entities_store.signatures(workspace.database, agent_id))


def differing(workspace: Workspace) -> dict[str, Signature | None]:
    """Entity files that are not as the index knows them, and their signatures now (None: gone); nothing is read."""
    known = entities_store.signatures(workspace.database)
    found: dict[str, Signature | None] = {}
    for agent_id in _asked(workspace, None, known):
        with suppress(OSError, WorkspaceError):  # a full pass says so
            found |= _moved(workspace.root, agent_id, None, known) or {}
    return found


def mirror(workspace: Workspace, now_us: int) -> None:
    """Rows of what stands in entity files, for a pass that may write nothing else: what people did is not recorded.

    These rows have no signature: whoever may write has yet to look at the files.
    """
    moved = differing(workspace)
    if not moved:
        return
    from signet_sync.entities.documents.document import Document
    from signet_sync.entities.repository import Garden, parsed

    owners = {place.agent_id: Garden(workspace, place.agent_id, now_us) for place in map(parse_path, moved) if place}
    found = []
    for path in sorted(moved):
        place = parse_path(path)
        if place is None:
            continue
        seen = owners[place.agent_id].seen(place)
        document = None if seen.text is None else parsed(seen.text)
        if isinstance(document, Document):
            found.append(owners[place.agent_id].row(seen, document)._replace(signature=None))
    with workspace.database.transaction():
        entities_store.forget_files(
            workspace.database, [path for path, signature in moved.items() if signature is None]
        )
        entities_store.put_files(workspace.database, found)


def _asked(
    workspace: Workspace, paths: Collection[str] | None, known: Iterable[str]
) -> dict[str, Collection[str] | None]:
    """The agents that are concerned, and which of their files (None: all of them)."""
    if paths is None:
        owners = {*scan.owners(workspace.root), *filter(None, map(_agent_of, known))}
        return dict.fromkeys(sorted(owners))
    asked: dict[str, Collection[str] | None] = {}
    for path in sorted(paths):
        agent_id = _agent_of(path)
        if agent_id is None:
            continue
        if parse_path(path) is None and parse_ledger_page(path) is None:
            asked[agent_id] = None
        elif asked.get(agent_id, ()) is not None:
            asked[agent_id] = [*(asked.get(agent_id) or ()), path]
    return asked


def _agent_of(path: str) -> str | None:
    if "entities" not in path:
        return None
    place = parse_path(path)
    if place is not None:
        return place.agent_id
    page = parse_ledger_page(path)
    if page is not None:
        return page[0]
    match = _FOLDER.fullmatch(path)
    return None if match is None else match[1] or DEFAULT_AGENT


def _moved(
    root: str, agent_id: str, asked: Collection[str] | None, known: dict[str, Signature | None]
) -> dict[str, Signature | None] | None:
    """Files that are not as they were known, and their signatures (None: gone); None where there is no garden."""
    if asked is None:
        found = scan.scan(root, agent_id)
        mine = {path for path in known if _agent_of(path) == agent_id}
        if found is None and not mine:
            return None
        present = found or {}
    else:
        wanted = [path for path in asked if parse_path(path) is not None]
        present = files.signatures(root, wanted)
        mine = {path for path in wanted if path in known}
    moved: dict[str, Signature | None] = {path: sign for path, sign in present.items() if known.get(path) != sign}
    return moved | dict.fromkeys(mine - present.keys())


def _doubtful(moved: dict[str, Signature | None], now_us: int, settle_seconds: float) -> list[str]:
    now_ns = now_us * 1000
    young = range(now_ns - int(settle_seconds * 1e9), now_ns + _FUTURE_NS)
    return [path for path, signature in moved.items() if signature is None or signature.ctime_ns in young]


def _agent(workspace: Workspace, agent_id: str, moved: list[str], now_us: int, tended: Tended) -> None:
    """What moved, and a ledger to which somebody has written, or was writing when it died."""
    ledger = _ledger_mark(workspace.root, agent_id)
    if not moved and ledger == entities_store.remembered(workspace.database, agent_id, "ledger"):
        return
    _have_scrubbed_what_returned(workspace, agent_id, moved)
    from signet_sync.entities import observe, relation_items

    queued = entities_store.drift(workspace.database, agent_id)
    look = observe.observe(workspace, moved, now_us) if moved else observe.resume(workspace, now_us, agent_id)
    tended.agents.update(look.changed)
    if entities_store.drift(workspace.database, agent_id) != queued:
        tended.agents.add(agent_id)  # its page says how many wait
    if look.edited or look.healed:
        relation_items.weave(workspace, agent_id, now_us)
    tended.trouble += [f"{path} is not what its events say: signet-sync entity drift" for path in look.drifted]
    _remember(workspace, agent_id)


def _have_scrubbed_what_returned(workspace: Workspace, agent_id: str, moved: Iterable[str]) -> None:
    """Files of before a removal may have come back, from a backup or another machine: this pass's scrub is for them."""
    if not tombstones_store.any_stand(workspace.database):
        return
    told: set[str] = set()
    for path in (*moved, *scan.ledger(workspace.root, agent_id)):
        found = files.read(workspace.root, path, PAGE_LIMIT)
        if isinstance(found, Found):
            told |= tombstones_store.told_by(workspace.database, agent_id, found.raw)
    if told:
        tombstones_store.reopen(workspace.database, agent_id, told)


def _ledger_mark(root: str, agent_id: str) -> str:
    """Tells one state of an agent's ledger from another; empty where there is none."""
    pages = scan.ledger(root, agent_id)
    return text_sha256(repr(sorted(pages.items())))[:16] if pages else ""


def _close_days(workspace: Workspace, now_us: int, tended: Tended) -> None:
    """Once a day what happened on earlier ones is told in change logs."""
    day = day_of(now_us)
    if passes.days_told_on(workspace.database) == day:
        return
    from signet_sync.entities import daily_summary

    try:
        written = daily_summary.roll_up(workspace, now_us)
    except (OSError, UsageError, WorkspaceError) as error:
        tended.trouble.append(f"the days of entities were not told: {error}")
        return
    tended.agents.update(filter(None, map(_agent_of, written)))
    for agent_id in {agent_id for path in written if (agent_id := _agent_of(path)) is not None}:
        _remember(workspace, agent_id)
    with workspace.database.transaction():
        passes.told_days(workspace.database, day)


def _remember(workspace: Workspace, agent_id: str) -> None:
    ledger = _ledger_mark(workspace.root, agent_id)
    if entities_store.remembered(workspace.database, agent_id, "ledger") != ledger:
        with workspace.database.transaction():
            entities_store.remember(workspace.database, agent_id, "ledger", ledger)
