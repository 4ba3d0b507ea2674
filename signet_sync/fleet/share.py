"""Writes the share of a workspace: the rows of its index, what its own machine or another reads of its files."""

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from signet_sync import __version__
from signet_sync.app.workspace import PIPELINE
from signet_sync.errors import WorkspaceError
from signet_sync.fleet import removals
from signet_sync.fleet.places import Place, answer, open_place
from signet_sync.fleet.tables import COLUMNS, SHARES, TABLES, VERSION, Tables
from signet_sync.formats.paths import MEMORY, display
from signet_sync.formats.timestamps import day_of, iso, parse_instant
from signet_sync.settings import model
from signet_sync.storage import locations, state_dir
from signet_sync.storage.database import tables as database_tables
from signet_sync.storage.database.connection import Database
from signet_sync.sync.engine import run_locked
from signet_sync.sync.index_records import KINDS, weight
from signet_sync.sync.read_only import IndexPlace, open_index
from signet_sync.sync.reading import scan
from signet_sync.sync.store.texts import text_of
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text import digest_mark
from signet_sync.text.sanitizer import sanitize_counted, sanitize_line, sanitizer_stamp
from signet_sync.text.stored_names import storable_path

TEXT = "text"  # what a share may hold, beside "rows"
_MOST_SAID = 200_000  # characters of a session by which it is found
_Rows = list[tuple[Any, ...]]

# What a share is made of. A statement's rows are all that say it; those of running sessions have no artifact.
_SOURCES = {
    "files": "select path, verdict, code, notes, agent_id, iif(code = 'not-a-file', null, size),"
    " nullif(found_sha256, ''), message from files order by path",
    "artifacts": "select a.agent_id, a.session_token, a.session_id, a.source_kind, a.source_path, a.session_key,"
    " a.project, a.harness, a.started_at, a.membership_us, a.captured_us, a.ledger_sentence, a.noise, f.size,"
    " a.source_sha256 from memory_artifacts a join files f on f.path = a.source_path order by a.source_path",
    "listed": "select agent_id, session_token, session_id, sentence, path from ledger_rows",
    "own projects": "select agent_id, session_token, session_id, min(identity) from session_projects"
    " where identity <> '' group by 1, 2, 3",
    "projects": "select s.agent_id, s.session_token, s.session_id, h.project from thread_sessions s"
    " join memory_thread_heads h on h.agent_id = s.agent_id and h.thread_id = s.thread_id"
    " where h.project is not null order by 1, 2, 3",
    "statements": "select f.agent_id, f.id, f.kind, f.text, f.speaker, f.status, f.newest, f.at_us, a.session_token,"
    f" a.session_id, f.source_path, f.line from {database_tables.STATEMENTS} f"
    " join memory_artifacts a on a.source_path = f.source_path order by f.at_us, f.source_path, f.line",
}


def share_of(name: str, key: str = "") -> str:
    """Returns the id of a share: of a workspace by its host and id, of a target by its address."""
    return sha256(f"{name}\n{key}".encode("utf-8", "surrogatepass")).hexdigest()[:20]


def share_own(
    place: IndexPlace, url: str, holds: str, now_us: int, *, enforces: bool, accept: bool, withdraw: bool
) -> dict[str, Any]:
    """Writes the share of this machine's workspace by its index, or takes it back; returns `fleet share --json`.

    With `enforces` what is approved is removed first. Raises `SignetSyncError`, beside another `busy`.
    """
    tables, home, key = Tables(url), os.path.expanduser("~"), place.state().key
    host, root = socket.gethostname(), place.root
    name = sanitize_line(display(f"{host}:{root.replace(home, '~', 1) if home != '/' else root}"))
    share = share_of(host, key)
    with state_dir.lock(place.state(), "fleet"):
        removed = None
        if withdraw:
            tables.withdraw(share)
            return answer([(name, "ok", "", {"shared": "withdrawn"})]) | {"url": tables.url, "removals": None}
        if enforces:
            told = {"workspace": name, "version": __version__}
            open_here, read = place.open_workspace, partial(open_index, place)
            removed = removals.enforce(tables, share, read, open_here, now_us, accept=accept, **told)
        with open_index(place) as database:
            state, done = _write(tables, share, database, name, holds, now_us, enforces=enforces)
    return answer([(name, state, "", {"shared": done})]) | {"url": tables.url, "removals": removed}


def share_target(asked: tuple[str, str, str, int]) -> tuple[str, str]:
    """Writes the share of a workspace, wherever it is, by its files alone: target, tables, what it holds, the time.

    Returns its state and what was done. Raises as `open_place` does.
    """
    target, url, holds, now_us = asked
    tables, share = Tables(url), share_of(target)
    with open_place(target) as place:
        settings, _ = model.load(place.root)
        # Before anything is read: what changes meanwhile is another listing for the next run.
        noise = settings.noise_projects, settings.noise_sessions, settings.max_file_bytes
        listing = place.version or _list_files(place.root)
        source, before = _digest([noise, listing], holds), tables.read(f"{SHARES}/{share}.json")[0]
        if listing is None and before is None:
            return "empty", ""
        if listing is None:
            raise WorkspaceError("memory/ does not exist; its rows stay", hint="is it mounted, and whole?")
        if before is not None and before.get("source") == source and tables.holds(before):
            return before["state"], "unchanged"
        place.fetch()
        with index_in_memory(place, now_us) as database:
            return _write(tables, share, database, sanitize_line(display(target)), holds, now_us, source=source)


def _digest(sources: Any, holds: str) -> str:
    rules = __version__, sanitizer_stamp(), digest_mark.VERSION, VERSION, holds
    return sha256(repr((rules, sources)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _write(
    tables: Tables, share: str, database: Database, workspace: str, holds: str, now_us: int,
    *, source: str = "", enforces: bool = False,
) -> tuple[str, str]:  # fmt: skip
    """Writes what a share is made of, unless it has that already; returns the state, and what was done.

    `source` is a digest of what the rows were derived from; without one they are compared themselves.
    """
    sources = {name: list(database.execute(query)) for name, query in _SOURCES.items()}
    state = "ok" if sources["artifacts"] else "empty"
    more = {"workspace": workspace, "state": state, "removals": enforces}
    source = source or _digest([sources, more], holds)
    before = tables.read(f"{SHARES}/{share}.json")[0]
    if before is not None and before.get("source") == source and tables.holds(before):
        return state, "unchanged"
    made = rows_of(database, sources, holds)
    tables.commit(share, made, holds=holds, source=source, shared_at=iso(now_us), version=__version__, **more)
    return state, "written"


@contextmanager
def index_in_memory(place: Place, now_us: int) -> Iterator[Database]:
    """Yields a database in memory with every derived row of a workspace, here or elsewhere, as of its files alone.

    What its machine knows besides (seals, live turns, memories) is not in it: it is the same for every reader. No lock
    is needed, because nothing is shared. Raises `WorkspaceError`, `Unreachable`, `ConfigError`.
    """
    # A folder that never exists.
    nowhere = locations.locate_by_path(locations.base(), f"index in memory of {place.name}")
    with closing(Database(":memory:")) as database:
        workspace = Workspace(
            place.root,
            model.load(place.root)[0],
            nowhere,
            database,
            touch_nothing=True,
            own_place=False,
            pipeline=PIPELINE,
        )
        # An engine has a process for every core.
        run_locked(workspace, Request(now_us, project=False, resume=False, follow_removals=False))
        yield database


def _list_files(root: str) -> list[object] | None:
    """Lists path and signature of every file on which rows depend; None without `memory/`. Raises `WorkspaceError`."""
    found = scan(root)
    if found.ground == "missing":
        return None
    if found.ground != "present":
        raise WorkspaceError(found.ground_message, path=MEMORY, hint="check that the workspace is mounted, and whole")
    return [*sorted(found.files.items()), *sorted(found.odd.items())]


def rows_of(database: Database, sources: Mapping[str, _Rows], holds: str) -> dict[str, _Rows]:
    """Returns the rows of each table, sorted; every text passes the sanitizer once more.

    A share of `rows` has no text: no sentence, statement, message or key, and of a project's path the last part.
    """
    projects = {row[:3]: row[3] for name in ("own projects", "projects") for row in sources[name]}
    made: dict[str, _Rows] = {
        "sessions": list(_sessions(database, sources, projects, holds)),
        "statements": list(_statements(sources["statements"], projects)),
        "files": [(*row[:3], " ".join(sorted(dict(json.loads(row[3] or "[]")))), *row[4:]) for row in sources["files"]],
    }
    for table in TABLES:
        columns = list(COLUMNS[table].items())
        rows = [
            tuple(_clean(*one, value, holds) for one, value in zip(columns, row, strict=True)) for row in made[table]
        ]
        made[table] = sorted(rows, key=lambda row: row[:3])
    return made


_name, _line = lru_cache(1_000)(storable_path), lru_cache(1_000)(sanitize_line)


def _clean(column: str, kind: str, value: Any, holds: str) -> Any:
    if kind == "line" and holds != TEXT:
        return None
    if not value or kind not in ("name", "line", "said"):
        return value
    if column == "project" and holds != TEXT:
        value = value.rstrip("/").rpartition("/")[2]
    return _name(value) if kind == "name" else _line(value) if kind == "line" else sanitize_counted(value)[0]


def _statements(said: _Rows, projects: Mapping[tuple[Any, ...], str]) -> Iterator[tuple[Any, ...]]:
    """Makes one row of each statement, in the words of its newest source."""
    by_id: dict[tuple[str, str], _Rows] = {}
    for row in said:
        by_id.setdefault(row[:2], []).append(row)
    for (agent, statement), rows in by_id.items():
        best = max(rows, key=lambda row: row[6:8])
        _, _, kind, text, speaker, status, _, last, token, session, path, line = best
        project, first = projects.get((agent, token, session)), rows[0][7]
        yield (
            agent, statement, kind, speaker, status, len(rows), first, last, day_of(last), token, session, project,
            path, line, text,
        )  # fmt: skip


def _sessions(
    database: Database, sources: Mapping[str, _Rows], projects: Mapping[tuple[Any, ...], str], holds: str
) -> Iterator[tuple[Any, ...]]:
    """Makes one row of the artifacts of each session; a manifest alone is none."""
    by_session: dict[tuple[Any, ...], _Rows] = {}
    for row in sources["artifacts"]:
        by_session.setdefault(row[:3], []).append(row[3:])
    stated: dict[tuple[Any, ...], list[str]] = {}
    for row in sources["statements"]:
        stated.setdefault((row[0], *row[8:10]), []).append(row[3])
    listed = {row[:3]: row[3:] for row in sources["listed"]}
    for session, artifacts in by_session.items():
        content = [row for row in artifacts if row[0] in KINDS]
        if not content:
            continue
        # A summary, else a compaction, else a transcript; the newest.
        best = max(content, key=lambda row: (weight(row[0], row[9]), row[7], row[1]))
        sentence, path = listed.get(session, (best[8], best[1]))
        project, ended = projects.get(session) or best[3], max(row[6] for row in content)
        started = [at for row in content if row[5] and (at := parse_instant(row[5])) is not None]
        statements, name = stated.get(session, []), (project or "").rstrip("/").rpartition("/")[2]
        yield (
            *session, project, best[4], min(started, default=None), ended, day_of(ended), path, len(artifacts),
            sum(row[10] or 0 for row in artifacts), len(statements), best[2], sentence or "",
            _search_text(database, [sentence, *statements, project or ""], content) if holds == TEXT else name.lower(),
        )  # fmt: skip


def _search_text(database: Database, lines: Sequence[str], content: _Rows) -> str:
    """Returns what a session is found by, in small letters: what it states and its summaries, no transcript."""
    query = f"select {text_of()} from memory_artifacts where source_path = ?"
    bodies = [database.value(query, (row[1],)) for row in content if row[0] != "transcript"]
    return "\n".join(dict.fromkeys(filter(None, (*lines, *bodies)))).lower()[:_MOST_SAID]
