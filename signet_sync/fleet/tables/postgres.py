"""Keeps the open tables in a PostgreSQL database, with the full text of sessions; a workspace changes as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet.tables.parquet import Commit, TableFile
from signet_sync.fleet.tables.rows import TableRow, WorkspaceState
from signet_sync.fleet.tables.schema import OPEN_TABLES, SESSIONS, VERSION, OpenTable
from signet_sync.fleet.tables.selection import Selection, conditions
from signet_sync.formats.timestamps import iso
from signet_sync.recall.snippets import WORDS
from signet_sync.text.cjk import CJK
from signet_sync.text.sanitizer import sanitize_line

SCHEMA = "signet_fleet"
_COMMENT = f"tables of signet-sync fleet, version {VERSION}"
_TYPES = {"int": "bigint", "bool": "boolean", "time": "timestamptz"}
# What `[^\w]` would be, in any locale of the database; only then every CJK character is a word of its own.
_APART = r"regexp_replace(regexp_replace(words, '[\x01-/:-@\[-`{-~]+', ' ', 'g'), " + f"'([{CJK}])', ' \\1 ', 'g')"
_WORKSPACES = (
    "workspace text primary key, listing text not null, stamp text not null, committed_at timestamptz not null,"
    " schema_version integer not null, rows jsonb not null"
)


def is_database(url: str) -> bool:
    """Returns whether a URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


class PostgresTables:
    """Tables in a database; each workspace is written in one transaction, with its commit."""

    def __init__(self, url: str) -> None:
        self._given = url
        place = urlsplit(url)
        port = f":{place.port}" if place.port else ""
        self.url = f"postgresql://{place.hostname or ''}{port}{place.path}"

    def commits(self) -> dict[str, Commit]:
        """Returns the commit of every workspace; makes what the database lacks of schema and tables."""
        with self._connected() as connection:
            connection.execute("select pg_advisory_xact_lock(hashtext(%s))", [SCHEMA])
            self._require_version(connection)
            for statement in statements():
                connection.execute(statement)
            rows = connection.execute(
                "select workspace, listing, stamp, to_char(committed_at at time zone 'UTC',"
                f' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\'), schema_version, rows from {SCHEMA}.workspaces'
            )
            return {
                workspace: Commit(workspace, listing, stamp, at, version, _files(counts))
                for workspace, listing, stamp, at, version, counts in rows
            }

    def write(self, state: WorkspaceState, rows: Mapping[str, list[TableRow]], before: Commit | None) -> Commit:
        """Replaces the rows of a workspace; a row that did not change is not written."""
        from psycopg.types.json import Jsonb

        counts = {table.name: len(rows[table.name]) for table in OPEN_TABLES}
        with self._connected() as connection:
            connection.execute(
                f"insert into {SCHEMA}.workspaces values(%s, %s, %s, %s, %s, %s) on conflict (workspace) do update set"
                " listing = excluded.listing, stamp = excluded.stamp, committed_at = excluded.committed_at,"
                " schema_version = excluded.schema_version, rows = excluded.rows",
                [state.workspace, state.listing, state.stamp, iso(state.now_us), VERSION, Jsonb(counts)],
            )
            for table in OPEN_TABLES:
                _replace(connection, table, state.workspace, rows[table.name])
        return Commit(state.workspace, state.listing, state.stamp, iso(state.now_us), VERSION, _files(counts))

    def publish(self, commits: Mapping[str, Commit], dropped: Sequence[str], now_us: int) -> None:
        """Deletes the rows of some workspaces; those of others were visible with their commits."""
        if dropped:
            with self._connected() as connection:
                connection.execute(f"delete from {SCHEMA}.workspaces where workspace = any(%s)", [list(dropped)])

    def found(self, query: str, wanted: Selection) -> list[dict[str, Any]]:
        """Returns the best sessions that have all words of a query; if there are none, any of them."""
        words = WORDS.findall(query.lower())
        if not words:
            return []
        where, bound = conditions(wanted, "%s", "(extract(epoch from ended_at) * 1000000)")
        columns = "workspace, agent, token, session, project, harness, day, sentence, path, words"
        from psycopg.rows import dict_row

        with self._connected() as connection, connection.cursor(row_factory=dict_row) as cursor:
            for sign in (" & ", " | "):
                cursor.execute(
                    f"select {columns}, ts_rank_cd(found_by, asked, 1) as score from {SCHEMA}.sessions,"
                    f" to_tsquery('simple', %s) asked{where or ' where true'} and found_by @@ asked"
                    " order by score desc, ended_at desc, workspace, agent, token, session limit %s",
                    [sign.join(words), *bound, wanted.limit],
                )
                if rows := cursor.fetchall():
                    return list(rows)
        return []

    def _require_version(self, connection: Any) -> None:
        """Raises `UsageError` if the schema is of another version, or somebody else's."""
        described = "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s"
        for (comment,) in connection.execute(described, [SCHEMA]):
            if comment != _COMMENT:
                raise UsageError(
                    f"the schema {SCHEMA} of this database was made by another version",
                    path=self.url,
                    hint=f"drop schema {SCHEMA} cascade; then index again, all rows are made anew",
                    code="tables-outdated",
                )

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yields a connection in a transaction, which is committed at the end."""
        try:
            import psycopg
        except ImportError:
            raise UsageError("postgresql:// needs an optional package", hint=extra_hint("postgres")) from None
        try:
            with psycopg.connect(self._given, connect_timeout=10, application_name="signet-sync") as connection:
                yield connection
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            raise UsageError(
                "there are no tables here", path=self.url, hint="signet-sync fleet index makes them"
            ) from None
        except psycopg.Error as error:
            raise SignetSyncError(
                f"the database failed: {self._told(error)}",
                path=self.url,
                hint="check its address, and the rights of the user",
                code="tables-unusable",
            ) from None

    def _told(self, error: Exception) -> str:
        """Returns the first line of an error, without the password; without any text if there is no telling."""
        place = urlsplit(self._given)
        secrets = [unquote(place.password or ""), place.password or ""]
        secrets += [value for name, value in parse_qsl(place.query) if "pass" in name]
        text = (str(error) or type(error).__name__).splitlines()[0]
        for secret in filter(None, secrets):
            if secret in text:
                return type(error).__name__
        return sanitize_line(text)


def statements() -> Iterator[str]:
    """Yields what makes schema and tables where they are missing."""
    yield f"create schema if not exists {SCHEMA}"
    yield f"comment on schema {SCHEMA} is '{_COMMENT}'"
    yield f"create table if not exists {SCHEMA}.workspaces({_WORKSPACES})"
    for table in OPEN_TABLES:
        columns = [f"workspace text not null references {SCHEMA}.workspaces on delete cascade"]
        columns += [f"{column.name} {_TYPES.get(column.kind, 'text')}" for column in table.columns]
        if table is SESSIONS:
            columns.append(f"found_by tsvector generated always as (to_tsvector('simple', {_APART})) stored")
        key = ", ".join(("workspace", *table.key))
        yield f"create table if not exists {SCHEMA}.{table.name}({', '.join(columns)}, primary key({key}))"
    yield f"create index if not exists sessions_found_by on {SCHEMA}.sessions using gin(found_by)"


def _files(counts: Mapping[str, int]) -> dict[str, TableFile]:
    return {table: TableFile("", rows, 0) for table, rows in counts.items()}


def _replace(connection: Any, table: OpenTable, workspace: str, rows: Sequence[TableRow]) -> None:
    name, columns, key = f"{SCHEMA}.{table.name}", ", ".join(table.names), ", ".join(table.key)
    others = [one for one in table.names if one not in table.key]
    connection.execute(f"create temp table incoming on commit drop as select {columns} from {name} where false")
    with connection.cursor().copy(f"copy incoming({columns}) from stdin") as copy:
        times = [number for number, column in enumerate(table.columns) if column.kind == "time"]
        for row in rows:
            values = list(row)
            for number in times:
                at = values[number]
                values[number] = iso(at) if isinstance(at, int) else None
            copy.write_row(values)
    connection.execute(
        f"delete from {name} where workspace = %s and ({key}) not in (select {key} from incoming)", [workspace]
    )
    connection.execute(
        f"insert into {name} as old (workspace, {columns}) select %s, {columns} from incoming"
        f" on conflict (workspace, {key}) do update set {', '.join(f'{one} = excluded.{one}' for one in others)}"
        f" where ({', '.join(f'old.{one}' for one in others)}) is distinct from"
        f" ({', '.join(f'excluded.{one}' for one in others)})",
        [workspace],
    )
    connection.execute("drop table incoming")
