"""Stores what sessions state: the one table of what is known. Everything runs in the caller's transaction.

A row is a statement in one artifact, or in one turn of a running session. Rows with the same id say the same; the
newest has the words that are shown, and its status.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from signet_sync.formats.handle import id_of
from signet_sync.formats.statement import Item, Kind, Status
from signet_sync.formats.timestamps import parse_instant
from signet_sync.statements.sections import normal
from signet_sync.statements.validity import Known, Mark, Outcome, settle_statements, status_now
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session, rows_of_sessions
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.storage.database.tables import STATEMENTS, path_of
from signet_sync.sync.store.texts import Line
from signet_sync.text.sentences import basename

if TYPE_CHECKING:
    from signet_sync.formats.statement import Word

# The deriver of what running sessions state.
LIVE = "live statements"
TIER = "statement"  # what `recall` calls a statement of a session
# The words for a kind in the text that `recall` searches.
_IN_WORDS = {
    "question": "open question", "next": "next step, left to do", "blocker": "blocker, blocked, blocks",
    "decision": "decision, decided", "tried": "tried, failed",
}  # fmt: skip
# Statements of a kind and thread, and sessions of a thread, that are compared: the newest.
COMPARED, OUTCOMES = 60, 60

Key = tuple[str, str]  # agent, id of a statement or of a thread


class StatedItems(NamedTuple):
    """What one artifact states, and its origin; no path for live turns. `at_us` is in microseconds since 1970 UTC."""

    session: Session
    thread_id: str
    project: str
    source_path: str
    at_us: int
    items: tuple[Item, ...]


class Moved(NamedTuple):
    """What a replacement changed: ids and threads of what came or went, and the sessions that state or show less."""

    ids: set[Key]
    threads: set[Key]
    sessions: set[Session]


class Statement(NamedTuple):
    """A statement in the words of its newest source. Instants are microseconds since 1970 UTC."""

    id: str
    kind: str
    text: str
    speaker: str
    project: str
    thread_id: str
    status: Status
    earliest_us: int
    latest_us: int
    path: str
    replaced_by: str | None
    session: Session


# ── what sessions state ──

_COLUMNS = "agent_id, id, kind, text, speaker, thread_id, project, at_us, artifact, line, done, session"
_INSERT = f"insert into statements({_COLUMNS}, newest) values({placeholders(12)}, 1)"


def replace(
    database: Database, sessions: Iterable[Session], stated: Sequence[StatedItems], *, running: bool = False
) -> Moved:
    """Replaces what artifacts of sessions stated before. `settle` has to follow.

    With `running`, what live turns of sessions stated, whose `artifact` is the session's number below 0. Equal rows are
    not written again.
    """
    batches.number(database, {one.session for one in stated})
    numbers = batches.numbers(database, dict.fromkeys([*sessions, *(one.session for one in stated)]))
    artifacts = {} if running else batches.artifacts(database, [one.source_path for one in stated])
    wanted: set[tuple[Any, ...]] = set()
    for one in stated:
        number = numbers[one.session]
        agent_id = one.session[0]
        said: set[str] = set()
        for item in one.items:
            statement_id = id_of("f", agent_id, one.project or "", item.kind, normal(item.text))
            if statement_id in said:
                continue
            said.add(statement_id)
            wanted.add(
                (
                    agent_id, statement_id, item.kind, item.text, item.speaker, one.thread_id, one.project, one.at_us,
                    -number if running else artifacts[one.source_path], item.line, int(item.done), number,
                )
            )  # fmt: skip
    rows = batches.rows_with_values(database, f"statement, {_COLUMNS}", "statements", "session", numbers.values())
    held = {row[1:]: row[0] for row in rows if (row[9] < 0) is running}
    gone = held.keys() - wanted
    database.executemany("delete from statements where statement = ?", sorted((held[row],) for row in gone))
    come = sorted(wanted - held.keys())
    database.executemany(_INSERT, come)
    moved, less = (*come, *gone), {row[11] for row in gone}
    return Moved(
        {(row[0], row[1]) for row in moved},
        {(row[0], row[5]) for row in moved},
        {session for session, number in numbers.items() if number in less},
    )


# ── which is the newest, and what still holds ──

# Of the rows of an id that say the same: those that were or may be the newest, however many there are.
_SAME = f"""
    select s.id, s.at_us, {path_of("s.artifact")}, s.statement, s.newest, s.thread_id, n.session_token, n.session_id
    from json_each(?2) k cross join statements s on s.agent_id = ?1 and s.id = k.value and (s.newest = 1 or s.newest = 0
        and s.at_us = (select max(at_us) from statements o where o.agent_id = ?1 and o.id = k.value and o.newest = 0))
    join sessions n using (session) order by s.id"""
_SETTLED = "statement, id, kind, text, speaker, at_us, session, artifact, done, status, replaced_by from statements"
_KNOWN = f"select {_SETTLED} where agent_id = ? and thread_id = ? and kind = ? and newest = 1 order by at_us desc, id"
# What does not hold for another reason than its own tick.
_ENDED = f"""
    select {_SETTLED} where agent_id = ? and thread_id = ? and newest = 1 and status <> iif(done, 'done', 'open')"""
_OUTCOMES = f"""
    select n.session, t.latest_us, t.sentence, t.status, coalesce(d.deeds, ''), coalesce(d.worked, '')
    from thread_sessions t
    join sessions n using (agent_id, session_token, session_id) left join session_notes d on d.session = n.session
    where t.agent_id = ?1 and t.thread_id = ?2 order by t.latest_us desc, t.session_token, t.session_id
    limit {OUTCOMES}"""
# When a person stated last what a thread has the newest words of.
_OWN = """
    select s.id, max(o.at_us) from statements s join statements o using (agent_id, id)
    where s.agent_id = ? and s.thread_id = ? and s.newest = 1 and o.speaker = 'person' group by s.id"""
# What was said of the statements of a thread and its sessions.
_MARKS = """
    select m.id, m.kind, m.words, m.status, m.at_us, ifnull(n.session, 0) from statement_marks m
    left join sessions n using (agent_id, session_token, session_id) where m.agent_id = ?1 and (exists(
        select 1 from thread_sessions t where t.agent_id = ?1 and t.session_token = m.session_token
        and t.session_id = m.session_id and t.thread_id = ?2)
        or exists(select 1 from statements s where s.agent_id = ?1 and s.id = m.id and s.thread_id = ?2))"""
# Only the newest row of an id has a status.
_MOVE = "update statements set newest = ?, status = 'open', replaced_by = null where statement = ?"


def renew(database: Database, moved: Moved) -> Moved:
    """Updates which row of moved ids is the newest; returns the threads that `settle` has to follow, too.

    `replace` made every new row one of the newest, so that the newest is among these, or next to one that went.
    """
    threads, sessions = set(moved.threads), set(moved.sessions)
    moves: list[tuple[int, int]] = []
    for agent_id, some in groupby(sorted(moved.ids), key=lambda key: key[0]):
        rows = database.execute(_SAME, (agent_id, json.dumps([one for _, one in some])))
        for _, same in groupby(rows, key=lambda row: row[0]):
            held = list(same)
            newest = max(held, key=lambda row: (row[1], row[2] or "", row[3]))
            threads.update((agent_id, row[5]) for row in held)
            other = [row for row in held if row[4] != (row is newest)]
            moves += [(int(row is newest), row[3]) for row in other]
            sessions.update((agent_id, *row[6:]) for row in other)
    database.executemany(_MOVE, moves)
    return Moved(moved.ids, threads, sessions)


def settle(database: Database, threads: Iterable[Key]) -> set[Key]:
    """Updates what still holds in some threads; returns the changed ids."""
    changed: set[Key] = set()
    for agent_id, thread_id in sorted(threads):
        changed |= _settle_thread(database, agent_id, thread_id)
    return changed


def _settle_thread(database: Database, agent_id: str, thread_id: str) -> set[Key]:
    marks = database.execute(_MARKS, (agent_id, thread_id))
    marked = [Mark(one, kind, frozenset(words.split()), *more) for one, kind, words, *more in marks]
    held: dict[int, tuple[Status, str | None]] = {}

    def some(sql: str, *bindings: str | int) -> list[Known]:
        found = []
        for *said, done, status, by in database.execute(sql, (agent_id, thread_id, *bindings)):
            if said[0] not in held:
                held[said[0]] = status, by
                found.append(Known._make((*said, bool(done))))
        return found

    known = [one for kind in get_args(Kind) for one in some(f"{_KNOWN} limit {COMPARED}", kind)]
    # Of the others only a mark ends one; what was ended among the newest is open again.
    earlier = [one for kind in sorted({mark.kind for mark in marked}) for one in some(_KNOWN, kind)] + some(_ENDED)
    outcomes = [Outcome(*row) for row in database.execute(_OUTCOMES, (agent_id, thread_id))] if held else []
    own = dict(database.execute(_OWN, (agent_id, thread_id))) if marked else {}
    fresh = settle_statements(known, outcomes, marked, earlier, own)
    moved = {number for number in held if fresh[number] != held[number]}
    moves = sorted((number, *fresh[number]) for number in moved)
    database.executemany("update statements set status = ?2, replaced_by = ?3 where statement = ?1", moves)
    return {(agent_id, one.id) for one in (*known, *earlier) if one.number in moved}


# What a running session says again is as open as it was.
_LEFT = """
    select s.kind, max(o.status = 'open' or o.artifact < 0) from session_summaries n
    join statements s on s.session = n.session and s.artifact > 0 and not s.done
        and s.kind in ('blocker', 'next', 'question')
    join statements o on o.agent_id = s.agent_id and o.id = s.id and o.newest = 1
    where n.agent_id = ? and n.id = ? group by s.kind"""


def read_status(database: Database, agent_id: str, node_id: str, ended: str | None) -> str | None:
    """Returns how the work of a node's session, which `ended` so, stands by what it left and what still is."""
    if ended not in ("blocked", "open"):
        return ended
    return status_now(ended, {kind: bool(still) for kind, still in database.execute(_LEFT, (agent_id, node_id))})


_WEEKS = """
    select distinct t.thread_id, t.week from json_each(?2) k
    cross join statements s on s.agent_id = ?1 and s.id = k.value and s.newest = 1
    cross join sessions n on n.session = s.session
    cross join thread_sessions t on t.agent_id = n.agent_id and t.session_token = n.session_token
        and t.session_id = n.session_id"""


def weeks(database: Database, keys: Iterable[Key], sessions: Iterable[Session]) -> set[tuple[str, ...]]:
    """Returns agent, thread and week of some sessions, and of those that state something last: an arc lists that."""
    found = {
        (agent_id, *row)
        for agent_id, some in groupby(sorted(keys), key=lambda key: key[0])
        for row in database.execute(_WEEKS, (agent_id, json.dumps([one for _, one in some])))
    }
    return found.union(rows_of_sessions(database, "agent_id, thread_id, week", "thread_sessions", list(sessions)))


# ── what was said of statements ──


def follow_words(database: Database, said: "Iterable[Word]") -> tuple[set[Key], set[str]]:
    """Makes marks and pins the last words about each id; returns the threads in which marks moved, and agents of pins.

    In the caller's transaction.
    """
    last = list(said)
    wanted: dict[str, set[tuple[Any, ...]]] = {
        "pins": {(one.agent_id, one.id, one.at) for one in last if one.said == "pinned"},
        "statement_marks": {
            (one.agent_id, one.id, one.kind, one.words, one.said, parse_instant(one.at), one.token, one.session_id)
            for one in last
            if not one.is_pin
        },
    }
    moved: dict[str, set[tuple[Any, ...]]] = {}
    for table, rows in wanted.items():
        held = set(database.execute(f"select * from {table}"))
        moved[table] = held ^ rows
        gone, come = sorted(row[:2] for row in held - rows), sorted(rows - held)
        database.executemany(f"delete from {table} where agent_id = ? and id = ?", gone)
        for row in come:
            database.execute(f"insert into {table} values({placeholders(len(row))})", row)
    # The threads in which a mark may count: those of its session, and of statements that it names.
    of_mark = (
        "select thread_id from thread_sessions where agent_id = ?1 and session_token = ?3 and session_id = ?4"
        " union select thread_id from statements where agent_id = ?1 and id = ?2"
    )
    threads = {
        (row[0], thread_id)
        for row in moved["statement_marks"]
        for (thread_id,) in database.execute(of_mark, (*row[:2], *row[6:]))
    }
    return threads, {row[0] for row in moved["pins"]}


def counts(database: Database, word: "Word") -> bool:
    """Returns whether the same was said before, and nothing since."""
    if word.is_pin:
        pinned = "select exists(select 1 from pins where agent_id = ? and id = ?)"
        return bool(database.value(pinned, word[:2])) == (word.said == "pinned")
    marked = (
        "select exists(select 1 from statement_marks m where agent_id = ?1 and id = ?2 and status = ?3 and not exists("
        " select 1 from statements s where s.agent_id = ?1 and s.id = ?2 and s.at_us > m.at_us))"
    )
    return bool(database.value(marked, word[:3]))


def count_marks(database: Database, since_us: int) -> int:
    """Counts the statements of all agents of which something was said since then."""
    return int(database.value("select count(*) from statement_marks where at_us >= ?", (since_us,)))


def has_thread(database: Database, word: "Word") -> bool:
    """Returns whether the session that a word names is still on a thread."""
    sql = "select 1 from thread_sessions where agent_id = ? and session_token = ? and session_id = ?"
    return database.value(sql, (word.agent_id, word.token, word.session_id)) is not None


# ── what running sessions state ──


def projects_of(database: Database, sessions: Iterable[Session]) -> dict[Session, str]:
    """Returns the projects of those of some running sessions that state something."""
    rows = rows_of_sessions(database, "agent_id, session_token, session_id, session", "sessions", list(sessions))
    numbered = {row[3]: row[:3] for row in rows}
    stated = batches.rows_with_values(database, "session, project, artifact", "statements", "session", numbered)
    return {numbered[number]: project for number, project, artifact in stated if artifact < 0}


# ── for `recall`, `expand` and `status` ──

_LINES = """
    select s.id, s.text, s.kind, s.project, s.at_us from json_each(?2) k
    cross join statements s on s.agent_id = ?1 and s.id = k.value and s.newest = 1 and s.status = 'open'"""
_STILL = """
    select s.kind, s.text from json_each(?3) k cross join statements s on s.session = k.value
    where s.agent_id = ?1 and s.thread_id = ?2 and s.newest = 1 and s.status = 'open'
    order by s.at_us desc, s.line, s.id"""
_STATEMENT = f"""
    select s.id, s.kind, s.text, s.speaker, s.project, s.thread_id, s.status, (select min(at_us) from statements o
        where o.agent_id = s.agent_id and o.id = s.id), s.at_us, {path_of("s.artifact")}, replaced_by,
        n.session_token, n.session_id
    from statements s join sessions n using (session) where s.agent_id = ? and s.id = ? and s.newest = 1"""


def open_ids(database: Database) -> list[Key]:
    """Lists what still holds."""
    return list(database.execute("select agent_id, id from statements where newest = 1 and status = 'open'"))


def count_stale(database: Database, given: Sequence[tuple[str, str, int]]) -> int:
    """Counts those of some lines (agent, id, when it was given, in µs) that had been replaced before."""
    sql = (
        "select count(*) from json_each(?) g cross join statements s on s.agent_id = g.value->>0 and s.id = g.value->>1"
        " and s.newest = 1 and s.status = 'replaced' cross join statements r on r.agent_id = s.agent_id"
        " and r.id = s.replaced_by and r.newest = 1 where r.at_us < g.value->>2"
    )
    return int(database.value(sql, (json.dumps(given),)))


def lines(database: Database, agent_id: str, ids: Sequence[str]) -> list[Line]:
    """Returns the lines by which `recall` finds those of some statements that still hold."""
    return [
        Line(
            agent_id, TIER, key, f"{text} · {_IN_WORDS.get(kind, kind)}", at_us, private=True, about=basename(of) or of
        )
        for key, text, kind, of, at_us in database.execute(_LINES, (agent_id, json.dumps(list(ids))))
    ]


def get(database: Database, agent_id: str, statement_id: str) -> Statement | None:
    """Returns a statement, whether it still holds or not."""
    for *row, token, session_id in database.execute(_STATEMENT, (agent_id, statement_id)):
        return Statement._make((*row, (agent_id, token, session_id)))
    return None


def list_of_sessions(
    database: Database, agent_id: str, thread_id: str, sessions: Sequence[Session]
) -> Iterator[tuple[Any, ...]]:
    """Yields kind and words of what some sessions of a thread stated and still holds, newest first."""
    numbers = batches.numbers(database, sessions).values()
    return database.execute(_STILL, (agent_id, thread_id, json.dumps(list(numbers))))


class SessionStatement(NamedTuple):
    """A statement of a session, who said it and when, with the artifact and the line of its body, from 1."""

    id: str
    kind: str
    text: str
    status: str
    speaker: str
    at_us: int
    path: str
    line: int


def list_of_session(database: Database, session: Session) -> list[SessionStatement]:
    """Returns what a session states, each at its first place, in the order of its artifacts."""
    rows = database.execute(
        # SQLite takes the other columns from the row with the least path.
        f"select s.id, s.kind, f.text, f.status, f.speaker, f.at_us, min(s.source_path), s.line from {STATEMENTS} s"
        " cross join statements f on f.agent_id = s.agent_id and f.id = s.id and f.newest = 1"
        " where s.agent_id = ? and s.session_token = ? and s.session_id = ?"
        " group by s.id order by 7, 8, s.id limit 50",
        session,
    )
    return [SessionStatement(*row) for row in rows]
