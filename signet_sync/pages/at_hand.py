"""Asks the repository at hand: which sessions are of its branch, and what may be out of date.

A session is of another branch only as long as that is there. Git is asked in the session's own folder while that waits,
never in a pass; what it does not say in time is not told. Imports no slow module: a harness waits.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.host.repository import list_standing, resolve
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
    """A session by its number, the branch (None: unknown) and worktree of its last work, and what it came to."""

    number: int
    thread: str
    branch: str | None
    tree: str | None
    node: str
    at_us: int
    sentence: str
    status: str
    path: str


def tell_branches_apart(
    database: Database, agent_id: str, threads: Sequence[ThreadView], now_us: int, folder: str
) -> tuple[list[ThreadView], list[PlacedSession], set[str]]:
    """Returns threads as the branch at hand left them, the sessions of other branches, and nodes of those to leave out.

    The newest come first. What was done on a trunk is the past of its branches, too, and not left out. Unless a session
    was on the branch that a folder has now, all threads are as they were.
    """
    here = resolve(folder)
    rows = database.execute(_SESSIONS, (agent_id, json.dumps([one.id for one in threads]), now_us))
    found = [PlacedSession(*row) for row in rows] if here is not None and here.branch else []
    branches = {one.branch for one in found if one.branch}
    if here is None or here.branch is None or here.branch not in branches:
        return list(threads), [], set()
    place = f"on branch {page_cell(here.branch)}"
    others = list_standing(folder, branches - {here.branch})
    away = [one for one in found if one.branch in others]
    near = [one for one in found if one.branch == here.branch]
    rest = [one for one in found if one.branch not in others]
    # A trunk has also what was on branches that are gone.
    own = rest if here.branch in _TRUNKS else [*near, *rest]

    def as_left(view: ThreadView) -> ThreadView | None:
        told = next((one for one in own if one.thread == view.id), None)
        if told is None:
            return None if any(one.thread == view.id for one in away) else view
        return view._replace(
            status=statements_store.read_status(database, agent_id, told.node, told.status) or "",
            latest_us=told.at_us,
            sample=told.sentence.removeprefix(f"{basename(told.tree)}: "),  # the name of its worktree
            path=told.path,
            newest=told.node,
            where=place if away and told in near else "",
        )

    heads = sorted(filter(None, map(as_left, threads)), key=lambda view: (-view.latest_us, view.id))
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


# ── what may be out of date: files changed, commits were reverted ──

PATH = late(r"[\w@~.+-]*(?:/[\w@.+-]+)+|\b[\w-]{2,}(?:\.[\w-]+)*\.[A-Za-z]{1,5}\b")
_COMMIT = late(r"^\[\S+ ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)  # a deed of a session (`digest.quotes`)
_REVERTS = late(r"\bThis reverts commit ([0-9a-f]{7,40})\b")
_NAME = 8  # characters of a commit's name


def marks(folder: str | None, views: Sequence[StatementView], deeds: Mapping[str, str]) -> dict[str, str]:
    """Returns by id what stands behind those of some statements that may be out of date; `deeds` are those by id."""
    if folder is None or resolve(folder) is None:
        return {}
    made = {view.id: dict(_COMMIT.findall(deeds.get(view.id, ""))) for view in views}
    files = {view.id: set(_files(view.text, folder.rstrip("/"))) for view in views}
    asked = [view for view in views if files[view.id] or made[view.id]]
    if not asked:
        return {}
    from signet_sync.host import git  # slow import, not needed where nothing names a file or a commit

    log, whole = git.log_since(folder, min(view.latest_us for view in asked))
    if not log:
        return {}
    back_us = 0 if whole else log[-1].at_us  # of what is older not all commits since are known
    # A squash or rebase gives a commit another name; its title stays, perhaps in a list.
    titles = [{_title(line) for line in one.message.split("\n")} for one in log]
    reverted: dict[str, str] = {}  # by the names of commits what reverts them
    for one in log:  # newest first: one that is reverted itself reverts nothing
        if one.name not in reverted:
            reverted.update(dict.fromkeys(_REVERTS.findall(one.message), one.name[:_NAME]))
    found: dict[str, str] = {}
    for view in [view for view in asked if view.latest_us > back_us]:
        by = [next((by for one, by in reverted.items() if one.startswith(name)), "") for name in made[view.id]]
        own = {_title(subject) for subject in made[view.id].values()}
        changed: set[str] = set()
        for one, some in zip(log, titles, strict=True):
            if one.at_us > view.latest_us and own.isdisjoint(some):
                changed |= files[view.id] & one.files
        if by and all(by):
            found[view.id] = f" (reverted by {by[0]})"
        elif changed:
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
