"""Notifies the user of problems beyond log and page: once for each problem, and at most once an hour for each kind.

What was notified is recorded in the state folder, so that a restart repeats nothing: counts, times and the ids of
passes, never a word or a name of the vault. It is recorded before the notification is sent, so a crash may lose one
notification but never repeats one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loguru import logger

from signet_sync.capture import spool
from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.formats.paths import display
from signet_sync.host import notifications
from signet_sync.settings import model
from signet_sync.storage import state_dir
from signet_sync.storage.state_dir import StateFolder
from signet_sync.sync.store import passes, violations
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted
from signet_sync.text.sanitizer import sanitize_line

HOUR = 3600.0
LONGEST = 300  # characters of a message
_FILE = "told.json"


class Notifications:
    """Checks, after a pass and periodically, whether there is something that the user was not notified of yet.

    If neither `notify.desktop` nor `notify.command` is set, a check costs nothing and records nothing.
    """

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.time) -> None:
        self._workspace = workspace
        self._clock = clock

    def check(self) -> None:
        """Notifies of a halt, of new violations, of jobs that were given up. Raises `apsw.Error`."""
        settings = self._workspace.settings
        if not (settings.notify_desktop or settings.notify_command):
            return
        sent = _Sent(self._workspace.state, self._clock())
        sent.clear("stopped")
        texts = [
            _of_halt(sent, self._workspace),
            _of_violations(sent, self._workspace),
            _of_given_up(sent, self._workspace),
        ]
        if sent.save() and any(texts):
            # Sending may take long; changes of files do not wait for it.
            ways = settings.notify_desktop, settings.notify_command
            threading.Thread(target=_send_all, args=(texts, *ways), name="notifications", daemon=True).start()


def _of_halt(sent: _Sent, workspace: Workspace) -> str:
    why = passes.halt_message(workspace.database)
    if not why:
        sent.clear("halted")
        return ""
    if not sent.is_news("halted", 1):
        return ""
    return f"{_named(workspace)} is halted, nothing was dropped ({why}): signet-sync status"


def _of_violations(sent: _Sent, workspace: Workspace) -> str:
    """Returns one notification for all violations that a pass found: one save may change many files."""
    batches = {batch.id: len(batch.files) for batch in violations.batches(workspace.database)}
    known = sent.known("violations")
    fresh = [batch for batch in batches if not isinstance(known, list) or batch not in known]
    if not fresh:
        sent.update("violations", sorted(batches))
        return ""
    if not sent.is_news("violations", sorted(batches)):
        return ""
    count = sum(batches[batch] for batch in fresh)
    what = counted(count, "sealed file")
    return f"{what} of {_named(workspace)} changed or are gone: signet-sync violations list"


def _of_given_up(sent: _Sent, workspace: Workspace) -> str:
    count = spool.given_up(workspace.state.spool)
    known = sent.known("given_up")
    before = known if isinstance(known, int) else 0
    if count <= before:
        sent.update("given_up", count)
        return ""
    if not sent.is_news("given_up", count):
        return ""
    what = counted(count - before, "session")
    return f"{what} could not be captured into {_named(workspace)}: signet-sync logs intake"


def _named(workspace: Workspace) -> str:
    return display(workspace.root)


class _Sent:
    """What the user was notified of, by kind, and when."""

    def __init__(self, folder: StateFolder, now: float) -> None:
        self._path = os.path.join(folder.path, _FILE)
        self._now = now
        self._kinds: dict[str, Any] = state_dir.read_json(self._path) or {}

    def known(self, kind: str) -> object:
        return self._entry(kind).get("what")

    def is_news(self, kind: str, what: object) -> bool:
        """Records that the user is notified of this now; False if known, or if the last time is under an hour ago."""
        entry = self._entry(kind)
        at = entry.get("at")
        # A clock that was set back must not suppress notifications for years.
        if entry.get("what") == what or (isinstance(at, (int, float)) and 0 <= self._now - at < HOUR):
            return False
        self._kinds[kind] = {"what": what, "at": self._now}
        return True

    def update(self, kind: str, what: object) -> None:
        """Records that a part of the problem is gone; that is no news."""
        if kind in self._kinds and self.known(kind) != what:
            self._kinds[kind] = {**self._entry(kind), "what": what}

    def clear(self, kind: str) -> None:
        """Records that the whole problem is gone: if it returns, that is news."""
        self.update(kind, None)

    def save(self) -> bool:
        """Stores the record if it changed; False if that fails: a notification sent then would be repeated."""
        try:
            if self._kinds:
                state_dir.write_json(self._path, self._kinds)
        except OSError:
            return False
        return True

    def _entry(self, kind: str) -> dict[str, Any]:
        entry = self._kinds.get(kind)
        return entry if isinstance(entry, dict) else {}


def stopped(root: str, error: SignetSyncError, environ: Mapping[str, str] = os.environ) -> None:
    """Notifies that the agent ends with an error, if no service manager does: once, until an agent runs again."""
    try:
        desktop, command = model.notification_settings(environ)
    except ConfigError:
        return
    sent = _Sent(state_dir.locate(root, environ), time.time())
    if (desktop or command) and sent.is_news("stopped", error.code) and sent.save():
        send(f"the agent of {display(root)} ended: {error.message} — {error.hint}", desktop, command, environ)


def _send_all(texts: Iterable[str], desktop: bool, command: tuple[str, ...]) -> None:
    for text in filter(None, texts):
        send(text, desktop, command)


def send(text: str, desktop: bool, command: tuple[str, ...], environ: Mapping[str, str] = os.environ) -> list[str]:
    """Sends one line through every configured channel; returns the errors of the channels that failed."""
    line = display(sanitize_line(text))
    line = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
    troubles = [notifications.on_desktop(line, environ)] if desktop else []
    troubles += [notifications.by_program(command, line, environ)] if command else []
    found = [trouble for trouble in troubles if trouble]
    for trouble in found:
        logger.info("a notification could not be sent: {}", trouble)
    return found
