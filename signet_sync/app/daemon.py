"""Runs the agent, one per workspace: it waits for its root, survives every error, and ends on a signal.

It notices a signet-sync that was installed while it runs: its service manager is to start that one.
"""

from __future__ import annotations

import errno
import os
import pkgutil
import queue
import signal
import stat
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TypeVar

import apsw

import signet_sync
from signet_sync import __version__, log
from signet_sync.app import scheduler
from signet_sync.app.answers import Answers
from signet_sync.app.heartbeat import Heartbeat, Notifier
from signet_sync.app.scheduler import Scheduler, backoff, short
from signet_sync.app.workspace import establish, keep_settings, open_workspace
from signet_sync.embeddings.resident import Resident
from signet_sync.errors import DatabaseCorrupt, DatabaseError, Interrupted, SignetSyncError
from signet_sync.log import logger
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import is_odd, mark_suspect, translate
from signet_sync.sync.workspace import Workspace

ROOT_POLL = 2.0
_MAY_PASS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EFBIG}
)

_Result = TypeVar("_Result")
_Identity = tuple[int, int]
Installation = tuple[int, int, int, int]


class Daemon:
    """Runs until SIGTERM, SIGINT or SIGHUP; changed settings are read again, and a full pass follows them.

    Everything happens in the thread that calls `run`; `stop` may be called from any thread. With `ours` (of
    `identify_installation`), it ends with `EXIT_CODE` when another signet-sync was installed, to be started again.
    """

    def __init__(
        self, root: str, database: str | None = None, *, verbose: bool = False, ours: Installation | None = None
    ) -> None:
        self.root = root
        self.database = database
        self.verbose = verbose
        self.notifier = Notifier()
        self.ours = ours
        self.heartbeat = Heartbeat(self.notifier, self._heartbeat_details)
        self.settings: Settings
        self.scheduler: Scheduler | None = None
        # A queue and plain flags, no Event: a signal handler may interrupt the code that holds the lock it would need.
        self._wake_ups: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._exit_code = 0
        self._bad_settings = ""
        self._settings_files: tuple[object, ...] = ()
        self._failures = 0
        self._places: tuple[_Identity | None, _Identity | None] = None, None

    def run(self) -> int:
        """Runs the agent until it ends; returns the exit code.

        Raises `AnotherAgent`, `DatabaseError` or `WorkspaceError` if the user has to act.
        """
        self._catch_signals()
        self._configure()
        self._log_to(None)
        while not self._stopping:
            with ExitStack() as stack:
                self._serve(stack)
        return self._exit_code

    # ── signals ──

    def stop(self) -> None:
        """Ends the loop; may be called from another thread or a signal handler."""
        self._exit_code = 0
        self._stopping = True
        self._wake_ups.put(None)
        if self.scheduler is not None:
            self.scheduler.watcher.wake()

    def _catch_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            hears = [signal.SIGTERM, signal.SIGINT]
            if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under `nohup`
                hears.append(signal.SIGHUP)
            for number in hears:
                signal.signal(number, lambda *_: self.stop())

    def _check_upgrade(self) -> None:
        """Leaves the loop if another signet-sync is to be started instead; no work in progress is interrupted."""
        if self.ours is not None and identify_installation() not in (self.ours, None):
            logger.info("another signet-sync is installed now; the agent ends to be restarted as that")
            self._exit_code = EXIT_CODE
            self._stopping = True

    # ── one workspace ──

    def _serve(self, stack: ExitStack) -> None:
        """Runs one workspace until the agent is stopped or another workspace is at the root."""
        if not os.path.isdir(self.root):
            self._wait_for_root()
        if self._stopping:
            return
        remarks = self._configure()
        folder = self._retry(lambda: establish(self.root))
        if folder is None:
            return
        stack.enter_context(state_dir.run_lock(folder))
        stack.callback(self._report_end)
        self._log_to(folder.logs)
        _log_remarks(remarks)
        self.heartbeat.write_to(folder)
        self.heartbeat.set_state("starting")
        workspace = self._retry(lambda: open_workspace(self.root, self.settings, database=self.database))
        if workspace is None:
            return
        stack.callback(_close, workspace)
        stack.callback(self._end_work)
        self._places = _identity(self.root), _identity(folder.path)
        self.scheduler = self._new_scheduler(workspace)
        self.heartbeat.write()
        self.notifier.send(Notifier.READY)
        if self.database is None:
            answers = Answers(self.root, folder)
            if answers.listen():
                stack.callback(answers.stop)
        resident = Resident(workspace.database.path, lambda: self.settings)
        resident.start()
        stack.callback(resident.stop)
        logger.info("signet-sync {} on {}", __version__, self.root)
        self._loop(self.scheduler)

    def _new_scheduler(self, workspace: Workspace) -> Scheduler:
        return Scheduler(workspace, self.heartbeat, self._report_alive, lambda: self._stopping)

    def _wait_for_root(self) -> None:
        """Waits for a root that is not mounted (any more); no folder is created in its place."""
        folder = state_dir.locate(self.root)
        with state_dir.run_lock(folder):
            self._log_to(folder.logs)
            self.heartbeat.write_to(folder)
            self.notifier.send(Notifier.READY)
            logger.warning("there is no workspace at {}; waiting for it", self.root)
            self.heartbeat.set_state("waiting: workspace")
            while not (self._stopping or os.path.isdir(self.root)):
                self._sleep(ROOT_POLL)
            if not self._stopping:
                logger.info("the workspace at {} is there", self.root)
            self.heartbeat.end()

    def _retry(self, step: Callable[[], _Result]) -> _Result | None:
        """Retries a step until it succeeds, or returns None when stopped; errors that waiting cannot fix are raised."""
        self._failures = 0
        while not self._stopping:
            try:
                return step()
            except (OSError, DatabaseError) as error:
                if not _may_pass(error):
                    logger.error("{}", error)
                    raise
                self.heartbeat.set_state(f"degraded: {_log_error(error)}")
                self.notifier.send(Notifier.READY)
                self._back_off()
        return None

    def _end_work(self) -> None:
        if self._stopping:
            self.notifier.send(Notifier.STOPPING)
        self.heartbeat.set_state("stopping")
        if self.scheduler is not None:
            self.scheduler.watcher.stop()
            self.scheduler.worker.leave()
            self.scheduler.commits.stop()
            if self.scheduler.sharing is not None:
                self.scheduler.sharing.leave()
            self.scheduler = None

    def _report_end(self) -> None:
        logger.info("stopped")
        self.heartbeat.end()

    # ── the loop ──

    def _loop(self, work: Scheduler) -> None:
        """Runs rounds until stopped or until another workspace is at the root; errors in a round do not end it."""
        at_home, loaded = True, False
        while at_home and not self._stopping:
            try:
                at_home = self._step(work)
                if not loaded:  # only now: the first pass is not to wait for it
                    load_all()
                    loaded = True
                self._failures = 0
            except Interrupted:
                continue
            except Exception as error:  # noqa: BLE001 - one bad pass must not end an agent that runs for months
                self._handle_error(work, error)

    def _step(self, work: Scheduler) -> bool:
        """Waits for something to do, and does it; returns False if this is no longer our workspace."""
        work.wait(self.notifier.interval or scheduler.FAR)
        self._check_upgrade()
        if self._stopping:
            return True
        self.notifier.send(Notifier.ALIVE)
        if model.file_states(self.root) != self._settings_files:
            self._reload_settings(work)
        # Without our state folder our lock is gone, too, so that another agent could start.
        if (_identity(self.root), _identity(work.workspace.state.path)) != self._places:
            logger.warning("another workspace or state folder is there now, or none; the agent starts over")
            return False
        work.run_due()
        return True

    def _handle_error(self, work: Scheduler, error: Exception) -> None:
        """Handles a failed pass: reports it once, retries everything with increasing delay, drops nothing."""
        work.everything = True
        if isinstance(error, apsw.Error):
            error, cause = translate(error, work.workspace.database.path), error
            error.__cause__ = cause
        if isinstance(error, SignetSyncError) and error.code == "busy":
            return  # waited for another command; nothing is wrong
        if _identity(self.root) is None:
            return  # the missing root is the cause of the error
        if isinstance(error, DatabaseError):
            work.supervisor.lost = True
            if is_odd(error):
                mark_suspect(work.workspace.database.path)
        elif not isinstance(error, (SignetSyncError, OSError, MemoryError)):
            work.rebuild = True  # the cause may be rows that we did not write
        if isinstance(error, DatabaseCorrupt):
            work.supervisor.move_aside(error)
        work.trouble = _log_error(error)
        self.heartbeat.set_state(work.state())
        self._back_off()

    def _back_off(self) -> None:
        self._failures += 1
        self._sleep(backoff(self._failures))

    def _sleep(self, seconds: float) -> None:
        """Waits until a signal or the timeout, while reporting to the service manager that the loop works."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._wake_ups.get(timeout=min(left, self.notifier.interval or scheduler.BEAT))
                return
            self._report_alive()
            self._check_upgrade()
            if self._stopping:
                return

    # ── what is reported ──

    def _report_alive(self) -> None:
        self.notifier.send(Notifier.ALIVE)
        self.heartbeat.touch()

    def _heartbeat_details(self) -> dict[str, object]:
        work = self.scheduler
        return {
            "version": __version__,
            "workspace": self.root,
            "database": work.workspace.database.path if work is not None else None,
            "last_full_pass": work.last_full if work is not None else None,
            "interval": self.settings.interval,
            "watch": work.watcher.kind if work is not None else None,
            "trouble": self._bad_settings or (work.held if work is not None else "") or None,
        }

    # ── settings ──

    def _configure(self) -> list[model.SettingsRemark]:
        """Reads the settings; returns the problems with them, which stop nothing."""
        self._settings_files = model.file_states(self.root)
        self.settings, remarks = model.load(self.root, anyway=True)
        self._bad_settings = model.join_remarks(remarks)
        return remarks

    def _log_to(self, folder: str | None) -> None:
        level = "DEBUG" if self.verbose else self.settings.log_level
        try:
            log.set_up(level, folder=folder)
        except OSError as error:
            log.set_up(level, folder=None)
            logger.warning("no log file: {}", error)

    def _reload_settings(self, work: Scheduler) -> None:
        watched = self.settings.watch_mode
        remarks = self._configure()
        work.workspace.settings = self.settings
        keep_settings(work.workspace.root, work.workspace.state)
        if watched != self.settings.watch_mode:
            work.set_watch()
        self._log_to(work.workspace.state.logs)
        _log_remarks(remarks)
        logger.info("settings reloaded")
        work.everything = True
        self.heartbeat.write()


def _log_remarks(remarks: list[model.SettingsRemark]) -> None:
    for remark in remarks:
        logger.warning("{}", remark)


def _close(workspace: Workspace) -> None:
    """Closes the database connection, after writing back as much of its log as possible."""
    with suppress(SignetSyncError, OSError, apsw.Error):
        workspace.close()


def _identity(folder: str) -> _Identity | None:
    """Identifies a folder independently of its name; None if there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _log_error(error: Exception) -> str:
    """Writes an error to the log; returns the text for the state `degraded`."""
    if isinstance(error, SignetSyncError):
        logger.error("{} [{}] ({})", error.message, error.path or "", error.hint)
        return short(error.message)
    if isinstance(error, OSError):
        logger.error("{}", error)
        return short(error.strerror or str(error))
    if isinstance(error, MemoryError):
        logger.error("not enough memory for this pass")
        return "not enough memory"
    logger.opt(exception=error).error("unexpected {}", type(error).__name__)
    return f"unexpected {type(error).__name__}, see signet-sync logs"


def _may_pass(error: OSError | DatabaseError) -> bool:
    """Returns whether waiting may help: disk space or a lock may become free; a newer schema stays."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError):
        return cause.errno in _MAY_PASS
    return isinstance(cause, (apsw.BusyError, apsw.FullError, apsw.IOError))


# The agent's exit code for that: `EX_TEMPFAIL` of sysexits.h. systemd restarts on it (`RestartForceExitStatus=`),
# launchd on every code but 0; both wait long enough for an installer to finish.
EXIT_CODE = 75
# Commands and what only they need: each is a process of its own, which is of one version anyway.
_OF_COMMANDS = frozenset({"__main__", "admin", "cli", "embeddings", "fleet", "llm", "mcp_server", "migration", "web"})


def is_restarted(environ: Mapping[str, str]) -> bool:
    """Returns whether this process belongs to a service of systemd or launchd, whose units restart the agent."""
    return "NOTIFY_SOCKET" in environ or environ.get("XPC_SERVICE_NAME", "").startswith("dev.signet-sync.agent")


def load_all() -> None:
    """Imports every module that a pass may need: those on the disk may be of another version when it does."""
    with suppress(ImportError):  # one is just being installed, or a library is missing
        for top in pkgutil.iter_modules(signet_sync.__path__, "signet_sync."):
            if top.name.partition(".")[2] not in _OF_COMMANDS:
                package = import_module(top.name)
                for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{top.name}."):
                    import_module(module.name)


def identify_installation() -> Installation | None:
    """Identifies what is installed, by a file that an installer replaces; None while it is being removed."""
    try:
        status = os.stat(signet_sync.__file__)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
