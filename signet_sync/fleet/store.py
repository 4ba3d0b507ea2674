"""Reads from an index what the open tables hold, and sessions from these; a session is named by agent, token and id."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_sync.storage.database import tables
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_of

Session = tuple[str, str, str]
_Rows = list[tuple[Any, ...]]


def files(database: Database) -> _Rows:
    """Returns path, verdict, code, message, notes, agent, size and digest of every file."""
    query = (
        "select path, verdict, code, message, notes, agent_id, iif(code = 'not-a-file', null, size),"
        " nullif(found_sha256, '') from files"
    )
    return list(database.execute(query))


def artifacts(database: Database, *, bodies: bool) -> _Rows:
    """Returns every artifact by its session: kind, path, what it says of the session, and its body with `bodies`."""
    query = (
        "select a.agent_id, a.session_token, a.session_id, a.source_kind, a.source_path, a.session_key, a.project,"
        " a.harness, a.started_at, a.membership_us, a.captured_us, a.ledger_sentence, a.noise, f.size,"
        f" {text_of('a') if bodies else 'null'}"
        " from memory_artifacts a join files f on f.path = a.source_path"
    )
    return list(database.execute(query))


def listed(database: Database) -> dict[Session, tuple[str, str]]:
    """Returns sentence and path of the sessions that the session log lists."""
    rows = database.execute("select agent_id, session_token, session_id, sentence, path from ledger_rows")
    return {(agent, token, session): (sentence, path) for agent, token, session, sentence, path in rows}


def projects(database: Database) -> dict[Session, str]:
    """Returns the projects of sessions: the one of the thread, else what the session's own place gives."""
    return {
        row[:3]: row[3]
        for query in (
            "select agent_id, session_token, session_id, min(identity) from session_projects where identity <> ''"
            " group by 1, 2, 3",
            "select s.agent_id, s.session_token, s.session_id, h.project from thread_sessions s"
            " join memory_thread_heads h on h.agent_id = s.agent_id and h.thread_id = s.thread_id"
            " where h.project is not null",
        )
        for row in database.execute(query)
    }


def texts_by_session(database: Database) -> dict[Session, list[str]]:
    """Returns what sessions state, in the order of their lines."""
    found: dict[Session, list[str]] = {}
    for agent, token, session, text in database.execute(
        f"select agent_id, session_token, session_id, text from {tables.STATEMENTS} order by at_us, source_path, line"
    ):
        found.setdefault((agent, token, session), []).append(text)
    return found


def statements(database: Database) -> _Rows:
    """Returns every statement once, in the words of its newest source, and its session; none of a running one."""
    query = (
        "select f.agent_id, f.id, f.kind, f.text, f.speaker, f.status,"
        " (select count(*) from statements o where o.agent_id = f.agent_id and o.id = f.id),"
        " (select min(at_us) from statements o where o.agent_id = f.agent_id and o.id = f.id),"
        " f.at_us, a.session_token, a.session_id, f.source_path, f.line"
        f" from {tables.STATEMENTS} f join memory_artifacts a on a.source_path = f.source_path where f.newest = 1"
    )
    return list(database.execute(query))


# A word counts where it is a part of one: Chinese and Japanese have no spaces, and names of code are found by parts.
_FOUND = """
    with asked as (select unnest($words) as word),
    told as (select *, strip_accents(lower(words)) as low from read_parquet($files)),
    counted as (
      select *, (select count(*) from asked where contains(low, word)) as had from told
      where ($project is null or $project in (lower(project), lower(regexp_replace(project, '^.*/', ''))))
      and ($agent is null or agent = $agent)
      and epoch_us(ended_at) between coalesce($since, epoch_us(ended_at)) and coalesce($until, epoch_us(ended_at))
    )
    select workspace, agent, token, session, project, harness, day, sentence, path, words, had / len($words) as score
    from counted where had > 0 order by had desc, ended_at desc, workspace, agent, token, session limit $limit"""


class Selection(NamedTuple):
    """Which sessions are wanted: of a project (name, path or origin), of an agent, in a time (microseconds UTC)."""

    project: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    limit: int = 10


def found(connection: Any, files: Sequence[str], words: Sequence[str], wanted: Selection) -> _Rows:
    """Returns sessions of Parquet files that have some of the words, by DuckDB: their words and score last."""
    project = None if wanted.project is None else wanted.project.rstrip("/").lower()
    bound = {**wanted._asdict(), "project": project, "files": files, "words": words}
    rows: _Rows = connection.execute(_FOUND, bound).fetchall()
    return rows
