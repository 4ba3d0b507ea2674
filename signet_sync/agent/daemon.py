"""The background agent: one loop, one connection; hints first, sweeps when it is quiet, full passes on a timer."""

from __future__ import annotations

import ctypes
import math
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FrameType

from loguru import logger

from signet_sync import __version__, config, log, state
from signet_sync.agent import projection, reconcile
from signet_sync.agent.projection import now_us
from signet_sync.agent.reconcile import Outcome, Request
from signet_sync.agent.workspace import Workspace, establish, open_workspace
from signet_sync.config import Settings
from signet_sync.contracts.places import MEMORY, TOMBSTONES, agent_folder, page_agent
from signet_sync.contracts.timestamps import SECOND, iso
from signet_sync.errors import ConfigError, DatabaseCorrupt, DatabaseError, Interrupted, SignetSyncError, WorkspaceError
from signet_sync.host.notify import Notifier
from signet_sync.index import artifacts, overview
from signet_sync.vault import scan
from signet_sync.watcher import Hint, Watcher

BIG_BATCH = 512
CHECKPOINT_AFTER = 2.0
SLEEP_GAP = 30.0
ROOT_POLL = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    """What `run` was told on the command line; `flags` are settings by field name."""

    root: str
    database: str | None
    flags: Mapping[str, object]
    verbose: bool = False


class Daemon:
    """Runs until SIGTERM or SIGINT; SIGHUP reloads settings and makes a full pass."""

    def __init__(self, options: Options, notifier: Notifier | None = None) -> None:
        self.options = options
        self.notifier = notifier or Notifier()
        self.settings: Settings
        self.workspace: Workspace | None = None
        self.watcher: Watcher | None = None
        self.state = "starting"
        self.since = iso(now_us())
        self.last_full: str | None = None
        self._stop = threading.Event()
        self._reload = False
        self._everything = True
        self._dirty: set[str] = set()
        self._again: dict[str, float] = {}
        self._next_full = 0.0
        self._sweep_due: float | None = None
        self._last_sweep = 0.0
        self._checkpoint_due: float | None = None
        self._project_due: float | None = None
        self._page_due: float | None = None
        self._failures = 0
        self._folder: state.StateFolder | None = None
        self._known_agents: tuple[str, ...] = ()

    def run(self) -> int:
        """The whole life of the agent; gives the exit code. Raises `AnotherAgent`, `ConfigError`."""
        self.settings, warnings = config.load(self.options.root, flags=self.options.flags)
        self._signals()
        with ExitStack() as stack:
            self._folder = state.locate(self.options.root)
            level = "DEBUG" if self.options.verbose else self.settings.log_level
            log.set_up(
                level,
                folder=self._folder.logs,
                rotation_bytes=self.settings.log_rotation_bytes,
                keep=self.settings.log_keep,
            )
            for warning in warnings:
                logger.warning("{}", warning)
            if not self._wait_for_root():
                return 0
            self._folder = establish(self.options.root)
            stack.enter_context(state.run_lock(self._folder))
            log.set_up(
                level,
                folder=self._folder.logs,
                rotation_bytes=self.settings.log_rotation_bytes,
                keep=self.settings.log_keep,
            )
            self._say("starting")
            stack.callback(self._end)
            try:
                self.workspace = open_workspace(self.options.root, self.settings, database=self.options.database)
            except DatabaseError as error:
                logger.error("{}: {} ({})", error.path, error.message, error.hint)
                raise
            self._tell_events()
            self.watcher = Watcher(
                self.options.root,
                self._folders,
                mode=self.settings.watch_mode,
                poll_interval=self.settings.poll_interval,
            )
            self.watcher.start()
            self.notifier.ready()
            logger.info("signet-sync {} on {}", __version__, self.options.root)
            self._loop()
        return 0

    def _signals(self) -> None:
        def end(_number: int, _frame: FrameType | None) -> None:
            self._stop.set()
            if self.watcher is not None:
                self.watcher.wake()

        def reload(_number: int, _frame: FrameType | None) -> None:
            self._reload = True
            if self.watcher is not None:
                self.watcher.wake()

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGINT, end)
            signal.signal(signal.SIGHUP, reload)

    def stop(self) -> None:
        """Ends the loop from another thread."""
        self._stop.set()
        if self.watcher is not None:
            self.watcher.wake()

    def _wait_for_root(self) -> bool:
        """Waits for a root that is not mounted yet; no folder is made in its place. False where we were stopped."""
        while not os.path.isdir(self.options.root):
            self._say("waiting: workspace")
            self.notifier.ready()
            if self._stop.wait(ROOT_POLL):
                return False
        return not self._stop.is_set()

    def _folders(self) -> list[str]:
        pages = [agent_folder(agent).rstrip("/") for agent in self._known_agents]
        return ["", MEMORY, TOMBSTONES, *(page for page in pages if page)]

    def _say(self, state_name: str) -> None:
        """Moves to a named state: heartbeat for `status`, a line for the service manager."""
        if state_name == self.state and self._folder is not None and os.path.exists(self._folder.heartbeat):
            return
        if state_name != self.state:
            self.since = iso(now_us())
            self.state = state_name
        self._beat()
        self.notifier.status(state_name)

    def _beat(self) -> None:
        if self._folder is None:
            return
        with suppress(OSError):
            state.beat(
                self._folder,
                {
                    "state": self.state,
                    "since": self.since,
                    "version": __version__,
                    "workspace": self.options.root,
                    "database": self.workspace.database.path if self.workspace is not None else None,
                    "last_full_pass": self.last_full,
                    "interval": self.settings.interval,
                    "watch": self.watcher.kind if self.watcher is not None else None,
                },
            )

    def _resting_state(self) -> str:
        return "polling" if self.watcher is not None and self.watcher.kind == "polling" else "watching"

    def _loop(self) -> None:
        assert self.watcher is not None
        wall, monotonic = time.time(), time.monotonic()
        while not self._stop.is_set():
            hint: Hint | None = None
            if not self._everything:
                hint = self.watcher.gather(self.settings.debounce, self.settings.longest_wait, self._timeout())
            if self._stop.is_set():
                return
            self.notifier.watchdog()
            wall_now, monotonic_now = time.time(), time.monotonic()
            slept = abs((wall_now - wall) - (monotonic_now - monotonic)) > SLEEP_GAP
            wall, monotonic = wall_now, monotonic_now
            if self._reload:
                self._reload_settings()
            if slept or (hint is not None and hint.everything):
                self._everything = True
            if hint is not None:
                self._dirty |= hint.paths
            if self.watcher.check():
                self._everything = True
            self._work()

    def _timeout(self) -> float | None:
        now = time.monotonic()
        due = [self._next_full]
        due += [t for t in (self._sweep_due, self._checkpoint_due, self._project_due, self._page_due) if t is not None]
        if self._again:
            due.append(min(self._again.values()))
        interval = self.notifier.watchdog_interval()
        if interval is not None:
            due.append(now + interval)
        return max(min(due) - now, 0.0)

    def _work(self) -> None:
        """What is due now: hinted paths first, then what was put off, sweeps, the full pass, the checkpoint."""
        now = time.monotonic()
        ours = frozenset(path for path in self._dirty if self._concerns(path))
        timer = now >= self._next_full
        try:
            if self._everything or timer or len(ours) > BIG_BATCH:
                announced = self._everything or bool(ours)
                confirmed = frozenset(self._again)
                self._dirty.clear()
                self._again.clear()
                self._everything = False
                self._full(confirmed, unannounced_matters=not announced)
                return
            if ours:
                self._dirty.clear()
                self._pass(ours, frozenset())
                self._sweep_due = max(now, self._last_sweep + self.settings.sweep_interval)
                return
            self._dirty.clear()
            again = frozenset(path for path, due in self._again.items() if due <= now)
            if again:
                for path in again:
                    del self._again[path]
                self._pass(again, again)
            elif self._sweep_due is not None and now >= self._sweep_due:
                self._sweep()
            elif self._due(self._project_due, now) or self._due(self._page_due, now):
                self._pass(frozenset(), frozenset(), project_all=True)
            elif self._checkpoint_due is not None and now >= self._checkpoint_due:
                self._checkpoint_due = None
                assert self.workspace is not None
                self.workspace.database.checkpoint()
        except Interrupted:
            return
        except DatabaseCorrupt as error:
            logger.error("{} ({})", error.message, error.hint)
            self._recover_database()
        except (SignetSyncError, OSError) as error:
            self._failed(error)

    @staticmethod
    def _due(moment: float | None, now: float) -> bool:
        return moment is not None and now >= moment

    @staticmethod
    def _concerns(path: str) -> bool:
        return path.rpartition("/")[0] in (MEMORY, TOMBSTONES) or page_agent(path) is not None or path == MEMORY

    def _full(self, confirmed: frozenset[str], *, unannounced_matters: bool) -> None:
        assert self.workspace is not None and self.watcher is not None
        database = self.workspace.database
        if database.replaced():
            logger.warning("the database was deleted or exchanged; it is made anew")
            self.workspace.reopen()
            database = self.workspace.database
        # Asked for before the pass, so that a change during it is not missed.
        jitter = 1.0 + self.settings.jitter * random.uniform(-1.0, 1.0)  # noqa: S311 - spreads load, guards nothing
        self._next_full = time.monotonic() + self.settings.interval * jitter
        self._say("reconciling")
        outcome = self._run(
            Request(
                now_us=now_us(),
                settle_seconds=self.settings.settle_seconds,
                confirmed=confirmed,
                reread=frozenset(self._rolling()),
                progress=lambda _done, _all: self.notifier.watchdog(),
                should_stop=self._stop.is_set,
            )
        )
        self._last_sweep = time.monotonic()
        self._sweep_due = None
        if outcome.cliff is None:
            self.last_full = iso(now_us())
        if unannounced_matters and outcome.change.paths and self.watcher.kind not in (None, "polling"):
            logger.warning("a full pass found {} changes that no event announced", len(outcome.change.paths))
            self.watcher.stop()
            self.watcher.start()
        if outcome.read > BIG_BATCH:
            _give_memory_back()
        self._beat()

    def _rolling(self) -> list[str]:
        """Paths whose content is due to be read again: a small share of the vault at every full pass."""
        assert self.workspace is not None
        if not self.settings.reread_days:
            return []
        period = self.settings.reread_days * 86_400
        database = self.workspace.database
        count = overview.indexed_count(database)
        share = math.ceil(2 * count * self.settings.interval / period) + 10
        return artifacts.due_for_reading(database, now_us() - int(period * SECOND), share)

    def _pass(self, paths: frozenset[str], confirmed: frozenset[str], *, project_all: bool = False) -> None:
        request = Request(
            now_us=now_us(),
            paths=paths,
            settle_seconds=self.settings.settle_seconds,
            confirmed=confirmed,
            should_stop=self._stop.is_set,
        )
        if project_all:
            pages = frozenset(agent_folder(agent) + "MEMORY.md" for agent in self._known_agents)
            request = Request(now_us=now_us(), paths=pages, should_stop=self._stop.is_set)
        self._run(request)

    def _run(self, request: Request) -> Outcome:
        assert self.workspace is not None
        outcome = reconcile.run_pass(self.workspace, request)
        self._failures = 0
        now = time.monotonic()
        for path in outcome.unsettled:
            self._again[path] = now + max(self.settings.settle_seconds, 0.1)
        if outcome.change.paths or outcome.change.sessions:
            self._checkpoint_due = now + CHECKPOINT_AFTER
            logger.debug("{} paths, {} sessions moved", len(outcome.change.paths), len(outcome.change.sessions))
        self._project_due = now + 1.0 if outcome.deferred else None
        self._plan_pages()
        self._agents()
        for trouble in outcome.trouble:
            logger.warning("{}", trouble)
        self._tell_events()
        if outcome.cliff is not None:
            logger.error("halted: {}; nothing was dropped", outcome.cliff.message)
            self._say("halted: cliff")
        elif self.state == "halted: cliff" and not outcome.full:
            self._everything = True
        elif outcome.held:
            self._say("held: signet daemon")
        else:
            reconcile.clear_halt(self.workspace)
            self._say(self._resting_state())
        return outcome

    def _plan_pages(self) -> None:
        """When some page changes by itself: a session enters or leaves the window."""
        assert self.workspace is not None
        instant = projection.next_instant(self.workspace)
        if instant is None:
            self._page_due = None
            return
        wait = (instant - now_us()) / SECOND
        self._page_due = time.monotonic() + max(wait, 1.0) if wait < 7 * 86_400 else None

    def _agents(self) -> None:
        assert self.workspace is not None and self.watcher is not None
        agents = tuple(overview.agents(self.workspace.database))
        if agents != self._known_agents:
            self._known_agents = agents
            self.watcher.check()

    def _sweep(self) -> None:
        """Names only: finds what no event announced, for a tenth of the price of a full look."""
        assert self.workspace is not None
        self._sweep_due = None
        self._last_sweep = time.monotonic()
        names = scan.names(self.options.root)
        if names is None:
            self._everything = True
            return
        known = {row[0] for row in self.workspace.database.execute("select path from files where code <> 'vanished'")}
        lost_or_new = frozenset(path for path in names ^ known if path != TOMBSTONES)
        fresh = frozenset(path for path in lost_or_new if path in known or path.rpartition("/")[2].endswith(".md"))
        if fresh:
            self._pass(fresh - frozenset(self._again), frozenset())

    def _recover_database(self) -> None:
        assert self.workspace is not None
        from signet_sync.index.database import set_aside

        path = self.workspace.database.path
        with suppress(DatabaseError):
            self.workspace.database.connection.close()
        if path != ":memory:" and os.path.exists(path):
            logger.warning("the damaged database was moved aside as {}", os.path.basename(set_aside(path)))
        self.workspace.reopen()
        self._everything = True

    def _failed(self, error: SignetSyncError | OSError) -> None:
        """A pass failed as a whole: said once, tried again with growing patience, nothing dropped."""
        self._failures += 1
        wait = min(2.0**self._failures, 300.0)
        message = error.message if isinstance(error, SignetSyncError) else str(error)
        if isinstance(error, WorkspaceError) and not os.path.isdir(self.options.root):
            logger.warning("the workspace is gone; waiting for it")
            self._say("waiting: workspace")
            wait = ROOT_POLL
        else:
            logger.error("{}", message)
            self._say(f"degraded: {message[:120]}")
        self._next_full = time.monotonic() + wait
        self._sweep_due = self._project_due = self._page_due = self._checkpoint_due = None

    def _reload_settings(self) -> None:
        self._reload = False
        self.notifier.reloading()
        try:
            settings, warnings = config.load(self.options.root, flags=self.options.flags)
        except ConfigError as error:
            logger.error("{}: {} ({}); the old settings stay", error.path, error.message, error.hint)
        else:
            for warning in warnings:
                logger.warning("{}", warning)
            watch_moved = (settings.watch_mode, settings.poll_interval) != (
                self.settings.watch_mode,
                self.settings.poll_interval,
            )
            self.settings = settings
            assert self.workspace is not None and self.watcher is not None and self._folder is not None
            self.workspace.settings = settings
            if watch_moved:
                self.watcher.stop()
                self.watcher = Watcher(
                    self.options.root, self._folders, mode=settings.watch_mode, poll_interval=settings.poll_interval
                )
                self.watcher.start()
            log.set_up(
                "DEBUG" if self.options.verbose else settings.log_level,
                folder=self._folder.logs,
                rotation_bytes=settings.log_rotation_bytes,
                keep=settings.log_keep,
            )
            logger.info("settings reloaded")
        self.notifier.ready()
        self._everything = True

    def _tell_events(self) -> None:
        assert self.workspace is not None
        for event in self.workspace.events:
            logger.warning("{}", event)
        self.workspace.events.clear()

    def _end(self) -> None:
        self._say("stopping")
        self.notifier.stopping()
        if self.watcher is not None:
            self.watcher.stop()
        if self.workspace is not None:
            with suppress(SignetSyncError):
                self.workspace.close()
        logger.info("stopped")
        if self._folder is not None:
            with suppress(OSError):
                os.unlink(self._folder.heartbeat)


def _give_memory_back() -> None:
    """After a cold index much freed memory is kept by the C library; an agent that idles for days gives it back."""
    if sys.platform != "linux":
        return
    trim: Callable[[int], int] | None = None
    with suppress(OSError, AttributeError):
        trim = ctypes.CDLL(None).malloc_trim
    if trim is not None:
        trim(0)
