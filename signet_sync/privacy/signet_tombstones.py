"""Removes here what Signet removed: reads the tombstones in its database and writes files of ours for them.

Signet keeps them in `memories.db` alone, so that a copy of the vault without that database would bring sessions back.
"""

import json
import os
import stat
from collections.abc import Mapping, Sequence

from signet_sync.errors import HarnessError, SignetSyncError, reason
from signet_sync.formats.artifact import FieldProblem, Tombstone
from signet_sync.formats.filename import find_carried_token, is_artifact_path, tombstone_file_name, tombstone_name
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY, SIGNET_DATABASES
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.pages.store.pages import SIGNET_TROUBLE
from signet_sync.storage import files
from signet_sync.storage.database import foreign
from signet_sync.sync import tombstones as tombstones_files
from signet_sync.sync.index_records import Cliff
from signet_sync.sync.planner import CLIFF_FRACTION, CLIFF_MINIMUM
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Pass, Workspace
from signet_sync.text.sanitizer import sanitize_line

TABLE = "memory_artifact_tombstones"
COLUMNS = ("agent_id", "session_token", "removed_at", "reason", "removed_paths")
_SECONDS, _MOST, _LONGEST = 5.0, 50_000, 65_536


def _read(root: str) -> tuple[list[Tombstone], str]:
    """Reads the tombstones of Signet's database, if there is one, and says which are none; writes nothing.

    Raises `HarnessError`, `WorkspaceError`.
    """
    found: dict[tuple[str, str], Tombstone] = {}
    strange = 0
    for path in SIGNET_DATABASES:
        status = files.status_of(root, path)
        if status is None or not stat.S_ISREG(status.st_mode):
            continue
        place = os.path.join(os.path.realpath(root), path)
        with foreign.open_to_read(place, "Signet", {TABLE: COLUMNS}, seconds=_SECONDS) as database:
            if database.count(TABLE) > _MOST:
                hint = "is it Signet's? move it away if it is not"
                raise HarnessError(f"Signet's database has more than {_MOST} tombstones", path=place, hint=hint)
            for row in database.rows(TABLE, _LONGEST) if "session_token" in database.columns(TABLE) else ():
                one = tombstone(row)
                if one is None:
                    strange += 1
                else:
                    found[one.key] = one
        what = f"{path}: {strange} tombstones of Signet cannot be understood and are left out" if strange else ""
        return [*found.values()], what
    return [], ""


def tombstone(row: Mapping[str, str | None]) -> Tombstone | None:
    """Returns the tombstone of a row, the same at each reading; None for one that can be none."""
    agent_id, token, why = row["agent_id"] or DEFAULT_AGENT, row["session_token"] or "", row["reason"] or ""
    if tombstone_name(tombstone_file_name(agent_id, token)) != (agent_id, token):
        return None
    try:
        listed = json.loads(row["removed_paths"] or "[]")
    except (ValueError, RecursionError):
        listed = []
    named = {one for one in listed if isinstance(one, str)} if isinstance(listed, list) else set()
    fields = {
        "kind": "tombstone",
        "agent_id": agent_id,
        "session_token": token,
        # Without a readable time it is older than every undo.
        "removed_at": iso(parse_instant(row["removed_at"] or "") or 0),
        "reason": sanitize_line(f"removed in Signet: {why}" if why.strip() else "removed in Signet"),
        "removed_paths": sorted(filter(is_artifact_path, named)),
    }
    try:
        return Tombstone.read(fields)
    except FieldProblem:
        return None


def take_in(run: Pass) -> None:
    """Writes tombstone files for what Signet removed; the pass removes the sessions as after any other removal.

    Too many at once halt the pass: a damaged or foreign database must not empty a vault. A database that cannot be read
    is reported once.
    """
    workspace, database = run.workspace, run.database
    trouble = ""
    try:
        found, trouble = _read(workspace.root)
        news = _news(workspace, found)
        cliff = None if run.request.accept_removals or not news else cliff_of(workspace, news)
        if news:
            # Any file may be of one of these sessions.
            run.request = run.request._replace(paths=None)
        if cliff is not None:
            run.cliff = cliff
        else:
            for tombstone in news:
                tombstones_files.put(workspace.root, tombstone)
    except (SignetSyncError, OSError) as error:
        trouble = f"{error.path}: {error.message}" if isinstance(error, SignetSyncError) else reason(error)
        trouble += "; what Signet removed is not removed here until it can"
    if trouble != (database.state(*SIGNET_TROUBLE) or ""):
        with database.transaction():
            database.set_state(*SIGNET_TROUBLE, trouble or None)
        if trouble:
            workspace.events.append(trouble)


def _news(workspace: Workspace, found: Sequence[Tombstone]) -> list[Tombstone]:
    """Returns the tombstones to write: those that no tombstone of ours covers and that were not lifted here."""
    standing = tombstones_files.all_tombstones(workspace)
    lifted = {one.key for one in tombstones_files.list_lifted(workspace.root, found)}
    news = []
    for one in found:
        ours = standing.get(one.key)
        # A file that cannot be read covers its token.
        torn = ours is None and files.status_of(workspace.root, tombstones_files.path_of(*one.key)) is not None
        if torn or one.key in lifted or (ours is not None and not ours.session_ids):
            continue
        paths = tombstones_store.paths_of(workspace.database, one.scope)
        whole = one.replace(removed_paths=tuple(sorted({*one.removed_paths, *paths})))
        news.append(whole if ours is None else ours.join(whole))
    return news


def cliff_of(workspace: Workspace, news: Sequence[Tombstone]) -> Cliff | None:
    """Returns why a pass has to halt: more than half of the sessions, and at least 20, would go at once.

    Sessions are counted by the names of their files, which are there before any pass has indexed them.
    """
    names = files.list_names(workspace.root, MEMORY, "")
    tokens = {f"{MEMORY}/{name}": token for name in names if (token := find_carried_token(name)) is not None}
    removed, aliases = {one.session_token for one in news}, tombstones_files.find_aliases(workspace, news)
    going = [path for path, token in tokens.items() if token in removed or path in aliases]
    gone, sessions = len({tokens[path] for path in going}), len(set(tokens.values()))
    if gone < CLIFF_MINIMUM or gone <= CLIFF_FRACTION * sessions:
        return None
    message = f"Signet's database says that {gone} of {sessions} sessions were removed"
    hint = "if that database is damaged or of another workspace, move it away; if it is right"
    return Cliff(len(going), len(tokens), message, f"{hint}: signet-sync reindex --accept-removals")
