"""Declares the open tables, and makes their rows from an index; docs/fleet.md says what the columns hold."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from signet_sync.fleet import store
from signet_sync.formats.temporary_sessions import KINDS, weight
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.storage.database.connection import Database
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line
from signet_sync.text.stored_names import storable_path

# Raised with each change of a table or column: every workspace is then indexed again.
VERSION = 3
TableRow = tuple[Any, ...]
_MOST_WORDS = 200_000  # characters of a session by which it is found


class OpenTable(NamedTuple):
    """A table: its columns in order, with their kinds, and how many of the first are unique within a workspace.

    `name`: an id, key or path, kept distinct where a secret is removed from it; `line` and `text`: words, one line or
    several; `code`: a word or digest of ours. Only the first three may contain what somebody wrote.
    """

    name: str
    key: int
    columns: Mapping[str, str]


def _table(text: str) -> OpenTable:
    name, key, *columns = text.split()
    return OpenTable(name, int(key), dict(column.split(":") for column in columns))


VERDICTS = _table("""verdicts 2 path:name number:int verdict:code code:code message:line notes:line agent:name
    size:int sha256:code""")
SESSIONS = _table("""sessions 3 agent:name token:code session:name session_key:name project:name harness:name
    started_at:time ended_at:time day:code sentence:line path:name listed:bool files:int size:int statements:int
    words:text""")
STATEMENTS = _table("""statements 2 agent:name id:code kind:code text:line project:name speaker:code
    status:code sources:int first_at:time last_at:time day:code token:code session:name path:name line:int""")
OPEN_TABLES = (VERDICTS, SESSIONS, STATEMENTS)


def rows_of(database: Database, problems: Iterable[Mapping[str, Any]], *, bodies: bool) -> dict[str, list[TableRow]]:
    """Returns the rows of each table, in the order of its key.

    `problems` are those of what is no artifact. Every text passes the sanitizer once more.
    """
    projects, said = store.projects(database), store.texts_by_session(database)
    statements = []
    for agent, statement, kind, text, *more, token, session, path, line in store.statements(database):
        day = day_of(more[-1])
        project = projects.get((agent, token, session))
        statements.append((agent, statement, kind, text, project, *more, day, token, session, path, line))
    sessions = list(_sessions(database, projects, said, bodies=bodies))
    tables = {}
    for table, rows in zip(OPEN_TABLES, (_files(database, problems), sessions, statements), strict=True):
        kinds = table.columns.values()
        clean = [tuple(_clean(kind, value) for kind, value in zip(kinds, row, strict=True)) for row in rows]
        tables[table.name] = sorted(clean, key=lambda row, key=table.key: row[:key])  # type: ignore[misc]
    return tables


_name, _line = lru_cache(1_000)(storable_path), lru_cache(1_000)(sanitize_line)


def _clean(kind: str, value: Any) -> Any:
    """Returns a value of a column; a text as the sanitizer leaves it."""
    if not value or kind not in ("name", "line", "text"):
        return value
    return _name(value) if kind == "name" else _line(value) if kind == "line" else sanitize_counted(value)[0]


def _files(database: Database, problems: Iterable[Mapping[str, Any]]) -> list[TableRow]:
    """Returns a row for each file, and further ones for the further problems of a path."""
    found: list[TableRow] = []
    for path, verdict, code, message, notes, *more in store.files(database):
        codes = " ".join(sorted({note for note, _ in json.loads(notes)})) if notes else ""
        found.append((path, 0, verdict, code, message, codes, *more))
    numbers: dict[str, int] = dict.fromkeys((row[0] for row in found), 0)
    for one in problems:
        number = numbers[one["path"]] = numbers.get(one["path"], -1) + 1
        found.append((one["path"], number, one["verdict"], one["code"], one["message"], "", None, None, None))
    return found


def _sessions(
    database: Database, projects: Mapping[store.Session, str], said: Mapping[store.Session, list[str]], *, bodies: bool
) -> Iterator[TableRow]:
    """Makes one row of the artifacts of each session; a manifest alone is none."""
    by_session: dict[store.Session, list[TableRow]] = {}
    for agent, token, session, *artifact in store.artifacts(database, bodies=bodies):
        by_session.setdefault((agent, token, session), []).append(tuple(artifact))
    listed = store.listed(database)
    for name, rows in by_session.items():
        content = [row for row in rows if row[0] in KINDS]
        if not content:
            continue
        # A summary, else a compaction, else a transcript; the newest.
        best = max(content, key=lambda row: (weight(row[0], row[9]), row[7], row[1]))
        _, own_path, key, own_project, harness, _, _, _, own_sentence, *_ = best
        sentence, path = listed.get(name, (own_sentence, own_path))
        project, statements = projects.get(name) or own_project, said.get(name, [])
        ended = max(row[6] for row in content)
        started = [at for row in content if row[5] and (at := parse_instant(row[5])) is not None]
        words = [part for part in (sentence, project, *statements, *(row[-1] for row in content)) if part]
        yield (
            *name, key, project, harness, min(started, default=None), ended, day_of(ended), sentence or "", path,
            name in listed, len(rows), sum(row[10] or 0 for row in rows), len(statements),
            "\n".join(dict.fromkeys(words))[:_MOST_WORDS],
        )  # fmt: skip
