"""Keeps the open tables as Parquet files; what a workspace holds changes as a whole, when its commit is written.

A commit names the files of one workspace. The manifest, written last, names the commits of all: it is the consistent
state that readers use. What neither names was left by a writer that died, or replaced, and is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet.tables.place import TablePlace, place_at
from signet_sync.fleet.tables.rows import TableRow, WorkspaceState
from signet_sync.fleet.tables.schema import OPEN_TABLES, VERSION, OpenTable
from signet_sync.formats.timestamps import day_of, iso

MANIFEST = "manifest.json"
COMMITS = "commits"
# Where files are that may be deleted if nothing names them; what else is in the place is not ours.
_OURS = (f"{COMMITS}/", *(f"{table.name}/workspace=" for table in OPEN_TABLES))
_LONGEST_NAME = 200  # bytes of a quoted URL that every file system takes as part of a name


class TableFile(NamedTuple):
    """A Parquet file of a commit: its path in the place, and how many rows and bytes it has."""

    path: str
    rows: int
    bytes: int


class Commit(NamedTuple):
    """The state of one workspace in the tables: of which files, by which rules, when, and where its rows are."""

    workspace: str
    listing: str
    stamp: str
    committed_at: str
    schema: int
    files: Mapping[str, TableFile]

    def rows(self) -> dict[str, int]:
        """Returns the number of rows of each table."""
        return {table: file.rows for table, file in self.files.items()}

    def is_current(self, listing: str, stamp: str) -> bool:
        """Returns whether it was made of the same files by the same rules."""
        return (self.listing, self.stamp) == (listing, stamp)


class Manifest(NamedTuple):
    """All commits by workspace, at a version that rises with every change."""

    version: int
    commits: Mapping[str, Commit]


class ParquetTables:
    """Tables in a place, for one writer at a time: a run, whose workers each commit other workspaces."""

    def __init__(self, place: str) -> None:
        self.place: TablePlace = place_at(place)
        self.url = self.place.url

    def manifest(self) -> Manifest:
        """Returns what the manifest names; nothing if there is none. Raises `SignetSyncError` if it is damaged."""
        raw = self.place.read(MANIFEST)
        if raw is None:
            return Manifest(0, {})
        try:
            document = json.loads(raw)
            commits = [_commit(one) for one in document["workspaces"]]
            return Manifest(int(document["version"]), {commit.workspace: commit for commit in commits})
        except (ValueError, KeyError, TypeError):
            raise SignetSyncError(
                "the manifest of the tables is damaged",
                path=f"{self.url}/{MANIFEST}",
                hint="delete it and run signet-sync fleet index again: all rows are made anew",
                code="tables-damaged",
            ) from None

    def commits(self) -> dict[str, Commit]:
        """Returns the newest commit of every workspace whose files are there, also those of a run that did not end."""
        there = set(self.place.names())
        commits = {**self.manifest().commits, **self._unpublished(there)}
        return {name: one for name, one in commits.items() if _paths(one) <= there}

    def write(self, state: WorkspaceState, rows: Mapping[str, list[TableRow]], before: Commit | None) -> Commit:
        """Writes the rows of a workspace, then its commit. A table whose bytes are those of before is not written."""
        files = {}
        for table in OPEN_TABLES:
            data = packed(table, rows[table.name])
            name = f"{sha256(data).hexdigest()[:32]}.parquet"
            old = before.files.get(table.name) if before is not None else None
            if old is not None and old.path.endswith(f"/{name}"):
                files[table.name] = old
                continue
            path = f"{table.name}/workspace={_quoted(state.workspace)}/committed_day={day_of(state.now_us)}/{name}"
            self.place.write(path, data)
            files[table.name] = TableFile(path, len(rows[table.name]), len(data))
        commit = Commit(state.workspace, state.listing, state.stamp, iso(state.now_us), VERSION, files)
        self.place.write(_commit_path(state.workspace), _json(_document(commit)))
        return commit

    def publish(self, commits: Mapping[str, Commit], dropped: Collection[str], now_us: int) -> Manifest:
        """Makes a run's commits what readers see, then deletes what they replace and the files of `dropped`.

        The manifest is read again before: what another run published meanwhile stays.
        """
        before = self.manifest()
        there = set(self.place.names())
        merged = {**before.commits, **self._unpublished(there), **commits}
        # What another run deleted meanwhile is made again by the next one.
        merged = {name: one for name, one in merged.items() if name not in dropped and _paths(one) <= there}
        after = before
        if merged != before.commits or before.version == 0:
            after = Manifest(before.version + 1, merged)
            document = {
                "format": "signet-sync fleet tables",
                "schema": VERSION,
                "version": after.version,
                "written_at": iso(now_us),
                "workspaces": [_document(merged[name]) for name in sorted(merged)],
            }
            self.place.write(MANIFEST, _json(document))
        kept = {path for commit in merged.values() for path in _paths(commit)}
        self.place.delete(sorted(path for path in there - kept if path.startswith(_OURS)))
        return after

    def _unpublished(self, there: set[str]) -> dict[str, Commit]:
        """Returns the commits that no manifest names yet, as far as all of their files are there."""
        found = {}
        for raw in self.place.read_all(path for path in sorted(there) if path.startswith(f"{COMMITS}/")).values():
            try:
                commit = _commit(json.loads(raw))
            except (ValueError, KeyError, TypeError):
                continue  # its workspace is indexed again
            if _paths(commit) <= there:
                found[commit.workspace] = commit
        return found


def packed(table: OpenTable, rows: Iterable[TableRow]) -> bytes:
    """Returns rows as a Parquet file; the same bytes for the same rows. Raises `UsageError` without the library."""
    arrow = library()
    from pyarrow import parquet

    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    schema = schema_of(table)
    made = arrow.Table.from_arrays(
        [arrow.array(values, type=field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
    into = arrow.BufferOutputStream()
    parquet.write_table(made, into, compression="zstd")
    data: bytes = into.getvalue().to_pybytes()
    return data


def schema_of(table: OpenTable) -> Any:
    """Returns the schema of a table's files; workspace and day of the commit are in their paths."""
    arrow = library()
    types = {"int": arrow.int64(), "bool": arrow.bool_(), "time": arrow.timestamp("us", tz="UTC")}
    fields = [arrow.field(column.name, types.get(column.kind, arrow.string())) for column in table.columns]
    return arrow.schema(fields, metadata={"signet-sync": f"{table.name} {VERSION}"})


def library() -> Any:
    """Returns pyarrow. Raises `UsageError` if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise UsageError("tables need an optional package", hint=extra_hint("fleet")) from None
    return pyarrow


def _quoted(workspace: str) -> str:
    name = quote(workspace, safe="")
    return name if len(name) <= _LONGEST_NAME else f"sha256-{_digest(workspace)}"


def _commit_path(workspace: str) -> str:
    return f"{COMMITS}/{_digest(workspace)}.json"


def _digest(workspace: str) -> str:
    return sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _paths(commit: Commit) -> set[str]:
    return {file.path for file in commit.files.values()}


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _document(commit: Commit) -> dict[str, Any]:
    return {**commit._asdict(), "files": {table: file._asdict() for table, file in commit.files.items()}}


def _commit(document: Mapping[str, Any]) -> Commit:
    files = {table: TableFile(**file) for table, file in document["files"].items()}
    return Commit(**{**document, "files": files})
