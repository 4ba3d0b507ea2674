"""Defines a workspace, a pass over it, and the stages by which a feature takes part in a pass.

A feature implements the interfaces below and is registered in `app.workspace`; the engine names none.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from graphlib import TopologicalSorter
from importlib import import_module
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from signet_sync.errors import Interrupted
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.snapshot import Snapshot
from signet_sync.formats.timestamps import iso
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import Change, Cliff, Judgement, NoiseRule, Source

T = TypeVar("T")
Alive = Callable[[], None]  # called in long steps; an exception that it raises ends the work


class Workspace:
    """Holds everything a pass needs. `touch_nothing`: only the database may be written (`--index-only`).

    `unshown` are the changes whose pages wait for the end of `engine.defer_pages`.
    """

    def __init__(
        self,
        root: str,
        settings: Settings,
        state: state_dir.StateFolder,
        database: Database,
        touch_nothing: bool = False,
        own_place: bool = True,
        events: list[str] | None = None,
        pipeline: "Pipeline | None" = None,
    ) -> None:
        self.root = root
        self.settings = settings
        self.state = state
        self.database = database
        self.touch_nothing = touch_nothing
        self.own_place = own_place
        self.events = [] if events is None else events
        self.pipeline = pipeline or Pipeline()
        self.unshown: Change | None = None

    @property
    def noise(self) -> NoiseRule:
        """Returns the noise rule of the settings."""
        settings = self.settings
        return NoiseRule.from_prefixes(settings.noise_projects, settings.noise_sessions)

    @property
    def options(self) -> tuple[str, ...]:
        """Returns the options by which a command of ours finds the workspace."""
        return "--workspace", self.root, *(() if self.own_place else ("--db", self.database.path))

    def close(self) -> None:
        """Closes the database connection cleanly."""
        self.database.close()


class Request(NamedTuple):
    """Describes what a pass is asked to do. `paths` None: everything. `now_us`: microseconds since 1970 UTC.

    With `settle_seconds` (the daemon), a file that is younger and looks broken, or a name that is gone and not yet
    `confirmed`, is left for a later look: it may be half-written, or half of a rename. `patience` is how long to wait
    for another command's pass, in seconds; then `WorkspaceError` (`busy`). With `resume`, write flows whose caller died
    are completed. With `follow_removals`, what another program removed is removed. Sources from sessions before
    `since_us` are left in the outbox.
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
    since_us: int = 0

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

    def __init__(self, workspace: Workspace, request: Request, outcome: Outcome | None = None) -> None:
        self.workspace = workspace
        self.request = request
        self.outcome = outcome or Outcome()
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


# ── what takes part in a pass ──


class Deriver(Protocol):
    """Derives the rows of its tables from sources of some kinds.

    Rows made under another version are rebuilt by the next pass, together with those of derivers that come `after` it:
    its tables are emptied and all its sources updated, `batch` of them at a time. What earlier derivers move during a
    backlog `waits` for its end, so that it is processed once.
    """

    name: str
    version: str = "1"
    tables: tuple[str, ...]
    kinds: frozenset[str]
    after: tuple[str, ...] = ()
    batch: int = 250
    waits: bool = True

    @abstractmethod
    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every source of its rows; derivers that share a kind yield the same sources of that kind."""

    def clear(self, database: Database) -> None:
        """Empties its tables."""
        for table in self.tables:
            database.execute(f"delete from {table}")

    def prepare(self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive) -> Any:
        """Does the slow work for some sources, without writing.

        `earlier` has what earlier derivers prepared for the same batch. `alive` is called every now and then; an
        exception that it raises ends the work.
        """
        return sources

    @abstractmethod
    def update(self, database: Database, prepared: Any, alive: Alive) -> Change:
        """Updates its rows, in the caller's transaction. Equal rows are not written again."""


class Recovery(Protocol):
    """Completes, before a pass, what a process that died left unfinished."""

    name: str

    @abstractmethod
    def recover(self, run: Pass) -> AbstractContextManager[None]:
        """Recovers what it can before the pass, which runs inside the context; adds paths to look at to the request."""


class Eraser(Protocol):
    """Erases data of removed sessions that a feature keeps besides the rows its tables declare."""

    name: str

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> Any:
        """Finds what has to go, before the transaction, while the rows still contain the sessions' text."""
        return None

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: Any) -> Callable[[], None] | None:
        """Erases it, in the transaction that deletes the rows; returns what has to run once derivers have updated."""
        return None

    def forget(self, database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> int:
        """Deletes rows of removed sessions beyond what tables declare; returns how many. In the caller's transaction.

        `sessions` are the ids and keys of those of which rows or seals exist. Called in every pass that writes rows.
        """
        return 0

    def lift(self, database: Database) -> None:
        """Updates what the feature keeps when a removal is lifted. In the caller's transaction."""

    def sanitize(self, database: Database) -> None:
        """Applies the sanitizer again to rows that are not derived from a file. In the caller's transaction."""


class Maintenance(Protocol):
    """Updates what can change without an event; what it writes appears on the pages of the same pass."""

    name: str
    # False for stages that write files or record permanently what they did: a pass over a checked-out copy skips them.
    database_only: bool = False

    def due(self, run: Pass) -> bool:
        """Returns whether there may be something to do; this check must be cheap."""
        return True

    @abstractmethod
    def run(self, run: Pass) -> None:
        """Does the work; adds what moved and what went wrong to the outcome."""


class Publisher(Protocol):
    """Keeps files in line with the rows they are composed from, after the commit.

    What is `early` is published as soon as the newest files of a first index are found, too.
    """

    name: str
    early: bool = False

    def mark(self, database: Database, change: Change) -> None:
        """Marks what has to be composed again, in the transaction in which its inputs moved."""

    @abstractmethod
    def stale(self, run: Pass) -> Iterable[str]:
        """Yields the keys of what has to be composed again."""

    @abstractmethod
    def publish(self, run: Pass, key: str) -> None:
        """Composes one file and writes it if it differs. Raises `OSError`, `SignetSyncError`."""


class InFull(NamedTuple):
    """Registers a stage of full passes; other passes do not load it."""

    place: str


class Pipeline:
    """Holds the registered stages, given as `module:class`; each is loaded when it is first needed."""

    def __init__(
        self,
        derivers: Iterable[str | Deriver] = (),
        recoveries: Iterable[str | Recovery] = (),
        erasers: Iterable[str | Eraser] = (),
        maintenance: Iterable[str | InFull | Maintenance] = (),
        publishers: Iterable[str | Publisher] = (),
    ) -> None:
        self._registered = tuple(derivers)
        self.recoveries = _Lazy[Recovery](recoveries)
        self.erasers = _Lazy[Eraser](erasers)
        self.maintenance = _Lazy[Maintenance](maintenance)
        self.publishers = _Lazy[Publisher](publishers)

    @cached_property
    def derivers(self) -> tuple[Deriver, ...]:
        """Returns every deriver, each behind those that it comes `after`."""
        loaded: dict[str, Deriver] = {one.name: one for one in _Lazy[Deriver](self._registered)}
        order = TopologicalSorter({name: one.after for name, one in loaded.items()}).static_order()
        return tuple(loaded[name] for name in order)


class _Lazy(Generic[T]):
    """Loads each stage when it is first reached."""

    def __init__(self, registered: Iterable[Any]) -> None:
        self._registered = tuple(registered)
        self._loaded: dict[Any, T] = {}

    def __iter__(self) -> Iterator[T]:
        return self.load(full=True)

    def load(self, *, full: bool) -> Iterator[T]:
        """Yields the stages of every pass, or with `full` also those of full passes only."""
        for registered in self._registered:
            if full or not isinstance(registered, InFull):
                place = registered.place if isinstance(registered, InFull) else registered
                if place not in self._loaded:
                    self._loaded[place] = _load(place)
                yield self._loaded[place]


def _load(registered: Any) -> Any:
    if not isinstance(registered, str):
        return registered
    module, _, name = registered.partition(":")
    return getattr(import_module(module), name)()
