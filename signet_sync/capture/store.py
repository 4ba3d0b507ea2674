"""Records which transcripts were read and their state then; for removed sessions, only a hash of the place.

A path or id that contains a secret is stored only as `storable_path` makes it.
"""

from collections.abc import Collection
from hashlib import sha256
from typing import NamedTuple

from signet_sync.formats.ids import token_of
from signet_sync.storage.database.connection import Database
from signet_sync.text.stored_names import storable_path

# The outcome for a transcript whose session was removed.
REMOVED = "removed-session"
# A size that no file has: only part of the transcript was read.
UNREAD = -1


class TranscriptState(NamedTuple):
    """A transcript's state when it was read; size in bytes, time in nanoseconds, `outcome` for a person.

    `conversation` is the harness's name of the session that it contains, `folder` where that worked; empty if unknown.
    """

    size: int
    mtime_ns: int
    agent_id: str
    outcome: str
    conversation: str = ""
    folder: str = ""


def has_any(database: Database) -> bool:
    """Returns whether any transcript was read."""
    return bool(database.value("select exists(select 1 from captures)"))


def folders(database: Database, harness: str, agent_id: str) -> list[tuple[str, str]]:
    """Returns where a harness's newest transcripts of an agent were read, each with its session's folder."""
    return list(
        database.execute(
            "select rtrim(path, replace(path, '/', '')), folder from captures where harness = ? and agent_id = ?"
            " order by at desc limit 300",
            (harness, agent_id),
        )
    )


def is_alone(database: Database, harness: str, agent_id: str) -> bool:
    """Returns whether no other agent has sessions of a harness."""
    others = "select 1 from captures where harness = ?1 and agent_id {} ?2 and agent_id > ''"
    sql = f"select exists({others.format('<')}) or exists({others.format('>')})"
    return not database.value(sql, (harness, agent_id))


def mark_of(database: Database, harness: str, path: str, session_id: str) -> TranscriptState | None:
    """Returns the record of a transcript, or None if it was never read."""
    return next(filter(None, (_mark_at(database, harness, *place) for place in _places(path, session_id))), None)


def _mark_at(database: Database, harness: str, path: str, session_id: str) -> TranscriptState | None:
    sql = "select size, mtime_ns, agent_id, outcome, conversation, folder from captures"
    place = (harness, path, session_id)
    for row in database.execute(f"{sql} where harness = ? and path = ? and session_id = ?", place):
        return TranscriptState(*row)
    return None


def _places(path: str, session_id: str) -> list[tuple[str, str]]:
    """Returns under which names a transcript may be recorded."""
    clean = storable_path(path), storable_path(session_id)
    return [clean, _hide(*clean)]


def mark(database: Database, harness: str, path: str, session_id: str, seen: TranscriptState, at: str) -> None:
    """Records a transcript as it was read, if anything about it differs.

    For a removed session neither path nor id is kept, only a hash, so that the unchanged file is not read again.
    """
    place = storable_path(path), storable_path(session_id)
    seen = seen._replace(conversation=storable_path(seen.conversation), folder=storable_path(seen.folder))
    if seen.outcome == REMOVED:
        place = _hide(*place)
        seen = TranscriptState(seen.size, seen.mtime_ns, "", REMOVED)
    if _mark_at(database, harness, *place) == seen:
        return
    with database.transaction():
        database.executemany(
            "delete from captures where harness = ? and path = ? and session_id = ?",
            [(harness, *other) for other in _places(path, session_id) if other != place],
        )
        database.execute(
            "insert or replace into captures"
            "(harness, path, session_id, size, mtime_ns, agent_id, outcome, conversation, folder, at)"
            " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (harness, *place, *seen, at),
        )


def read_counts(database: Database) -> dict[str, tuple[int, str]]:
    """Returns for each harness how many transcripts were read, and when last (ISO 8601)."""
    rows = database.execute("select harness, count(*), max(at) from captures group by harness")
    return {harness: (count, at) for harness, count, at in rows}


def sources(database: Database, agent_id: str, ids: Collection[str], token: str | None) -> list[tuple[str, str, str]]:
    """Returns harness, path and its own session id of transcripts of the sessions with these ids, or this token."""
    return [
        (harness, path, session_id)
        for harness, path, session_id, conversation in database.execute(
            "select harness, path, session_id, conversation from captures where agent_id = ? and conversation <> ''",
            (agent_id,),
        )
        if conversation in ids or (token is not None and token_of(agent_id, conversation) == token)
    ]


def hide(database: Database, agent_id: str, ids: Collection[str], token: str | None) -> None:
    """Hides where the transcripts of removed sessions are, not that they were read. In the caller's transaction."""
    for harness, path, session_id in sources(database, agent_id, ids, token):
        database.execute(
            "update or replace captures set path = ?, session_id = ?, agent_id = '', outcome = ?, conversation = '',"
            " folder = '' where harness = ? and path = ? and session_id = ?",
            (*_hide(path, session_id), REMOVED, harness, path, session_id),
        )


def redact(database: Database) -> None:
    """Redacts secrets in rows that an earlier sanitizer wrote. In the caller's transaction."""
    columns = ("path", "session_id", "conversation", "folder")
    for harness, *said in list(database.execute(f"select harness, {', '.join(columns)} from captures")):
        if (clean := [storable_path(text) for text in said]) != said:
            database.execute(
                "update or replace captures set path = ?, session_id = ?, conversation = ?, folder = ?"
                " where harness = ? and path = ? and session_id = ?",
                (*clean, harness, *said[:2]),
            )


def forget_removed(database: Database) -> None:
    """Lets transcripts of removed sessions be read again after a removal was undone."""
    database.execute("delete from captures where outcome = ?", (REMOVED,))


def forget_read(database: Database) -> None:
    """Lets every transcript but those of removed sessions be read again. In the caller's transaction."""
    database.execute("delete from captures where outcome <> ?", (REMOVED,))


def _hide(path: str, session_id: str) -> tuple[str, str]:
    return sha256(f"{path}\0{session_id}".encode("utf-8", "surrogatepass")).hexdigest(), ""


# ── running sessions: which transcripts were read ──


class LiveMark(NamedTuple):
    """The state of a running session's transcript when its turns were last read.

    `reported_at` is the time of its stop marker then; it is not read again before `rests_until` (µs since 1970 UTC).
    """

    shape: str
    reported_at: str
    rests_until: int


def find_live_mark(database: Database, name: str) -> LiveMark | None:
    """Returns the mark of a running session by the name of its stop marker; None if its transcript was never read."""
    for row in database.execute("select shape, told_at, rests_until from live_transcripts where name = ?", (name,)):
        return LiveMark(*row)
    return None


def set_live_mark(database: Database, name: str, mark: LiveMark) -> None:
    """Stores the state of a transcript as it was read."""
    with database.transaction():
        database.execute(
            "insert or replace into live_transcripts(name, shape, told_at, rests_until) values(?, ?, ?, ?)",
            (name, *mark),
        )


def drop_other_live_marks(database: Database, names: Collection[str]) -> None:
    """Deletes all marks but these; a mark is kept as long as the stop marker of its name."""
    known = database.column("select name from live_transcripts")
    gone = [(name,) for name in known if name not in names]
    if gone:
        with database.transaction():
            database.executemany("delete from live_transcripts where name = ?", gone)
