"""Checks the pages: every agent's MEMORY.md exists, as a file that can be written."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress

from signet_sync.admin.doctor.finding import Finding, problem, warning
from signet_sync.admin.doctor.installation import Installation, access_command
from signet_sync.formats.paths import day_page, display, dream_page, head_page, month_page
from signet_sync.pages import signet_daemon
from signet_sync.pages.store import pages as pages_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts, passes


def pages(target: Installation) -> list[Finding]:
    """Reports what prevents a page from being read or written."""
    heads, others = target.query(_known) or ([], [])
    return [
        *(found for page in heads for found in _page(target, page)),
        *(found for page in others for found in _other(target, page)),
    ]


def _known(database: Database) -> tuple[list[str], list[str]]:
    """Returns the MEMORY.md pages of all agents, and their other pages."""
    if passes.is_halted(database):
        return [], []
    agents = counts.agents(database)
    others = {dream_page(agent_id) for agent_id in agents}
    for agent_id in agents:
        for day in pages_store.days(database, agent_id):
            others |= {day_page(agent_id, day), month_page(agent_id, day[:7])}
    return [head_page(agent_id) for agent_id in agents], sorted(others)


def _page(target: Installation, page: str) -> Iterator[Finding]:
    path = os.path.join(target.root, page)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        # A running agent writes it within moments, or, if held back by Signet's daemon, when that has gone.
        if not target.alive and signet_daemon.daemon_pid(target.root) is None:
            yield warning("page", f"{display(page)} is not there", target.command("reindex"), fix=True)
        return
    if not stat.S_ISREG(status.st_mode):
        yield _replaced(target, page, status)
    elif not os.access(path, os.R_OK):
        words = f"{display(page)} cannot be read, so it is no longer written"
        yield problem("page", words, access_command(path, "u+rw"))


def _other(target: Installation, page: str) -> Iterator[Finding]:
    """Checks a page other than MEMORY.md: a missing one is written again automatically, one that is no file is not."""
    with suppress(OSError):
        status = os.lstat(os.path.join(target.root, page))
        if not stat.S_ISREG(status.st_mode):
            yield _replaced(target, page, status)


def _replaced(target: Installation, page: str, status: os.stat_result) -> Finding:
    kind = "a link" if stat.S_ISLNK(status.st_mode) else "a folder" if stat.S_ISDIR(status.st_mode) else "no file"
    words = f"{display(page)} is {kind}, so it is no longer written"
    quoted = shlex.quote(os.path.join(target.root, page))
    return problem("page", words, f"mv {quoted} {quoted}.aside && {target.command('reindex')}")
