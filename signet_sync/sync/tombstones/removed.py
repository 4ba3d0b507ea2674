"""Checks whether a session was removed; writers must check it before they write anything of the session."""

from __future__ import annotations

from signet_sync.errors import UsageError
from signet_sync.formats.ids import token_of
from signet_sync.formats.snapshot import TOMBSTONE_LIMIT
from signet_sync.storage import files
from signet_sync.sync.planner import judge_tombstone
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace


def is_removed(workspace: Workspace, agent_id: str, token: str, session_id: str) -> bool:
    """Returns whether a tombstone covers the session by key or id, in the index or in a file not yet indexed."""
    tombstones = tombstones_store.mirrored(workspace.database)
    for covered in {token, token_of(agent_id, session_id)}:
        known = [
            tombstone
            for tombstone in tombstones
            if (tombstone.agent_id, tombstone.session_token) == (agent_id, covered)
        ]
        path = tombstones_files.path_of(agent_id, covered)
        if not known and files.status_of(workspace.root, path) is not None:
            _, tombstone = judge_tombstone(path, files.read(workspace.root, path, TOMBSTONE_LIMIT))
            # An unreadable tombstone covers all of its token.
            if tombstone is None or tombstone.covers(agent_id, session_id):
                return True
        if any(tombstone.covers(agent_id, session_id) for tombstone in known):
            return True
    return False


def removed_session(session_id: str) -> UsageError:
    """Returns the error for an ending whose session was removed."""
    return UsageError(
        f"session {session_id[:80]!r} was removed; nothing of it is written again",
        hint="signet-sync remove SESSION --undo lifts the removal",
        code="removed-session",
    )
