"""Defines the session that a hook was called in; only starts and prompts need it."""

from collections.abc import Callable
from typing import NamedTuple

from signet_sync.storage.locations import StateFolder, write_program


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
