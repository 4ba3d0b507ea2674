"""Says what a feature registers to take part in a pass, and loads it when a pass comes to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from signet_sync.index.database import Database

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
    """Says what moved: sources, paths of files, agents and (agent, day) pairs whose pages may have to follow."""

    sources: set[Source] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    days: set[tuple[str, str]] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)

    def add(self, other: Change) -> None:
        """Takes in what else moved."""
        self.sources |= other.sources
        self.agents |= other.agents
        self.days |= other.days
        self.paths |= other.paths


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
    batch: int = 500

    @abstractmethod
    def sources(self, database: Database) -> Iterable[Source]:
        """Gives everything that its rows follow from."""

    def clear(self, database: Database) -> None:
        """Empties its tables."""
        for table in self.tables:
            database.execute(f"delete from {table}")

    def prepare(self, database: Database, sources: Sequence[Source], earlier: Mapping[str, Any], alive: Alive) -> Any:
        """Does the slow work for some sources, without writing.

        `earlier` is what derivers before it prepared for the same batch. `alive` is called every now and then; what it
        raises ends the work.
        """
        return sources

    @abstractmethod
    def update(self, database: Database, prepared: Any, alive: Alive) -> Change:
        """Makes its rows follow, in the caller's transaction. Rows that are equal are not written again."""

    def finish(self, database: Database, change: Change | None) -> None:
        """Ends what rows of several batches follow from; `change` is what moved, None: everything may have."""


class Pipeline:
    """Holds what is registered, by the places `module:class` at which it is loaded when it is first asked for."""

    def __init__(self, derivers: Iterable[str | Deriver] = ()) -> None:
        self._derivers = tuple(derivers)

    @cached_property
    def derivers(self) -> tuple[Deriver, ...]:
        """Every deriver, each behind those that it follows."""
        loaded: dict[str, Deriver] = {one.name: one for one in map(_loaded, self._derivers)}
        order = TopologicalSorter({name: one.after for name, one in loaded.items()}).static_order()
        return tuple(loaded[name] for name in order)


def _loaded(registered: Any) -> Any:
    if not isinstance(registered, str):
        return registered
    module, _, name = registered.partition(":")
    return getattr(import_module(module), name)()
