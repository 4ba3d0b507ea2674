"""Runs the agent, one per workspace: it waits for its root, survives every error, and ends on a signal."""

from __future__ import annotations

import errno
import os
import queue
import signal
import stat
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

import apsw
from loguru import logger

from signet_sync import __version__, log
from signet_sync.app import scheduler
from signet_sync.app.heartbeat import Presence
from signet_sync.app.scheduler import Rounds, backoff, short
from signet_sync.app.upgrade import Upgrade
from signet_sync.app.workspace import establish, keep_settings, open_workspace
from signet_sync.errors import DatabaseCorrupt, DatabaseError, DatabaseNewer, Interrupted, SignetSyncError
from signet_sync.host import installed_version
from signet_sync.host.sd_notify import Notifier
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import is_odd, suspect, translate
from signet_sync.sync.quarantine import OUT_OF_MEMORY
from signet_sync.sync.workspace import Workspace

ROOT_POLL = 2.0
_MAY_PASS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EFBIG}
)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `run` on the command line; `flags` are settings by field name."""

    root: str
    database: str | None
    flags: Mapping[str, object]
    verbose: bool = False


class Daemon:
    """Runs until SIGTERM or SIGINT; SIGHUP reloads settings and makes a full pass, as does a change of their files.

    Everything happens in the thread that calls `run`; `stop` may be called from any thread. With `upgrade`, which needs
    the main thread, it is replaced by another signet-sync that is installed while it runs.
    """

    def __init__(self, options: Options, notifier: Notifier | None = None, upgrade: Upgrade | None = None) -> None:
        self.options = options
        self.notifier = notifier or Notifier()
        self.upgrade = upgrade
        self.presence = Presence(self.notifier, self._facts)
        self.settings: Settings
        self.rounds: Rounds | None = None
        # A queue and plain flags, no Event: a signal handler may interrupt the code that holds the lock it would need.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._told_to_stop = False
        self._reload = False
        self._bad_settings = ""
        self._settings_files: tuple[object, ...] = ()
        self._failures = 0
        self._home = ""
        self._identity: tuple[int, int] | None = None
        self._place: tuple[int, int] | None = None

    def run(self) -> int:
        """Runs the agent until it ends; returns the exit code.

        Raises `AnotherAgent`, `ConfigError` for flags, `DatabaseError` or `WorkspaceError` if the user has to act.
        """
        self._catch_signals()
        self._configure()
        self._log_to(None)
        while True:
            while not self._stopping:
                with ExitStack() as stack:
                    self._stay(stack)
            if self._told_to_stop or self.upgrade is None:
                return 0
            self._make_way(self.upgrade)

    # ── signals ──

    def stop(self) -> None:
        """Ends the loop; may be called from another thread or a signal handler."""
        self._told_to_stop = self._stopping = True
        self._ring()

    def reload(self) -> None:
        """Requests that the settings be read again; may be called from another thread or a signal handler."""
        self._reload = True
        self._ring()

    def _ring(self) -> None:
        self._bell.put(None)
        if self.rounds is not None:
            self.rounds.watcher.wake()

    def _catch_signals(self) -> None:
        def end(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        def hang_up(_number: int, _frame: FrameType | None) -> None:
            self.reload()

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGINT, end)
            signal.signal(signal.SIGHUP, hang_up)

    # ── another version ──

    def _look_for_another(self) -> None:
        """Leaves the loop if another signet-sync is to replace this one; no work in progress is interrupted."""
        if self.upgrade is None:
            return
        before = self.upgrade.trouble
        if self.upgrade.is_ready(time.monotonic()):
            self._stopping = True
        elif self.upgrade.trouble != before:
            self.presence.write()

    def _make_way(self, upgrade: Upgrade) -> None:
        """Replaces this process by the installed signet-sync; returns only if that fails."""
        installed_version.prepare_to_go()
        if self._told_to_stop:
            return
        try:
            installed_version.start_again()
        except OSError as error:
            upgrade.refuse(f"what is installed as signet-sync cannot be started ({error.strerror})", time.monotonic())
        self._stopping = False
        self._catch_signals()

    # ── one workspace ──

    def _stay(self, stack: ExitStack) -> None:
        """Runs one workspace until the agent is stopped or another workspace is at the root."""
        if not os.path.isdir(self.options.root):
            self._wait_for_root()
        if self._stopping:
            return
        remarks = self._configure()
        folder = self._patiently(lambda: establish(self.options.root))
        if folder is None:
            return
        stack.enter_context(state_dir.run_lock(folder))
        stack.callback(self._ended)
        self._log_to(folder.logs)
        _log_remarks(remarks)
        self.presence.settle(folder)
        self.presence.say("starting")
        workspace = self._patiently(
            lambda: open_workspace(self.options.root, self.settings, database=self.options.database)
        )
        if workspace is None:
            return
        stack.callback(_close, workspace)
        stack.callback(self._ending)
        self._home, self._identity = folder.path, _identity(self.options.root)
        self._place = _identity(folder.path)
        self.rounds = self._rounds(workspace)
        self.presence.write()
        self.notifier.ready()
        logger.info("signet-sync {} on {}", __version__, self.options.root)
        self._loop(self.rounds)

    def _rounds(self, workspace: Workspace) -> Rounds:
        return Rounds(workspace, self.presence, self._alive, lambda: self._stopping)

    def _wait_for_root(self) -> None:
        """Waits for a root that is not mounted yet; no folder is created in its place."""
        folder = state_dir.locate(self.options.root)
        with state_dir.run_lock(folder):
            self._log_to(folder.logs)
            self.presence.settle(folder)
            self.notifier.ready()
            self._until_root()
            self.presence.end()

    def _until_root(self) -> None:
        logger.warning("there is no workspace at {}; waiting for it", self.options.root)
        self.presence.say("waiting: workspace")
        while not (self._stopping or os.path.isdir(self.options.root)):
            self._rest(ROOT_POLL)

    def _patiently(self, step: Callable[[], _Result]) -> _Result | None:
        """Retries a step until it succeeds, or returns None when stopped; errors that waiting cannot fix are raised."""
        self._failures = 0
        while not self._stopping:
            try:
                return step()
            except (OSError, DatabaseError) as error:
                if not _may_pass(error):
                    logger.error("{}", error)
                    raise
                self.presence.say(f"degraded: {_told(error)}")
                self.notifier.ready()
                self._back_off()
        return None

    def _ending(self) -> None:
        if self._told_to_stop:
            self.notifier.stopping()
        elif self._stopping:
            self.notifier.reloading()
        self.presence.say("stopping")
        if self.rounds is not None:
            self.rounds.watcher.stop()
            self.rounds.worker.leave()
            self.rounds.commits.leave()
            self.rounds = None

    def _ended(self) -> None:
        logger.info("stopped")
        self.presence.end()

    # ── the loop ──

    def _loop(self, work: Rounds) -> None:
        """Runs rounds until stopped or until another workspace is at the root; errors in a round do not end it."""
        at_home = True
        while at_home and not self._stopping:
            try:
                at_home = self._turn(work)
                self._failures = 0
            except Interrupted:
                continue
            except Exception as error:  # noqa: BLE001 - one bad pass must not end an agent that runs for months
                self._failed(work, error)

    def _turn(self, work: Rounds) -> bool:
        """Waits for something to do, and does it; returns False if this is no longer our workspace."""
        work.listen(self.notifier.watchdog_interval() or scheduler.FAR)
        self._look_for_another()
        if self._stopping:
            return True
        self.notifier.watchdog()
        if self._reload or model.file_states(self.options.root) != self._settings_files:
            self._reload_settings(work)
        if _identity(self.options.root) is None:
            work.everything = True
            self._until_root()
        identity = _identity(self.options.root)
        if identity != self._identity:
            self._identity = identity
            work.everything = True
            if identity is not None and state_dir.locate(self.options.root).path != self._home:
                logger.warning("another workspace stands at {} now", self.options.root)
                return False
        if self._is_evicted():
            logger.warning("the state folder was deleted or exchanged; all begins anew")
            return False
        if identity is not None:
            work.round()
        return True

    def _is_evicted(self) -> bool:
        """Returns whether our state folder is gone, and our lock with it, so that another agent could start."""
        try:
            os.stat(self._home)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # briefly unreadable, and still ours
        return _identity(self._home) != self._place

    def _failed(self, work: Rounds, error: Exception) -> None:
        """Handles a failed pass: reports it once, retries everything with increasing delay, drops nothing."""
        work.everything = True
        if isinstance(error, apsw.Error):
            error, cause = translate(error, work.workspace.database.path), error
            error.__cause__ = cause
        if isinstance(error, SignetSyncError) and error.code == "busy":
            return  # waited for another command; nothing is wrong
        if _identity(self.options.root) is None:
            return  # the missing root is the cause of the error
        if isinstance(error, OUT_OF_MEMORY) or isinstance(error.__cause__, OUT_OF_MEMORY):
            work.bury()
        if isinstance(error, DatabaseError):
            work.connection.lost = True
            if is_odd(error):
                suspect(work.workspace.database.path)
        elif not isinstance(error, (SignetSyncError, OSError, MemoryError)):
            work.anew = True  # the cause may be rows that we did not write
        if isinstance(error, DatabaseCorrupt):
            work.connection.put_aside(error)
        if isinstance(error, DatabaseNewer) and self.upgrade is not None:
            self.upgrade.hurry()
        work.trouble = _told(error)
        self.presence.say(work.state())
        self._back_off()

    def _back_off(self) -> None:
        self._failures += 1
        self._rest(backoff(self._failures))

    def _rest(self, seconds: float) -> None:
        """Waits until a signal or the timeout, while reporting to the service manager that the loop works."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._bell.get(timeout=min(left, self.notifier.watchdog_interval() or scheduler.BEAT))
                return
            self._alive()
            self._look_for_another()
            if self._stopping:
                return

    # ── what is reported ──

    def _alive(self) -> None:
        self.notifier.watchdog()
        self.presence.beat()

    def _facts(self) -> dict[str, object]:
        work = self.rounds
        return {
            "version": __version__,
            "workspace": self.options.root,
            "database": work.workspace.database.path if work is not None else None,
            "last_full_pass": work.last_full if work is not None else None,
            "interval": self.settings.interval,
            "watch": work.watcher.kind if work is not None else None,
            "trouble": self._bad_settings or (work.held if work is not None else "") or self._outdated() or None,
        }

    def _outdated(self) -> str:
        return self.upgrade.trouble if self.upgrade is not None else ""

    # ── settings ──

    def _configure(self) -> list[model.SettingsRemark]:
        """Reads the settings; returns the problems with them, which stop nothing. Raises `ConfigError` for flags."""
        self._settings_files = model.file_states(self.options.root)
        self.settings, remarks = model.load(self.options.root, flags=self.options.flags, anyway=True)
        self._bad_settings = model.in_one_line(remarks)
        return remarks

    def _log_to(self, folder: str | None) -> None:
        settings = self.settings
        level = "DEBUG" if self.options.verbose else settings.log_level
        try:
            log.set_up(level, folder=folder, rotation_bytes=settings.log_rotation_bytes, keep=settings.log_keep)
        except OSError as error:
            log.set_up(level, folder=None, rotation_bytes=settings.log_rotation_bytes, keep=settings.log_keep)
            logger.warning("no log file: {}", error)

    def _reload_settings(self, work: Rounds) -> None:
        self._reload = False
        self.notifier.reloading()
        before = self.settings
        remarks = self._configure()
        work.workspace.settings = self.settings
        keep_settings(work.workspace.root, work.workspace.state)
        if (before.watch_mode, before.poll_interval) != (self.settings.watch_mode, self.settings.poll_interval):
            work.set_watch()
        self._log_to(work.workspace.state.logs)
        _log_remarks(remarks)
        logger.info("settings reloaded")
        work.everything = True
        self.presence.write()
        self.notifier.ready()


def _log_remarks(remarks: list[model.SettingsRemark]) -> None:
    for remark in remarks:
        logger.warning("{}", remark)


def _close(workspace: Workspace) -> None:
    """Closes the database connection, after writing back as much of its log as possible."""
    with suppress(SignetSyncError, OSError, apsw.Error):
        workspace.close()


def _identity(folder: str) -> tuple[int, int] | None:
    """Identifies a folder independently of its name; None if there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _told(error: Exception) -> str:
    """Writes an error to the log; returns the text for the state `degraded`."""
    if isinstance(error, SignetSyncError):
        logger.error("{} [{}] ({})", error.message, error.path or "", error.hint)
        return short(error.message)
    if isinstance(error, OSError):
        logger.error("{}", error)
        return short(error.strerror or str(error))
    if isinstance(error, MemoryError):
        logger.error("there is not enough memory for this pass")
        return "not enough memory"
    logger.opt(exception=error).error("unexpected {}", type(error).__name__)
    return f"unexpected {type(error).__name__}, see signet-sync logs"


def _may_pass(error: OSError | DatabaseError) -> bool:
    """Returns whether waiting may help: disk space or a lock may become free; a newer schema stays."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError):
        return cause.errno in _MAY_PASS
    return isinstance(cause, (apsw.BusyError, apsw.FullError, apsw.IOError))
