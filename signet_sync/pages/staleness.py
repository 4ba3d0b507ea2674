"""Tells what may be out of date: a statement whose files changed since, or whose commits were reverted or got lost.

Git is asked in the session's own folder while that waits, never in a pass; what it does not say in time is not told.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from signet_sync.formats.lazy_pattern import late
from signet_sync.host.repository import resolve

if TYPE_CHECKING:
    from signet_sync.pages.sections import StatementView

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
    gone = git.gone_branches(folder, missing, until) if missing else set()
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
            there = changed | {one for one in files[view.id] if changed and os.path.isfile(os.path.join(folder, one))}
            if changed:
                count = f"{len(changed)} of its {len(there)} files" if len(there) > 1 else "its file"
                found[view.id] = f" ({count} changed since)"
    return found


def _title(line: str) -> str:
    return line.removeprefix("* ").partition(" (#")[0]  # without the pull request that brought it


def _files(text: str, folder: str) -> Iterator[str]:
    """Yields what a text may name below a folder."""
    for name in PATH.findall(text):
        path = os.path.normpath(os.path.join(folder, name.rstrip(".")))
        if path.startswith(f"{folder}/"):
            yield path[len(folder) + 1 :]
