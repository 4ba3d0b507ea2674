"""Live turns as rows: those of sessions that still run, until their canonical files are written.

Turns that were handed over follow from the files of `live_files`; those of a session whose key is its id are read from
the transcript that its harness writes, which says them again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from signet_sync.errors import UsageError
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.native import HANDED_OVER
from signet_sync.text.redacted_match import alike

# Whoever looks for words wants the newest, and wants them soon: a running session rarely says more than this.
MOST_FOUND = 50
MOST_READ = 4 * 1024 * 1024  # characters
MOST_WORDS = 32
# The shape of a file whose session was removed, and which could not be deleted.
REMOVED = "removed"

_MINE = "agent_id = ? and session_key = ? and session_id = ?"


class LiveTurn(NamedTuple):
    """One buffered turn; `content` is sanitized, `at` ISO 8601 UTC with milliseconds."""

    turn: int
    role: str
    content: str
    at: str


class LiveSession(NamedTuple):
    """A session that has buffered turns; `session_id` is empty where only its key is known."""

    session_key: str
    session_id: str
    turns: int
    first_at: str
    last_at: str


class FoundTurn(NamedTuple):
    """A buffered turn that holds one of the words that were looked for."""

    session_key: str
    session_id: str
    turn: int
    role: str
    at: str
    content: str


class Ending(NamedTuple):
    """Which turns the end of a session covers; `said_by` and `begun_at` are ISO 8601 UTC with milliseconds.

    All of the session's own that were said before the ending was begun: what came in while it was written is not in
    it. Under a key that other sessions share, turns may stand whose session nobody named: of those the ones up to
    `said_by`, later ones are another session's.
    """

    agent_id: str
    session_key: str
    session_id: str
    said_by: str
    begun_at: str

    @property
    def bounds(self) -> tuple[str, str]:
        """Up to when turns are covered: those of the session by its id, those under its key alone."""
        own = max(self.said_by, self.begun_at)
        return own, own if self.session_key == self.session_id else self.said_by


# ── turns ──


def news(
    database: Database, agent_id: str, session_key: str, turns: Sequence[LiveTurn], *, session_id: str = ""
) -> list[LiveTurn]:
    """Those of the turns that are not buffered yet, in order.

    A turn is the same where role and words are, but for what was redacted: it may be told again at another moment, and
    to other rules of the sanitizer. Raises `UsageError`
    (`turn-conflict`) where the number stands for other words.
    """
    new: dict[int, LiveTurn] = {}
    for turn in turns:
        earlier = new.get(turn.turn)
        known = (
            _known(database, agent_id, session_key, session_id, turn.turn)
            if earlier is None
            else (earlier.role, earlier.content)
        )
        if known is None:
            new[turn.turn] = turn
        elif not (alike(known[0], turn.role) and alike(known[1], turn.content)):
            raise UsageError(
                f"turn {turn.turn} of this session was appended with other words",
                hint="nothing was written; a turn never changes: append what is new under a number of its own",
                code="turn-conflict",
            )
    return list(new.values())


def buffer(
    database: Database, agent_id: str, session_key: str, turns: Sequence[LiveTurn], *, session_id: str = ""
) -> None:
    """Adds turns that are `news`. Inside the caller's transaction."""
    database.executemany(
        "insert into session_transcripts(agent_id, session_key, session_id, turn, role, content, at)"
        " values(?, ?, ?, ?, ?, ?, ?)",
        [(agent_id, session_key, session_id, *turn) for turn in turns],
    )


def mirror(database: Database, agent_id: str, session_key: str, session_id: str, turns: Iterable[LiveTurn]) -> int:
    """Makes these the buffered turns of a session; gives how many were new. Inside the caller's transaction.

    For turns that are read from a transcript, where some may have been taken back. Equal ones are not written again.
    """
    wanted = {turn.turn: turn for turn in turns}
    known = {turn.turn: turn for turn in transcript(database, agent_id, session_key, session_id)}
    database.executemany(
        f"delete from session_transcripts where {_MINE} and turn = ?",
        [(agent_id, session_key, session_id, turn) for turn in known if wanted.get(turn) != known[turn]],
    )
    new = [turn for number, turn in wanted.items() if known.get(number) != turn]
    buffer(database, agent_id, session_key, new, session_id=session_id)
    return len(new)


def _known(database: Database, agent_id: str, session_key: str, session_id: str, turn: int) -> tuple[str, str] | None:
    for role, content in database.execute(
        f"select role, content from session_transcripts where {_MINE} and turn = ?",
        (agent_id, session_key, session_id, turn),
    ):
        return role, content
    return None


# ── questions ──


def transcript(database: Database, agent_id: str, session_key: str, session_id: str = "") -> list[LiveTurn]:
    """The buffered turns of a session, in order."""
    return [
        LiveTurn(*row)
        for row in database.execute(
            f"select turn, role, content, at from session_transcripts where {_MINE} order by turn",
            (agent_id, session_key, session_id),
        )
    ]


def count(database: Database, agent_id: str, session_key: str, session_id: str = "") -> int:
    """How many turns of a session are buffered."""
    number: int = database.value(
        f"select count(*) from session_transcripts where {_MINE}", (agent_id, session_key, session_id)
    )
    return number


def sessions(database: Database, agent_id: str) -> list[LiveSession]:
    """The sessions of an agent that have buffered turns, the one that was last spoken in first."""
    return [
        LiveSession(*row)
        for row in database.execute(
            "select session_key, session_id, count(*), min(at), max(at) from session_transcripts where agent_id = ?"
            " group by session_key, session_id order by 5 desc, 1, 2",
            (agent_id,),
        )
    ]


def find(database: Database, agent_id: str, words: Iterable[str]) -> list[FoundTurn]:
    """The newest turns of an agent that hold any of the words, in whatever case, newest first.

    Bounded: at most `MOST_FOUND` turns, among the newest ones of `MOST_READ` characters together.
    """
    wanted = list(dict.fromkeys(word.casefold() for word in words if word.strip()))[:MOST_WORDS]
    found: list[FoundTurn] = []
    read = 0
    for turn in _newest_first(database, agent_id) if wanted else ():
        text = turn.content.casefold()
        if any(word in text for word in wanted):
            found.append(turn)
        read += len(text)
        if len(found) == MOST_FOUND or read > MOST_READ:
            break
    return found


def _newest_first(database: Database, agent_id: str) -> Iterator[FoundTurn]:
    # What is sorted is small; words are read only as far as somebody wants them.
    order = database.execute(
        "select session_key, session_id, turn from session_transcripts where agent_id = ?"
        " order by at desc, session_key, session_id, turn desc",
        (agent_id,),
    )
    for key, session_id, number in list(order):
        for role, at, content in database.execute(
            f"select role, at, content from session_transcripts where {_MINE} and turn = ?",
            (agent_id, key, session_id, number),
        ):
            yield FoundTurn(key, session_id, number, role, at, content)


def streamed(database: Database, agent_id: str, session_id: str) -> bool:
    """Whether turns of a session, named by its id, stand under another key or under its id as a key alone."""
    return bool(
        database.value(
            "select exists(select 1 from session_transcripts where agent_id = ?1"
            " and ((session_id = ?2 and session_key <> ?2) or (session_id = '' and session_key = ?2)))",
            (agent_id, session_id),
        )
    )


def segments(database: Database, agent_id: str, token: str, session_id: str) -> int:
    """How many transcripts of a session are indexed: it moves where an ending was written."""
    number: int = database.value(
        "select count(*) from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?"
        " and source_kind = 'transcript'",
        (agent_id, token, session_id),
    )
    return number


# ── endings and removals ──

_COVERED = "agent_id = ? and session_key = ? and ((session_id = ? and at <= ?) or (session_id = '' and at <= ?))"


class Covered(NamedTuple):
    """A turn that was handed over and that an ending covers; `session_id` is empty where nobody named its session."""

    session_id: str
    turn: LiveTurn


def covered(database: Database, ending: Ending) -> list[Covered]:
    """The turns that were handed over and that an ending covers, in the order in which they were said."""
    rows = database.execute(
        f"select session_id, turn, role, content, at from session_transcripts where {_COVERED} and {HANDED_OVER}"
        " order by session_id, turn",
        [*ending[:3], *ending.bounds],
    )
    found = [Covered(session_id, LiveTurn(*turn)) for session_id, *turn in rows]
    # Numbers order those of one session; between two of them their times do.
    return found if len({one.session_id for one in found}) < 2 else sorted(found, key=lambda one: one.turn.at)


def is_read(database: Database, ending: Ending) -> bool:
    """Whether turns that an ending covers are buffered which were read from a transcript."""
    return bool(
        database.value(
            f"select exists(select 1 from session_transcripts where {_COVERED} and not {HANDED_OVER})",
            [*ending[:3], *ending.bounds],
        )
    )


def reset_read(database: Database, ending: Ending) -> None:
    """Forgets those that were read from a transcript, now that its files hold them. Inside the caller's transaction."""
    database.execute(
        f"delete from session_transcripts where {_COVERED} and not {HANDED_OVER}", [*ending[:3], *ending.bounds]
    )


def forget(database: Database, agent_id: str, session_key: str, session_id: str) -> None:
    """Forgets the turns of a session whatever they are. Inside the caller's transaction."""
    database.execute(f"delete from session_transcripts where {_MINE}", (agent_id, session_key, session_id))


# ── files ──


def shapes(database: Database) -> dict[str, str]:
    """How the files of live turns looked when the rows were made of them, by their names.

    Turns whose file is not among them are rows alone: earlier versions had no files, backups and bundles have none.
    """
    return dict(database.execute("select name, shape from live_files"))


def set_shape(database: Database, name: str, shape: str) -> None:
    """Remembers how a file looked; nothing where it is empty. Inside the caller's transaction."""
    if shape:
        database.execute("insert or replace into live_files(name, shape) values(?, ?)", (name, shape))
    else:
        database.execute("delete from live_files where name = ?", (name,))


def forget_shapes(database: Database) -> None:
    """Says that there may be rows alone. Inside the caller's transaction."""
    database.execute("delete from live_files where shape <> ?", (REMOVED,))


def handed_over(database: Database) -> list[tuple[str, str, str]]:
    """Agent, key and id of the sessions of which turns were handed over."""
    return list(
        database.execute(
            f"select distinct agent_id, session_key, session_id from session_transcripts where {HANDED_OVER}"
            " order by 1, 2, 3"
        )
    )


def forget_now(database: Database, agent_id: str, session_id: str) -> None:
    """Forgets the turns of a session that were read from its transcript."""
    with database.transaction():
        forget(database, agent_id, session_id, session_id)


# ── which transcripts were read ──


class Mark(NamedTuple):
    """A running session's transcript as it was when its turns were last read.

    `told_at` is the time of the stop marker then; until `rests_until` (µs since 1970 UTC) it is not read again.
    """

    shape: str
    told_at: str
    rests_until: int


def mark_of(database: Database, name: str) -> Mark | None:
    """The mark of a running session, by the name of its stop marker; None where it was not read yet."""
    for row in database.execute("select shape, told_at, rests_until from live_transcripts where name = ?", (name,)):
        return Mark(*row)
    return None


def set_mark(database: Database, name: str, mark: Mark) -> None:
    """Remembers how a transcript was when it was read."""
    with database.transaction():
        database.execute(
            "insert or replace into live_transcripts(name, shape, told_at, rests_until) values(?, ?, ?, ?)",
            (name, *mark),
        )


def keep_marks(database: Database, names: Collection[str]) -> None:
    """Forgets the marks of all sessions but these: a mark lives as long as the stop marker that it is named by."""
    known = [name for (name,) in database.execute("select name from live_transcripts")]
    gone = [(name,) for name in known if name not in names]
    if gone:
        with database.transaction():
            database.executemany("delete from live_transcripts where name = ?", gone)
