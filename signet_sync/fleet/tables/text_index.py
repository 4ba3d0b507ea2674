"""Keeps a full-text index over the tables of a place: a DuckDB file of this user, made once for each manifest."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from tempfile import mkdtemp
from typing import Any

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet.tables.parquet import Commit, Manifest, ParquetTables
from signet_sync.fleet.tables.schema import VERSION
from signet_sync.fleet.tables.selection import Selection, conditions
from signet_sync.storage import state_dir
from signet_sync.storage.durable import Replacing, private_folder, sync_path
from signet_sync.storage.locations import process_alive
from signet_sync.text.cjk import CJK

_BUILDING = re.compile(r"(\d+)-.+\.building", re.ASCII)
# Nothing is fetched or loaded unless we say so.
_CONFIG = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_OPTIONS = r"stemmer='none', stopwords='none', ignore='[^\p{L}\p{N}]+', strip_accents=1, lower=1, overwrite=1"


def folder_of(tables: ParquetTables) -> str:
    """Returns the folder of a place's indexes, in the folder of all state."""
    return os.path.join(state_dir.base(), "fleet", sha256(tables.url.encode()).hexdigest()[:32])


def discard(tables: ParquetTables, manifest: Manifest) -> None:
    """Deletes the indexes of a place but that of a manifest: a removed session must not stay in them."""
    folder, keep = folder_of(tables), _name_of(manifest)
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            building = _BUILDING.fullmatch(name)
            path = os.path.join(folder, name)
            if building is not None and process_alive(int(building[1])):
                continue
            if building is not None:
                shutil.rmtree(path, ignore_errors=True)
            elif name != keep:
                with suppress(FileNotFoundError):
                    os.unlink(path)


@contextmanager
def opened(tables: ParquetTables, *, install: bool = False) -> Iterator[Any]:
    """Yields a connection to the index of the present manifest, which is made if there is none yet.

    `install` lets DuckDB fetch its full-text extension from its own site. Raises `UsageError` without it.
    """
    for attempt in range(2):
        manifest = tables.manifest()
        if not manifest.version:
            raise UsageError("there are no tables here", path=tables.url, hint="signet-sync fleet index makes them")
        path = os.path.join(folder_of(tables), _name_of(manifest))
        if not os.path.exists(path):
            try:
                _build(tables, manifest, path, install=install)
            except FileNotFoundError:
                if attempt:
                    raise _moving(tables) from None
                continue  # an index run replaced files meanwhile
        discard(tables, manifest)
        connection = _connected(path, install=install, read_only=True)
        try:
            yield connection
        finally:
            connection.close()
        return


def _moving(tables: ParquetTables) -> SignetSyncError:
    return SignetSyncError(
        "files of the tables are gone", path=tables.url, hint="run signet-sync fleet index again", code="tables-damaged"
    )


def _name_of(manifest: Manifest) -> str:
    # Not the version alone: a place may have been deleted and made again.
    files = sorted(file.path for commit in manifest.commits.values() for file in commit.files.values())
    return sha256("\n".join([str(VERSION), str(manifest.version), *files]).encode()).hexdigest()[:32] + ".duckdb"


def _connected(path: str, *, install: bool, read_only: bool = False) -> Any:
    try:
        import duckdb
    except ImportError:
        raise UsageError("searching tables needs an optional package", hint=extra_hint("fleet")) from None
    connection = duckdb.connect(path, read_only=read_only, config=_CONFIG)
    try:
        if install:
            connection.execute("install fts")
        connection.execute(f"load '{_extension(duckdb.__version__)}'")
    except duckdb.Error as error:
        connection.close()
        if install:
            raise UsageError(
                f"DuckDB's full-text extension cannot be installed: {str(error).splitlines()[0]}",
                hint="docs/fleet-tables.md says how to bring it along",
            ) from None
        raise UsageError(
            f"DuckDB {duckdb.__version__} has no full-text extension on this machine",
            hint="add --install-fts once, which downloads it from DuckDB's site; docs/fleet-tables.md: without network",
            code="no-full-text",
        ) from None
    return connection


def _extension(version: str) -> str:
    """Returns the file of the full-text extension if a package brings it along, else its name: DuckDB's own folder."""
    found = find_spec("duckdb_extension_fts")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        path = os.path.join(folder, "extensions", f"v{version}", "fts.duckdb_extension")
        if os.path.exists(path) and "'" not in path:
            return path
    return "fts"


def _build(tables: ParquetTables, manifest: Manifest, path: str, *, install: bool) -> None:
    """Makes an index beside its place, and puts it there when it is whole."""
    folder = os.path.dirname(path)
    private_folder(folder)
    building = mkdtemp(prefix=f"{os.getpid()}-", suffix=".building", dir=folder)
    try:
        made = os.path.join(building, "index.duckdb")
        connection = _connected(made, install=install)
        try:
            _fill(connection, tables, manifest)
        finally:
            connection.close()
        os.chmod(made, 0o600)
        sync_path(made)
        with Replacing(path, made):
            pass
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _fill(connection: Any, tables: ParquetTables, manifest: Manifest) -> None:
    import duckdb

    of_sessions = [(path, one.workspace) for one in manifest.commits.values() if (path := _sessions_of(one))]
    tables.place.register(connection)
    connection.execute("create table sources(path varchar, workspace varchar)")
    if of_sessions:
        connection.executemany("insert into sources values(?, ?)", of_sessions)
    columns = "agent, token, session, project, harness, day, sentence, path, words"
    selected = ", ".join(f"s.{name}" for name in columns.split(", "))
    typed = ", ".join(f"{name} varchar" for name in columns.split(", "))
    connection.execute(f"create table sessions(id bigint, ended_us bigint, workspace varchar, {typed})")
    if of_sessions:
        try:
            connection.execute(
                "insert into sessions select row_number() over (order by workspace, ended_at, agent, token, session),"
                f" epoch_us(ended_at), workspace, {selected}"
                " from read_parquet(?, filename = true, hive_partitioning = false) s join sources"
                # Stores spell their URLs in more than one way.
                " on sources.path = array_to_string(string_split(s.filename, '/')[-4:], '/')",
                [[f"{tables.url}/{path}" for path, _ in of_sessions]],
            )
        except duckdb.IOException:
            raise FileNotFoundError from None
    connection.execute("drop table sources")
    spaced = f"regexp_replace(words, '([{CJK}])', ' \\1 ', 'g')"
    connection.execute(f"create table documents as select id, {spaced} as words from sessions")
    connection.execute(f"pragma create_fts_index('documents', 'id', 'words', {_OPTIONS})")
    connection.execute("drop table documents")
    with suppress(duckdb.CatalogException):
        # In the order of words, only the pieces that contain the query's words are read: ten times as fast.
        connection.execute(
            "create table fts_main_documents.by_word as select * from fts_main_documents.terms order by termid, docid"
        )
        connection.execute("drop table fts_main_documents.terms")
        connection.execute("alter table fts_main_documents.by_word rename to terms")


def _sessions_of(commit: Commit) -> str | None:
    file = commit.files.get("sessions") if commit.schema == VERSION else None
    return file.path if file is not None and file.rows else None


def found(connection: Any, query: str, wanted: Selection) -> list[dict[str, Any]]:
    """Returns the best sessions that have all words of a query; if there are none, any of them."""
    where, bound = conditions(wanted, "?", "ended_us")
    for conjunctive in (1, 0):
        best = connection.execute(
            "select id, score from (select id, ended_us, fts_main_documents.match_bm25(id, ?,"
            f" conjunctive := {conjunctive}) as score from sessions{where}) where score is not null"
            " order by score desc, ended_us desc, id limit ?",
            [query, *bound, wanted.limit],
        ).fetchall()
        if best:
            return [{**_session(connection, one), "score": score} for one, score in best]
    return []


def _session(connection: Any, one: int) -> dict[str, Any]:
    # One by one, a row is looked up; several are found by reading the texts of all.
    cursor = connection.execute("select * from sessions where id = ?", [one])
    return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))
