"""Schedules the agent's work on its workspace: hints first, sweeps when it is idle, full passes on a timer."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import apsw

from signet_sync.app import changed_paths
from signet_sync.app.database_supervisor import DatabaseSupervisor
from signet_sync.app.heartbeat import Heartbeat
from signet_sync.app.timers import Timers
from signet_sync.capture import spool
from signet_sync.capture.worker import Worker, due, list_changed_sessions
from signet_sync.entities.stage import entities_folder
from signet_sync.errors import SignetSyncError
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY, TOMBSTONES, WORDS, agent_folder, head_page
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.history.scheduler import CommitScheduler
from signet_sync.log import logger
from signet_sync.memories import promotion
from signet_sync.pages import others
from signet_sync.pages.store import pages
from signet_sync.sessions import journal
from signet_sync.sessions.store import live
from signet_sync.storage.database import batches
from signet_sync.storage.locations import now_us
from signet_sync.sync import engine, outbox, quarantine
from signet_sync.sync.store import artifacts, counts
from signet_sync.sync.watcher import Hint, Watcher
from signet_sync.sync.workspace import Outcome, Request, Workspace
from signet_sync.text.phrases import count_noun

# Delay in seconds before the first change after a quiet time is answered; half-written files are read again later.
LEAD = 0.02
# Longest time in seconds to collect changes while more keep coming.
LONGEST_WAIT = 2.0
# Least time in seconds between two sweeps of file names after changes.
SWEEP_INTERVAL = 3.0
# Fraction by which the interval between full passes varies: the agents of many machines do not all scan at once.
JITTER = 0.1
# Above this many hinted paths, scanning everything is cheaper.
BIG_BATCH = 512
# Seconds between checks for what no event reports: the root was renamed, the machine slept, a Signet daemon started.
BEAT = 15.0
# Seconds until a failed dream sweep is retried, and between checks whether one is due.
DREAM_PATIENCE, DREAM_BEAT = 600.0, 60.0
# Seconds between checks whether a process that captures has ended, while there is more to capture.
WORKER_BEAT = 0.5
CHECKPOINT_AFTER = 2.0
# Seconds until memory used by a scan of everything is released, when its follow-up work is done, too.
SPARE_AFTER = 20.0
# Full-text segments are merged after so many seconds without a change, in steps with a pause for other work.
MERGE_AFTER, MERGE_PAUSE = 2.0, 0.05
# Seconds until the next checkpoint after a reader blocked one.
READER_PATIENCE = 60.0
CLOCK_JUMP = 30.0
# A look at all files that takes more than `BRIEF` seconds of a processor comes again after so many times as long, at
# most after so many seconds: where nothing changes it takes a hundredth of a processor, however large the vault is.
BRIEF, REST, LONGEST_REST = 0.1, 100.0, 3_600.0
# Files whose content a full pass reads again: a vault of some 70,000 is read once in a day.
MOST_REREAD = 500
# Microseconds after which each file's content is read again.
REREAD_AFTER = DAY
# SIGTERM must end the agent within two seconds, even if another process works on the workspace.
LOCK_PATIENCE = 0.5
LONGEST_BACKOFF = 60.0
# watchdog may hold an event back for half a second, to pair the two halves of a rename.
LATE_EVENTS = 0.6
FAR = 7 * 86_400.0
# Rows derived from sessions of so many days exist before the first page; older ones are derived in idle time.
NEWEST_DAYS = 90


class Scheduler:
    """Watches one workspace and runs its timers and passes. All in one thread; `watcher.wake` may come from any.

    `everything` means that the next pass scans all files, `rebuild` that it rebuilds all derived rows, `rest` are the
    seconds that at least pass after a full pass that found nothing. `alive` is called during long passes to show that
    the loop works.
    """

    def __init__(
        self, workspace: Workspace, heartbeat: Heartbeat, alive: Callable[[], None], stopping: Callable[[], bool]
    ) -> None:
        self.workspace = workspace
        self.heartbeat = heartbeat
        self.supervisor = DatabaseSupervisor(workspace)
        self.everything = True
        self.rebuild = False
        self.rest = 0.0
        self.last_full: str | None = None
        self.held = ""
        self.trouble = ""
        self._alive = alive
        self._stopping = stopping
        self._halted = False
        self._deferrals = 0
        self._dirty: set[str] = set()
        self._tick = False
        self._poll = changed_paths.Poll()
        self._again: dict[str, float] = {}
        self._due: dict[str, float] = {name: time.monotonic() + BEAT for name in ("beat", "dream")} | {"full": 0.0}
        self._swept = 0.0
        self._clocks = time.time(), time.monotonic()
        # Both are read by the first pass, which reports errors.
        self._agents: tuple[str, ...] = ()
        self._problems: dict[str, str] | None = None
        self.record_crash()
        with suppress(OSError):
            spool.prepare(workspace.state.spool)
        self.worker = Worker(workspace)
        self.commits = CommitScheduler(workspace)
        self.timers = Timers(workspace)
        self.watcher = self._watcher()
        self.watcher.start()
        self._log_trouble(())

    def record_crash(self) -> None:
        """Records a crash, of the previous agent or a pass out of memory, against the file being processed."""
        path = quarantine.account(self.workspace.root, self.workspace.state.path)
        if path is not None:
            logger.warning("{}: the agent died, or ran out of memory, while it processed this file", path)

    def state(self) -> str:
        """Returns the named state between two passes; the most serious one first."""
        if self._halted:
            return "halted: cliff"
        if self.trouble:
            return f"degraded: {self.trouble}"
        if self.held:
            return "held: signet daemon"
        return "polling" if self.watcher.kind in (None, "polling") else "watching"

    def set_watch(self) -> None:
        """Sets the watch again, according to the current settings."""
        self.watcher.stop()
        self.watcher = self._watcher()
        self.watcher.start()
        self.everything = True

    def _watcher(self) -> Watcher:
        settings = self.workspace.settings
        return Watcher(
            self.workspace.root,
            self._folders,
            mode=settings.watch_mode,
            poll_interval=settings.poll_interval,
            news=self._news,
            careful=[TOMBSTONES],
        )

    def _news(self, heard: frozenset[str]) -> frozenset[str]:
        """Returns the reported paths without those that we wrote; all of them if that cannot be decided now."""
        try:
            changed = changed_paths.not_written_by_us(self.workspace, heard)
        except (OSError, SignetSyncError, apsw.Error):
            return heard
        if any(path.startswith(f"{MEMORY}/") for path in heard - changed):
            self.commits.note_change()
        return changed

    def _folders(self) -> list[str]:
        pages = [agent_folder(agent).rstrip("/") for agent in self._agents]
        entity_folders = [f"{entities_folder(agent)}/" for agent in {DEFAULT_AGENT, *self._agents}]
        spooled = os.path.realpath(self.workspace.state.spool)
        return ["", MEMORY, TOMBSTONES, WORDS, *(page for page in pages if page), *sorted(entity_folders), spooled]

    # ── what is due ──

    def wait(self, longest: float) -> None:
        """Waits until there is something to do, at most `longest` seconds, or until the watcher is woken."""
        if self.everything:
            return
        settings = self.workspace.settings
        due = min(*self._due.values(), *self._again.values(), self.commits.due, self.timers.due) - time.monotonic()
        longest = max(min(due, longest), 0.0)
        hint = self.watcher.gather(settings.debounce, LONGEST_WAIT, longest, lead=min(LEAD, settings.debounce))
        if hint is not None:
            self._add_hint(hint)

    def _add_hint(self, hint: Hint) -> None:
        self._dirty |= hint.paths
        if not hint.everything:
            return
        # A polling tick carries no information; only a difference is worth a pass.
        if self.watcher.kind == "polling" and not hint.paths:
            self._tick = True
        else:
            self.everything = True

    def run_due(self) -> None:
        """Does what is due now: hinted paths first, then sweeps and other timers, then the hooks' jobs."""
        self._run_passes()
        self._due.pop("live", None)
        if spool.waiting(self.workspace.state.spool):
            if self.worker.working():
                # Its end wakes nobody, and what came meanwhile it may not have seen.
                self._due["live"] = time.monotonic() + WORKER_BEAT
            else:
                self._start_capture()
        self.commits.run_due()
        self.timers.run_due()

    def _start_capture(self) -> None:
        """Processes the hooks' jobs and reads running sessions; the files it writes return as changes."""
        moment = now_us()
        rests = [wait for _, _, wait in list_changed_sessions(self.workspace, moment)]
        if next(due(self.workspace, moment), None) is not None or any(wait <= 0 for wait in rests):
            self.worker.start(sweep=False)
        elif rests:
            self._due["live"] = time.monotonic() + min(rests) / SECOND

    def _run_passes(self) -> None:
        changes = self.supervisor.ensure_open(), self.watcher.check(), self._clocks_jumped()
        if any(changes):
            self.everything = True
        if self._is_due("beat"):
            self._check_surroundings()
        if self._is_due("dream"):
            self._dream()
        hinted, self._dirty = changed_paths.relevant(self.workspace, frozenset(self._dirty)), set()
        confirmed = frozenset(path for path, due in self._again.items() if due <= time.monotonic()) - hinted
        if self.everything or self._is_due("full") or len(hinted) > BIG_BATCH:
            doubtful = not (self.everything or self._deferrals)
            self._full(hinted | frozenset(self._again) if doubtful else None, confirmed)
            return
        if self._tick:
            self._tick = False
            moved = self._poll.changed(self.workspace)
            self.everything = moved is None
            hinted |= (moved or frozenset()) - self._again.keys()
        if hinted or confirmed:
            self._pass(hinted | confirmed, confirmed)
            self._plan_sweep()
        timers = {
            "sweep": self._sweep,
            "pages": self._update_pages,
            "merge": self._merge,
            "checkpoint": self._checkpoint,
            "backlog": self._derive_backlog,
            "spare": self._release_memory,
        }
        for name, act in timers.items():
            if self._is_due(name):
                del self._due[name]
                act()

    def _is_due(self, name: str) -> bool:
        return self._due.get(name, math.inf) <= time.monotonic()

    def _clocks_jumped(self) -> bool:
        """Returns whether the machine slept or its clock was set: only one of the two clocks advanced."""
        wall, monotonic = self._clocks
        self._clocks = time.time(), time.monotonic()
        return abs((self._clocks[0] - wall) - (self._clocks[1] - monotonic)) > CLOCK_JUMP

    def _check_surroundings(self) -> None:
        """Checks what no event reports: a damaged database, a Signet daemon that came or went; renews the heartbeat."""
        self._due["beat"] = time.monotonic() + BEAT
        self.heartbeat.touch()
        self.supervisor.check()
        # The process that was writing a journalled flow may have died before the first file.
        if journal.keys(self.workspace.state.journal) or live.any_to_distil(self.workspace.database):
            self._pass(frozenset())
        if bool(others.holds(self.workspace, self._agents)) != bool(self.held):
            self.everything = True

    def _dream(self) -> None:
        """Sweeps the memories of the agents that are due, according to the promotion history."""
        self._due["dream"] = time.monotonic() + DREAM_PATIENCE  # in case it fails
        if not self.workspace.settings.dream_enabled:
            promotion.prune(self.workspace, now_us())
        elif not self._halted:
            for agent_id in list(promotion.due(self.workspace, now_us())):
                swept = promotion.dream(self.workspace, agent_id, now_us(), patience=LOCK_PATIENCE)
                self.commits.note_change()
                if not swept.deferred:
                    logger.info("{}: {} of {} memories were promoted", agent_id, len(swept.promoted), swept.candidates)
                self._log_trouble(filter(None, [swept.waiting]))
                self._alive()
        self._due["dream"] = time.monotonic() + DREAM_BEAT

    # ── passes ──

    def _full(self, expected: frozenset[str] | None, confirmed: frozenset[str]) -> None:
        """Makes a full pass; `expected` are the paths that may have changed, None: any of them."""
        first = self.last_full is None
        self._update_agents()  # so that all folders are watched before anything is scanned
        # Cleared before the pass, so that a change during it is not missed.
        self.everything = self._tick = False
        settings = self.workspace.settings
        jitter = 1.0 + JITTER * random.uniform(-1.0, 1.0)  # noqa: S311 - spreads load, guards nothing
        started = time.thread_time()
        self._due["full"] = time.monotonic() + settings.interval * jitter
        if self.heartbeat.state == "starting":
            self.heartbeat.set_state("reconciling")
        self.supervisor.check(deeper=True)
        reread = frozenset(self._rolling())
        request, self.rebuild = self._request(None, confirmed, reread)._replace(rebuild=self.rebuild), False
        outcome = self._run(request)
        self._due.pop("sweep", None)
        self._swept = time.monotonic()
        if not outcome.deferred and outcome.read <= MOST_REREAD:
            self.rest = rest(time.thread_time() - started)
            self._due["full"] = max(self._due["full"], self._swept + self.rest)
        if outcome.cliff is None:
            self.last_full = iso(request.now_us)
        if os.path.exists(self.workspace.state.harnesses):
            self.worker.start(sweep=True)
        self.heartbeat.write()
        if first or outcome.read > BIG_BATCH:
            self._due["spare"] = time.monotonic() + SPARE_AFTER
        if first:
            # What is there by now is not collected again: looking through it takes longer than handling a change.
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000)
        if expected is not None:
            self._check_watch((outcome.change.paths | outcome.unsettled) - expected - reread)

    def _check_watch(self, silent: set[str]) -> None:
        """Sets the watch again after a full pass found changes that no event had reported."""
        if not silent or self.watcher.kind in (None, "polling"):
            return
        late = self.watcher.gather(LATE_EVENTS, LATE_EVENTS, LATE_EVENTS, sifted=False)
        if late is not None:
            self._add_hint(late)
            silent = set() if late.everything else silent - late.paths
        if silent and not self._stopping():
            logger.warning("a full pass found changes that no event announced; the watch is set up again")
            self.set_watch()

    def _rolling(self) -> list[str]:
        """Returns paths whose content is due to be read again: a small share of the vault at every full pass."""
        database, interval = self.workspace.database, self.workspace.settings.interval
        share = math.ceil(2 * counts.count_indexed(database) * interval * SECOND / REREAD_AFTER) + 10
        return artifacts.due_for_reading(database, now_us() - REREAD_AFTER, min(share, MOST_REREAD))

    def _pass(self, paths: frozenset[str], confirmed: frozenset[str] = frozenset()) -> None:
        self._run(self._request(paths, confirmed))

    def _request(
        self, paths: frozenset[str] | None, confirmed: frozenset[str], reread: frozenset[str] = frozenset()
    ) -> Request:
        return Request(
            now_us=now_us(),
            paths=paths,
            settle_seconds=self.workspace.settings.settle_seconds,
            confirmed=confirmed,
            reread=reread,
            progress=self._working,
            should_stop=self._stopping,
            patience=LOCK_PATIENCE,
            records_crashes=True,
            since_us=now_us() - max(NEWEST_DAYS, self.workspace.settings.window_days + 1) * DAY,
        )

    def _working(self, _done: int, of: int) -> None:
        if of > BIG_BATCH:
            self.heartbeat.set_state("reconciling")
        self._alive()

    def _run(self, request: Request) -> Outcome:
        if self._problems is None:
            self._problems = counts.open_problems(self.workspace.database)
        outcome = engine.run_pass(self.workspace, request)
        self._log_changes(self._problems, request, outcome)
        self._remember_unsettled(request, outcome)
        change = outcome.change
        if change.paths or change.sources or change.derived:
            # The next change does not postpone it: with endless changes the log would grow without limit.
            self._due.setdefault("checkpoint", time.monotonic() + CHECKPOINT_AFTER)
            self._due["merge"] = time.monotonic() + MERGE_AFTER
            logger.debug("{} paths moved, {} sources followed", len(change.paths), change.derived)
        self._update_state(outcome)
        if outcome.cliff is None and outbox.any_waits(self.workspace.database):
            self._due["backlog"] = time.monotonic()
        if request.paths is None or any(path.startswith(f"{MEMORY}/") for path in request.paths):
            self.commits.note_change()
        self._plan_pages()
        self._update_agents()
        self._log_trouble(outcome.trouble)
        self.heartbeat.set_state(self.state())
        return outcome

    def _log_changes(self, before: dict[str, str], request: Request, outcome: Outcome) -> None:
        """Logs what is known now and was not before, by this pass or a command: how many files, and each problem."""
        if outcome.change.paths:
            removed = f", {len(outcome.tombstoned)} of removed sessions" if outcome.tombstoned else ""
            logger.info("{} moved in the index{}", count_noun(len(outcome.change.paths), "file"), removed)
        if outcome.full or request.paths:  # a verdict alone moves nothing in the index
            self._problems = counts.open_problems(self.workspace.database)
            for path in sorted(self._problems.keys() | before.keys()):
                if (problem := self._problems.get(path)) is None:
                    logger.info("{}: no longer {}", path, before[path])
                elif problem != before.get(path):
                    logger.warning("{}: {}", path, problem)

    def _remember_unsettled(self, request: Request, outcome: Outcome) -> None:
        """Schedules another look at a path some time after it was first found unsettled, whatever passes run before."""
        due = time.monotonic() + max(self.workspace.settings.settle_seconds, 0.1)
        looked_at = set(self._again) if outcome.full else set(request.paths or ())
        for path in (looked_at - outcome.unsettled) | request.confirmed:
            self._again.pop(path, None)
        for path in outcome.unsettled:
            self._again.setdefault(path, due)

    def _update_state(self, outcome: Outcome) -> None:
        """Updates our state from a pass; a pass over a few paths cannot lift what a full pass has found."""
        if outcome.cliff is not None:
            self._halted = True
            logger.error("halted: {}; nothing was dropped", outcome.cliff.message)
        elif outcome.full:
            if self._halted:
                logger.info("the files are back, or their removal was accepted: passes go on")
            self._halted = False
        elif self._halted:
            self.everything = True
        if outcome.held != self.held and (outcome.full or outcome.held):
            self.held = outcome.held
            logger.info("{}", f"pages are held back: {self.held}" if self.held else "pages are written again")
        if outcome.deferred:
            self._deferrals += 1
            self._due["full"] = min(self._due["full"], time.monotonic() + backoff(self._deferrals))
            # The first time is ignored: another process may just have been writing the page.
            self.trouble = short(outcome.trouble[-1]) if self._deferrals > 1 and outcome.trouble else ""
        elif outcome.full:
            self._deferrals = 0
            self.trouble = ""

    def _log_trouble(self, trouble: Iterable[str]) -> None:
        for text in (*trouble, *self.workspace.events):
            logger.warning("{}", text)
        self.workspace.events.clear()

    # ── follow-up work of a pass ──

    def _update_agents(self) -> None:
        agents = tuple(counts.agents(self.workspace.database))
        if agents != self._agents:
            self._agents = agents
            if self.watcher.check():
                self.everything = True

    def _plan_pages(self) -> None:
        """Schedules the next change of a page without an event: a session enters or leaves the window."""
        self._due.pop("pages", None)
        instant = pages.next_instant(self.workspace.database)
        if instant is None or self._halted or self.held or self._deferrals:
            return  # a page that cannot be written now is retried by full passes
        wait = (instant - now_us()) / SECOND
        if wait < FAR:
            self._due["pages"] = time.monotonic() + max(wait, 1.0)

    def _update_pages(self) -> None:
        self._pass(frozenset(head_page(agent) for agent in self._agents))

    def _plan_sweep(self) -> None:
        """Schedules a sweep for when it is quiet, but not too soon after the last one."""
        quiet = time.monotonic() + self.workspace.settings.debounce
        self._due["sweep"] = max(quiet, self._swept + SWEEP_INTERVAL)

    def _sweep(self) -> None:
        """Compares names only: finds what no event reported."""
        started = time.thread_time()
        found = changed_paths.new_or_gone(self.workspace)
        self._swept = time.monotonic() + rest(time.thread_time() - started)
        if found is None:
            self.everything = True
        elif found - self._again.keys():
            self._pass(found - self._again.keys())

    def _merge(self) -> None:
        if batches.merge_step(self.workspace.database):
            self._due["merge"] = time.monotonic() + MERGE_PAUSE
            self._due.setdefault("checkpoint", time.monotonic() + CHECKPOINT_AFTER)
            if "spare" in self._due:
                self._due["spare"] = time.monotonic() + SPARE_AFTER

    def _derive_backlog(self) -> None:
        """Derives a part of what passes left for idle time; publishes all pages once nothing is left."""
        if engine.work_off(self.workspace, self._request(None, frozenset())):
            self._due["backlog"] = time.monotonic()
        else:
            self.everything = True
        self._due.setdefault("checkpoint", time.monotonic() + CHECKPOINT_AFTER)
        self._due["spare"] = time.monotonic() + SPARE_AFTER

    def _release_memory(self) -> None:
        """Releases the memory that only a scan of everything needs, before days of idling."""
        self.workspace.database.shrink()
        _give_memory_back()

    def _checkpoint(self) -> None:
        if not self.workspace.database.checkpoint():
            self._due["checkpoint"] = time.monotonic() + READER_PATIENCE


def rest(took: float) -> float:
    """Returns the seconds after which a look at all files may be repeated that took so many of a processor."""
    return min(REST * max(took - BRIEF, 0.0), LONGEST_REST)


def backoff(failures: int) -> float:
    """Returns the seconds to wait after so many failures in a row."""
    return float(min(2.0 ** (failures - 1), LONGEST_BACKOFF))


def short(message: str) -> str:
    """Shortens a message to fit into a state's line."""
    return message if len(message) <= 160 else message[:159] + "…"


def _give_memory_back() -> None:
    """Gives freed memory back to the system; the C library would keep it."""
    if sys.platform != "linux":
        return
    trim: Callable[[int], int] | None = None
    with suppress(OSError, AttributeError):
        trim = ctypes.CDLL(None).malloc_trim
    if trim is not None:
        trim(0)
