"""Stores live turns of running sessions as rows, until their artifacts are written.

Turns that the harness handed over follow from files (`live.files`). Turns of a session whose key is its id are
read from its harness's transcript, from which they can be read again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.ids import token_of
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.storage.database.tables import HANDED_OVER
from signet_sync.sync.index_records import Source

# A search wants the newest turns, and quickly; a running session rarely has more than this.
MOST_FOUND = 50
MOST_READ = 5_000
MOST_WORDS = 32
# The kind of source of what live turns state: a running session by its key and id.
RUNNING = "running session"

_MINE = "agent_id = ? and session_key = ? and session_id = ?"
_TURN = "turn, role, content, at"


class LiveTurn(NamedTuple):
    """A buffered turn; `content` is sanitized, `at` is ISO 8601 UTC with milliseconds."""

    turn: int
    role: str
    content: str
    at: str


class LivePlace(NamedTuple):
    """Where a running session works, as its files will name it; None: not known."""

    project: str | None = None
    harness: str | None = None
    repository_root: str | None = None
    repository_origin: str | None = None
    repository_path: str | None = None
    repository_branch: str | None = None


class RunningSession(NamedTuple):
    """A session with live turns, where it works, and whether it is noise."""

    agent_id: str
    session_key: str
    session_id: str
    place: LivePlace
    noise: bool

    @property
    def name(self) -> str:
        """Returns the id by which the session is known, of files too."""
        return self.session_id or self.session_key


class LiveSession(NamedTuple):
    """A session that has buffered turns; `session_id` is empty if only its key is known."""

    session_key: str
    session_id: str
    turns: int
    first_at: str
    last_at: str


class FoundTurn(NamedTuple):
    """A buffered turn that contains one of the words searched for."""

    session_key: str
    session_id: str
    turn: int
    role: str
    at: str
    content: str


# ── turns ──


def find_new_turns(
    database: Database, agent_id: str, session_key: str, turns: Sequence[LiveTurn], *, session_id: str
) -> list[LiveTurn]:
    """Returns the turns that are not buffered yet, in order.

    Two turns are equal if their role and words are, apart from redactions: the same turn may come again at another time
    and under other sanitizer rules. Raises `UsageError` (`turn-conflict`) if the number is used for other words.
    """
    new: dict[int, LiveTurn] = {}
    for turn in turns:
        known = new.get(turn.turn)
        for row in database.execute(
            f"select {_TURN} from session_transcripts where {_MINE} and turn = ?",
            (agent_id, session_key, session_id, turn.turn),
        ):
            known = LiveTurn(*row)
        if known is None:
            new[turn.turn] = turn
        elif known[1:3] != turn[1:3]:
            from signet_sync.text.redaction import alike  # slow import: the whole sanitizer

            if alike(known.role, turn.role) and alike(known.content, turn.content):
                continue
            raise UsageError(
                f"turn {turn.turn} of this session was appended with other words",
                hint="nothing was written; turns never change: append new words under a new number",
                code="turn-conflict",
            )
    return list(new.values())


def buffer(
    database: Database, agent_id: str, session_key: str, turns: Sequence[LiveTurn], *, session_id: str = ""
) -> None:
    """Adds turns returned by `find_new_turns`, in the caller's transaction."""
    database.executemany(
        f"insert into session_transcripts(agent_id, session_key, session_id, {_TURN}) values(?, ?, ?, ?, ?, ?, ?)",
        [(agent_id, session_key, session_id, *turn) for turn in turns],
    )
    if turns:
        _queue(database, [(agent_id, session_key, session_id)])


def mirror(database: Database, agent_id: str, session_key: str, session_id: str, turns: Iterable[LiveTurn]) -> None:
    """Replaces the buffered turns of a session by these, in the caller's transaction.

    Some that were buffered may have been withdrawn. Equal ones are not written again.
    """
    wanted = {turn.turn: turn for turn in turns}
    known = {turn.turn: turn for turn in transcript(database, agent_id, session_key, session_id)}
    gone = [(agent_id, session_key, session_id, turn) for turn in known if wanted.get(turn) != known[turn]]
    database.executemany(f"delete from session_transcripts where {_MINE} and turn = ?", gone)
    if gone:
        _follow_shrinking(database, agent_id, session_key, session_id)
    new = [turn for number, turn in wanted.items() if known.get(number) != turn]
    buffer(database, agent_id, session_key, new, session_id=session_id)


def forget(database: Database, agent_id: str, session_key: str, session_id: str) -> None:
    """Deletes all turns of a session, in the caller's transaction."""
    database.execute(f"delete from session_transcripts where {_MINE}", (agent_id, session_key, session_id))
    _follow_shrinking(database, agent_id, session_key, session_id)


def _follow_shrinking(database: Database, agent_id: str, session_key: str, session_id: str) -> None:
    """Follows turns that went: without any left, the session goes; what was made of them is made again."""
    names = agent_id, session_key, session_id
    if not count(database, *names):
        database.execute(f"delete from live_sessions where {_MINE}", names)
    from signet_sync.statements import store as statements_store  # not needed to read

    if statements_store.projects_of(database, [(agent_id, token_of(agent_id, session_key), session_id or session_key)]):
        _queue(database, [names])


def _queue(database: Database, sessions: Iterable[tuple[str, str, str]]) -> None:
    from signet_sync.statements.store import LIVE  # neither is needed to read
    from signet_sync.sync.store import passes

    passes.queue_sources(database, LIVE, [Source(RUNNING, *one) for one in sessions])


def has_undistilled(database: Database) -> bool:
    """Returns whether live turns came or went that no pass has distilled."""
    return bool(database.value("select exists(select 1 from outbox where kind = ?)", (RUNNING,)))


# ── sessions and their places ──

_PLACE = ", ".join(LivePlace._fields)


def describe(
    database: Database, agent_id: str, session_key: str, session_id: str, place: LivePlace, *, noise: bool
) -> None:
    """Stores where a session with live turns works, in the caller's transaction; an equal row is not written again."""
    names = agent_id, session_key, session_id
    if next(list_running(database, *names), None) != RunningSession(*names, place, noise):
        database.execute(
            f"insert or replace into live_sessions(agent_id, session_key, session_id, {_PLACE}, noise)"
            f" values({placeholders(4 + len(place))})",
            (*names, *place, noise),
        )
        _queue(database, [names])


def list_running(
    database: Database, agent_id: str | None = None, session_key: str | None = None, session_id: str | None = None
) -> Iterator[RunningSession]:
    """Yields the sessions that have live turns: all, those of an agent, of a key, or one."""
    given = [one for one in (agent_id, session_key, session_id) if one is not None]
    where = " and ".join(_MINE.split(" and ")[: len(given)]) or "1"
    rows = database.execute(
        f"select agent_id, session_key, session_id, {_PLACE}, noise from live_sessions where {where} order by 1, 2, 3",
        given,
    )
    return (RunningSession(row[0], row[1], row[2], LivePlace(*row[3:-1]), bool(row[-1])) for row in list(rows))


# ── questions ──


def transcript(database: Database, agent_id: str, session_key: str, session_id: str = "") -> list[LiveTurn]:
    """Returns the buffered turns of a session, in order."""
    query = f"select {_TURN} from session_transcripts where {_MINE} order by turn"
    return [LiveTurn(*row) for row in database.execute(query, (agent_id, session_key, session_id))]


def newest(database: Database, agent_id: str, session_key: str, session_id: str, most: int) -> list[LiveTurn]:
    """Returns the newest turns of a session with at most `most` characters in total, in order."""
    found: list[LiveTurn] = []
    query = f"select {_TURN} from session_transcripts where {_MINE} order by turn desc"
    for row in database.execute(query, (agent_id, session_key, session_id)):
        turn = LiveTurn(*row)
        most -= len(turn.content)
        if most < 0:
            break
        found.append(turn)
    return found[::-1]


def count(database: Database, agent_id: str, session_key: str, session_id: str = "") -> int:
    """Counts the buffered turns of a session."""
    query = f"select count(*) from session_transcripts where {_MINE}"
    number: int = database.value(query, (agent_id, session_key, session_id))
    return number


def sessions(database: Database, agent_id: str) -> list[LiveSession]:
    """Returns an agent's sessions that have buffered turns, last active first."""
    query = (
        "select session_key, session_id, count(*), min(at), max(at) from session_transcripts where agent_id = ?"
        " group by session_key, session_id order by 5 desc, 1, 2"
    )
    return [LiveSession(*row) for row in database.execute(query, (agent_id,))]


def list_said_at(database: Database, agent_id: str, at: str, but: str) -> list[LiveTurn]:
    """Returns the turns of one moment of an agent's running sessions, but of one by its id; each with the next turn."""
    query = (
        f"select {', '.join(f'b.{name}' for name in LiveTurn._fields)} from session_transcripts a"
        " join session_transcripts b using (agent_id, session_key, session_id)"
        " where agent_id = ? and a.at = ? and coalesce(nullif(session_id, ''), session_key) <> ?"
        " and b.turn between a.turn and a.turn + 1 order by session_key, session_id, b.turn"
    )
    return [LiveTurn(*row) for row in database.execute(query, (agent_id, at, but))]


def find(database: Database, agent_id: str, words: Iterable[str]) -> list[FoundTurn]:
    """Finds an agent's newest turns that contain any of the words, ignoring case, newest first.

    Bounded: at most `MOST_FOUND` turns, among the newest `MOST_READ`.
    """
    wanted = list(dict.fromkeys(word.casefold() for word in words if word.strip()))[:MOST_WORDS]
    rows = database.execute(
        "select session_key, session_id, turn, role, at, content from session_transcripts where agent_id = ?"
        " order by at desc, session_key, session_id, turn desc limit ?",
        (agent_id, MOST_READ),
    )
    turns = (FoundTurn(*row) for row in rows)
    texts = ((turn, turn.content.casefold()) for turn in turns)
    return list(islice((turn for turn, text in texts if any(word in text for word in wanted)), MOST_FOUND))


def answer_of(database: Database, agent_id: str, turn: FoundTurn) -> LiveTurn | None:
    """Returns the next turn of a turn's session in which anybody but the user speaks."""
    later = (
        f"select {_TURN} from session_transcripts where {_MINE} and turn > ? and role <> 'user' order by turn limit 1"
    )
    found = database.execute(later, (agent_id, turn.session_key, turn.session_id, turn.turn))
    return next((LiveTurn(*row) for row in found), None)


def is_streamed(database: Database, agent_id: str, session_id: str) -> bool:
    """Returns whether turns of a session have a key other than its id, or its id as key and no session id."""
    return bool(
        database.value(
            "select exists(select 1 from session_transcripts where agent_id = ?1"
            " and ((session_id = ?2 and session_key <> ?2) or (session_id = '' and session_key = ?2)))",
            (agent_id, session_id),
        )
    )


def segments(database: Database, agent_id: str, token: str, session_id: str) -> int:
    """Counts the indexed transcripts of a session; the count changes when an ending is written."""
    number: int = database.value(
        "select count(*) from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?"
        " and source_kind = 'transcript'",
        (agent_id, token, session_id),
    )
    return number


# ── endings ──

_COVERED = "agent_id = ? and session_key = ? and ((session_id = ? and at <= ?) or (session_id = '' and at <= ?))"


class Ending(NamedTuple):
    """A session, and up to when an ending of it covers turns with its id, and those with its key only (ISO 8601)."""

    agent_id: str
    session_key: str
    session_id: str
    until: str
    until_without_id: str


def make_ending(document: Mapping[str, Any]) -> Ending:
    """Returns the ending of a flow's document, to select the live turns that it covers.

    Covered are the session's own turns said before the ending began; later ones are not in it. Under a key that
    sessions share, turns may have no session id: of those, the ones up to its end are covered, since later ones belong
    to another session.
    """
    session_id, said_by = document["session_id"], document["ended_at"] or document["captured_at"]
    key, own = document["session_key"] or session_id, max(said_by, document["now"])
    return Ending(document["agent_id"], key, session_id, own, own if key == session_id else said_by)


def list_covered(database: Database, ending: Ending) -> list[tuple[str, LiveTurn]]:
    """Returns the turns that were handed over and that an ending covers, in order, each with its session's id or ""."""
    rows = database.execute(
        f"select session_id, {_TURN} from session_transcripts where {_COVERED} and {HANDED_OVER}"
        " order by session_id, turn",
        ending,
    )
    found = [(session_id, LiveTurn(*turn)) for session_id, *turn in rows]
    # Turn numbers order the turns of one session; times order those of several.
    return found if len({session_id for session_id, _ in found}) < 2 else sorted(found, key=lambda one: one[1].at)


def reset_read(database: Database, ending: Ending) -> None:
    """Deletes covered turns that were read from a transcript and are in artifacts now, in the caller's transaction."""
    database.execute(f"delete from session_transcripts where {_COVERED} and not {HANDED_OVER}", ending)
    _follow_shrinking(database, ending.agent_id, ending.session_id, ending.session_id)


# ── files ──


def shapes(database: Database) -> dict[str, str]:
    """Returns the shapes that files of live turns had when their rows were made, by file name.

    Turns without such a file exist only as rows: backups contain no files.
    """
    return dict(database.execute("select name, shape from live_files"))


def set_shape(database: Database, name: str, shape: str) -> None:
    """Stores the shape of a file, or deletes it where `shape` is empty, in the caller's transaction."""
    if shape:
        database.execute("insert or replace into live_files(name, shape) values(?, ?)", (name, shape))
    else:
        database.execute("delete from live_files where name = ?", (name,))


def drop_shapes(database: Database) -> None:
    """Deletes all shapes, as there may be rows without files now; in the caller's transaction.

    What they state is distilled again.
    """
    database.execute("delete from live_files")
    _queue(database, [one[:3] for one in list_running(database)])


def list_handed_over(database: Database) -> list[tuple[str, str, str]]:
    """Returns agent, key and id of the sessions with turns that were handed over."""
    columns = "agent_id, session_key, session_id"
    query = f"select distinct {columns} from session_transcripts where {HANDED_OVER} order by 1, 2, 3"
    return list(database.execute(query))
