"""Keeps the open tables as Parquet: of each workspace one file in the folder of each table, and a note of its state.

The note is deleted before rows change and written after: a workspace whose writer died is indexed again. Each file is
replaced as a whole, so that any program may read `TABLE/*.parquet` at any time.
"""

import glob
import json
import os
from collections.abc import Collection, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from signet_sync.errors import SignetSyncError, UsageError, extra_hint, place_of
from signet_sync.fleet.places import file_system
from signet_sync.fleet.rows import OPEN_TABLES, VERSION, OpenTable, TableRow
from signet_sync.storage import durable

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTES = "workspaces"


class State(NamedTuple):
    """The state of one workspace in the tables: of which files, by which rules, and how many rows each table has."""

    workspace: str
    listing: str
    stamp: str
    rows: dict[str, int]


class ParquetTables:
    """Tables in a folder of this machine or at a URL of fsspec. Every method raises `SignetSyncError` if it fails."""

    def __init__(self, place: str) -> None:
        """Raises `UsageError` for a URL with a password, or without its package."""
        self.local = "://" not in place or place.startswith("file://")
        if self.local:
            self.url = os.path.abspath(os.path.expanduser(place.removeprefix("file://")))
            return
        if "@" in urlsplit(place).netloc:
            hint = "leave them out: the environment or the cloud's own settings give access"
            raise UsageError("a URL of tables contains a user or password", hint=hint, code="secret-in-url")
        self.url = place.rstrip("/")
        self.system, root = file_system(place)
        self._root = root.rstrip("/")

    def states(self) -> dict[str, State]:
        """Returns the states of all workspaces whose rows are whole, by name."""
        notes: list[bytes] = []
        with _failing(self.url):
            if self.local:
                for folder in (_NOTES, *(table.name for table in OPEN_TABLES)):
                    with suppress(FileNotFoundError):  # what a writer that died left of a file
                        durable.sweep(os.path.join(self.url, folder))
                for path in glob.glob(os.path.join(glob.escape(self.url), _NOTES, "*.json")):
                    with open(path, "rb") as handle:
                        notes.append(handle.read())
            elif names := self.system.glob(f"{self._root}/{_NOTES}/*.json"):
                notes += self.system.cat(names).values()
        found = {}
        for raw in notes:
            with suppress(ValueError, TypeError, KeyError):  # damaged: its workspace is indexed again
                state = State(**json.loads(raw))
                found[state.workspace] = state
        return found

    def write(self, state: State, rows: Mapping[str, list[TableRow]]) -> None:
        """Replaces the rows of a workspace."""
        name = _name_of(state.workspace)
        self._delete([f"{_NOTES}/{name}.json"])
        for table in OPEN_TABLES:
            self._write(f"{table.name}/{name}.parquet", packed(table, state.workspace, rows[table.name]))
        self._write(f"{_NOTES}/{name}.json", json.dumps(state._asdict()).encode())

    def files(self, table: str, workspaces: Collection[str]) -> list[str]:
        """Returns the files of a table that have the rows of workspaces, as DuckDB takes them: it reads globs."""
        where = glob.escape(self.url) if self.local else self.url
        return [f"{where}/{table}/{_name_of(workspace)}.parquet" for workspace in sorted(workspaces)]

    def drop(self, workspaces: Collection[str]) -> None:
        """Deletes the rows of workspaces."""
        for name in map(_name_of, workspaces):
            self._delete([f"{_NOTES}/{name}.json", *(f"{table.name}/{name}.parquet" for table in OPEN_TABLES)])

    def _write(self, path: str, data: bytes) -> None:
        with _failing(self.url):
            if self.local:
                full = os.path.join(self.url, path)
                durable.private_folder(os.path.dirname(full))
                os.close(durable.publish(full, data))
                return
            full = f"{self._root}/{path}"
            if not getattr(self.system, "async_impl", False):
                self.system.makedirs(full.rpartition("/")[0], exist_ok=True)
            self.system.pipe_file(full, data)

    def _delete(self, paths: Collection[str]) -> None:
        with _failing(self.url):
            for path in paths:
                with suppress(FileNotFoundError):
                    if self.local:
                        durable.unlink(os.path.join(self.url, path))
                    else:
                        self.system.rm_file(f"{self._root}/{path}")


def packed(table: OpenTable, workspace: str, rows: list[TableRow]) -> bytes:
    """Returns rows as a Parquet file, the workspace before them. Raises `UsageError` without the library."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("tables need an optional package", hint=extra_hint("fleet")) from None
    types = {"int": arrow.int64(), "bool": arrow.bool_(), "time": arrow.timestamp("us", tz="UTC")}
    fields = [arrow.field("workspace", arrow.string())]
    fields += [arrow.field(column, types.get(kind, arrow.string())) for column, kind in table.columns.items()]
    schema = arrow.schema(fields, metadata={"signet-sync": f"{table.name} {VERSION}"})
    columns: list[Any] = [[workspace] * len(rows), *(zip(*rows, strict=True) if rows else ([] for _ in table.columns))]
    arrays = [arrow.array(values, type=field.type) for values, field in zip(columns, schema, strict=True)]
    into = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), into, compression="zstd")
    data: bytes = into.getvalue().to_pybytes()
    return data


def _name_of(workspace: str) -> str:
    return sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@contextmanager
def _failing(url: str) -> "Iterator[None]":
    """Turns what a store raises into one error, without the text of it, which may repeat what gave access."""
    try:
        yield
    except SignetSyncError:
        raise
    except Exception as error:  # noqa: BLE001 - each store has its own
        why = error.strerror if isinstance(error, OSError) and error.strerror else place_of(error)
        hint = "check the address and what gives access"
        message = f"the tables cannot be read or written: {why}"
        raise SignetSyncError(message, path=url, hint=hint, code="tables-unusable") from None
