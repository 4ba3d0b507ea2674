"""Opens one connection to the database: safely, with our tables, checked; SQLite's errors become ours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import apsw

from signet_sync.errors import DatabaseCorrupt, DatabaseError
from signet_sync.storage.database.tables import (
    APPLICATION_ID,
    TABLES,
    VERSION,
    full_text,
    list_derived,
    native_tables,
)
from signet_sync.storage.durable import private_folder

MINIMUM_SQLITE = (3, 51, 3)
BUSY_MS = 5000
# A log of so many bytes was not emptied for long: a reader still needs the state before it.
LARGE_LOG = 64 * 1024 * 1024

if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < MINIMUM_SQLITE:
    raise DatabaseError(
        f"SQLite {apsw.sqlite_lib_version()} can corrupt a database in WAL mode",
        hint="install an apsw with SQLite 3.51.3 or newer: pip install -U apsw",
    )

Identity = tuple[int, int]  # device and inode

_CORRUPT = (apsw.CorruptError, apsw.NotADBError)
_OF_THE_MOMENT = (
    apsw.BusyError, apsw.LockedError, apsw.InterruptError, apsw.NoMemError, apsw.FullError, apsw.IOError,
    apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError,
)  # fmt: skip
_ODD = (apsw.SQLError, apsw.ConstraintError)
# SQLite's messages about damage that has no error code: of a schema, of a table of full text.
_OF_DAMAGE = ("malformed", "fts5 file format", "vtable constructor failed")


_Kinds = type[apsw.Error] | tuple[type[apsw.Error], ...]
_TOLD: tuple[tuple[_Kinds, str, str], ...] = (
    (apsw.BusyError, "the database is locked by another program", "close it and try again"),
    (apsw.FullError, "the disk is full", "free some space; nothing was lost"),
    (
        apsw.IOError, "the database cannot be read or written: {}",
        "check whether its disk is full or failing; run signet-sync doctor",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError), "the database cannot be written",
        "check the permissions of the state folder",
    ),
    (
        apsw.CantOpenError, "the database cannot be opened",
        "check that its folder is there and yours, and its disk not full",
    ),
    (apsw.Error, "the database failed: {}", "run signet-sync doctor"),
)  # fmt: skip


def make_damage_error(why: object, path: str | None) -> DatabaseCorrupt:
    """Makes the exception for bytes that are not what we wrote."""
    return DatabaseCorrupt(
        f"the database is damaged: {why}", path=path, hint="signet-sync reindex --full moves it aside and rebuilds it"
    )


def translate(error: apsw.Error, path: str | None) -> DatabaseError:
    """Turns an exception of SQLite into ours, with what the person can do."""
    if isinstance(error, _CORRUPT) or any(words in str(error) for words in _OF_DAMAGE):
        return make_damage_error(error, path)
    what, hint = next((what, hint) for kinds, what, hint in _TOLD if isinstance(error, kinds))
    return DatabaseError(what.format(error), path=path, hint=hint)


def protect(connection: apsw.Connection, wait_ms: int) -> None:
    """Hardens the connection against a hostile file; writes nothing."""
    connection.set_busy_timeout(wait_ms)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    for trusted in ("TRUSTED_SCHEMA", "ENABLE_TRIGGER", "ENABLE_VIEW", "DQS_DML", "DQS_DDL"):
        connection.config(getattr(apsw, f"SQLITE_DBCONFIG_{trusted}"), 0)
    # Readers need the cache as much: a full-text search reads many pages.
    for pragma in ("cell_size_check = on", "mmap_size = 0", "foreign_keys = on", "temp_store = memory",
                   "cache_size = -8000"):  # fmt: skip
        connection.execute(f"pragma {pragma}")


class Database:
    """A connection with our schema. Used by one thread at a time; never used across a fork."""

    def __init__(
        self,
        path: str,
        *,
        readonly: bool = False,
        create: bool = True,
        wait_ms: int | None = None,
    ) -> None:
        """Opens (and with `create` makes) the database and its tables; it waits `wait_ms` for others (None: `BUSY_MS`).

        Raises `DatabaseCorrupt`, `DatabaseError`; `FileNotFoundError` if it does not exist and may not be made.
        """
        self.path = path
        self.readonly = readonly
        wait_ms = BUSY_MS if wait_ms is None else wait_ms
        self._files: list[Identity | None] = []
        self._settled = False
        memory = path == ":memory:"
        if not memory and not os.path.exists(path):
            if readonly or not create:
                raise FileNotFoundError(path)
            _make(path)
        if not memory and not os.path.isfile(path):
            # Opening a pipe would wait forever for its other end.
            raise DatabaseError(
                "the database is not a file", path=path, hint="move what is there away, or choose another --db"
            )
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
        try:
            self.connection = apsw.Connection(path, flags=flags, statementcachesize=512)
        except apsw.Error as error:
            raise translate(error, path) from error
        try:
            protect(self.connection, wait_ms)
            unsealed = partial(unpack_sealed, path)  # the text in the bytes of a seal
            self.connection.create_scalar_function("unsealed", unsealed, 1, deterministic=True)
            self._refuse_others()
            self._configure(memory, wait_ms)
            self._make_tables(create)
        except apsw.Error as error:
            self.connection.close()
            raise translate(error, path) from error
        except BaseException:
            self.connection.close()
            raise
        self._files = self._identities()
        self._settled = True

    def _refuse_others(self) -> None:
        """Refuses a file that is not ours, before the first write (even WAL mode would be one)."""
        with self.connection:  # one snapshot: another process may be creating the tables at this moment
            application = self.value("pragma application_id")
            tables = {name for (name,) in self.execute("select name from sqlite_schema")}
        if application == APPLICATION_ID or not tables:
            return
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if log_size(self.path):
            with closing(open_without_log(self.path)) as alone:
                if alone.execute("pragma application_id").get == APPLICATION_ID:
                    raise make_damage_error("its log belongs to another database", self.path)
        if tables.issuperset(native_tables()):
            raise make_damage_error("it has all of our tables, and another program's application id", self.path)
        raise DatabaseError(
            "the file is a database of another program",
            path=self.path,
            hint="choose another --db; nothing in it was touched",
        )

    def _configure(self, memory: bool, wait_ms: int) -> None:
        """Sets how we write: write-ahead log, zeroes over deleted rows, no automatic checkpoints."""
        if self.readonly:
            return
        connection = self.connection
        if not memory:
            if not self.value("pragma page_count"):  # before the first write: `batches.merge_step`
                connection.execute("pragma auto_vacuum = incremental")
            self._keep_a_log(wait_ms)
        for pragma in (
            "synchronous = normal",
            "secure_delete = on",
            "recursive_triggers = on",
            "wal_autocheckpoint = 0",
            "journal_size_limit = 16777216",
        ):
            connection.execute(f"pragma {pragma}")

    def _keep_a_log(self, wait_ms: int) -> None:
        """Switches to the write-ahead log; on a new file SQLite may refuse at once, so it is tried again."""
        end = time.monotonic() + wait_ms / 1000
        while True:
            try:
                self.connection.execute("pragma journal_mode = wal")
                return
            except apsw.BusyError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.005)

    def _make_tables(self, create: bool) -> None:
        """Makes our tables in a new database, or in one of another version, of which it keeps the native rows."""
        version = self.value("pragma user_version")
        if version == VERSION:
            return
        if self.readonly or not create:
            what = "of another version" if version else "empty"
            hint = "run signet-sync reindex once"
            raise DatabaseError(f"the database is {what}", path=self.path, hint=hint, code="database-behind")
        with self.transaction():
            if self.value("pragma user_version") == VERSION:
                return
            present = dict(self.execute("select name, sql from sqlite_schema where type = 'table'"))
            try:
                for name in native_tables():
                    if name in present:
                        self._keep_rows(name, present[name])
                    else:
                        self._make(name)
                self.reset_derived()
            except apsw.SQLError as error:
                raise make_damage_error(f"its tables are none of ours: {error}", self.path) from error
            if not present:
                # Reset together with the restored rows, so that neither a crash nor a full disk in between loses them.
                self.set_state("backups", "restore_due", 1)
            self.connection.execute(f"pragma application_id = {APPLICATION_ID}")
            self.connection.execute(f"pragma user_version = {VERSION}")

    def _keep_rows(self, name: str, statement: str) -> None:
        """Makes a native table anew and takes its rows over, by the names of the columns that both have."""
        create, *indexes = TABLES[name].ddl
        own = "select name from sqlite_schema where type = 'index' and sql is not null and tbl_name = ?"
        for (index,) in list(self.execute(own, (name,))):
            self.execute(f'drop index "{index}"')
        if statement.lower() != create.lower():
            self.execute(f"alter table {name} rename to {name}_before")
            self.execute(create)
            columns = self.value(
                "select group_concat(o.name) from pragma_table_info(?) o join pragma_table_info(?) b using (name)",
                (name, f"{name}_before"),
            )
            if columns:
                self.execute(f"insert or ignore into {name}({columns}) select {columns} from {name}_before")
            self.execute(f"drop table {name}_before")
        for index in indexes:
            self.execute(index)

    def _make(self, *names: str) -> None:
        for statement in (statement for name in names for statement in TABLES[name].ddl):
            self.connection.execute(statement)

    def _set_statistics(self) -> None:
        """Sets the statistics of indexes: the same in every vault, so that the tested query plan is the one in use.

        Without statistics SQLite scans all rows of an agent by a table's own key rather than use a longer index; with
        those of a small vault it scans whole tables, even after the vault has grown.
        """
        self.execute("analyze sqlite_schema")  # creates the tables of statistics
        for statistics in list(self.execute("select name from sqlite_schema where name like 'sqlite_stat_'")):
            self.execute(f"delete from {statistics[0]}")
        rows = []
        for table, clustered in list(self.execute("select name, wr from pragma_table_list where type = 'table'")):
            for _, index, unique, origin, _ in list(self.execute(f"pragma index_list({table})")):
                columns = [row[2] for row in self.execute(f"pragma index_info({index})")]
                name = table if clustered and origin == "pk" else index
                rows.append((table, name, index_statistics(columns, unique=bool(unique))))
        self.executemany("insert into sqlite_stat1(tbl, idx, stat) values(?, ?, ?)", rows)
        self.execute("analyze sqlite_schema")  # loads them

    def execute(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a statement; every value is bound.

        Raises `DatabaseCorrupt` for text that is not valid UTF-8.
        """
        return self._rows(self.connection.execute(sql, bindings))

    def _rows(self, cursor: apsw.Cursor) -> Iterator[tuple[Any, ...]]:
        try:
            yield from cursor
        except UnicodeDecodeError:
            raise make_damage_error("stored text is not valid UTF-8", self.path) from None

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs one statement for many rows."""
        if rows:
            self.connection.executemany(sql, rows)

    def value(self, sql: str, bindings: Sequence[Any] = ()) -> Any:
        """Returns the first column of the first row, or None."""
        for row in self._rows(self.connection.execute(sql, bindings)):
            return row[0]
        return None

    def column(self, sql: str, bindings: Sequence[Any] = ()) -> list[Any]:
        """Returns the first column of all rows."""
        return [row[0] for row in self._rows(self.connection.execute(sql, bindings))]

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Runs an immediate transaction; with `durable` its commit survives a power loss. Raises our exceptions."""
        try:
            if durable:
                self.connection.execute("pragma synchronous = full")
            self.connection.execute("begin immediate")
            try:
                self.refuse_changed()
                yield
            except BaseException:
                with suppress(apsw.Error):
                    self.connection.execute("rollback")
                raise
            self.connection.execute("commit")
        except apsw.Error as error:
            with suppress(apsw.Error):
                if self.connection.in_transaction:
                    self.connection.execute("rollback")
            raise translate(error, self.path) from error
        finally:
            if durable:
                with suppress(apsw.Error):
                    self.connection.execute("pragma synchronous = normal")

    def refuse_changed(self) -> None:
        """Raises `DatabaseError` if another version of signet-sync took the tables over since they were opened."""
        if self._settled and self.value("pragma user_version") != VERSION:
            raise DatabaseError(
                "another version of signet-sync has taken the database over",
                path=self.path,
                hint="run the same command again; an agent has to be started again",
                code="database-taken-over",
            )

    def state(self, table: str, column: str) -> Any:
        """Returns a column of a table of one row; None while there is none."""
        return self.value(f"select {column} from {table}")

    def set_state(self, table: str, column: str, value: float | str | None) -> None:
        """Sets a column of a table of one row, only if it differs."""
        self.execute(
            f"insert into {table}(one, {column}) values(1, ?) on conflict(one)"
            f" do update set {column} = excluded.{column} where {column} is not excluded.{column}",
            (value,),
        )

    def reset_derived(self) -> None:
        """Drops all but the native tables and creates the derived ones; readers keep the old rows meanwhile.

        Tables of another version are dropped, too: they may hold texts of sessions, which no removal would reach. In
        the caller's transaction.
        """
        kept = native_tables()
        try:
            for name in [name for (name,) in self.execute(_DROPPABLE) if name not in kept]:
                self.execute(f"drop table {name}")
            self._make(*list_derived())
            self._set_statistics()
        except apsw.SQLError as error:  # a name in the schema that we did not write
            raise make_damage_error(error, self.path) from error

    def is_replaced(self) -> bool:
        """Returns whether the file, or the log that we write, was deleted or replaced: others read another one."""
        return self._files != self._identities()

    @property
    def identity(self) -> Identity | None:
        """Identifies the file that was opened; None in memory."""
        return self._files[0] if self._files else None

    def _identities(self) -> list[Identity | None]:
        if self.path == ":memory:":
            return []
        return [identity(self.path + suffix) for suffix in (("",) if self.readonly else ("", "-wal"))]

    def checkpoint(self, *, truncate: bool = False) -> bool:
        """Moves the WAL into the database; with `truncate` also empties it. False if a reader prevented it."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            logged, moved = self.connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise translate(error, self.path) from error
        return moved >= logged

    def problems(self, *, closely: Iterable[str] = ()) -> list[str]:
        """Lists what SQLite's and FTS5's own checks find; empty if all is well. Full text needs a writable connection.

        For the tables `closely` the indexes are compared with the rows, and every text is read. Raises SQLite's errors
        if it could not check: locked, out of space, not readable; `DatabaseError` if another version took it over.
        """
        try:
            self.refuse_changed()
            found = [str(row[0]) for row in self.execute("pragma quick_check") if row[0] != "ok"]
            found += self._list_missing() or [
                f"the text of {path} cannot be read from its seal" for (path,) in self.execute(_TEXTLESS)
            ]
            for table in () if found else closely:
                found += [str(row[0]) for row in self.execute(f"pragma integrity_check({table})") if row[0] != "ok"]
                # Full text has no texts to read, and is checked below.
                for _ in () if table in full_text() else self.execute(f"select * from {table}"):
                    pass
        except _OF_THE_MOMENT:
            raise
        except (apsw.Error, DatabaseCorrupt) as error:
            return [str(error)]
        if self.readonly:
            return found
        for table in full_text():
            try:
                self.execute(f"insert into {table}({table}, rank) values('integrity-check', 1)")
            except _OF_THE_MOMENT:
                raise
            except apsw.Error as error:
                found.append(f"full text: {error}")
        return found

    def _list_missing(self) -> list[str]:
        """Lists tables and columns that a damaged schema lacks, though it can be read."""
        whole = Database(":memory:")
        try:
            there = set(self.execute(_COLUMNS))
            return [f"no {table}.{column}" for table, column in whole.execute(_COLUMNS) if (table, column) not in there]
        finally:
            whole.connection.close()

    def close(self) -> None:
        """Checkpoints what can be and closes; safe to call twice."""
        if not self.readonly:
            with suppress(DatabaseError, apsw.ConnectionClosedError):
                # The log need not be empty; closing does not wait until the last reader is done.
                self.connection.set_busy_timeout(200)
                self.checkpoint(truncate=True)
        self.connection.close()


def index_statistics(columns: Sequence[str | None], *, unique: bool) -> str:
    """Estimates an index's row of `sqlite_stat1`: all rows, then how many share the first column, first two, and so on.

    Assumes few agents, and that every further column is ten times as selective.
    """
    shares, rows = [], _ROWS
    for column in columns:
        rows = rows // 4 if column == "agent_id" else max(rows // 100 if rows == _ROWS else rows // 10, 1)
        shares.append(rows)
    if unique:
        shares[-1] = 1
    return " ".join(map(str, (_ROWS, *shares)))


_SUSPECT = ".suspect"
_COMPANIONS = ("-wal", "-shm", "-journal")
_ROWS = 100_000
# What refers to another table comes before it: a table that is dropped takes the rows that refer to it along.
_DROPPABLE = (
    "select name from pragma_table_list l where schema = 'main' and type in ('table', 'virtual')"
    " and name not like 'sqlite_%' order by exists(select 1 from pragma_foreign_key_list(l.name)) desc"
)
_TEXTLESS = (
    "select a.source_path from memory_artifacts a left join seals s on s.path = a.source_path where a.content is null"
    " and (s.path is null or coalesce(length(s.packed), 0) = 0 or s.text_sha256 <> a.source_sha256) limit 1"
)
_COLUMNS = (
    "select t.name, c.name from sqlite_schema t, pragma_table_info(t.name) c where t.type = 'table'"
    " and t.name not like 'sqlite_%'"
)


def identity(path: str) -> Identity | None:
    """Returns device and inode of a file, which distinguish it from a replacement; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def set_aside(path: str) -> str:
    """Moves a damaged database and its companions to `*.corrupt-<time>`; returns the new name.

    The companions go first: a new database must never find the log of the old one beside it.
    """
    stem = f"{path}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    moved, number = stem, 1
    # After an interrupted move the companions have this name without their database.
    while any(os.path.lexists(moved + suffix) for suffix in (*_COMPANIONS, "")):
        moved, number = f"{stem}-{number}", number + 1
    for suffix in (*_COMPANIONS, ""):
        with suppress(FileNotFoundError):
            os.replace(path + suffix, moved + suffix)
    return moved


def list_set_aside(path: str) -> list[str]:
    """Lists the damaged databases that were moved aside and still exist."""
    folder, name = os.path.split(path)
    start = f"{name}.corrupt-"
    try:
        names = [n for n in os.listdir(folder or ".") if n.startswith(start)]
    except OSError:
        return []
    return sorted(os.path.join(folder, n) for n in names if not n.endswith(_COMPANIONS))


def mark_suspect(path: str) -> None:
    """Notes that a reader found damage: the next pass checks every page, not only those that it needs."""
    with suppress(OSError):
        os.close(os.open(path + _SUSPECT, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def note_damage(error: apsw.Error | DatabaseError, path: str) -> DatabaseError:
    """Returns our exception for a caller that cannot repair the database; notes damage for the next pass."""
    ours = translate(error, path) if isinstance(error, apsw.Error) else error
    if isinstance(ours, DatabaseCorrupt) or is_odd(error):
        mark_suspect(path)
    return ours


def is_odd(error: BaseException) -> bool:
    """Returns whether an error may come from damage: of the schema, or of an index that disagrees with its table."""
    return isinstance(error, _ODD) or isinstance(error.__cause__, _ODD)


def is_suspect(path: str) -> bool:
    """Returns whether a reader found damage that no pass has checked since."""
    return os.path.exists(path + _SUSPECT)


def clear_suspect(path: str) -> None:
    """Deletes the note: the database was checked, or is another one."""
    with suppress(OSError):
        os.unlink(path + _SUSPECT)


def unpack_sealed(path: str | None, packed: bytes | None) -> str:
    """Returns the text in the bytes of a seal. Raises `DatabaseCorrupt`, with the database's path, if it has none."""
    from signet_sync.formats.frontmatter import body_of_seal  # only callers that read a text pay for the libraries

    text = body_of_seal(packed)
    if text is None:
        raise make_damage_error("the text of an artifact cannot be read from its seal", path)
    return text


def open_without_log(path: str) -> apsw.Connection:
    """Opens a database for reading, without its log. Raises SQLite's errors."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"file:{quoted}?immutable=1", flags=flags)


def columns_of(connection: apsw.Connection, table: str) -> set[str]:
    """Names the columns of a table; none if there is no such table."""
    return {str(name) for (name,) in connection.execute("select name from pragma_table_info(?)", (table,))}


def log_size(path: str, suffix: str = "-wal") -> int:
    """Returns the size of a database's write-ahead log in bytes, or of its journal."""
    try:
        return os.path.getsize(path + suffix)
    except OSError:
        return 0


def _make(path: str) -> None:
    """Makes an empty file that only its owner may read, in a folder that only its owner may enter."""
    try:
        private_folder(os.path.dirname(os.path.abspath(path)))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise DatabaseError(
            f"the database cannot be created: {error.strerror}", path=path, hint="check that its folder is yours"
        ) from error
