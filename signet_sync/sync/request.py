"""Defines the request, the state and the outcome of a pass."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from signet_sync.errors import Interrupted
from signet_sync.formats.snapshot import Snapshot
from signet_sync.formats.timestamps import iso
from signet_sync.storage.database.connection import Database
from signet_sync.sync.planner import Cliff, Judgement
from signet_sync.sync.stages import Change
from signet_sync.sync.workers import Workers
from signet_sync.sync.workspace import Workspace


class Request(NamedTuple):
    """Describes what a pass is asked to do. `paths` None: everything. `now_us`: microseconds since 1970 UTC.

    With `settle_seconds` (the daemon), a file that is younger and looks broken, or a name that is gone and not yet
    `confirmed`, is left for a later look: it may be half-written, or half of a rename. `patience` is how long to wait
    for another command's pass, in seconds; then `WorkspaceError` (`busy`). With `resume`, write flows whose caller died
    are completed. With `follow_removals`, what another program removed is removed. With `records_crashes`, the file
    being processed is recorded, so that a crash can be attributed to it. Sources from sessions before `since_us` are
    left in the outbox. `workers` limits the processes that much work is spread over, 0 for none.
    """

    now_us: int
    paths: frozenset[str] | None = None
    rebuild: bool = False
    accept_removals: bool = False
    follow_removals: bool = True
    settle_seconds: float = 0.0
    confirmed: frozenset[str] = frozenset()
    reread: frozenset[str] = frozenset()
    project: bool = True
    progress: Callable[[int, int], None] | None = None
    should_stop: Callable[[], bool] = lambda: False
    patience: float = 60.0
    resume: bool = True
    records_crashes: bool = False
    since_us: int = 0
    workers: int | None = None

    def go_on(self) -> None:
        """Raises `Interrupted` if the pass was asked to stop."""
        if self.should_stop():
            raise Interrupted("the pass was asked to stop", hint="nothing was lost; the next pass starts over")

    def alive(self, of: int) -> None:
        """Checks for cancellation and reports progress, in long steps after all files were read."""
        self.go_on()
        if self.progress is not None:
            self.progress(of, of)


class PageOutcome(NamedTuple):
    """Describes one agent's MEMORY.md after a pass."""

    path: str
    changed: bool
    sessions_in_window: int
    rows_rendered: int
    rows_clipped: int
    tokens: int


class Outcome:
    """Collects what a pass found and did; `integrity.report` converts it for the command line."""

    def __init__(self, *, full: bool = False, change: Change | None = None) -> None:
        self.full = full
        self.change = Change() if change is None else change
        self.scanned = self.read = self.unchanged = self.unread = 0
        self.removed_rows = self.tombstones = 0
        self.tombstoned = list[Judgement]()
        self.rebuilt_manifests = list[str]()
        self.rewritten = set[str]()
        self.unsettled = frozenset[str]()
        self.cliff: Cliff | None = None
        self.pages = dict[str, PageOutcome]()
        self.held = ""
        self.deferred = False
        self.trouble = list[str]()
        self.elapsed_ms = 0.0
        self.seen: Snapshot | None = None

    @property
    def whole(self) -> bool:
        """Returns whether all files were looked at, and nothing halted the pass."""
        return self.full and self.cliff is None


class Pass:
    """Holds a running pass: its workspace, its request, and its outcome so far.

    `cliff` is why a recovery found that the pass must halt.
    """

    def __init__(
        self, workspace: Workspace, request: Request, outcome: Outcome | None = None, workers: Workers | None = None
    ) -> None:
        self.workspace = workspace
        self.request = request
        self.outcome = outcome or Outcome()
        self.workers = Workers(0) if workers is None else workers
        self.cliff: Cliff | None = None

    @property
    def database(self) -> Database:
        """Returns the database of the workspace."""
        return self.workspace.database

    @property
    def now_iso(self) -> str:
        """Returns the time of the pass, as a timestamp."""
        return iso(self.request.now_us)

    def look_at(self, paths: Iterable[str]) -> None:
        """Adds paths to those that the pass was asked to look at."""
        if self.request.paths is not None:
            self.request = self.request._replace(paths=self.request.paths.union(paths))
