"""Lists sessions: newest first, filtered, a page at a time. Imports no slow module."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from signet_sync.formats.filename import find_carried_token
from signet_sync.formats.timestamps import parse_moment
from signet_sync.recall.snippets import snippet
from signet_sync.recall.store.words import find_with_every_word
from signet_sync.storage.database.batches import pack_values
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.texts import text_of
from signet_sync.text.sentences import page_cell

NONE = "-"  # as a project: sessions that have none
_READ = 200_000  # characters of one artifact that are searched for a snippet
_READ_IN_ALL = 2_000_000
_NAMED = 3  # characters from which a beginning counts as a name


class Cursor(NamedTuple):
    """A session's place in the order of time; the next page begins after it."""

    membership_us: int
    session_token: str
    session_id: str


class SessionFilter(NamedTuple):
    """Which sessions are wanted; instants in microseconds, `until_us` itself is excluded."""

    query: str = ""
    project: str | None = None
    harness: str | None = None
    since_us: int | None = None
    until_us: int | None = None


class SessionEntry(NamedTuple):
    """One session of the list: a row of the session log, with data of its newest artifact and its files."""

    session_token: str
    session_id: str
    membership_us: int
    day: str
    project: str | None
    sentence: str
    path: str
    session_key: str | None
    harness: str | None
    segments: int
    violations: int

    @property
    def cursor(self) -> Cursor:
        """Returns its place in the list."""
        return Cursor(self.membership_us, self.session_token, self.session_id)


class SessionList(NamedTuple):
    """A page of the list: `more` if older ones follow."""

    entries: list[SessionEntry]
    more: bool


# ── the list ──

_SEGMENTS = """(select count(distinct captured_us) from memory_artifacts s where s.agent_id = p.agent_id
    and s.session_token = p.session_token and s.session_id = p.session_id
    and s.source_kind in ('summary', 'transcript'))"""
_VIOLATIONS = """(select count(*) from seals s join violations v on v.path = s.path where s.agent_id = p.agent_id
    and s.session_token = p.session_token and s.session_id = p.session_id)"""


def page(
    database: Database, agent_id: str, wanted: SessionFilter, after: Cursor | None = None, limit: int = 100
) -> SessionList:
    """Returns the newest sessions of an agent that pass a filter, or those after a place in the list.

    Every word of the query must be in one of the session's files, the last one may be a beginning. Names of sessions
    (token, key, id, path) count as words, their beginnings too.
    """
    found = _find_with_words(database, agent_id, wanted.query)
    entries = _entries(database, agent_id, wanted, found, after, limit)
    return SessionList(entries[:limit], len(entries) > limit)


def _find_with_words(database: Database, agent_id: str, query: str) -> str | None:
    """Returns the first passages of the texts with every word, listed; None for a query without words."""
    # One or two letters would match half of all words.
    begun = query[-_NAMED:].isalnum() and len(query) >= _NAMED
    found = find_with_every_word(database, agent_id, query, begun=begun)
    return None if found is None else pack_values(found)


def _entries(
    database: Database, agent_id: str, wanted: SessionFilter, found: str | None, after: Cursor | None, limit: int
) -> list[SessionEntry]:
    bound: dict[str, Any] = {"agent": agent_id, "limit": limit + 1}
    where = " and ".join(["l.agent_id = :agent", *_conditions(bound, wanted, found, after)])
    # Segments and violations are looked up for the sessions of this page only.
    sql = f"""select p.session_token, p.session_id, p.membership_us, p.day, p.project, p.sentence, p.path,
            p.session_key, p.harness, {_SEGMENTS}, {_VIOLATIONS}
        from (select l.*, a.session_key, a.harness from ledger_rows l
            cross join memory_artifacts a on a.source_path = l.path where {where}
            order by l.membership_us desc, l.session_token desc, l.session_id desc limit :limit) p
        order by p.membership_us desc, p.session_token desc, p.session_id desc"""
    return [SessionEntry(*row) for row in database.execute(sql, bound)]


def _conditions(bound: dict[str, Any], wanted: SessionFilter, found: str | None, after: Cursor | None) -> Iterator[str]:
    """Yields the conditions of a filter; adds their values to `bound`, by parameter name."""
    if wanted.project == NONE:
        yield "l.project is null"
    elif wanted.project is not None:
        bound |= {"project": wanted.project, "ending": f"/{wanted.project}"}
        yield (
            "exists(select 1 from session_projects w where w.agent_id = l.agent_id"
            " and w.session_token = l.session_token and w.session_id = l.session_id and (w.identity = :project"
            " or w.root = :project or w.folder = :project or substr(w.identity, -length(:ending)) = :ending))"
        )
    for name, condition in _COMPARED.items():
        if (value := getattr(wanted, name)) is not None:
            bound[name] = value
            yield condition
    if words := wanted.query.strip():
        found = " union ".join(_list_conditions(bound, words, found))
        yield f"(l.session_token, l.session_id) in ({found})" if found else "0"
    if after is not None:
        bound |= after._asdict()
        yield "(l.membership_us, l.session_token, l.session_id) < (:membership_us, :session_token, :session_id)"


_COMPARED = {
    "harness": "a.harness = :harness",
    "since_us": "l.membership_us >= :since_us",
    "until_us": "l.membership_us < :until_us",
}


def _list_conditions(bound: dict[str, Any], words: str, found: str | None) -> Iterator[str]:
    if found is not None:
        bound["found"] = found
        yield (
            "select a.session_token, a.session_id from json_each(:found) j cross join texts t on t.first = j.value"
            " join memory_artifacts a on a.id = t.artifact"
        )
    if len(words) >= _NAMED:
        bound |= {"name": words, "line": f" | session={page_cell(words)}"}
        yield (
            "select session_token, session_id from ledger_rows where agent_id = :agent and (session_token = :name"
            " or path = :name or substr(session_id, 1, length(:name)) = :name or instr(line, :line) > 0)"
        )


# ── snippets beside the list ──


def snippets(database: Database, agent_id: str, query: str, entries: Sequence[SessionEntry]) -> dict[Cursor, str]:
    """Returns for each session of a page a snippet with the query's words, of the summary if it has them.

    Bounded: of long artifacts only the beginning is searched, and at most two million characters altogether.
    """
    found = _find_with_words(database, agent_id, query.strip())
    if found is None or not entries:
        return {}
    best = _best_hits(database, agent_id, found, entries)
    pieces: dict[Cursor, str] = {}
    read = 0
    for entry in entries:
        row_id = best.get((entry.session_token, entry.session_id))
        if row_id is None or read > _READ_IN_ALL:
            continue
        for content, sentence, kind in database.execute(
            f"select substr({text_of()}, 1, ?), coalesce(memory_sentence, ''), source_kind from memory_artifacts"
            " where id = ?",
            (_READ, row_id),
        ):
            read += len(content)
            pieces[entry.cursor] = snippet(content, sentence, query, spoken=kind == "transcript")
    return pieces


def _best_hits(
    database: Database, agent_id: str, found: str, entries: Sequence[SessionEntry]
) -> dict[tuple[str, str], int]:
    """Returns the row of each session's artifact that has the words: summary before compaction before transcript."""
    names = ", ".join(["(?, ?)"] * len(entries))
    rows = database.execute(
        f"""with page(session_token, session_id) as (values {names})
        select a.session_token, a.session_id, a.id from page p cross join memory_artifacts a
            on a.agent_id = ? and a.session_token = p.session_token and a.session_id = p.session_id
        where a.source_kind <> 'manifest'
            and +a.id in (select t.artifact from json_each(?) j cross join texts t on t.first = j.value)
        order by case a.source_kind when 'transcript' then 1 when 'compaction' then 2 else 3 end, a.captured_us""",
        [*(name for entry in entries for name in (entry.session_token, entry.session_id)), agent_id, found],
    )
    return {(token, session_id): row_id for token, session_id, row_id in rows}


def find_with_invalid_files(database: Database, agent_id: str) -> set[str]:
    """Returns tokens of files that never were valid, if the token belongs to exactly one session."""
    tokens = {
        find_carried_token(path.rpartition("/")[2])
        for (path,) in database.execute("select path from files where verdict <> 'indexed' and verdict = 'invalid'")
    }
    return {token for token in tokens if token is not None and _is_one_session(database, agent_id, token)}


def _is_one_session(database: Database, agent_id: str, token: str) -> bool:
    sessions: int = database.value(
        "select count(*) from (select 1 from ledger_rows where agent_id = ? and session_token = ? limit 2)",
        (agent_id, token),
    )
    return sessions == 1


def projects(database: Database, agent_id: str) -> list[tuple[str | None, int]]:
    """Returns the projects of an agent's sessions with their number of sessions, the busiest first."""
    return [
        (project, count)
        for project, count in database.execute(
            "select w.identity, count(distinct l.session_token || l.session_id) from ledger_rows l"
            " left join session_projects w using (agent_id, session_token, session_id) where l.agent_id = ?"
            " group by 1 order by 2 desc, 1",
            (agent_id,),
        )
    ]


def count_left_out(database: Database, agent_id: str) -> int:
    """Returns how many sessions of an agent have no line in the session log: noise."""
    others: int = database.value(
        "select count(*) from (select session_token, session_id from memory_artifacts where agent_id = ?1"
        " and source_kind <> 'manifest' except select session_token, session_id from ledger_rows where agent_id = ?1)",
        (agent_id,),
    )
    return others


def harnesses(database: Database, agent_id: str) -> list[str]:
    """Returns the harnesses of an agent's sessions."""
    return [
        harness
        for (harness,) in database.execute(
            "select distinct harness from thread_sessions where agent_id = ? and harness is not null order by 1",
            (agent_id,),
        )
    ]


def count_on_days(database: Database, agent_id: str, days: Iterable[str]) -> dict[str, int]:
    """Returns how many sessions some days of the person have."""
    within = "select count(*) from ledger_rows where agent_id = ? and membership_us between ? and ?"
    spans = ((day, parse_moment(day), parse_moment(day, ends=True)) for day in days)
    return {day: database.value(within, (agent_id, first, last)) for day, first, last in spans}
