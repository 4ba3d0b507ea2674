"""Makes the rows of the open tables from an index; every text passes the sanitizer once more on its way in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from signet_sync.fleet.tables import store
from signet_sync.fleet.tables.schema import ARTIFACTS, FACTS, OPEN_TABLES, SESSIONS, VERDICTS, ColumnKind, OpenTable
from signet_sync.formats.temporary_sessions import KINDS, weight
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.storage.database.connection import Database
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line_counted
from signet_sync.text.stored_names import storable_path

Value = str | int | bool | None
TableRow = tuple[Value, ...]
# Characters of a session by which it is found: PostgreSQL takes no more words than fit into a megabyte.
MOST_WORDS = 200_000


class WorkspaceState(NamedTuple):
    """What rows are made of: a workspace, the digest of its listing, the rules, and the time, in microseconds UTC."""

    workspace: str
    listing: str
    stamp: str
    now_us: int


class RowsOfWorkspace(NamedTuple):
    """The rows of each table by its name, in the order of its key; how often the sanitizer still found a secret."""

    tables: Mapping[str, list[TableRow]]
    redacted: int


def rows_of(database: Database, problems: Iterable[Mapping[str, Any]], *, bodies: bool) -> RowsOfWorkspace:
    """Returns the rows of a workspace from its index and from the `problems` of what is no artifact."""
    sanitizer = _Sanitizer()
    files = _files(database, problems)
    sizes = {path: size for path, number, *_, size, _ in files if not number}
    facts = list(_facts(database))
    artifacts = list(_artifacts(database, sizes, bodies=bodies))
    made = {
        VERDICTS.name: files,
        ARTIFACTS.name: artifacts,
        SESSIONS.name: list(_sessions(database, artifacts)),
        FACTS.name: facts,
    }
    tables = {table.name: sorted(sanitizer.rows(table, made[table.name]), key=_key_of(table)) for table in OPEN_TABLES}
    return RowsOfWorkspace(tables, sanitizer.found)


class _Sanitizer:
    """Sanitizes values by the kind of their column; one that was seen before is not looked at again."""

    def __init__(self) -> None:
        self.found = 0
        self._seen: dict[tuple[ColumnKind, str], str] = {}

    def rows(self, table: OpenTable, rows: Iterable[TableRow]) -> Iterator[TableRow]:
        kinds = [column.kind for column in table.columns]
        at = [number for number, kind in enumerate(kinds) if kind in ("name", "line", "text")]
        for row in rows:
            clean = list(row)
            for number in at:
                value = clean[number]
                if isinstance(value, str) and value:
                    clean[number] = self._clean(kinds[number], value)
            yield tuple(clean)

    def _clean(self, kind: ColumnKind, value: str) -> str:
        if kind == "text":
            text, counts = sanitize_counted(value)
            self.found += sum(counts.values())
            return text
        known = self._seen.get((kind, value))
        if known is None:
            if kind == "name":
                known = storable_path(value)
                self.found += known != value
            else:
                known, counts = sanitize_line_counted(value)
                self.found += sum(counts.values())
            self._seen[kind, value] = known
        return known


def _key_of(table: OpenTable) -> Any:
    at = [table.names.index(name) for name in table.key]
    return lambda row: [row[number] for number in at]


def _files(database: Database, problems: Iterable[Mapping[str, Any]]) -> list[TableRow]:
    found: list[TableRow] = [
        (path, 0, verdict, code, message, _codes(notes), agent, size, digest or None)
        for path, verdict, code, message, notes, agent, size, digest in store.files(database)
    ]
    numbers: dict[str, int] = dict.fromkeys((str(row[0]) for row in found), 0)
    for one in problems:
        path = one["path"]
        number = numbers[path] = numbers.get(path, -1) + 1
        found.append((path, number, one["verdict"], one["code"], one["message"], "", None, None, None))
    return found


def _codes(notes: str | None) -> str:
    return " ".join(sorted({code for code, _ in json.loads(notes)})) if notes else ""


def _artifacts(database: Database, sizes: Mapping[Any, Any], *, bodies: bool) -> Iterator[TableRow]:
    for row in store.artifacts(database, bodies=bodies):
        path, agent, kind, token, session, key, project, harness, started, ended_us, captured_us, *rest = row
        sentence, quality, noise, root, origin, digest, content = rest
        yield (
            path, agent, kind, token, session, key, project, harness,
            parse_instant(started) if started else None, ended_us, captured_us,
            sentence, quality, bool(noise), root, origin, sizes.get(path), digest, content,
        )  # fmt: skip


_AT = {name: number for number, name in enumerate(ARTIFACTS.names)}


def _sessions(database: Database, artifacts: Sequence[TableRow]) -> Iterator[TableRow]:
    """Makes one row of the artifacts of each session; a manifest alone is none."""
    by_session: dict[Any, list[TableRow]] = {}
    for row in artifacts:
        by_session.setdefault((row[_AT["agent"]], row[_AT["token"]], row[_AT["session"]]), []).append(row)
    listed, projects, said = store.listed(database), store.projects(database), store.statements(database)
    for session, rows in by_session.items():
        content = [row for row in rows if row[_AT["kind"]] in KINDS]
        if not content:
            continue
        best = max(content, key=_weight)
        sentence, path = listed.get(session, (best[_AT["sentence"]], best[_AT["path"]]))
        project = projects.get(session) or best[_AT["project"]]
        facts = said.get(session, [])
        ended = max(row[_AT["ended_at"]] for row in content)  # type: ignore[type-var]
        started = [at for row in content if isinstance(at := row[_AT["started_at"]], int)]
        yield (
            *session, best[_AT["session_key"]], project, best[_AT["harness"]],
            min(started, default=None), ended, day_of(_number(ended)), sentence or "", path, session in listed,
            len(rows), sum(_number(row[_AT["size"]]) for row in rows), len(facts),
            _words(sentence, project, facts, (row[_AT["body"]] for row in content)),
        )  # fmt: skip


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _weight(row: TableRow) -> tuple[float, Value, Value]:
    return weight(str(row[_AT["kind"]]), _number(row[_AT["noise"]])), row[_AT["captured_at"]], row[_AT["path"]]


def _words(sentence: Value, project: Value, facts: Iterable[str], bodies: Iterable[Value]) -> str:
    parts = [str(part) for part in (sentence, project, *facts, *bodies) if part]
    return "\n".join(dict.fromkeys(parts))[:MOST_WORDS]


def _facts(database: Database) -> Iterator[TableRow]:
    sessions, projects, subjects = store.sessions(database), store.projects(database), store.subjects(database)
    for row in store.facts(database):
        agent, fact, subject, aspect, text, status, later, ended_by, sources, first, last, path, line = row
        session = sessions.get(path)
        if session is None:
            continue  # of a session that still runs
        yield (
            agent, fact, aspect, text, projects.get(session), *subjects.get((agent, subject), (None, None)),
            status, later, ended_by, sources, first, last, day_of(last), *session[1:], path, line,
        )  # fmt: skip
