"""Forgets the workspace's history: deletes our own repository's `.git`, and commits what is there now."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable

from signet_sync.formats.paths import TEMPORARY
from signet_sync.history import git_program, operations, repository
from signet_sync.history.operations import AGENTS_ADDRESS, CheckpointResult
from signet_sync.history.repository import BUILDING, MAIN, RepositoryRefused
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
            with repository.opened(workspace.root, workspace.state.key):
                if reason := repository.busy(workspace.root):
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
    with repository.opened(workspace.root, workspace.state.key) as git:
        newest = repository.tip(git)
        others = sum(commit.committer.email != AGENTS_ADDRESS for commit in (git.walk(newest.id) if newest else ()))
        found = [f"{counted(others, 'commit')} of others"] if others else []
        found += [name for name in git.references if name not in (MAIN, "HEAD")]
        found += [f"the remote {name}" for name in git.remotes.names() if name]
    if found:
        raise RepositoryRefused(
            f"the history contains what is not ours: {', '.join(found[:8])}{' …' if len(found) > 8 else ''}",
            path=".git",
            hint="signet-sync history forget --yes deletes that, too; copies that were pushed or cloned stay",
            code="not-only-ours",
        )


def filter_line(root: str, workspace_id: str, paths: Iterable[str]) -> str:
    """Returns the command that takes files out of the history of a person's own repository; empty if it is ours."""
    top = git_program.top_of(root)
    if top is None or repository.inspect(root, workspace_id).state == "ours":
        return ""
    below = os.path.relpath(os.path.realpath(root), top)
    names = [path if below == "." else f"{below}/{path}" for path in paths]
    return shlex.join(["git", "filter-repo", "--invert-paths", *(word for name in names for word in ("--path", name))])
