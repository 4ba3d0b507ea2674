"""The pages: does every agent's MEMORY.md stand where it belongs, as a file that can be written anew."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator

import apsw

from signet_sync.agent import signet
from signet_sync.agent.doctor.finding import Finding, problem, warning
from signet_sync.agent.doctor.patient import Patient, give_back
from signet_sync.contracts.places import display, head_page
from signet_sync.errors import DatabaseError
from signet_sync.index import overview
from signet_sync.index.database import Database


def pages(patient: Patient) -> list[Finding]:
    """What keeps a page from being read or written; nothing where all of them are as they should be."""
    return [found for agent_id in _agents(patient) for found in _page(patient, head_page(agent_id))]


def _agents(patient: Patient) -> list[str]:
    """Those who have something to show; what keeps the index from telling is told elsewhere."""
    try:
        database = Database(patient.database, readonly=True)
    except (FileNotFoundError, DatabaseError):
        return []
    try:
        return [] if database.meta("halted") else overview.agents(database)
    except (apsw.Error, DatabaseError):
        return []
    finally:
        database.connection.close()


def _page(patient: Patient, page: str) -> Iterator[Finding]:
    path = os.path.join(patient.root, page)
    quoted = shlex.quote(path)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        # A living agent writes it in a moment, and one that holds back for Signet's daemon does so until that has gone.
        if not patient.alive and signet.daemon_pid(patient.root) is None:
            yield warning("page", f"{display(page)} is not there", patient.command("reindex"), fix=True)
        return
    if not stat.S_ISREG(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "a folder" if stat.S_ISDIR(status.st_mode) else "no file"
        words = f"{display(page)} is {kind}, so it is not written any more"
        yield problem("page", words, f"mv {quoted} {quoted}.aside && {patient.command('reindex')}")
    elif not os.access(path, os.R_OK):
        words = f"{display(page)} cannot be read, so it is not written any more"
        yield problem("page", words, give_back(path, "u+rw"))
