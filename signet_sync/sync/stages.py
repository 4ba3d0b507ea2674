"""Defines the interfaces a feature implements to take part in a pass, and the pipeline that loads them lazily."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from graphlib import TopologicalSorter
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from signet_sync.formats.artifact import Tombstone
from signet_sync.storage.database.connection import Database

if TYPE_CHECKING:
    from signet_sync.sync.request import Pass

T = TypeVar("T")

# Kinds of sources that the pass itself finds: a session that changed, and one of which only the manifest changed.
SESSION, MANIFEST = "session", "manifest"


Alive = Callable[[], None]


class Source(NamedTuple):
    """Names what derived rows are computed from: a session by its token and id, anything else by an id alone."""

    kind: str
    agent_id: str
    id: str
    session_id: str = ""

    @property
    def session(self) -> tuple[str, str, str]:
        """Returns agent, token and id of a session."""
        return self.agent_id, self.id, self.session_id


class Change:
    """Collects what an update moved: sources, file paths, agents and (agent, day) pairs whose pages may need an update.

    `derived` counts the sources that derivers changed; they are not kept, because a whole vault has millions of them.
    """

    __slots__ = ("agents", "days", "derived", "paths", "sources")

    def __init__(
        self, sources: Iterable[Source] = (), agents: Iterable[str] = (), days: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.sources, self.agents, self.days = set(sources), set(agents), set(days)
        self.paths: set[str] = set()
        self.derived = 0

    def add(self, other: "Change") -> None:
        """Adds another change to this one."""
        self.sources |= other.sources
        self.agents |= other.agents
        self.days |= other.days
        self.paths |= other.paths
        self.derived += other.derived


class Work(NamedTuple):
    """Describes slow pure work: a function that workers can import, and a value for each source."""

    function: Callable[[Any], Any]
    values: Iterable[tuple[Source, Any]]


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

    def work(self, database: Database, sources: Sequence[Source]) -> Work | None:
        """Returns the slow part of preparing, for workers to do while earlier sources are still being written.

        The values must therefore not depend on anything that a deriver writes.
        """
        return None

    def prepare(self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive) -> Any:
        """Does the slow work for some sources, without writing.

        `earlier` has what earlier derivers prepared for the same batch and, under this deriver's own name, the workers'
        answers by source; any of these answers may be missing. `alive` is called every now and then; an exception that
        it raises ends the work.
        """
        return sources

    @abstractmethod
    def update(self, database: Database, prepared: Any, alive: Alive) -> Change:
        """Updates its rows, in the caller's transaction. Equal rows are not written again."""


class Recovery(Protocol):
    """Completes, before a pass, what a process that died left unfinished."""

    name: str

    @abstractmethod
    def recover(self, run: "Pass") -> AbstractContextManager[None]:
        """Recovers what it can before the pass, which runs inside the context; adds paths to look at to the request."""


class Eraser(Protocol):
    """Erases data of removed sessions that a feature keeps besides the rows its tables declare."""

    name: str

    def gather(self, run: "Pass", removed: "Sequence[Tombstone]") -> Any:
        """Finds what has to go, before the transaction, while the rows still contain the sessions' text."""
        return None

    def erase(self, run: "Pass", removed: "Sequence[Tombstone]", gathered: Any) -> Callable[[], None] | None:
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

    def due(self, run: "Pass") -> bool:
        """Returns whether there may be something to do; this check must be cheap."""
        return True

    @abstractmethod
    def run(self, run: "Pass") -> None:
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
    def stale(self, run: "Pass") -> Iterable[str]:
        """Yields the keys of what has to be composed again."""

    @abstractmethod
    def publish(self, run: "Pass", key: str) -> None:
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
        return self.of(full=True)

    def of(self, *, full: bool) -> Iterator[T]:
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
