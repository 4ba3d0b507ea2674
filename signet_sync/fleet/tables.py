"""Keeps shares at a place: a folder of this machine or a URL of fsspec. Each machine writes its own, anyone reads all.

    shares/SHARE.json               what a share holds now: its one commit, which any engine reads as a table, too
    TABLE/share=SHARE/PART.parquet  its rows; a part is named by a digest of them
    removals/approved.json          what agents are to remove, and
    receipts/SHARE.json             what each of them did

A part is written before the commit that names it, and deleted after one that does not: a writer that dies, wherever,
leaves the last commit whole.
"""

import glob
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from signet_sync.errors import SignetSyncError, UsageError, extra_hint, place_of
from signet_sync.fleet.places import file_system
from signet_sync.storage import durable

# Raised with each change of a column: every share is then written again.
VERSION = 4
SHARES, RECEIPTS, APPROVED = "shares", "receipts", "removals/approved.json"
# Of columns the kinds: `name`, an id or path, kept distinct where a secret is taken out of it; `line`, words that
# somebody wrote, which only a share of `text` has; `said`, what a session is found by; `code`, a word of ours.
COLUMNS: dict[str, dict[str, str]] = {
    table: dict(column.split(":") for column in columns.split())
    for table, columns in {
        "sessions": """agent:name token:code session:name project:name harness:name started_at:time ended_at:time
            day:code path:name files:int size:int statements:int session_key:line sentence:line said:said""",
        "statements": """agent:name id:code kind:code speaker:code status:code sources:int first_at:time last_at:time
            day:code token:code session:name project:name path:name line:int text:line""",
        "files": "path:name verdict:code code:code notes:code agent:name size:int sha256:code message:line",
    }.items()
}
TABLES = tuple(COLUMNS)
_STALE = 86_400.0  # seconds after which a part that no commit names is nobody's work any more
_TRIES = 5


class Conflict(Exception):
    """Somebody else wrote a document since it was read."""


class Tables:
    """Documents and parts at a place. Every method raises `SignetSyncError` (`tables-unreachable`) if it fails."""

    def __init__(self, place: str) -> None:
        """Raises `UsageError` for a URL with a password, or without its package."""
        self.local = "://" not in place or place.startswith("file://")
        if self.local:
            place = os.path.abspath(os.path.expanduser(place.removeprefix("file://")))
        elif "@" in urlsplit(place).netloc:
            hint = "leave them out: the environment or the cloud's own settings give access"
            raise UsageError("a URL of tables contains a user or password", hint=hint, code="secret-in-url")
        self.url = place.rstrip("/")
        self.system, root = file_system(f"file://{place}" if self.local else place)
        self._root = place if self.local else root.rstrip("/")
        self._compares = "s3" in (self.system.protocol, *self.system.protocol)

    def address(self, path: str) -> str:
        """Returns a path as DuckDB takes it, which reads globs."""
        return f"{glob.escape(self.url) if self.local else self.url}/{path}"

    def names(self, folder: str) -> list[str]:
        """Lists the names in a folder, sorted; none if there is no such folder."""
        with self._translate_errors(), suppress(FileNotFoundError):
            found = self.system.ls(f"{self._root}/{folder}", detail=False, refresh=True)
            return sorted(name.rstrip("/").rpartition("/")[2] for name in found)
        return []

    def read(self, path: str) -> tuple[dict[str, Any] | None, str]:
        """Reads a document with its version, for `write`; None if there is none, or a damaged one."""
        raw, version = b"", ""
        with self._translate_errors(), suppress(FileNotFoundError):
            # The version first: what is written in between makes the later comparison fail.
            found = self.system.info(f"{self._root}/{path}", refresh=True) if self._compares else {}
            raw = self.system.cat_file(f"{self._root}/{path}")
            version = found.get("ETag") or sha256(raw).hexdigest()
        with suppress(ValueError):
            document = json.loads(raw)
            return (document if isinstance(document, dict) else None), version
        return None, version

    def read_all(self, folder: str) -> dict[str, dict[str, Any] | None]:
        """Reads every document of a folder by name; None is one that is damaged."""
        found, raws = dict[str, dict[str, Any] | None](), dict[str, Any]()
        names = [name for name in self.names(folder) if name.endswith(".json")]
        if names:
            with self._translate_errors():
                raws = self.system.cat([f"{self._root}/{folder}/{name}" for name in names], on_error="return")
                raws = {path.rpartition("/")[2]: raw for path, raw in raws.items()}
        for name in names:
            document = None
            with suppress(ValueError, TypeError, KeyError):
                document = json.loads(raws[name])
            found[name.removesuffix(".json")] = document if isinstance(document, dict) else None
        return found

    def write(self, path: str, document: Mapping[str, Any], version: str) -> None:
        """Writes a document that is as it was read, whole or not at all. Raises `Conflict` if it is not."""
        data = json.dumps(document, ensure_ascii=False, sort_keys=True).encode() + b"\n"
        if not self._compares:
            if self.read(path)[1] != version:
                raise Conflict
            self.put(path, data)
            return
        compared = {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        try:
            with self._translate_errors():
                self.system.pipe_file(f"{self._root}/{path}", data, **compared)
        except SignetSyncError as error:
            said = getattr(getattr(error.__cause__, "__cause__", None), "response", {})
            if said.get("ResponseMetadata", {}).get("HTTPStatusCode") in (409, 412):
                raise Conflict from None
            raise

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, whole or not at all. In a folder its rights, and the umask, say who may read it."""
        with self._translate_errors():
            full = f"{self._root}/{path}"
            if self.local:
                os.makedirs(os.path.dirname(full), exist_ok=True)
                os.close(durable.publish(full, data, 0o666))
                return
            if not getattr(self.system, "async_impl", False):
                self.system.makedirs(full.rpartition("/")[0], exist_ok=True)
            self.system.pipe_file(full, data)

    def delete(self, path: str) -> None:
        """Deletes a file, if it is there."""
        with self._translate_errors(), suppress(FileNotFoundError):
            self.system.rm_file(f"{self._root}/{path}")

    def holds(self, commit: Mapping[str, Any]) -> bool:
        """Returns whether every part that a commit names is there."""
        return all(f"{commit[table]}.parquet" in self.names(f"{table}/share={commit['share']}") for table in TABLES)

    def commit(self, share: str, made: Mapping[str, Sequence[tuple[Any, ...]]], **more: Any) -> dict[str, Any]:
        """Writes the tables of a share that changed, then its commit; returns that.

        Another writer's commit in between is replaced as a whole. Raises `conflict` if that goes on.
        """
        names = {table: part_of(made[table]) for table in TABLES}
        for _try in range(_TRIES):
            before, version = self.read(f"{SHARES}/{share}.json")
            for table, part in names.items():
                if f"{part}.parquet" not in self.names(f"{table}/share={share}"):
                    self.put(f"{table}/share={share}/{part}.parquet", pack_rows(table, part, made[table]))
            new = {"share": share, **more, **names}
            try:
                self.write(f"{SHARES}/{share}.json", new, version)
            except Conflict:
                continue
            self._sweep(share, before or {}, names)
            return new
        hint = "share one workspace from one machine only, or try again"
        raise SignetSyncError("somebody else keeps writing this share", path=self.url, hint=hint, code="conflict")

    def withdraw(self, share: str) -> None:
        """Deletes a share: first its commit."""
        self.delete(f"{SHARES}/{share}.json")
        for table in TABLES:
            for name in self.names(f"{table}/share={share}"):
                self.delete(f"{table}/share={share}/{name}")

    def _sweep(self, share: str, before: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Deletes the parts of the commit that was replaced, and what a writer that died has left long ago."""
        for table, part in names.items():
            for name in self.names(f"{table}/share={share}"):
                path = f"{table}/share={share}/{name}"
                if name != f"{part}.parquet" and (name == f"{before.get(table)}.parquet" or self._is_stale(path)):
                    self.delete(path)

    def _is_stale(self, path: str) -> bool:
        found = time.time()
        with suppress(Exception):  # gone, or a store that keeps no times: then it stays
            found = self.system.modified(f"{self._root}/{path}").timestamp()
        return time.time() - found > _STALE

    @contextmanager
    def _translate_errors(self) -> "Iterator[None]":
        """Turns what a store raises into one error, without the text of it, which may repeat what gave access."""
        try:
            yield
        except (SignetSyncError, FileNotFoundError):
            raise
        except Exception as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else place_of(error)
            hint = "check the address and what gives access"
            message = f"the tables cannot be read or written: {why}"
            raise SignetSyncError(message, path=self.url, hint=hint, code="tables-unreachable") from error


def part_of(rows: Sequence[tuple[Any, ...]]) -> str:
    """Names a part by its rows."""
    return sha256(f"{VERSION} {rows!r}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def pack_rows(table: str, part: str, rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Returns rows as a Parquet file, each with the part that it is of. Raises `UsageError` without the library."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("tables need an optional package", hint=extra_hint("fleet")) from None
    types = {"int": arrow.int64(), "time": arrow.timestamp("us", tz="UTC")}
    columns = {"part": "code", **COLUMNS[table]}
    schema = arrow.schema([(name, types.get(kind, arrow.string())) for name, kind in columns.items()])
    values: list[Any] = [[part] * len(rows), *(zip(*rows, strict=True) if rows else ([] for _ in COLUMNS[table]))]
    arrays = [arrow.array(one, type=field.type) for one, field in zip(values, schema, strict=True)]
    into = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), into, compression="zstd")
    data: bytes = into.getvalue().to_pybytes()
    return data
