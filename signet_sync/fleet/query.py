"""Searches shares and reports on them: SQL of DuckDB here, which any engine that reads Parquet understands.

docs/fleet.md has the same statements for Spark, Trino and BigQuery: what they need besides are the tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet.places import answer, state_of
from signet_sync.fleet.tables import COLUMNS, SHARES, TABLES, Tables
from signet_sync.formats.paths import display
from signet_sync.recall.query import snippet

_MOST_WORDS = 16
_SHARE, _PART = re.compile(r"[0-9a-f]{20}"), re.compile(r"[0-9a-f]{32}")
_COMMIT = ("share", "workspace", "holds", "shared_at", "state")
# Of a session that two shares have, because two machines sync one vault, the one that was shared last counts.
SEARCH = """
select workspace, agent, token, session, project, harness, day, sentence, path, said, had from (
  select h.workspace, s.*, {had} as had,
    row_number() over (partition by s.agent, s.token, s.session order by h.shared_at desc, h.share) as copy
  from sessions s join shares h on s.share = h.share and s.part = h.sessions
  where {where}
) found where copy = 1 and had > 0 order by had desc, ended_at desc, workspace, token limit {limit}"""
_HAD = "case when s.said like {} then 1 else 0 end"
REPORT = """
select h.workspace, h.holds, h.shared_at, coalesce(s.sessions, 0) as sessions, s.last_session,
  coalesce(f.files, 0) as files, coalesce(f.problems, 0) as problems, coalesce(f.secrets, 0) as secrets,
  coalesce(o.blockers, 0) as blockers
from shares h
left join (select share, part, count(*) as sessions, max(day) as last_session from sessions group by share, part) s
  on s.share = h.share and s.part = h.sessions
left join (select share, part, count(*) as files,
    sum(case when verdict in ('invalid', 'violation', 'tombstoned') then 1 else 0 end) as problems,
    sum(case when notes like '%secret-suspected%' then 1 else 0 end) as secrets
  from files group by share, part) f on f.share = h.share and f.part = h.files
left join (select share, part, count(*) as blockers from statements where kind = 'blocker' and status = 'open'
  group by share, part) o on o.share = h.share and o.part = h.statements
order by h.workspace"""
_TYPES = {"int": "bigint", "time": "timestamptz"}


def search(query: str, places: Sequence[str], limit: int = 10, **wanted: Any) -> dict[str, Any]:
    """Returns the document of `fleet search --json`: sessions that have all of the words, else those with most of them.

    `wanted` are a project, an agent, and times between which they ended. Raises `UsageError`, `SignetSyncError`.
    """
    plain = query.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").lower()
    words = [word for word in plain.split() if any(map(str.isalnum, word))][:_MOST_WORDS]
    # Any sign may stand for one that LIKE knows: no engine has to be told how they are escaped.
    bound: dict[str, Any] = {f"w{n}": f"%{word.translate(_SIGNS)}%" for n, word in enumerate(words)}
    had = " + ".join(_HAD.format(f"${name}") for name in bound) or "0"
    clauses = ["1 = 1"]
    for name, clause in (
        ("project", "(lower(s.project) = $project or lower(s.project) like $below)"),
        ("agent", "s.agent = $agent"),
        ("since", "s.ended_at >= make_timestamptz($since)"),
        ("until", "s.ended_at <= make_timestamptz($until)"),
    ):
        if wanted.get(name) is not None:
            clauses.append(clause)
            bound[name] = wanted[name]
    if "project" in bound:
        bound["project"] = bound["project"].rstrip("/").lower()
        bound["below"] = f"%/{bound['project'].translate(_SIGNS)}"
    sql = SEARCH.format(had=had, where=" and ".join(clauses), limit=int(limit))
    states, rows = ask_shares(places, sql, bound) if words else ([], ([], []))
    most = max((row[-1] for row in rows[1]), default=0)
    hits = [_hit(row, words) for row in rows[1] if row[-1] in (most, len(words))]
    return {"query": query, "hits": hits, **answer(states)}


_SIGNS = str.maketrans("%\\", "__")


def _hit(row: tuple[Any, ...], words: Sequence[str]) -> dict[str, Any]:
    """Returns a session with the line that has most of the words; without one if its sentence has as many."""
    *columns, said, had = row
    names = "workspace agent_id session_token session_id project harness day sentence path".split()
    sentence = columns[7] or ""
    counts = {line: sum(word in line.lower() for word in words) for line in (sentence, *said.split("\n"))}
    best = max(counts, key=counts.__getitem__)  # of equals the first
    line = snippet(best, sentence, " ".join(words)) if best != sentence else ""
    return {**dict(zip(names, columns, strict=True)), "score": round(had / len(words), 6), "snippet": line}


def report(places: Sequence[str], sql: str | None = None) -> dict[str, Any]:
    """Returns the document of `fleet report --json`; of a person's own `sql` its columns and rows."""
    states, (columns, rows) = ask_shares(places, sql or REPORT, {}, loads=sql is not None)
    return {"columns": columns, "rows": [[_plain(value) for value in row] for row in rows], **answer(states)}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float) else display(str(value))


_States = list[tuple[str, str, str, dict[str, Any]]]


def ask_shares(
    places: Sequence[str], sql: str, bound: dict[str, Any], *, loads: bool = False
) -> tuple[_States, tuple[list[str], list[tuple[Any, ...]]]]:
    """Asks DuckDB over the shares at places, as tables `shares`, `sessions`, `statements` and `files`.

    Returns the state of every share, and columns and rows. What cannot be read is named, and the others are asked.
    `loads` lets DuckDB load its own extensions. Raises `SignetSyncError` for what is wrong with the statement.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError("asking tables needs an optional package", hint=extra_hint("fleet")) from None
    states, commits = _shares(places)
    # Nothing is fetched or loaded, unless a person's own statement does.
    given = {} if loads else {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with closing(duckdb.connect(config=given)) as connection:
        for tables in {id(tables): tables for tables, _ in commits if not tables.local}.values():
            connection.register_filesystem(tables.system)
        try:
            return states, _ask(connection, commits, sql, bound)
        except duckdb.Error:
            # One of thousands of files, or the statement: what cannot be read by itself is named and left out.
            whole = []
            for tables, commit in commits:
                state, why = _state_of(connection, duckdb.Error, tables, commit)
                if state:
                    at = [one[3].get("share") for one in states].index(commit["share"])
                    states[at] = (states[at][0], state, why, states[at][3])
                else:
                    whole.append((tables, commit))
        try:
            return states, _ask(connection, whole, sql, bound)
        except duckdb.Error as error:
            message = display(str(error).partition("\n")[0])
            raise UsageError(
                f"this cannot be asked: {message}", hint="docs/fleet.md shows tables and columns"
            ) from None


def _shares(places: Sequence[str]) -> tuple[_States, list[tuple[Tables, dict[str, Any]]]]:
    """Returns the state of every share at places, and the commits of those that have one."""
    states, commits = _States(), list[tuple[Tables, dict[str, Any]]]()
    for place in places:
        try:
            tables = Tables(place)
            found = tables.read_all(SHARES)
            begun = {name.partition("=")[2] for name in tables.names(TABLES[0])} - found.keys()
        except UsageError:
            raise
        except SignetSyncError as error:
            states.append((place, *state_of(error), {}))
            continue
        if not found and not begun:
            states.append((place, "vanished", "there are no shares here", {}))
        states += [(share, "damaged", "its first commit was cut off", {"share": share}) for share in sorted(begun)]
        for share, commit in found.items():
            # Another machine wrote it: it names no file but its own.
            told = commit or {}
            ok = told.get("share") == share and _SHARE.fullmatch(share)
            ok = ok and all(isinstance(told.get(name), str) for name in _COMMIT)
            if commit is None or not ok or not all(_PART.fullmatch(f"{told.get(table)}") for table in TABLES):
                states.append((share, "damaged", "its commit cannot be read", {"share": share}))
                continue
            commits.append((tables, commit))
            states.append((commit["workspace"], commit["state"], "", {"share": commit["share"]}))
    return states, commits


def _ask(
    connection: Any, commits: Sequence[tuple[Tables, dict[str, Any]]], sql: str, bound: dict[str, Any]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    names = (*_COMMIT, *TABLES)
    rows = json.dumps([{name: commit[name] for name in names} for _, commit in commits])
    shape = json.dumps([dict.fromkeys(names, "VARCHAR")])
    connection.execute(
        "create or replace temp table shares as select unnest(from_json($rows, $shape), recursive := true)",
        {"rows": rows, "shape": shape},
    )
    for table in TABLES:
        if commits:
            files = [tables.address(_part(commit, table)) for tables, commit in commits]
            source = f"select * from read_parquet([{', '.join(map(_quote_literal, files))}], hive_partitioning = true)"
        else:
            columns = ", ".join(
                f"null::{_TYPES.get(kind, 'varchar')} as {name}" for name, kind in COLUMNS[table].items()
            )
            source = f"select null::varchar as share, null::varchar as part, {columns} where false"
        connection.execute(f"create or replace temp view {table} as {source}")
    asked = connection.execute(sql, bound)
    return [column[0] for column in asked.description or ()], asked.fetchall()


def _part(commit: dict[str, Any], table: str) -> str:
    return f"{table}/share={commit['share']}/{commit[table]}.parquet"


def _quote_literal(text: str) -> str:
    """Returns a text as a literal of SQL. Shares name their own files: nothing in these is a glob."""
    return "'" + text.replace("'", "''") + "'"


def _state_of(connection: Any, errors: type[Exception], tables: Tables, commit: dict[str, Any]) -> tuple[str, str]:
    """Returns what is wrong with the parts of a share, if anything is."""
    for table in TABLES:
        path = _part(commit, table)
        try:
            connection.execute(
                f"select count(columns(*)) from read_parquet({_quote_literal(tables.address(path))})"
            ).fetchall()
        except errors:
            there = path.rpartition("/")[2] in tables.names(path.rpartition("/")[0])
            return ("damaged", f"its {table} cannot be read") if there else ("vanished", f"its {table} are gone")
    return "", ""
