"""Says what a pass is asked to do, and what it found and did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from signet_sync.errors import Interrupted
from signet_sync.formats.snapshot import Snapshot
from signet_sync.formats.timestamps import iso
from signet_sync.storage.database.connection import Database
from signet_sync.sync.planner import Cliff, Judgement
from signet_sync.sync.stages import Change
from signet_sync.sync.workers import Workers
from signet_sync.sync.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Request:
    """What a pass is asked to do. `paths` None: everything. `now_us` is microseconds since 1970 UTC.

    With `settle_seconds` (the daemon), a file that is younger and looks broken, or a name that is gone and not yet
    `confirmed`, is left for another look: it may be half-written, or half of a rename. `patience` is how long another
    command's pass is waited for, in seconds; then `WorkspaceError` (`busy`). With `resume` write flows whose caller
    died are finished. A `wary` one writes down what it has in hand, should it die of it. What follows from sessions
    before `since_us` is left in the outbox.
    """

    now_us: int
    paths: frozenset[str] | None = None
    rebuild: bool = False
    accept_removals: bool = False
    settle_seconds: float = 0.0
    confirmed: frozenset[str] = frozenset()
    reread: frozenset[str] = frozenset()
    project: bool = True
    progress: Callable[[int, int], None] | None = None
    should_stop: Callable[[], bool] = lambda: False
    patience: float = 60.0
    resume: bool = True
    wary: bool = False
    since_us: int = 0

    def go_on(self) -> None:
        """Raises `Interrupted` where the pass was asked to stop."""
        if self.should_stop():
            raise Interrupted("the pass was asked to stop", hint="nothing was lost; the next pass starts over")

    def alive(self, of: int) -> None:
        """Called in what takes long when all is read: stops where that was asked for, and reports progress."""
        self.go_on()
        if self.progress is not None:
            self.progress(of, of)


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """One agent's MEMORY.md after a pass."""

    path: str
    changed: bool
    sessions_in_window: int
    rows_rendered: int
    rows_clipped: int
    tokens: int


@dataclass(slots=True)
class Outcome:
    """What a pass found and did; `integrity.report` turns it into the shapes of the command line."""

    full: bool = False
    scanned: int = 0
    read: int = 0
    unchanged: int = 0
    removed_rows: int = 0
    tombstones: int = 0
    tombstoned: list[Judgement] = field(default_factory=list)
    rebuilt_manifests: list[str] = field(default_factory=list)
    rewritten: set[str] = field(default_factory=set)
    unsettled: frozenset[str] = frozenset()
    cliff: Cliff | None = None
    change: Change = field(default_factory=Change)
    pages: dict[str, PageOutcome] = field(default_factory=dict)
    held: str = ""
    deferred: bool = False
    trouble: list[str] = field(default_factory=list)
    elapsed_ms: float = 0.0
    seen: Snapshot | None = None

    @property
    def whole(self) -> bool:
        """Whether all files were looked at, and nothing halted the pass."""
        return self.full and self.cliff is None


@dataclass(slots=True)
class Pass:
    """One pass on its way: what it runs over, what it was asked to do, and what came of it so far."""

    workspace: Workspace
    request: Request
    outcome: Outcome = field(default_factory=Outcome)
    workers: Workers = field(default_factory=lambda: Workers(0))

    @property
    def database(self) -> Database:
        """The database of the workspace."""
        return self.workspace.database

    @property
    def now_iso(self) -> str:
        """The pass's present as a timestamp."""
        return iso(self.request.now_us)

    def look_at(self, paths: Iterable[str]) -> None:
        """Adds paths to those that the pass was asked to look at."""
        if self.request.paths is not None:
            self.request = replace(self.request, paths=self.request.paths.union(paths))
