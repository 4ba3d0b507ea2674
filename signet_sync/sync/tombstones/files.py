"""Writes tombstone files: once, durably before anything is deleted; only an explicit undo lifts one.

An undo must reach other machines like a removal does, and a missing file proves nothing: it might be lost. So a lifted
tombstone is kept in a folder of its own; this removal, and earlier states of it, then no longer count on any machine.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from signet_sync.errors import UsageError
from signet_sync.formats.artifact import FieldProblem, Tombstone, validate_tombstone
from signet_sync.formats.filename import tombstone_file_name, tombstone_name
from signet_sync.formats.frontmatter import HEAD_LIMIT, FrontmatterProblem, parse, write
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import TOMBSTONES
from signet_sync.formats.snapshot import TOMBSTONE_LIMIT, Found
from signet_sync.storage import files
from signet_sync.storage.files import Root
from signet_sync.sync.planner import judge_tombstone
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace

LIFTED = f"{TOMBSTONES}/lifted"


def path_of(agent_id: str, token: str) -> str:
    """Returns the path of the tombstone of an agent's token."""
    return f"{TOMBSTONES}/{tombstone_file_name(agent_id, token)}"


def path_of_lifted(agent_id: str, token: str) -> str:
    """Returns the path of the lifted tombstone of an agent's token."""
    return f"{LIFTED}/{tombstone_file_name(agent_id, token)}"


def text_of(tombstone: Tombstone) -> bytes:
    """Formats a tombstone: fields only, `session_ids` only if it is limited to some.

    Raises `UsageError` if these are more than the head of a file holds.
    """
    fields: dict[str, Any] = tombstone.fields()
    if not tombstone.session_ids:
        del fields["session_ids"]
    data = write(fields, "")
    if len(data) <= HEAD_LIMIT:
        return data
    # A tombstone that cannot be read would cover every session of its token; the removal works without the names, too.
    data = write({**fields, "removed_paths": []}, "")
    if len(data) > HEAD_LIMIT:
        raise UsageError(
            "the ids of the sessions that were removed of this key are too long for one tombstone",
            path=path_of(*tombstone.key),
            hint=f"remove all sessions of the key: signet-sync remove {tombstone.session_token}",
        )
    return data


def put(root: str, tombstone: Tombstone) -> str:
    """Writes a tombstone durably, unless an equal one exists; returns its path.

    An earlier lifted tombstone of the same token no longer counts, so that it cannot be taken for this removal.
    """
    if tombstone_file_name(*tombstone.key) in files.listing(root, LIFTED, ""):
        files.unlink(root, path_of_lifted(*tombstone.key))
        files.remove_empty_folders(root, LIFTED, TOMBSTONES)
    return _put(root, path_of(*tombstone.key), text_of(tombstone))


def lift(root: str, tombstone: Tombstone, rest: Tombstone | None = None) -> None:
    """Lifts a tombstone: writes it durably among the lifted ones, then deletes it from the tombstones in force.

    `rest` is the part that stays in force: then `tombstone` is the part that does not.
    """
    before = last_lifted(root, *tombstone.key)
    if (
        before is not None
        and before.removed_at == tombstone.removed_at
        and before.session_ids
        and tombstone.session_ids
    ):
        # The other part of this removal: another machine may know it as a whole.
        tombstone = tombstone.changed(session_ids=tuple(sorted({*before.session_ids, *tombstone.session_ids})))
    _put(root, path_of_lifted(*tombstone.key), text_of(tombstone))
    if rest is not None:
        _put(root, path_of(*rest.key), text_of(rest))
    else:
        files.unlink(root, path_of(*tombstone.key))


def list_lifted(root: Root, tombstones: Collection[Tombstone]) -> list[Tombstone]:
    """Returns those of the tombstones that were lifted, here or on another machine."""
    lifted = read_lifted(root) if tombstones else {}
    found = ((one, lifted.get(one.key)) for one in tombstones)
    return [one for one, aside in found if aside is not None and aside.includes(one)]


def read_lifted(root: Root) -> dict[tuple[str, str], Tombstone]:
    """Returns what was last lifted of each agent's token."""
    keys = filter(None, map(tombstone_name, files.listing(root, LIFTED, "")))
    found = {key: last_lifted(root, *key) for key in sorted(keys)}
    return {key: tombstone for key, tombstone in found.items() if tombstone is not None}


def last_lifted(root: Root, agent_id: str, token: str) -> Tombstone | None:
    """Returns what was last lifted of an agent's token."""
    found = files.read(root, path_of_lifted(agent_id, token), TOMBSTONE_LIMIT)
    try:
        aside = validate_tombstone(parse(found.raw).fields) if isinstance(found, Found) else None
    except (FrontmatterProblem, FieldProblem):
        return None
    same = aside is not None and aside.key == (agent_id, token)
    return aside if same else None


def _put(root: str, path: str, data: bytes) -> str:
    found = files.read(root, path, TOMBSTONE_LIMIT)
    if isinstance(found, Found):
        if found.raw != data:
            files.replace(root, path, data, found.raw)
        return path
    try:
        files.create_once(root, path, data)
    except FileExistsError:
        files.replace(root, path, data, None)
    return path


def is_removed(workspace: Workspace, agent_id: str, token: str, session_id: str) -> bool:
    """Returns whether a tombstone covers the session by key or id, in the index or in a file not yet indexed."""
    tombstones = tombstones_store.list_mirrored(workspace.database)
    for covered in {token, token_of(agent_id, session_id)}:
        known = [tombstone for tombstone in tombstones if tombstone.key == (agent_id, covered)]
        path = path_of(agent_id, covered)
        if not known and files.status_of(workspace.root, path) is not None:
            _, tombstone = judge_tombstone(path, files.read(workspace.root, path, TOMBSTONE_LIMIT))
            # An unreadable tombstone covers all of its token.
            if tombstone is None or tombstone.covers(agent_id, session_id):
                return True
        if any(tombstone.covers(agent_id, session_id) for tombstone in known):
            return True
    return False


def refuse_removed_session(session_id: str) -> UsageError:
    """Returns the error for an ending whose session was removed."""
    return UsageError(
        f"session {session_id[:80]!r} was removed; nothing of it is written again",
        hint="signet-sync remove SESSION --undo lifts the removal",
        code="removed-session",
    )
