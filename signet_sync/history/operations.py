"""Commits the workspace's history and lists it; decides when, under whose name and with which text."""

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

from signet_sync.errors import ConfigError, DatabaseError, SignetSyncError, sentence_of
from signet_sync.formats.ids import require_agent
from signet_sync.formats.paths import TEMPORARY
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.history import commit, repository
from signet_sync.history.commit import AGENTS_ADDRESS
from signet_sync.history.repository import BUILDING, MAIN, RepositoryRefused
from signet_sync.memories.score import Promotion, sweep_id
from signet_sync.memories.store import promotions
from signet_sync.sessions import store as results
from signet_sync.sessions.store import RecordedEnd
from signet_sync.storage import state_dir, writing
from signet_sync.storage.durable import sync_folder
from signet_sync.storage.files import folder
from signet_sync.sync import engine
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitize_line

CLEAN = "workspace tree is clean; no commit created"
DISABLED = "history-disabled"
# How to enable it, for a person.
REMEDY = "signet-sync settings history.enabled true turns it on" + (
    "" if find_spec("pygit2") else "; it needs the extra `git`"
)
SHORT = 7  # hex digits
ADDRESS = "agent@localhost"
_KEY = 120  # characters of a session's name in a commit
# Not errors: another program's repository is left alone, or is in use.
_LEFT_ALONE = frozenset({"existing-repository", "inside-repository", "history-busy"})
# Seconds to wait for another commit; an automatic one can just as well be made later.
_WAIT, _SHORT_WAIT = 60.0, 2.0
# The table of what commits list: `sweep_id` is the newest sweep whose promotions, `flow_keys` the ends of a day.
_LISTED = "history_told"


class CheckpointResult(NamedTuple):
    """The result of a commit. `oid` is the first seven hex digits; `skipped` means that none was made.

    `reason` is a code or a sentence, and `hint` what a person can do; `skipped_files` were not committed as they are.
    """

    ok: bool
    oid: str | None
    subject: str
    skipped: bool
    skipped_files: tuple[str, ...] = ()
    reason: str | None = None
    hint: str = ""

    def document(self) -> dict[str, Any]:
        """Returns the document of `checkpoint --json`."""
        return {name: value for name, value in self._asdict().items() if name != "hint"}


# ── three occasions ──


def checkpoint(workspace: Workspace, agent_id: str, note: str, now_us: int) -> CheckpointResult:
    """Commits the workspace as it is now.

    Raises `UsageError`, `ConfigError` if the extra is missing, `RepositoryRefused` for an unsafe repository,
    `WorkspaceError` (`busy`), `OSError`.
    """
    require_agent(agent_id)
    line = _line(note) or "manual"
    subject = _cut(f"checkpoint: {line}", commit.SUBJECT_LENGTH)
    body = f"manual checkpoint at {iso(now_us)}"
    if not subject.endswith(line):
        body += f"\n\n{line}"
    return _commit(workspace, agent_id, subject, body, now_us)


def commit_promotions(workspace: Workspace, now_us: int, *, wait: float = _WAIT) -> CheckpointResult | None:
    """Commits what sweeps have promoted since the last commit: ids, scores and counts, never a memory's text.

    One commit for each agent; None if nothing was promoted. Raises as `checkpoint` does.
    """
    if not workspace.settings.history_enabled:
        return None
    newest = promotions.newest(workspace.database)
    done = None
    for agent_id, promoted in _promotions(workspace, now_us).items():
        lines = [
            f"{one.memory_id} score {one.score:.2f}, {count_noun(one.recall_count, 'hit')}"
            f" on {count_noun(one.unique_days, 'day')}"
            for one in promoted
        ]
        subject = f"promote: {count_noun(len(promoted), 'memory', 'memories')}"
        done = _commit(workspace, agent_id, subject, "\n".join(lines), now_us, wait=wait)
        if not done.ok:
            return done
    if done is not None:
        # If this fails nothing is lost: they are committed once more, with a clean tree.
        with suppress(DatabaseError), workspace.database.transaction():
            workspace.database.set_state(_LISTED, "sweep_id", newest)
    return done


def _promotions(workspace: Workspace, now_us: int) -> dict[str, list[Promotion]]:
    """Returns promotions that no commit lists yet; a new history begins with the most recent ones."""
    listed: str = workspace.database.state(_LISTED, "sweep_id") or sweep_id(now_us - DAY)
    return promotions.list_since(workspace.database, listed)


def commit_ends(workspace: Workspace, now_us: int) -> CheckpointResult | None:
    """Commits what has ended since the last commit; None if nothing has. Raises as `checkpoint` does.

    The newest session names the commit, the body lists all, oldest first.
    """
    if not workspace.settings.history_enabled:
        return None
    due, read = _ends(workspace, now_us)
    if not due:
        return None
    names = list(dict.fromkeys((_cut(_line(end.session), _KEY), end.agent_id) for end in due))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    subject = f"session-close: {_cut(_line(due[-1].session), _KEY)}{more}"
    body = "\n".join(f"- {name} (agent {agent})" for name, agent in names)
    done = _commit(workspace, due[-1].agent_id, subject, body, now_us)
    if done.ok:
        # If this fails nothing is lost: they are committed once more, with a clean tree.
        with suppress(DatabaseError), workspace.database.transaction():
            workspace.database.set_state(_LISTED, "flow_keys", json.dumps([end.flow_key for end in read]))
    return done


def _ends(workspace: Workspace, now_us: int) -> tuple[list[RecordedEnd], list[RecordedEnd]]:
    """Returns the day's session ends that no commit lists, oldest first, and all of the day.

    One that waited for a model is recorded late, under the time when it began: those listed are known by their keys.
    """
    listed = json.loads(workspace.database.state(_LISTED, "flow_keys") or "[]")
    read = results.list_ends_since(workspace.database, iso(now_us - DAY))
    return [end for end in read if end.flow_key not in listed], read


def is_due(workspace: Workspace, now_us: int) -> bool:
    """Returns whether a session ended or a memory was promoted since the last commit that lists such."""
    return workspace.settings.history_enabled and bool(_ends(workspace, now_us)[0] or _promotions(workspace, now_us))


def close_dreams(workspace: Workspace, now_us: int) -> None:
    """Commits after a sweep, as its process must. Errors become an event of the workspace.

    The promotions are recorded, and the next commit of this kind includes them.
    """
    _quietly(workspace, lambda: commit_promotions(workspace, now_us, wait=_SHORT_WAIT))


def close_sessions(workspace: Workspace, now_us: int) -> None:
    """Commits after a session's end, as its process must, unless an agent runs, which will do it.

    Errors become an event of the workspace: the session is kept whether or not it is committed.
    """
    if workspace.settings.history_enabled and not state_dir.run_lock_holder(workspace.state):
        _quietly(workspace, lambda: commit_ends(workspace, now_us))


def _quietly(workspace: Workspace, act: Callable[[], CheckpointResult | None]) -> None:
    try:
        done = act()
        why = "" if done is None or done.ok else f"{done.reason}: {done.hint}"
    except (SignetSyncError, OSError) as error:
        why = sentence_of(error)
    if why:
        workspace.events.append(f"the history was not written: {why}")


# ── a commit ──


def _commit(
    workspace: Workspace, agent_id: str, subject: str, body: str, now_us: int, *, wait: float = _WAIT
) -> CheckpointResult:
    settings, root, key = workspace.settings, workspace.root, workspace.state.key
    if not settings.history_enabled:
        return CheckpointResult(False, None, subject, True, (), DISABLED, REMEDY)
    if tombstones_store.has_removals(workspace.database):
        # Files of a removed session that a sync service has just brought back must not get into a history.
        engine.run_pass(workspace, Request(now_us=now_us))
    try:
        with state_dir.lock(workspace.state, "history", wait):
            repository.create(root, key, commit.BESIDE)
            with repository.open_repository(root, key) as git:
                oid, skipped = commit.commit(
                    git,
                    root,
                    subject=subject,
                    body=body,
                    author=(settings.history_author_name or agent_id, settings.history_author_email or ADDRESS),
                    agent=(agent_id, AGENTS_ADDRESS),
                    now_us=now_us,
                )
    except RepositoryRefused as refused:
        if refused.code == "extra-missing":
            raise ConfigError(refused.message, path=refused.path, hint=refused.hint, code=refused.code) from None
        if refused.code in _LEFT_ALONE:
            return CheckpointResult(False, None, subject, True, (), refused.code, sentence_of(refused))
        raise
    if oid is None:
        return CheckpointResult(True, None, subject, True, tuple(skipped), CLEAN)
    return CheckpointResult(True, oid[:SHORT], subject, False, tuple(skipped))


def _line(text: str) -> str:
    return " ".join(sanitize_line(text).split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def forget(workspace: Workspace, agent_id: str, now_us: int, *, yes: bool) -> CheckpointResult:
    """Deletes every commit, and makes one of the present files, unless the history is off.

    Without `yes` it refuses a repository in which something is not ours (`refuse_others`). After a kill the same call
    deletes the rest. Raises `RepositoryRefused`, `ConfigError`, `WorkspaceError`, `OSError`.
    """
    gone = os.path.join(workspace.root, BUILDING)
    with state_dir.lock(workspace.state, "history"):
        if not os.path.lexists(gone):
            if not yes:
                refuse_others(workspace)
            with repository.open_repository(workspace.root, workspace.state.key):
                repository.refuse_busy(workspace.root)
            writing.prepare(workspace.root)
            with folder(workspace.root, TEMPORARY, create=True):
                pass
            os.rename(os.path.join(workspace.root, ".git"), gone)
            sync_folder(workspace.root)
        shutil.rmtree(gone)
    return checkpoint(workspace, agent_id, "history forgotten", now_us)


def refuse_others(workspace: Workspace) -> None:
    """Raises `RepositoryRefused` (`not-only-ours`) if commits, branches, tags or remotes are not ours."""
    with repository.open_repository(workspace.root, workspace.state.key) as git:
        newest = repository.tip(git)
        others = sum(commit.committer.email != AGENTS_ADDRESS for commit in (git.walk(newest.id) if newest else ()))
        found = [f"{count_noun(others, 'commit')} of others"] if others else []
        found += [name for name in git.references if name not in (MAIN, "HEAD")]
        found += [f"the remote {name}" for name in git.remotes.names() if name]
    if found:
        message = f"the history contains what is not ours: {', '.join(found[:8])}{' …' if len(found) > 8 else ''}"
        hint = "signet-sync history forget --yes deletes that, too; copies that were pushed or cloned stay"
        raise RepositoryRefused(message, path=".git", hint=hint, code="not-only-ours")


def filter_line(root: str, workspace_id: str, paths: Iterable[str]) -> str:
    """Returns the command that takes files out of the history of a person's own repository; empty if it is ours."""
    top = repository.top_of(root)
    if top is None or repository.inspect(root, workspace_id) is None:
        return ""
    below = os.path.relpath(os.path.realpath(root), top)
    names = [path if below == "." else f"{below}/{path}" for path in paths]
    return shlex.join(["git", "filter-repo", "--invert-paths", *(word for name in names for word in ("--path", name))])
