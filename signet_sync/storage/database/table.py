"""What a table declares about itself, once, and the types of columns that leave the database.

Creation and rebuild, backup, bundle and salvage, privacy removal, the canonical dump and docs/schema.md follow from it.
"""

import re
from functools import cache
from types import NoneType
from typing import Any, Generic, Literal, NamedTuple, NewType, TypeVar, get_args, get_origin, get_type_hints

SESSION = ("agent_id", "session_token", "session_id")
NUMBER = ("session",)  # of a session, in `sessions`
FIRST = 3  # the schema of version 0.1.0

# Types of columns; `backup.bundle_format` says what a value of each must be. Plain `str` is `Text`.
Agent = NewType("Agent", str)
Artifact = NewType("Artifact", str)  # a path
Body = NewType("Body", str)  # sanitized, of several lines
Count = NewType("Count", int)
Day = NewType("Day", str)
FileBytes = NewType("FileBytes", bytes)  # that a file holds, too
Hash = NewType("Hash", str)  # SHA-256, hexadecimal
Id = NewType("Id", str)  # of a node, fact, thread, entity or memory
Instant = NewType("Instant", int)  # microseconds since 1970 UTC at which the row was made
Mark = NewType("Mark", str)  # half a SHA-256, hexadecimal
MemoryId = NewType("MemoryId", str)
Micros = NewType("Micros", int)  # any other moment
Number = NewType("Number", int)
Outside = NewType("Outside", str)  # of a harness: a path or an id, without secrets
Said = NewType("Said", str)  # sanitized, of one line
SweepId = NewType("SweepId", str)
Text = NewType("Text", str)
Token = NewType("Token", str)
When = NewType("When", str)  # ISO 8601

_Item = TypeVar("_Item")


def placeholders(count: int) -> str:
    """As many question marks as there are values."""
    return ", ".join("?" * count)


class Escaped(list[_Item], Generic[_Item]):
    """A column of JSON, as every `list` and `dict` is, but written with ASCII alone."""


class Joined(NamedTuple):
    """A table with the values that its numbers stand for: columns to be selected, and what they are selected from."""

    columns: str
    tables: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.split()[-1].rpartition(".")[2] for column in self.columns.split(",")]


class Table(NamedTuple):
    """A table. `ddl`: what makes it, its indexes and options.

    kind: a rebuild drops what is derived, and leaves what is native.
    holds: a line of docs/schema.md.
    row: of a native table that is backed up the columns and their types, as a class with annotations.
    session: the columns that name the session whose row it is, or the one of its number; with the session the row goes.
    told: how it is read where a row holds numbers of sessions, artifacts or the like in place of their names.
    artifact: the columns (the agent and) the path of the artifact whose row it is; with the artifact the row goes.
    handle: the column of an id that a page may show; with what the id stands for a native row goes.
    texts: columns that may hold anybody's words; a row goes where they hold a word that only removed texts had.
    json: of a table without `row`, the columns that hold JSON.
    key: its order in the canonical dump; without one the table is not in it, because it holds nothing that follows
    from files. `local` are columns that are left out: they belong to a machine or a moment.
    only: a condition: which rows of a native table are worth keeping, and which of a derived one follow from files.
    kept: "elsewhere" for rows that stand in files beside the database: the backup that stands there, too, lacks them.
    salvaged: whether what can be read of a damaged database is taken over; not what says how its other rows stood.
    mark: an aggregate that changes with every row that is kept and costs less than to read all of them, as is done
    without one.
    since: the version of the schema that has it first.
    """

    name: str
    ddl: tuple[str, ...]
    kind: Literal["derived", "native"]
    holds: str
    row: type | None = None
    session: tuple[str, str, str] | tuple[str] | None = None
    told: Joined | None = None
    artifact: tuple[str, ...] | None = None
    handle: str | None = None
    texts: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    only: str | None = None
    kept: Literal["always", "elsewhere"] = "always"
    salvaged: bool = True
    mark: str | None = None
    since: int = FIRST

    @property
    def types(self) -> dict[str, Any]:
        """The columns that are backed up, with their types."""
        return _types(self.row) if self.row else {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The same but for bytes that a file holds, too."""
        return tuple(name for name, kind in self.types.items() if bare(kind) is not FileBytes)

    @property
    def json_columns(self) -> tuple[str, ...]:
        """Those that hold JSON."""
        return _json(self.row) if self.row else self.json

    @property
    def rows(self) -> str:
        """What `only` leaves of it, with names in the place of numbers, to be selected from."""
        rows = f"(select {self.told.columns} from {self.told.tables})" if self.told else self.name
        return f"(select * from {rows} where {self.only})" if self.only else rows

    @property
    def indexes(self) -> dict[str, str]:
        """What makes each of its indexes, by name."""
        return {statement.split()[2]: statement for statement in self.ddl if statement.startswith("create index")}

    @property
    def is_full_text(self) -> bool:
        """Whether it holds words of the rows of another table."""
        return self.ddl[0].startswith("create virtual table")


def native(holds: str, *ddl: str, **declared: Any) -> Table:
    """A table that a rebuild leaves alone, named by the first statement."""
    return Table(_named(ddl[0]), ddl, "native", holds, **declared)


def derived(holds: str, *ddl: str, **declared: Any) -> Table:
    """A table that a rebuild drops, named by the first statement."""
    return Table(_named(ddl[0]), ddl, "derived", holds, **declared)


def all_of(*columns: str) -> str:
    """An aggregate of some columns of all rows."""
    row = " || ',' || ".join(f"quote({column})" for column in columns)
    return f"group_concat({row}, ';')"


def _named(statement: str) -> str:
    return re.split(r"\W", statement.partition("table ")[2])[0]


@cache
def _types(row: type) -> dict[str, Any]:
    return get_type_hints(row)


@cache
def _json(row: type) -> tuple[str, ...]:
    return tuple(name for name, kind in _types(row).items() if is_json(kind))


def bare(kind: Any) -> Any:
    """A column's type without `| None`."""
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if NoneType in get_args(kind) and len(others) == 1 else kind


def is_bytes(kind: Any) -> bool:
    """Whether a column of this type holds bytes."""
    return bare(kind) in (bytes, FileBytes)


def is_json(kind: Any) -> bool:
    """Whether a column of this type holds JSON."""
    return isinstance(found := get_origin(bare(kind)), type) and issubclass(found, (list, dict))
