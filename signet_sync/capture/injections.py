"""Describes what hooks inject into a session, and records it, as ids, so that nothing is injected twice.

A record is one small file for each session in the state folder. It contains no words. Only starts and prompts need it.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

from signet_sync.storage import state_dir
from signet_sync.storage.durable import READ, add_sum, private_folder, publish, read_with_sum, sync_folder, unlink
from signet_sync.storage.locations import StateFolder, write_program
from signet_sync.text.phrases import QUOTED

VERSION = 1
KEPT_DAYS = 30.0
_MOST = 1_000  # ids of a session
_DAY = 86_400.0  # seconds


class HookSession(NamedTuple):
    """A session: `id` is "" if nothing is to be recorded, `shared` means that others read it.

    `hands_over` finds out whether its agent is asked for the lines with which it hands its work over.
    """

    root: str
    folder: StateFolder
    database: str
    agent_id: str
    harness: str
    id: str
    project: str | None
    shared: bool
    hands_over: Callable[[], bool] = bool

    @property
    def program(self) -> str:
        """The beginning of a command about the session's memory."""
        return write_program(self.root, self.agent_id)


class Moment(NamedTuple):
    """What a tool is called with: the file of an edit, or a command; and how it failed, "" before it runs."""

    path: str
    command: str
    error: str


class Injection(NamedTuple):
    """What a session gets, between its markers ("" for nothing).

    `record` records that it got it, and returns what of it no other hook of the session gave meanwhile.
    """

    text: str
    record: Callable[[], str] = str


class Injections:
    """What one session got: the ids of the lines given at its start, and of those at prompts.

    The id of a quote is `QUOTED` and its session's, that of a whole file "". `due`: the context of a start waits for a
    prompt. `at` is the time of the last change in seconds since 1970, `characters` how many it got in all.
    """

    def __init__(self, agent_id: str, harness: str) -> None:
        self.agent_id = agent_id
        self.harness = harness
        self.at = 0.0
        self.due = False
        self.characters = 0
        self.at_start: list[str] = []
        self.at_prompts: list[str] = []

    @property
    def ids(self) -> set[str]:
        """Returns the ids that the session got at its start or at a prompt."""
        return {one for one in (*self.at_start, *self.at_prompts) if one and not one.startswith(QUOTED)}

    def document(self) -> dict[str, object]:
        """Returns what is written: of much the newest."""
        return {"v": VERSION, **vars(self), "at_start": self.at_start[-_MOST:], "at_prompts": self.at_prompts[-_MOST:]}


def read(folder: StateFolder, agent_id: str, session_id: str) -> Injections | None:
    """Returns what a session of an agent got; None if nothing is recorded."""
    return _read(_place(folder, agent_id, session_id))


@contextmanager
def update_record(folder: StateFolder, agent_id: str, harness: str, session_id: str) -> Iterator[Injections]:
    """Gives a session's record to change, alone; it is written whole or not at all.

    Raises `WorkspaceError` if it cannot be locked in time, `OSError` if it cannot be written.
    """
    with _lock_folder(folder):
        path = _place(folder, agent_id, session_id)
        record = _read(path) or Injections(agent_id, harness)
        before = record.document()
        yield record
        if record.document() != before:
            record.at = time.time()
            os.close(publish(path, add_sum(record.document()), durable=False))


def mark_compacted(folder: StateFolder, agent_id: str, session_id: str) -> None:
    """Makes the context of a start due again, if the session got one. Raises `OSError`."""
    if read(folder, agent_id, session_id) is not None:
        with update_record(folder, agent_id, "", session_id) as record:
            record.due = True


def list_changed(folder: StateFolder, at: float) -> Iterator[Injections]:
    """Yields the records that changed since a time in seconds since 1970."""
    with suppress(OSError):
        for name in os.listdir(folder.injected):
            record = _read(os.path.join(folder.injected, name))
            if record is not None and record.at >= at:
                yield record


def drop_gone(folder: StateFolder, stands: Callable[[str, str], bool]) -> None:
    """Deletes from all records, durably, what is no more. Raises `OSError`.

    `stands` tells of an agent's id whether anything still has it.
    """
    if not os.path.isdir(folder.injected):
        return
    with _lock_folder(folder):
        for name in os.listdir(folder.injected):
            path = os.path.join(folder.injected, name)
            if (record := _read(path)) is None:
                unlink(path)
                continue
            before = record.document()
            record.at_start, record.at_prompts = (
                [one for one in some if not one or stands(record.agent_id, one.removeprefix(QUOTED))]
                for some in (record.at_start, record.at_prompts)
            )
            if record.document() != before:
                os.close(publish(path, add_sum(record.document()), durable=False))
                os.utime(path, (record.at, record.at))
        sync_folder(folder.injected)


def expire(folder: StateFolder, now: float) -> None:
    """Deletes old records."""
    with suppress(OSError), os.scandir(folder.injected) as entries:
        for entry in entries:
            if now - entry.stat(follow_symlinks=False).st_mtime > KEPT_DAYS * _DAY:
                unlink(entry.path)


def _place(folder: StateFolder, agent_id: str, session_id: str) -> str:
    # Hashed with the agent: no agent finds another's record.
    name = sha256(f"{agent_id}\0{session_id}".encode("utf-8", "replace")).hexdigest()[:32]
    return os.path.join(folder.injected, f"{name}.json")


def _read(path: str) -> Injections | None:
    """Reads a record; what is damaged counts as missing."""
    with suppress(OSError), open(os.open(path, READ), "rb") as file:
        found, record = read_with_sum(file.read()), Injections("", "")
        if found is not None and found.pop("v") == VERSION:
            vars(record).update(found)
            return record
    return None


@contextmanager
def _lock_folder(folder: StateFolder) -> Iterator[None]:
    with state_dir.lock(folder, "injected"):
        private_folder(folder.injected)
        yield
