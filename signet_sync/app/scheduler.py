"""Schedules the agent's work on its workspace: hints first, sweeps when it is idle, full passes on a timer."""

from __future__ import annotations

import gc
import math
import os
import random
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import apsw

from signet_sync.app.heartbeat import Heartbeat
from signet_sync.capture import spool
from signet_sync.capture.worker import Worker, due, list_changed_sessions
from signet_sync.embeddings.resident import give_back
from signet_sync.entities.stage import entities_folder, is_entity_path
from signet_sync.errors import SignetSyncError
from signet_sync.formats.filename import artifact_name, tombstone_name
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY, TOMBSTONES, WORDS, agent_folder, page_agent
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.history.scheduler import CommitScheduler
from signet_sync.host.command import Command
from signet_sync.log import logger
from signet_sync.memories import operations as memories_operations
from signet_sync.pages import others
from signet_sync.pages.store import pages
from signet_sync.sessions import journal
from signet_sync.sessions.live import store as live
from signet_sync.storage import files
from signet_sync.storage.database import batches
from signet_sync.storage.durable import private_folder
from signet_sync.storage.locations import now_us
from signet_sync.sync import engine
from signet_sync.sync.database import DatabaseSupervisor
from signet_sync.sync.store import artifacts, counts, passes
from signet_sync.sync.watcher import Watcher
from signet_sync.sync.workspace import Outcome, Request, Workspace
from signet_sync.text.phrases import count_noun

# Delay in seconds before the first change after a quiet time is answered; half-written files are read again later.
LEAD = 0.02
# Longest time in seconds to collect changes while more keep coming.
LONGEST_WAIT = 2.0
# Above this many hinted paths, scanning everything is cheaper.
BIG_BATCH = 512
# Seconds between checks for what no event reports: the root was renamed, a Signet daemon started.
BEAT = 15.0
# Seconds until a failed dream sweep is retried, and between checks whether one is due.
DREAM_PATIENCE, DREAM_BEAT = 600.0, 60.0
# Seconds between checks whether a process that captures has ended, while there is more to capture.
WORKER_BEAT = 0.5
# Seconds between checks whether another process has ended.
COMMAND_BEAT = 1.0
CHECKPOINT_AFTER = 2.0
# Seconds until memory used by a scan of everything is released, when its follow-up work is done, too.
SPARE_AFTER = 20.0
# Full-text segments are merged after so many seconds without a change, in steps with a pause for other work.
MERGE_AFTER, MERGE_PAUSE = 2.0, 0.05
# Seconds until the next checkpoint after a reader blocked one.
READER_PATIENCE = 60.0
# SIGTERM must end the agent within two seconds, even if another process works on the workspace.
LOCK_PATIENCE = 0.5
LONGEST_BACKOFF = 60.0
FAR = 7 * 86_400.0
# Rows derived from sessions of so many days exist before the first page; older ones are derived in idle time.
NEWEST_DAYS = 90


class Scheduler:
    """Watches one workspace and runs its jobs. All in one thread; `watcher.wake` may come from any.

    A job has a name, what it does, and what tells when it is due (an instant of `time.monotonic`); None: it is due when
    it was last planned for. `everything` means that the next pass scans all files, `rebuild` that it rebuilds all
    derived rows. `alive` is called during long passes to show that the loop works.
    """

    def __init__(
        self, workspace: Workspace, heartbeat: Heartbeat, alive: Callable[[], None], stopping: Callable[[], bool]
    ) -> None:
        self.workspace = workspace
        self.heartbeat = heartbeat
        self.supervisor = DatabaseSupervisor(workspace)
        self.everything = True
        self.rebuild = False
        self.last_full: str | None = None
        self.held = ""
        self.trouble = ""
        self._alive = alive
        self._stopping = stopping
        self._halted = False
        self._deferrals = 0
        self._dirty: set[str] = set()  # paths that changed, as far as is known
        self._again: dict[str, float] = {}  # when a path that was not settled is looked at again
        self._agents: tuple[str, ...] = ()  # read by the first pass, which reports errors
        with suppress(OSError):
            private_folder(workspace.state.spool)  # so that it can be watched
        self.worker = Worker(workspace)
        self.commits = CommitScheduler(workspace)
        self.sharing: Command | None = None
        self.watcher = Watcher(
            workspace.root, lambda: list_folders(workspace, self._agents), news=self._news, careful=[TOMBSTONES]
        )
        self.set_watch()
        self._log_trouble(())
        self._at = dict.fromkeys(("surroundings", "dream"), time.monotonic() + BEAT)
        # The agents of many machines start in the morning, and must not all come at once.
        self._plan("share", random.uniform(0.0, 1.0) * workspace.settings.fleet_interval)  # noqa: S311
        # In the order in which they run: the follow-up work of a pass comes after it.
        self._jobs: tuple[tuple[str, Callable[[], None], Callable[[], float] | None], ...] = (
            ("surroundings", self._check_surroundings, None),
            ("dream", self._dream, None),
            ("full", self._look_at_everything, None),
            ("pass", self._pass_over_changes, self._when_to_pass),
            ("merge", self._merge, None),
            ("checkpoint", self._checkpoint, None),
            ("backlog", self._derive_backlog, None),
            ("memory", self._release_memory, None),
            ("capture", self._capture, None),
            ("commit", self.commits.run_due, lambda: self.commits.due),
            ("share", self._share, None),
        )

    def state(self) -> str:
        """Returns the named state between two passes; the most serious one first."""
        if self._halted:
            return "halted: cliff"
        if self.trouble:
            return f"degraded: {self.trouble}"
        if self.held:
            return "held: signet daemon"
        return "polling" if self.watcher.kind is None else "watching"

    # ── the jobs ──

    def set_watch(self) -> None:
        """Sets the watch as the settings say; a new one has missed what came before it."""
        self.watcher.stop()
        if self.workspace.settings.watch_mode != "off":
            self.watcher.start()
        self.everything = True

    def _news(self, heard: frozenset[str]) -> frozenset[str]:
        """Returns the reported paths without those that we wrote; all of them if that cannot be decided now."""
        try:
            changed = drop_own_writes(self.workspace, heard)
        except (OSError, SignetSyncError, apsw.Error):
            return heard
        if any(path.startswith(f"{MEMORY}/") for path in heard - changed):
            self.commits.note_change()
        return changed

    def wait(self, longest: float) -> None:
        """Waits until a job is due, at most `longest` seconds, or until the watcher hears something or is woken."""
        if self.everything:
            return
        settings = self.workspace.settings
        longest = max(min(min(self._when(name, when) for name, _, when in self._jobs) - time.monotonic(), longest), 0.0)
        hint = self.watcher.gather(settings.debounce, LONGEST_WAIT, longest, lead=min(LEAD, settings.debounce))
        if hint is None:
            return
        self._dirty |= hint.paths
        self.everything |= hint.everything

    def run_due(self) -> None:
        """Runs the jobs that are due."""
        changes = self.supervisor.ensure_open(), self.watcher.check()
        self.everything |= any(changes)
        self._at["capture"] = 0.0  # whatever woke us: a hook may have left a job
        for name, run, when in self._jobs:
            if self._when(name, when) <= time.monotonic():
                self._at.pop(name, None)
                run()

    def _when(self, name: str, when: Callable[[], float] | None) -> float:
        return when() if when is not None else self._at.get(name, math.inf)

    def _plan(self, name: str, seconds: float) -> None:
        self._at[name] = time.monotonic() + seconds

    def _check_surroundings(self) -> None:
        """Checks what no event reports: a damaged database, a Signet daemon that came or went; renews the heartbeat."""
        self._plan("surroundings", BEAT)
        self.heartbeat.touch()
        self.supervisor.check()
        # The process that was writing a journalled flow may have died before the first file.
        if journal.keys(self.workspace.state.journal) or live.has_undistilled(self.workspace.database):
            self._pass(frozenset())
        if bool(others.holds(self.workspace)) != bool(self.held):
            self.everything = True

    def _dream(self) -> None:
        """Sweeps the memories of the agents that are due, according to the promotion history."""
        self._plan("dream", DREAM_PATIENCE)  # in case it fails
        if self.workspace.settings.dream_enabled and not self._halted:
            for agent_id in list(memories_operations.due(self.workspace, now_us())):
                swept = memories_operations.dream(self.workspace, agent_id, now_us(), patience=LOCK_PATIENCE)
                self.commits.note_change()
                logger.info("{}: {} of {} memories were promoted", agent_id, len(swept.promoted), swept.candidates)
                self._log_trouble(filter(None, [swept.waiting]))
                self._alive()
        self._plan("dream", DREAM_BEAT)

    def _when_to_pass(self) -> float:
        return 0.0 if self.everything or self._dirty else min(self._again.values(), default=math.inf)

    def _look_at_everything(self) -> None:
        self.everything = True

    def _pass_over_changes(self) -> None:
        """Makes a full pass if that is due, else one over the paths that changed or may be settled now."""
        hinted, self._dirty = relevant(self.workspace, frozenset(self._dirty)), set()
        confirmed = frozenset(path for path, due in self._again.items() if due <= time.monotonic()) - hinted
        # What a tombstone covers may have no row: only a look at everything finds its files.
        removal = any(path.startswith(f"{TOMBSTONES}/") for path in hinted)
        if self.everything or removal or len(hinted) > BIG_BATCH:
            self._full(confirmed)
        elif hinted or confirmed:
            self._pass(hinted | confirmed, confirmed)

    def _merge(self) -> None:
        if batches.merge_step(self.workspace.database):
            self._plan("merge", MERGE_PAUSE)
            self._at.setdefault("checkpoint", time.monotonic() + CHECKPOINT_AFTER)
            if "memory" in self._at:
                self._plan("memory", SPARE_AFTER)

    def _checkpoint(self) -> None:
        if not self.workspace.database.checkpoint():
            self._plan("checkpoint", READER_PATIENCE)

    def _derive_backlog(self) -> None:
        """Derives a part of what passes left for idle time; publishes all pages once nothing is left."""
        if engine.work_off(self.workspace, self._request(None)):
            self._plan("backlog", 0.0)
        else:
            self.everything = True
        self._at.setdefault("checkpoint", time.monotonic() + CHECKPOINT_AFTER)
        self._plan("memory", SPARE_AFTER)

    def _release_memory(self) -> None:
        """Releases the memory that only a scan of everything needs, before days of idling; the C library keeps it."""
        self.workspace.database.execute("pragma shrink_memory")
        give_back()

    def _capture(self) -> None:
        """Has the hooks' jobs processed and running sessions read; the files that are written return as changes."""
        if not spool.has_jobs(self.workspace.state.spool):
            return
        if self.worker.is_working():
            # Its end wakes nobody, and what came meanwhile it may not have seen.
            self._plan("capture", WORKER_BEAT)
            return
        moment = now_us()
        rests = [wait for _, _, wait in list_changed_sessions(self.workspace, moment)]
        if next(due(self.workspace, moment), None) is not None or any(wait <= 0 for wait in rests):
            self.worker.start(sweep=False)
        elif rests:
            self._plan("capture", min(rests) / SECOND)

    def _share(self) -> None:
        """Shares with an organisation from time to time, where the person's own settings name a place for it."""
        settings = self.workspace.settings
        self._plan("share", settings.fleet_interval)  # also if it cannot be started
        if self.sharing is None and settings.fleet_url:
            self.sharing = Command(*self.workspace.options, "fleet", "share")
        elif self.sharing is not None and (code := self.sharing.poll()) is not None:
            if code:
                logger.warning("sharing ended with {}: {}", code, self.sharing.said)
            self.sharing = None
        if self.sharing is not None:
            self._plan("share", COMMAND_BEAT)

    # ── passes ──

    def _full(self, confirmed: frozenset[str]) -> None:
        first = self.last_full is None
        self._update_agents()  # so that all folders are watched before anything is scanned
        # Cleared before the pass, so that a change during it is not missed.
        self.everything = False
        self._plan("full", self.workspace.settings.interval)
        if self.heartbeat.state == "starting":
            self.heartbeat.set_state("reconciling")
        self.supervisor.check(deeper=True)
        request = self._request(None, confirmed)._replace(rebuild=self.rebuild)
        outcome = self._run(request)
        if outcome.cliff is None:
            self.last_full, self.rebuild = iso(request.now_us), False
        if os.path.exists(self.workspace.state.harnesses):
            self.worker.start(sweep=True)
        self.heartbeat.write()
        if first or outcome.read > BIG_BATCH:
            self._plan("memory", SPARE_AFTER)
        if first:
            # What is there by now is not collected again: looking through it takes longer than handling a change.
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000)

    def _pass(self, paths: frozenset[str], confirmed: frozenset[str] = frozenset()) -> None:
        self._run(self._request(paths, confirmed))

    def _request(self, paths: frozenset[str] | None, confirmed: frozenset[str] = frozenset()) -> Request:
        def note_progress(_done: int, of: int) -> None:
            if of > BIG_BATCH:
                self.heartbeat.set_state("reconciling")
            self._alive()

        return Request(
            now_us=now_us(),
            paths=paths,
            settle_seconds=self.workspace.settings.settle_seconds,
            confirmed=confirmed,
            progress=note_progress,
            should_stop=self._stopping,
            patience=LOCK_PATIENCE,
            since_us=now_us() - max(NEWEST_DAYS, self.workspace.settings.window_days + 1) * DAY,
        )

    def _run(self, request: Request) -> Outcome:
        """Runs a pass, logs what came of it, and plans what follows from it."""
        database = self.workspace.database
        outcome = engine.run_pass(self.workspace, request)
        change = outcome.change
        if change.paths:
            removed = f", {len(outcome.tombstoned)} of removed sessions" if outcome.tombstoned else ""
            logger.info("{} moved in the index{}", count_noun(len(change.paths), "file"), removed)
        # What was not settled is looked at again some time after it was first found so, whatever passes run before.
        looked_at = set(self._again) if outcome.full else set(request.paths or ())
        for path in (looked_at - outcome.unsettled) | request.confirmed:
            self._again.pop(path, None)
        for path in outcome.unsettled:
            self._again.setdefault(path, time.monotonic() + max(self.workspace.settings.settle_seconds, 0.1))
        if change.paths or change.sources or change.derived:
            # The next change does not postpone it: with endless changes the log would grow without limit.
            self._at.setdefault("checkpoint", time.monotonic() + CHECKPOINT_AFTER)
            self._plan("merge", MERGE_AFTER)
            logger.debug("{} paths moved, {} sources followed", len(change.paths), change.derived)
        self._update_state(outcome)
        if outcome.cliff is None and passes.has_waiting(database):
            self._plan("backlog", 0.0)
        if request.paths is None or any(path.startswith(f"{MEMORY}/") for path in request.paths):
            self.commits.note_change()
        self._update_agents()
        self._log_trouble(outcome.trouble)
        self.heartbeat.set_state(self.state())
        return outcome

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
            self._at["full"] = min(self._at.get("full", math.inf), time.monotonic() + backoff(self._deferrals))
            # The first time is ignored: another process may just have been writing the page.
            self.trouble = short(outcome.trouble[-1]) if self._deferrals > 1 and outcome.trouble else ""
        elif outcome.full:
            self._deferrals = 0
            self.trouble = ""

    def _log_trouble(self, trouble: Iterable[str]) -> None:
        for text in (*trouble, *self.workspace.events):
            logger.warning("{}", text)
        self.workspace.events.clear()

    def _update_agents(self) -> None:
        agents = tuple(counts.agents(self.workspace.database))
        if agents != self._agents:
            self._agents = agents
            if self.watcher.check():
                self.everything = True


# ── what is watched, and what of it matters ──


def list_folders(workspace: Workspace, agents: Iterable[str]) -> list[str]:
    """Returns the folders to watch, as `Watcher` takes them: of the vault, of its agents, and the spool."""
    pages = [agent_folder(agent).rstrip("/") for agent in agents]
    entities = sorted(f"{entities_folder(agent)}/" for agent in {DEFAULT_AGENT, *agents})
    spool = os.path.realpath(workspace.state.spool)
    return ["", MEMORY, TOMBSTONES, WORDS, *filter(None, pages), *entities, spool]


def relevant(workspace: Workspace, hinted: frozenset[str]) -> frozenset[str]:
    """Returns the hinted paths that may matter.

    Left out are other folders, and ignored file names that still exist: another program's database in `memory/` may be
    written all day.
    """
    vault = {path for path in hinted if path.rpartition("/")[0] in (MEMORY, TOMBSTONES)}
    names = {path: path.rpartition("/")[2] for path in vault}
    foreign = [path for path, name in names.items() if artifact_name(name) is None and tombstone_name(name) is None]
    for path, before in artifacts.list_known_files(workspace.database, foreign).items():
        if before.verdict == "ignored" and files.status_of(workspace.root, path):
            vault.remove(path)
    for path in hinted - names.keys():
        words = path == MEMORY or path.startswith(f"{WORDS}/")
        if words or page_agent(path) is not None or is_entity_path(path):
            vault.add(path)
    return frozenset(vault)


def drop_own_writes(workspace: Workspace, heard: frozenset[str]) -> frozenset[str]:
    """Returns the reported paths, except pages and manifests that are as we left them.

    The same signature means the same bytes, as in every pass: a pass over such a path would write nothing.
    """
    database = workspace.database
    known: dict[str, Signature | None] = {}
    for path in heard:
        if page_agent(path) is not None and (state := pages.page_state(database, path)) and state.inputs_sha256:
            known[path] = state.signature
    names = {path: artifact_name(path.rpartition("/")[2]) for path in heard if path.rpartition("/")[0] == MEMORY}
    written = [path for path, name in names.items() if name is not None and name.kind == "manifest"]
    for path, before in artifacts.list_known_files(database, written).items():
        if before.verdict == "indexed":
            known[path] = before.signature
    found = files.signatures(workspace.root, known)
    return frozenset(path for path in heard if known.get(path) is None or found.get(path) != known[path])


def backoff(failures: int) -> float:
    """Returns the seconds to wait after so many failures in a row."""
    return float(min(2.0 ** (failures - 1), LONGEST_BACKOFF))


def short(message: str) -> str:
    """Shortens a message to fit into a state's line."""
    return message if len(message) <= 160 else message[:159] + "…"
