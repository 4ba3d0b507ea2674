"""The background agent: one loop, one connection; hints first, sweeps when it is quiet, full passes on a timer."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

import apsw
from loguru import logger

from signet_sync import __version__, config, log, state
from signet_sync.agent import projection, reconcile, signet, sweeps
from signet_sync.agent.presence import Presence
from signet_sync.agent.projection import now_us
from signet_sync.agent.reconcile import Outcome, Request
from signet_sync.agent.workspace import Workspace, establish, open_workspace
from signet_sync.config import Settings
from signet_sync.contracts.places import MEMORY, TOMBSTONES, agent_folder, head_page
from signet_sync.contracts.timestamps import SECOND, iso
from signet_sync.errors import ConfigError, DatabaseCorrupt, DatabaseError, Interrupted, SignetSyncError
from signet_sync.host.notify import Notifier
from signet_sync.index import artifacts, overview
from signet_sync.index.database import set_aside, translate
from signet_sync.state import StateFolder
from signet_sync.watcher import Hint, Watcher

# Above this many hinted paths one look at everything is cheaper.
BIG_BATCH = 512
# No event tells that the root was renamed, that the machine slept, that a Signet daemon came: looked for this often.
BEAT = 15.0
CHECKPOINT_AFTER = 2.0
CLOCK_JUMP = 30.0
ROOT_POLL = 2.0
# SIGTERM must end the agent within two seconds, whoever holds a lock.
LOCK_PATIENCE = 0.5
BUSY_MS = 800
LONGEST_BACKOFF = 60.0
# watchdog may hold an event back for half a second, to pair the two halves of a rename.
LATE_EVENTS = 0.6
FAR = 7 * 86_400.0

_MAY_PASS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EFBIG}
)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Options:
    """What `run` was told on the command line; `flags` are settings by field name."""

    root: str
    database: str | None
    flags: Mapping[str, object]
    verbose: bool = False


class Daemon:
    """Runs until SIGTERM or SIGINT; SIGHUP reloads settings and makes a full pass.

    Everything happens in the thread that calls `run`; `stop` may be called from any.
    """

    def __init__(self, options: Options, notifier: Notifier | None = None) -> None:
        self.options = options
        self.notifier = notifier or Notifier()
        self.presence = Presence(self.notifier, self._facts)
        self.settings: Settings
        self.workspace: Workspace | None = None
        self.watcher: Watcher | None = None
        self._folder: StateFolder | None = None
        # A queue and plain flags, no Event: a signal handler may interrupt the very lock that it would have to take.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._reload = False
        self._bad_settings = ""
        self._forget()

    def _forget(self) -> None:
        """Nothing is known yet of the workspace: all of it is to be looked at."""
        self.last_full: str | None = None
        self._root: tuple[int, int] | None = None
        self._elsewhere = False
        self._everything = True
        self._dirty: set[str] = set()
        self._poll = False
        self._polling = sweeps.Poll()
        self._again: dict[str, float] = {}
        self._due: dict[str, float] = {"full": 0.0, "beat": time.monotonic() + BEAT}
        self._swept = 0.0
        self._clocks = time.time(), time.monotonic()
        self._agents: tuple[str, ...] = ()
        self._failures = 0
        self._deferrals = 0
        self._database_lost = False
        self._halted = False
        self._held = ""
        self._trouble = ""

    # ── the whole life ──

    def run(self) -> int:
        """The whole life of the agent; gives the exit code.

        Raises `AnotherAgent`, `ConfigError`, and `DatabaseError` or `WorkspaceError` where only a person can help.
        """
        self._catch_signals()
        self._configure()
        self._log_to(None)
        while not self._stopping:
            with ExitStack() as stack:
                self._stay(stack)
        return 0

    def stop(self) -> None:
        """Ends the loop from another thread or a signal handler."""
        self._stopping = True
        self._ring()

    def _ring(self) -> None:
        self._bell.put(None)
        if self.watcher is not None:
            self.watcher.wake()

    def _catch_signals(self) -> None:
        def end(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        def reload(_number: int, _frame: FrameType | None) -> None:
            self._reload = True
            self._ring()

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGINT, end)
            signal.signal(signal.SIGHUP, reload)

    def _configure(self) -> list[str]:
        """Reads the settings; gives what was wrong with the workspace's own file. Raises `ConfigError`."""
        self.settings, warnings = config.load(self.options.root, flags=self.options.flags)
        self._bad_settings = ""
        return warnings

    def _log_to(self, folder: str | None) -> None:
        settings = self.settings
        level = "DEBUG" if self.options.verbose else settings.log_level
        try:
            log.set_up(level, folder=folder, rotation_bytes=settings.log_rotation_bytes, keep=settings.log_keep)
        except OSError as error:
            log.set_up(level, folder=None, rotation_bytes=settings.log_rotation_bytes, keep=settings.log_keep)
            logger.warning("no log file: {}", error)

    def _stay(self, stack: ExitStack) -> None:
        """One stay at one workspace: until we are stopped, or another workspace stands at the root."""
        self._forget()
        if not os.path.isdir(self.options.root):
            self._wait_for_root()
        if self._stopping:
            return
        warnings = self._configure()
        folder = self._patiently(lambda: establish(self.options.root))
        if folder is None:
            return
        stack.enter_context(state.run_lock(folder))
        self._folder = folder
        stack.callback(self._leave)
        self._log_to(folder.logs)
        for warning in warnings:
            logger.warning("{}", warning)
        self.presence.settle(folder)
        self.presence.say("starting")
        self.workspace = self._patiently(
            lambda: open_workspace(self.options.root, self.settings, database=self.options.database)
        )
        if self.workspace is None:
            return
        self._root = _identity(self.options.root)
        self._tell_events()
        self._tame_database()
        self._watch()
        self.presence.write()
        self.notifier.ready()
        logger.info("signet-sync {} on {}", __version__, self.options.root)
        self._loop()

    def _wait_for_root(self) -> None:
        """Waits for a root that is not mounted yet; no folder is made in its place."""
        folder = state.locate(self.options.root)
        with state.run_lock(folder):
            self._log_to(folder.logs)
            self.presence.settle(folder)
            self.notifier.ready()
            self._until_root()
            self.presence.end()

    def _until_root(self) -> None:
        logger.warning("there is no workspace at {}; waiting for it", self.options.root)
        self.presence.say("waiting: workspace")
        while not self._stopping and not os.path.isdir(self.options.root):
            self._rest(ROOT_POLL)

    def _patiently(self, step: Callable[[], _Result]) -> _Result | None:
        """Tries until it works, or None when stopped; trouble that does not pass by itself is raised."""
        self._failures = 0
        while not self._stopping:
            try:
                return step()
            except (OSError, DatabaseError) as error:
                if not _may_pass(error):
                    logger.error("{}", error)
                    raise
                self._degrade(error)
                self.notifier.ready()
                self._back_off()
            finally:
                self._trouble = ""
        return None

    def _leave(self) -> None:
        """Ends a stay: the watch, the database with its log written back, the heartbeat."""
        if self._stopping:
            self.notifier.stopping()
        self.presence.say("stopping")
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher = None
        if self.workspace is not None:
            with suppress(SignetSyncError, OSError, apsw.Error):
                self.workspace.close()
            self.workspace = None
        logger.info("stopped")
        self.presence.end()

    # ── what others see ──

    def _facts(self) -> dict[str, object]:
        return {
            "version": __version__,
            "workspace": self.options.root,
            "database": self.workspace.database.path if self.workspace is not None else None,
            "last_full_pass": self.last_full,
            "interval": self.settings.interval,
            "watch": self.watcher.kind if self.watcher is not None else None,
            "trouble": self._bad_settings or self._held or None,
        }

    def _state(self) -> str:
        """The named state between two passes; the gravest first."""
        if self._halted:
            return "halted: cliff"
        if self._trouble:
            return f"degraded: {self._trouble}"
        if self._held:
            return "held: signet daemon"
        return "polling" if self.watcher is None or self.watcher.kind in (None, "polling") else "watching"

    def _tell_events(self) -> None:
        assert self.workspace is not None
        for event in self.workspace.events:
            logger.warning("{}", event)
        self.workspace.events.clear()

    # ── the loop ──

    def _loop(self) -> None:
        while not (self._stopping or self._elsewhere):
            try:
                self._turn()
            except Interrupted:
                continue
            except Exception as error:  # noqa: BLE001 - one bad pass must not end an agent that runs for months
                self._failed(error)

    def _turn(self) -> None:
        """Waits for something to do, and does it."""
        assert self.watcher is not None
        hint: Hint | None = None
        if not self._everything:
            hint = self.watcher.gather(self.settings.debounce, self.settings.longest_wait, self._wait())
        if self._stopping:
            return
        self.notifier.watchdog()
        if self._reload:
            self._reload_settings()
        if not self._at_home():
            return
        if hint is not None:
            self._hear(hint)
        if self.watcher.check() or self._clocks_jumped():
            self._everything = True
        if self._is_due("beat"):
            self._look_around()
        self._work()

    def _wait(self) -> float:
        now = time.monotonic()
        due = min(*self._due.values(), *self._again.values())
        interval = self.notifier.watchdog_interval()
        return max(min(due - now, FAR if interval is None else interval), 0.0)

    def _is_due(self, name: str) -> bool:
        return self._due.get(name, math.inf) <= time.monotonic()

    def _hear(self, hint: Hint) -> None:
        assert self.watcher is not None
        self._dirty |= hint.paths
        if hint.everything:
            # A tick of polling says nothing; only what differs is worth a pass.
            if self.watcher.kind == "polling" and not hint.paths:
                self._poll = True
            else:
                self._everything = True

    def _clocks_jumped(self) -> bool:
        """Whether the machine slept or its clock was set: the one clock stood still, the other one did not."""
        wall, monotonic = self._clocks
        self._clocks = time.time(), time.monotonic()
        return abs((self._clocks[0] - wall) - (self._clocks[1] - monotonic)) > CLOCK_JUMP

    def _at_home(self) -> bool:
        """Whether our workspace stands at the root. Waits for one that is gone; leaves when another took its place."""
        identity = _identity(self.options.root)
        if identity is None:
            self._until_root()
            identity = _identity(self.options.root)
            if identity is None:
                return False
            logger.info("the workspace is back")
            self._everything = True
        if identity != self._root:
            assert self._folder is not None
            self._root = identity
            self._everything = True
            if state.locate(self.options.root).path != self._folder.path:
                logger.warning("another workspace stands at {} now", self.options.root)
                self._elsewhere = True
        return not (self._stopping or self._elsewhere)

    def _look_around(self) -> None:
        """What no event tells of: a lost database, a Signet daemon that came or went; and our own sign of life."""
        assert self.workspace is not None
        self._due["beat"] = time.monotonic() + BEAT
        self.presence.beat()
        self._keep_database()
        sweeps.probe(self.workspace.database)
        if bool(signet.holds(self.workspace, self._agents)) != bool(self._held):
            self._everything = True

    def _work(self) -> None:
        """What is due now: hinted paths first; sweeps and the like when they are answered."""
        assert self.workspace is not None
        self._keep_database()
        now = time.monotonic()
        hinted, self._dirty = sweeps.worth(self.workspace, frozenset(self._dirty)), set()
        confirmed = frozenset(path for path, due in self._again.items() if due <= now) - hinted
        for path in confirmed:
            del self._again[path]
        if self._everything or self._is_due("full") or len(hinted) > BIG_BATCH:
            self._full(None if self._everything or self._deferrals else hinted | confirmed, confirmed)
            return
        if self._poll:
            self._poll = False
            moved = self._polling.moved(self.workspace)
            if moved is None:
                self._everything = True
                return
            hinted |= moved - self._again.keys()
        if hinted or confirmed:
            self._pass(hinted | confirmed, confirmed)
            # When it is quiet, but no sooner than some time after the last one.
            self._due["sweep"] = max(
                time.monotonic() + self.settings.debounce, self._swept + self.settings.sweep_interval
            )
        for name, act in (("sweep", self._sweep), ("pages", self._turn_pages), ("checkpoint", self._checkpoint)):
            if self._is_due(name):
                del self._due[name]
                act()

    # ── passes ──

    def _full(self, expected: frozenset[str] | None, confirmed: frozenset[str]) -> None:
        """A pass over everything; `expected` are the paths that may have moved, None: any of them."""
        assert self.workspace is not None
        # Asked for before the pass, so that a change during it is not missed.
        self._everything = self._poll = False
        jitter = 1.0 + self.settings.jitter * random.uniform(-1.0, 1.0)  # noqa: S311 - spreads load, guards nothing
        self._due["full"] = time.monotonic() + self.settings.interval * jitter
        if self.presence.state == "starting":
            self.presence.say("reconciling")
        sweeps.probe(self.workspace.database, deeper=True)
        reread = frozenset(self._rolling())
        request = Request(
            now_us=now_us(),
            settle_seconds=self.settings.settle_seconds,
            confirmed=confirmed,
            reread=reread,
            progress=self._progress,
            should_stop=lambda: self._stopping,
            patience=LOCK_PATIENCE,
        )
        outcome = self._run(request)
        self._due.pop("sweep", None)
        self._swept = time.monotonic()
        if outcome.cliff is None:
            self.last_full = iso(request.now_us)
        self.presence.write()
        if outcome.read > BIG_BATCH:
            _give_memory_back()
        if expected is not None:
            self._doubt((outcome.change.paths | outcome.unsettled) - expected - reread)

    def _doubt(self, silent: set[str]) -> None:
        """A full pass found what no event had told of: the watch may be deaf and is set anew."""
        assert self.watcher is not None
        if not silent or self.watcher.kind in (None, "polling"):
            return
        late = self.watcher.gather(LATE_EVENTS, LATE_EVENTS, LATE_EVENTS)
        if late is not None:
            self._hear(late)
            silent = set() if late.everything else silent - late.paths
        if silent and not self._stopping:
            logger.warning("a full pass found changes that no event announced; the watch is set anew")
            self.watcher.stop()
            self.watcher.start()
            self._everything = True

    def _progress(self, _done: int, _all: int) -> None:
        self.presence.say("reconciling")
        self.presence.beat()
        self.notifier.watchdog()

    def _rolling(self) -> list[str]:
        """Paths whose content is due to be read again: a small share of the vault at every full pass."""
        assert self.workspace is not None
        if not self.settings.reread_days:
            return []
        period = self.settings.reread_days * 86_400
        database = self.workspace.database
        share = math.ceil(2 * overview.indexed_count(database) * self.settings.interval / period) + 10
        return artifacts.due_for_reading(database, now_us() - int(period * SECOND), share)

    def _pass(self, paths: frozenset[str], confirmed: frozenset[str] = frozenset()) -> None:
        self._run(
            Request(
                now_us=now_us(),
                paths=paths,
                settle_seconds=self.settings.settle_seconds,
                confirmed=confirmed,
                should_stop=lambda: self._stopping,
                patience=LOCK_PATIENCE,
            )
        )

    def _run(self, request: Request) -> Outcome:
        assert self.workspace is not None
        outcome = reconcile.run_pass(self.workspace, request)
        self._failures = 0
        now = time.monotonic()
        for path in outcome.unsettled:
            self._again[path] = now + max(self.settings.settle_seconds, 0.1)
        if outcome.change.paths or outcome.change.sessions:
            # Not put off by the next change: without an end to changes the log would grow without one.
            self._due.setdefault("checkpoint", now + CHECKPOINT_AFTER)
            logger.debug("{} paths, {} sessions moved", len(outcome.change.paths), len(outcome.change.sessions))
        self._judge(outcome)
        self._plan_pages()
        self._follow_agents()
        for trouble in outcome.trouble:
            logger.warning("{}", trouble)
        self._tell_events()
        self.presence.say(self._state())
        return outcome

    def _judge(self, outcome: Outcome) -> None:
        """What a pass means for our state; one over a few paths cannot take back what one over all has found."""
        assert self.workspace is not None
        if outcome.cliff is not None:
            self._halted = True
            logger.error("halted: {}; nothing was dropped", outcome.cliff.message)
        elif outcome.full:
            self._halted = False
            reconcile.clear_halt(self.workspace)
        elif self._halted:
            self._everything = True
        if outcome.held != self._held and (outcome.full or outcome.held):
            self._held = outcome.held
            logger.info("{}", f"pages are held back: {self._held}" if self._held else "pages are written again")
        if outcome.deferred:
            self._deferrals += 1
            self._due["full"] = min(self._due["full"], time.monotonic() + _backoff(self._deferrals))
            # Once is nothing: somebody else was just writing the page.
            self._trouble = _short(outcome.trouble[-1]) if self._deferrals > 1 and outcome.trouble else ""
        elif outcome.full:
            self._deferrals = 0
            self._trouble = ""

    def _plan_pages(self) -> None:
        """When some page changes by itself: a session enters or leaves the window."""
        assert self.workspace is not None
        self._due.pop("pages", None)
        instant = projection.next_instant(self.workspace)
        if instant is None or self._halted or self._held or self._deferrals:
            return  # a page that cannot be written now is the matter of full passes
        wait = (instant - now_us()) / SECOND
        if wait < FAR:
            self._due["pages"] = time.monotonic() + max(wait, 1.0)

    def _turn_pages(self) -> None:
        self._pass(frozenset(head_page(agent) for agent in self._agents))

    def _follow_agents(self) -> None:
        assert self.workspace is not None and self.watcher is not None
        agents = tuple(overview.agents(self.workspace.database))
        if agents != self._agents:
            self._agents = agents
            if self.watcher.check():
                self._everything = True

    def _sweep(self) -> None:
        """Names only: finds what no event announced."""
        assert self.workspace is not None
        self._swept = time.monotonic()
        found = sweeps.names(self.workspace)
        if found is None:
            self._everything = True
        elif found - self._again.keys():
            self._pass(found - self._again.keys())

    def _checkpoint(self) -> None:
        assert self.workspace is not None
        self.workspace.database.checkpoint()

    # ── when something is wrong ──

    def _failed(self, error: Exception) -> None:
        """A pass failed as a whole: said once, tried again over everything with growing patience, nothing dropped."""
        assert self.workspace is not None
        self._everything = True
        if isinstance(error, apsw.Error):
            error = translate(error, self.workspace.database.path)
        if isinstance(error, SignetSyncError) and error.code == "busy":
            return  # the lock was waited for; nothing is wrong
        if _identity(self.options.root) is None:
            return  # whatever went wrong, it went wrong because of that
        if isinstance(error, DatabaseError):
            self._database_lost = True
        if isinstance(error, DatabaseCorrupt):
            self._put_aside(error)
        self._degrade(error)
        self._back_off()

    def _degrade(self, error: Exception) -> None:
        if isinstance(error, SignetSyncError):
            logger.error("{} [{}] ({})", error.message, error.path or "", error.hint)
            self._trouble = _short(error.message)
        elif isinstance(error, OSError):
            logger.error("{}", error)
            self._trouble = _short(error.strerror or str(error))
        else:
            logger.opt(exception=error).error("unexpected {}", type(error).__name__)
            self._trouble = f"unexpected {type(error).__name__}, see signet-sync logs"
        self.presence.say(self._state())

    def _back_off(self) -> None:
        self._failures += 1
        self._rest(_backoff(self._failures))

    def _rest(self, seconds: float) -> None:
        """Waits, woken by signals; the service manager hears that the loop lives."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._bell.get(timeout=min(left, self.notifier.watchdog_interval() or BEAT))
                return
            self.notifier.watchdog()
            self.presence.beat()

    def _keep_database(self) -> None:
        """Opens the database anew when its file is no longer the one that we write."""
        assert self.workspace is not None
        if self.workspace.database.replaced():
            logger.warning("the database or its log was deleted or exchanged; it is opened anew")
        elif not self._database_lost:
            return
        self._database_lost = True
        self._close_database()
        self.workspace.reopen()
        self._tame_database()
        self._tell_events()
        self._database_lost = False
        self._everything = True

    def _close_database(self) -> None:
        assert self.workspace is not None
        with suppress(apsw.Error):
            self.workspace.database.connection.close()

    def _tame_database(self) -> None:
        assert self.workspace is not None
        self.workspace.database.connection.set_busy_timeout(BUSY_MS)

    def _put_aside(self, error: DatabaseCorrupt) -> None:
        assert self.workspace is not None
        path = self.workspace.database.path
        self._close_database()
        try:
            moved = set_aside(path)
        except OSError as trouble:
            logger.error("the damaged database cannot be moved aside: {}", trouble)
        else:
            logger.warning("{}; moved aside as {}", error.message, os.path.basename(moved))

    # ── settings and watch ──

    def _reload_settings(self) -> None:
        self._reload = False
        self.notifier.reloading()
        before = self.settings
        try:
            warnings = self._configure()
        except ConfigError as error:
            self._bad_settings = f"{error.message} [{error.path or ''}]; the old settings stay"
            logger.error("{} ({})", self._bad_settings, error.hint)
        else:
            assert self.workspace is not None and self._folder is not None
            self.workspace.settings = self.settings
            if (before.watch_mode, before.poll_interval) != (self.settings.watch_mode, self.settings.poll_interval):
                self._watch()
            self._log_to(self._folder.logs)
            for warning in warnings:
                logger.warning("{}", warning)
            logger.info("settings reloaded")
        self._everything = True
        self.presence.write()
        self.notifier.ready()

    def _watch(self) -> None:
        if self.watcher is not None:
            self.watcher.stop()
        self.watcher = Watcher(
            self.options.root,
            self._folders,
            mode=self.settings.watch_mode,
            poll_interval=self.settings.poll_interval,
        )
        assert self.workspace is not None
        self._agents = tuple(overview.agents(self.workspace.database))
        self.watcher.start()

    def _folders(self) -> list[str]:
        pages = [agent_folder(agent).rstrip("/") for agent in self._agents]
        return ["", MEMORY, TOMBSTONES, *(page for page in pages if page)]


def _identity(root: str) -> tuple[int, int] | None:
    """What tells one root folder from another; None where there is none."""
    try:
        status = os.stat(root)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if os.path.isdir(root) else None


def _backoff(failures: int) -> float:
    return float(min(2.0 ** (failures - 1), LONGEST_BACKOFF))


def _short(message: str) -> str:
    return message if len(message) <= 160 else message[:159] + "…"


def _may_pass(error: OSError | DatabaseError) -> bool:
    """Whether waiting may help: space may come back, a lock may be let go; a newer schema stays what it is."""
    if isinstance(error, OSError):
        return error.errno in _MAY_PASS
    return isinstance(error.__cause__, (apsw.BusyError, apsw.FullError, apsw.IOError)) or (
        isinstance(error.__cause__, OSError) and error.__cause__.errno in _MAY_PASS
    )


def _give_memory_back() -> None:
    """After a cold index much freed memory is kept by the C library; an agent that idles for days gives it back."""
    if sys.platform != "linux":
        return
    trim: Callable[[int], int] | None = None
    with suppress(OSError, AttributeError):
        trim = ctypes.CDLL(None).malloc_trim
    if trim is not None:
        trim(0)
