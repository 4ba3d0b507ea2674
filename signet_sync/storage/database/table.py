"""Declares everything about a table, once, and the types of columns that leave the database.

Creation and rebuild, backup and salvage, privacy removal and the canonical dump follow from it.
"""

from types import NoneType
from typing import Any, Generic, Literal, NamedTuple, NewType, TypeVar, get_args, get_origin

from signet_sync.formats.filename import TOKEN
from signet_sync.formats.paths import AGENT

SESSION = ("agent_id", "session_token", "session_id")
NUMBER = ("session",)  # of a session, in `sessions`

# Types of columns; `backup.row_form` says what a value of each must be. Plain `str` is `Text`.
Agent = NewType("Agent", str)
Artifact = NewType("Artifact", str)  # a path
Body = NewType("Body", str)  # sanitized, several lines
Count = NewType("Count", int)
Day = NewType("Day", str)
FileBytes = NewType("FileBytes", bytes)  # bytes that are also in a file
Hash = NewType("Hash", str)  # SHA-256, hexadecimal
Id = NewType("Id", str)  # of a node, statement, thread, entity or memory
Instant = NewType("Instant", int)  # microseconds since 1970 UTC at which the row was made
Mark = NewType("Mark", str)  # half a SHA-256, hexadecimal
MemoryId = NewType("MemoryId", str)
Micros = NewType("Micros", int)  # any other moment
Number = NewType("Number", int)
Outside = NewType("Outside", str)  # of a harness: a path or an id, without secrets
SanitizedLine = NewType("SanitizedLine", str)  # sanitized, one line
SweepId = NewType("SweepId", str)
Text = NewType("Text", str)
Token = NewType("Token", str)
When = NewType("When", str)  # ISO 8601

# What a value of a type looks like.
PATTERNS: dict[Any, str] = {
    Agent: f"^(?:{AGENT})$",
    Day: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    Hash: r"^[0-9a-f]{64}$",
    Id: r"^[skcaetfmupr]-[a-z2-7]{12}$",
    Mark: r"^[0-9a-f]{32}$",
    MemoryId: r"^m-[a-z2-7]{12}$",
    SweepId: r"^[0-9]{8}T[0-9]{9}Z$",
    Token: rf"^(?:{TOKEN.pattern})$",
}

_Item = TypeVar("_Item")


def placeholders(count: int) -> str:
    """Returns as many question marks as there are values."""
    return ", ".join("?" * count)


class Escaped(list[_Item], Generic[_Item]):
    """A column of JSON, like every `list` and `dict`, but written in ASCII only."""


class JoinedRows(NamedTuple):
    """A table joined with the names that its numbers refer to: the columns to select, and the tables to select from."""

    columns: str
    tables: str

    @property
    def names(self) -> list[str]:
        """Lists the names of the columns."""
        return [column.split()[-1].rpartition(".")[2] for column in self.columns.split(",")]


class Table(NamedTuple):
    """A table. `ddl`: the statements that create it, its indexes and options.

    kind: a rebuild drops what is derived, and keeps what is native.
    holds: what its rows are, in a line.
    row: for a native table that is backed up, the columns and their types.
    session: the columns that name the session a row belongs to, or its number; removing the session removes the row.
    joined: how to read a table that holds numbers of sessions, artifacts or the like, with their names instead.
    artifact: the columns (the agent and) the path of the artifact a row belongs to; it is removed with the artifact.
    handle: the column of an id that a page may show; a native row is removed with what has the id.
    key: its order in the canonical dump; a table without one is not in the dump, because nothing in it follows
        from files. `local` are columns that are left out: they belong to a machine or a moment.
    only: a condition: which rows of a native table are worth keeping, and which of a derived one follow from files.
    kept: "elsewhere" for rows that are also files beside the database: a backup beside the database leaves them out.
    salvaged: whether rows of a damaged database are taken over; not if they describe the state of its other rows.
    mark: an aggregate that changes with every row that is kept and is cheaper than reading all of them, which is
        done without one.

    A column that is added later may be null or has a default: a row of before has no value for it.
    """

    name: str
    ddl: tuple[str, ...]
    kind: Literal["derived", "native"]
    holds: str
    row: dict[str, Any] | None = None
    session: tuple[str, str, str] | tuple[str] | None = None
    joined: JoinedRows | None = None
    artifact: tuple[str, ...] | None = None
    handle: str | None = None
    key: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    only: str | None = None
    kept: Literal["always", "elsewhere"] = "always"
    salvaged: bool = True
    mark: str | None = None

    @property
    def types(self) -> dict[str, Any]:
        """Maps the columns that are backed up to their types."""
        return self.row or {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Lists the columns that are backed up, without bytes that are also in a file."""
        return tuple(name for name, kind in self.types.items() if bare(kind) is not FileBytes)

    @property
    def json_columns(self) -> tuple[str, ...]:
        """Lists the columns that hold JSON."""
        return tuple(name for name, kind in self.types.items() if is_json(kind))

    @property
    def rows(self) -> str:
        """Returns what to select from: the rows that match `only`, with names instead of numbers."""
        rows = f"(select {self.joined.columns} from {self.joined.tables})" if self.joined else self.name
        return f"(select * from {rows} where {self.only})" if self.only else rows

    @property
    def is_full_text(self) -> bool:
        """Returns whether it indexes words of the rows of another table."""
        return self.ddl[0].startswith("create virtual table")


def columns(**types: Any) -> dict[str, Any]:
    """Declares the columns of a table that are backed up, by their types."""
    return types


def native(holds: str, *ddl: str, **declared: Any) -> Table:
    """Declares a table that a rebuild keeps, named by the first statement."""
    return Table(_read_name(ddl[0]), ddl, "native", holds, **declared)


def declare_derived(holds: str, *ddl: str, **declared: Any) -> Table:
    """Declares a table that a rebuild drops, named by the first statement."""
    return Table(_read_name(ddl[0]), ddl, "derived", holds, **declared)


def all_of(*columns: str) -> str:
    """Returns an aggregate of some columns of all rows."""
    row = " || ',' || ".join(f"quote({column})" for column in columns)
    return f"group_concat({row}, ';')"


def _read_name(statement: str) -> str:
    return statement.partition("table ")[2].replace("(", " ").split()[0]


def bare(kind: Any) -> Any:
    """Returns a column's type without `| None`."""
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if NoneType in get_args(kind) and len(others) == 1 else kind


def is_json(kind: Any) -> bool:
    """Returns whether a column of this type holds JSON."""
    return isinstance(found := get_origin(bare(kind)), type) and issubclass(found, (list, dict))
