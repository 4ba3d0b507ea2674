"""Forgets the workspace's history: deletes our own repository's `.git`, and commits what is there now."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable

from signet_sync.formats.paths import TEMPORARY
from signet_sync.history import operations
from signet_sync.history.commit import BUILDING
from signet_sync.history.git import lock, repository, versions
from signet_sync.history.git.repository import RepositoryRefused
from signet_sync.history.operations import AGENTS_ADDRESS, CheckpointResult
from signet_sync.storage import files, state_dir
from signet_sync.storage.durable import sync_folder
from signet_sync.storage.safe_paths import folder
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted


def forget(workspace: Workspace, agent_id: str, now_us: int, *, yes: bool) -> CheckpointResult:
    """Deletes every commit, and makes one of the present files, unless the history is off.

    Without `yes` it refuses a repository in which something is not ours (`refuse_others`). After a kill the same call
    deletes the rest. Raises `RepositoryRefused`, `ConfigError`, `WorkspaceError`, `OSError`.
    """
    gone = os.path.join(workspace.root, BUILDING)
    with state_dir.history_lock(workspace.state):
        if not os.path.lexists(gone):
            if not yes:
                refuse_others(workspace)
            with repository.opened(workspace.root, workspace.state.key) as place:
                lock.mend(place.folder)
                if reason := repository.busy(place.folder):
                    raise RepositoryRefused(reason, path=".git", hint="finish that first", code="history-busy")
            files.prepare(workspace.root)
            with folder(workspace.root, TEMPORARY, create=True):
                pass
            os.rename(os.path.join(workspace.root, ".git"), gone)
            sync_folder(workspace.root)
        shutil.rmtree(gone)
    return operations.checkpoint(workspace, agent_id, "history forgotten", now_us)


def refuse_others(workspace: Workspace) -> None:
    """Raises `RepositoryRefused` (`not-only-ours`) if commits, branches, tags or remotes are not ours."""
    with repository.opened(workspace.root, workspace.state.key) as place:
        ours, newest = repository.branch(place), repository.tip(place)
        commits = place.git.walk(newest.hex()) if newest else ()
        others = sum(commit.committer.email != AGENTS_ADDRESS for commit in commits)
        found = [f"{counted(others, 'commit')} of others"] if others else []
        found += [name for name in place.git.references if name not in (ours, "HEAD")]
        found += [f"the remote {name}" for name in place.git.remotes.names() if name]
    if found:
        raise RepositoryRefused(
            f"the history contains what is not ours: {', '.join(found[:8])}{' …' if len(found) > 8 else ''}",
            path=".git",
            hint="signet-sync history forget --yes deletes that, too; copies that were pushed or cloned stay",
            code="not-only-ours",
        )


def filter_line(root: str, workspace_id: str, paths: Iterable[str]) -> str:
    """Returns the command that takes files out of the history of a person's own repository; empty if it is ours."""
    top = versions.top_of(root)
    if top is None or repository.inspect(root, workspace_id).state == "ours":
        return ""
    below = os.path.relpath(os.path.realpath(root), top)
    names = [path if below == "." else f"{below}/{path}" for path in paths]
    return shlex.join(["git", "filter-repo", "--invert-paths", *(word for name in names for word in ("--path", name))])
