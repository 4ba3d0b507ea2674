"""Says what a feature registers to take part in a pass, and loads it when a pass comes to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from signet_sync.storage.database.connection import Database

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone
    from signet_sync.sync.request import Pass

T = TypeVar("T")

# Kinds of sources that a pass itself finds: a session of which something moved, and one whose manifest alone did.
SESSION, MANIFEST = "session", "manifest"


Alive = Callable[[], None]


class Source(NamedTuple):
    """Names what rows follow from: a session by its token and id, anything else by an id alone."""

    kind: str
    agent_id: str
    id: str
    session_id: str = ""

    @property
    def session(self) -> tuple[str, str, str]:
        """Agent, token and id of a session."""
        return self.agent_id, self.id, self.session_id


@dataclass(slots=True)
class Change:
    """Says what moved: sources, paths of files, agents and (agent, day) pairs whose pages may have to follow.

    `derived` is how many sources derivers moved: of a whole vault's only those are kept that somebody asks for.
    """

    sources: set[Source] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    days: set[tuple[str, str]] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    derived: int = 0

    def add(self, other: Change) -> None:
        """Takes in what else moved."""
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
    """Keeps rows that follow from rows: those of its tables from sources of some kinds.

    Rows that were made under another version are rebuilt by the next pass, together with those of derivers `after` it:
    its tables are emptied and all its sources updated, `batch` of them at a time.
    """

    name: str
    version: str = "1"
    tables: tuple[str, ...]
    kinds: frozenset[str]
    after: tuple[str, ...] = ()
    batch: int = 250
    # Kinds of sources of which `finish` asks which ones moved.
    concludes: frozenset[str] = frozenset()

    @abstractmethod
    def sources(self, database: Database) -> Iterable[Source]:
        """Gives everything that its rows follow from; of a kind whoever follows that gives the same."""

    def clear(self, database: Database) -> None:
        """Empties its tables."""
        for table in self.tables:
            database.execute(f"delete from {table}")

    def work(self, database: Database, sources: Sequence[Source]) -> Work | None:
        """Gives the slow part of preparing, for workers: done while sources before these are still being written.

        So the values may follow from nothing that a deriver writes.
        """
        return None

    def prepare(self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive) -> Any:
        """Does the slow work for some sources, without writing.

        `earlier` is what derivers before it prepared for the same batch, and under its own name what workers answered,
        by source; they may have left anything to it. `alive` is called every now and then; what it
        raises ends the work.
        """
        return sources

    @abstractmethod
    def update(self, database: Database, prepared: Any, alive: Alive) -> Change:
        """Makes its rows follow, in the caller's transaction. Rows that are equal are not written again."""

    def finish(self, database: Database, change: Change | None) -> None:
        """Ends what rows of several batches follow from; `change` is what moved, None: everything may have.

        Of sources it holds those of the kinds that it `concludes`.
        """


class Recovery(Protocol):
    """Finishes, around every pass, what a process that died has left behind."""

    name: str

    @abstractmethod
    def recover(self, run: Pass) -> AbstractContextManager[None]:
        """Recovers what can be before the pass, which runs inside of it; paths to look at are added to its request."""


class Eraser(Protocol):
    """Takes what a feature keeps of removed sessions, beside the rows that its tables declare as theirs."""

    name: str

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> Any:
        """Finds what has to go while rows still say what the sessions said. Before the transaction."""
        return None

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: Any) -> Callable[[], None] | None:
        """Takes it out, in the transaction that takes the rows; gives what is to be done when others have followed."""
        return None

    def lift(self, database: Database) -> None:
        """Follows the end of a removal. In the caller's transaction."""

    def sanitize(self, database: Database) -> None:
        """Has rows that follow from no file pass the sanitizer again. In the caller's transaction."""


class Maintenance(Protocol):
    """Keeps true what no event tells of; what it writes is on the pages of the same pass."""

    name: str
    # Those that write files, or remember what they did for good, have no part in a pass over a checked-out copy.
    database_only: bool = False

    def due(self, run: Pass) -> bool:
        """Says whether there may be something to do, by what costs next to nothing to ask."""
        return True

    @abstractmethod
    def run(self, run: Pass) -> None:
        """Does it; what moved and what went wrong is added to the outcome."""


class Publisher(Protocol):
    """Keeps files that follow from rows, after the commit."""

    name: str

    def mark(self, database: Database, change: Change) -> None:
        """Marks what has to be composed anew, in the transaction in which its inputs moved."""

    @abstractmethod
    def stale(self, run: Pass) -> Iterable[str]:
        """Gives what has to be composed anew."""

    @abstractmethod
    def publish(self, run: Pass, key: str) -> None:
        """Composes it, and writes what differs. Raises what a disk raises, `SignetSyncError`."""


class InFull(NamedTuple):
    """Registers a stage of full passes; no other loads it."""

    place: str


class Pipeline:
    """Holds what is registered, by the places `module:class` at which it is loaded when it is first asked for."""

    def __init__(
        self,
        derivers: Iterable[str | Deriver] = (),
        recoveries: Iterable[str | Recovery] = (),
        erasers: Iterable[str | Eraser] = (),
        maintenance: Iterable[str | InFull | Maintenance] = (),
        publishers: Iterable[str | Publisher] = (),
        closing: Iterable[str | Maintenance] = (),
    ) -> None:
        self._registered = tuple(derivers)
        self.recoveries = _Lazy[Recovery](recoveries)
        self.erasers = _Lazy[Eraser](erasers)
        self.maintenance = _Lazy[Maintenance](maintenance)
        self.publishers = _Lazy[Publisher](publishers)
        # What must not happen inside of an operation that has made the pass itself.
        self.closing = _Lazy[Maintenance](closing)

    @cached_property
    def derivers(self) -> tuple[Deriver, ...]:
        """Every deriver, each behind those that it follows."""
        loaded: dict[str, Deriver] = {one.name: one for one in _Lazy[Deriver](self._registered)}
        order = TopologicalSorter({name: one.after for name, one in loaded.items()}).static_order()
        return tuple(loaded[name] for name in order)


class _Lazy(Generic[T]):
    """Loads stages when they are first gone through."""

    def __init__(self, registered: Iterable[Any]) -> None:
        self._registered = tuple(registered)
        self._loaded: dict[Any, T] = {}

    def __iter__(self) -> Iterator[T]:
        return self.of(full=True)

    def of(self, *, full: bool) -> Iterator[T]:
        """Gives those that have a part in every pass, or in a `full` one."""
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
