"""Stores what was last written to each page, the lease of each MEMORY.md, and the rows of the session log."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from signet_sync.errors import LeaseBusy
from signet_sync.formats.paths import head_page, log_pages
from signet_sync.formats.snapshot import Signature
from signet_sync.pages.session_log import LedgerRow, Part, WindowRow
from signet_sync.storage.database.batches import Session, rows_of_sessions
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders

# ── what was written ──


class PageState(NamedTuple):
    """A generated file as we left it: its signature, the hash of its inputs, the next instant that changes it."""

    agent_id: str
    signature: Signature | None
    inputs_sha256: str
    next_us: int | None


_STATES = "select path, agent_id, size, mtime_ns, ctime_ns, inode, inputs_sha256, next_us from pages where "


def page_states(database: Database, agent_id: str | None = None) -> dict[str, PageState]:
    """Returns every page that we wrote, or those of one agent, by path."""
    return dict(_read_states(database, "?1 is null or agent_id = ?1", agent_id))


def page_state(database: Database, path: str) -> PageState | None:
    """Returns one page as we left it."""
    return dict(_read_states(database, "path = ?", path)).get(path)


def _read_states(database: Database, where: str, value: str | None) -> Iterator[tuple[str, PageState]]:
    for path, agent, size, mtime, ctime, inode, inputs, next_us in database.execute(_STATES + where, (value,)):
        yield path, PageState(agent, None if size is None else Signature(size, mtime, ctime, inode), inputs, next_us)


def store_page(database: Database, path: str, state: PageState) -> None:
    """Stores the state of a page; writes nothing if it is unchanged."""
    if page_state(database, path) != state:
        signature = (None,) * 4 if state.signature is None else state.signature
        row = path, state.agent_id, *signature, state.inputs_sha256, state.next_us
        columns = "path, agent_id, size, mtime_ns, ctime_ns, inode, inputs_sha256, next_us"
        database.execute(f"insert or replace into pages({columns}) values({placeholders(len(row))})", row)


def mark_stale(database: Database, days: Iterable[tuple[str, str]]) -> None:
    """Marks the session log pages of (agent, day) pairs as stale, so that they are rendered again."""
    paths = {path for agent_id, day in days for path in log_pages(agent_id, [day])}
    database.executemany("update pages set inputs_sha256 = '' where path = ?", [(path,) for path in sorted(paths)])


def forget_page(database: Database, path: str) -> None:
    """Drops the row of a page that is gone."""
    database.execute("delete from pages where path = ?", (path,))


# ── the lease of a MEMORY.md ──


class PageLease(NamedTuple):
    """The lease of an agent's page, which this process took; a higher `fence` is that of who took it over."""

    database: Database
    agent_id: str
    fence: int

    def require(self) -> None:
        """Raises `LeaseBusy` if the lease was taken over: a process that slept meanwhile writes nothing."""
        held = "select exists(select 1 from memory_md_heads where agent_id = ? and fence = ?)"
        if not self.database.value(held, (self.agent_id, self.fence)):
            page = head_page(self.agent_id)
            raise LeaseBusy(f"the lease of {page} was taken over", hint="this will be retried automatically")

    def release(self, content_hash: str | None = None) -> None:
        """Releases the lease; with a hash, the page was written. In the caller's transaction."""
        self.database.execute(
            "update memory_md_heads set lease_owner = null, content_hash = coalesce(?, content_hash)"
            " where agent_id = ? and fence = ?",
            (content_hash, self.agent_id, self.fence),
        )


def take_lease(database: Database, agent_id: str) -> PageLease:
    """Takes the lease of an agent's page; fences off whoever held it before."""
    with database.transaction():
        fence: int = database.value(
            "insert into memory_md_heads(agent_id, lease_owner, fence) values(?1, ?2, 1)"
            " on conflict(agent_id) do update set lease_owner = ?2, fence = fence + 1 returning fence",
            (agent_id, f"{os.uname().nodename}:{os.getpid()}"),
        )
    return PageLease(database, agent_id, fence)


# ── the session log ──

_LINES = "session_token, session_id, line, tokens, day"
_IN_WINDOW = "from ledger_rows where agent_id = ? and membership_us between ? and ?"


def session_parts(database: Database, sessions: Iterable[Session]) -> Iterator[tuple[Session, list[Part]]]:
    """Yields sessions with their artifacts, for composing their rows."""
    parts: dict[Session, list[Part]] = {session: [] for session in sessions}
    columns = (
        "agent_id, session_token, source_path, source_kind, session_id, session_key, project, ledger_sentence,"
        " captured_us, membership_us, noise"
    )
    for row in rows_of_sessions(database, columns, "memory_artifacts", parts, by="memory_artifacts_session"):
        part = Part(*row[2:])
        parts[row[0], row[1], part.session_id].append(part)
    yield from parts.items()


def rows_of(database: Database, sessions: Collection[Session]) -> dict[Session, LedgerRow]:
    """Returns the stored rows of some sessions."""
    columns = ", ".join(LedgerRow._fields)
    return {row[:3]: LedgerRow(*row) for row in rows_of_sessions(database, columns, "ledger_rows", sessions)}


def store_rows(
    database: Database, gone: Sequence[Session], rows: Sequence[LedgerRow], days: Iterable[tuple[str, str]]
) -> None:
    """Deletes the rows of some sessions, writes others, and counts the sessions of (agent, day) pairs again."""
    database.executemany("delete from ledger_rows where agent_id = ? and session_token = ? and session_id = ?", gone)
    database.executemany(f"insert or replace into ledger_rows values({placeholders(len(LedgerRow._fields))})", rows)
    for one in days:
        database.execute("delete from ledger_days where agent_id = ? and day = ?", one)
        counted = "select agent_id, day, count(*) from ledger_rows where agent_id = ? and day = ? group by 1, 2"
        database.execute(f"insert into ledger_days {counted}", one)


def count_in_window(database: Database, agent_id: str, first_us: int, last_us: int) -> int:
    """Counts the sessions of an agent in the window, both ends included."""
    return int(database.value(f"select count(*) {_IN_WINDOW}", (agent_id, first_us, last_us)))


def window_rows(database: Database, agent_id: str, first_us: int, last_us: int, limit: int) -> list[WindowRow]:
    """Returns the lines of the window's sessions, newest first, ties by token; without the headless ones."""
    order = "order by membership_us desc, session_token, session_id limit ?"
    sql = f"select {_LINES} {_IN_WINDOW} and line <> '' {order}"
    return [WindowRow(row[:2], *row[2:]) for row in database.execute(sql, (agent_id, first_us, last_us, limit))]


def count_headless(database: Database, agent_id: str, first_us: int, last_us: int) -> dict[str, int]:
    """Counts the window's headless sessions by day."""
    return dict(
        database.execute(f"select day, count(*) {_IN_WINDOW} and line = '' group by day", (agent_id, first_us, last_us))
    )


def next_change(database: Database, agent_id: str, now_us: int, window_us: int) -> int | None:
    """Returns the next instant at which a session enters or leaves the window."""
    soonest = "select min(membership_us) from ledger_rows where agent_id = ? and membership_us"
    enters: int | None = database.value(f"{soonest} > ?", (agent_id, now_us))
    oldest: int | None = database.value(f"{soonest} >= ?", (agent_id, now_us - window_us))
    leaves = None if oldest is None else oldest + window_us + 1
    return min((instant for instant in (enters, leaves) if instant is not None), default=None)


def days(database: Database, agent_id: str) -> dict[str, int]:
    """Counts an agent's sessions by UTC day, newest first."""
    sql = "select day, sessions from ledger_days where agent_id = ? and day > '' order by day desc"
    return dict(database.execute(sql, (agent_id,)))


def day_lines(database: Database, agent_id: str, day: str) -> tuple[list[str], list[str]]:
    """Returns the lines of one day, newest first, ties by token; and the paths of its headless sessions."""
    sql = (
        "select line, path from ledger_rows where agent_id = ? and day = ?"
        " order by membership_us desc, session_token, session_id"
    )
    rows = list(database.execute(sql, (agent_id, day)))
    return [line for line, _ in rows if line], [path for line, path in rows if not line]


# ── another writer in this workspace ──

SIGNET_TROUBLE = ("beside_signet", "trouble")  # of which state it is what was last reported about Signet's database


def is_without_rows(database: Database, agent_id: str) -> bool:
    """Returns whether an agent has no memory, and none was ever forgotten here."""
    some = "select exists(select 1 from memories where agent_id = ?1) or exists(select 1 from forgotten_memories)"
    return not database.value(some, (agent_id,))
