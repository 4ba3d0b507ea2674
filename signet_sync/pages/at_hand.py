"""Asks the repository at hand: which sessions are of its branch or worktree, and what may be out of date.

A session is of another branch only as long as that is there. Git is asked in the session's own folder while that waits,
never in a pass; what it does not say in time is not told. Imports no slow module: a harness waits.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import normalize_path
from signet_sync.host.repository import list_standing, real_path, resolve
from signet_sync.pages.sections import StatementView, ThreadView
from signet_sync.statements import store as statements_store
from signet_sync.storage.database import batches
from signet_sync.storage.database.connection import Database
from signet_sync.text.sentences import basename, page_cell

SESSIONS = 200  # of a project, the newest; older ones are not told apart
# Branches that others are merged into: what came to an end is theirs.
_TRUNKS = frozenset(("main", "master", "trunk", "develop"))
_SESSIONS = f"""
    select n.session, t.thread_id, t.branch, t.tree, t.node_id, t.latest_us, t.sentence, coalesce(t.status, ''),
        t.source_ref
    from json_each(?2) j cross join thread_sessions t on t.rowid in (select rowid from thread_sessions
        where agent_id = ?1 and thread_id = j.value and latest_us <= ?3 order by latest_us desc limit {SESSIONS})
    join sessions n using (agent_id, session_token, session_id)
    order by t.latest_us desc, t.node_id"""
_STEPS = frozenset(("blocker", "next", "question"))  # what is of the branch on which it was said


class PlacedSession(NamedTuple):
    """A session by its number, the branch and worktree (None: unknown) that it worked in last, what it came to."""

    number: int
    thread: str
    branch: str | None
    tree: str | None
    node: str
    at_us: int
    sentence: str
    status: str
    path: str

    @property
    def place(self) -> str:
        """Returns its branch, else its worktree; "" if neither is known."""
        return self.branch or self.tree or ""


def separate_branches(
    database: Database, agent_id: str, threads: Sequence[ThreadView], now_us: int, folder: str
) -> tuple[list[ThreadView], list[PlacedSession], set[str]]:
    """Returns threads as the branch at hand left them, the sessions of other branches, and nodes of those to leave out.

    The newest come first. What was done on a trunk is the past of its branches, too, and not left out. Unless a session
    was on the branch that a folder has now, or in its worktree without one, all threads are as they were.
    """
    here = resolve(folder)
    rows = database.execute(_SESSIONS, (agent_id, json.dumps([one.id for one in threads]), now_us))
    found = [PlacedSession(*row) for row in rows] if here is not None else []
    tree = normalize_path(real_path(folder).removesuffix(f"/{here.path}")) if here is not None else ""
    place = (here.branch if here is not None else None) or tree
    if place not in {one.place for one in found}:
        return list(threads), [], set()
    name = f"in worktree {page_cell(basename(tree))}" if place == tree else f"on branch {page_cell(place)}"
    unnamed = {one.tree for one in found if one.tree and not one.branch}
    others = list_standing(folder, {one.branch for one in found if one.branch}, unnamed) - {place}
    away = [one for one in found if one.place in others]
    near = [one for one in found if one.place == place]
    rest = [one for one in found if one.place not in others]
    # A trunk has also what was on branches that are gone.
    own = rest if place in _TRUNKS else [*near, *rest]

    def restore_view(view: ThreadView) -> ThreadView | None:
        told = next((one for one in own if one.thread == view.id), None)
        if told is None:
            return None if any(one.thread == view.id for one in away) else view
        return view._replace(
            status=statements_store.read_status(database, agent_id, told.node, told.status) or "",
            latest_us=told.at_us,
            sample=told.sentence.removeprefix(f"{basename(told.tree)}: "),  # the name of its worktree
            path=told.path,
            newest=told.node,
            where=name if away and told in near else "",
        )

    heads = sorted(filter(None, map(restore_view, threads)), key=lambda view: (-view.latest_us, view.id))
    return heads, away, {one.node for one in away if one.branch not in _TRUNKS}


def find_steps_elsewhere(
    database: Database, agent_id: str, views: Mapping[str, StatementView], away: Sequence[PlacedSession]
) -> set[str]:
    """Returns the ids of what only sessions of other branches left open."""
    said: dict[str, set[int]] = {}
    steps = [one for one, view in views.items() if view.kind in _STEPS]
    for one, number in batches.rows_with_ids(database, "id, session", "statements", agent_id, "id", steps):
        said.setdefault(one, set()).add(number)
    numbers = {one.number for one in away}
    return {one for one, by in said.items() if by <= numbers}


# ── what may be out of date: files changed, commits were reverted or got lost ──

PATH = late(r"[\w@~.+-]*(?:/[\w@.+-]+)+|\b[\w-]{2,}(?:\.[\w-]+)*\.[A-Za-z]{1,5}\b")
_COMMIT = late(r"^\[(\S+) ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)  # a deed of a session (`digest.quotes`)
_REVERTS = late(r"\bThis reverts commit ([0-9a-f]{7,40})\b")
_NAME = 8  # characters of a commit's name


def marks(folder: str | None, views: Sequence[StatementView], deeds: Mapping[str, str]) -> dict[str, str]:
    """Returns by id what stands behind those of some statements that may be out of date; `deeds` are those by id."""
    if folder is None or resolve(folder) is None:
        return {}
    made = {view.id: _COMMIT.findall(deeds.get(view.id, "")) for view in views}
    files = {view.id: set(_files(view.text, folder.rstrip("/"))) for view in views}
    asked = [view for view in views if files[view.id] or made[view.id]]
    if not asked:
        return {}
    from signet_sync.host import git  # slow import, not needed where nothing names a file or a commit

    until = time.monotonic() + git.PATIENCE
    log, whole = git.log_since(folder, min(view.latest_us for view in asked), until)
    if not log and not whole:
        return {}
    back_us = 0 if whole else log[-1][0] * 1_000_000
    asked = [view for view in asked if view.latest_us > back_us]  # of others not all commits since are known
    # A squash or rebase gives a commit another name; its title stays, perhaps in a list.
    titles = [set(map(_title, message.split("\n"))) for _, _, message, _ in log]
    landed = set[str]().union(*titles)
    missing = {
        (branch, name) for view in asked for branch, name, subject in made[view.id] if _title(subject) not in landed
    }
    gone = git.find_gone_branches(folder, missing, until) if missing else set()
    reverted: dict[str, str] = {}  # by the names of commits what reverts them
    for _, name, message, _ in log:  # newest first: one that is reverted itself reverts nothing
        if name not in reverted:
            reverted.update(dict.fromkeys(_REVERTS.findall(message), name[:_NAME]))
    found: dict[str, str] = {}
    for view in asked:
        commits = made[view.id]
        own = landed.intersection(_title(subject) for *_, subject in commits)
        by = [next((by for one, by in reverted.items() if one.startswith(name)), "") for _, name, _ in commits]
        if by and all(by):
            found[view.id] = f" (reverted by {by[0]})"
        elif commits and gone.issuperset(commit[:2] for commit in commits):
            found[view.id] = " (its branch is gone)"
        elif files[view.id]:
            changed: set[str] = set()
            for (at, *_, names), some in zip(log, titles, strict=True):
                if at * 1_000_000 > view.latest_us and own.isdisjoint(some):
                    changed |= files[view.id] & names
            if changed:
                found[view.id] = f" ({len(changed)} of its files changed since)"
    return found


def _title(line: str) -> str:
    return line.removeprefix("* ").partition(" (#")[0]  # without the pull request that brought it


def _files(text: str, folder: str) -> Iterator[str]:
    """Yields what a text may name below a folder."""
    for name in PATH.findall(text):
        path = os.path.normpath(os.path.join(folder, name.rstrip(".")))
        if path.startswith(f"{folder}/"):
            yield path[len(folder) + 1 :]
