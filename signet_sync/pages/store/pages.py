"""Stores the session log's window and months, what was last written to each page, and the lease of each MEMORY.md."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from signet_sync.formats.paths import log_pages
from signet_sync.formats.session_log_rows import MonthView, WindowRow
from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import day_of
from signet_sync.storage.database.connection import Database

_LATER = "~"  # sorts after every digit and hyphen


class PageState(NamedTuple):
    """A generated file as we left it: its signature, the hash of its inputs, the next instant that changes it."""

    agent_id: str
    signature: Signature | None
    inputs_sha256: str
    next_us: int | None


def page_states(database: Database, agent_id: str | None = None) -> dict[str, PageState]:
    """Returns every page that we wrote, or those of one agent, by path."""
    return dict(
        _states(database, "", ()) if agent_id is None else _states(database, " where agent_id = ?", (agent_id,))
    )


def page_state(database: Database, path: str) -> PageState | None:
    """Returns one page as we left it."""
    return dict(_states(database, " where path = ?", (path,))).get(path)


def _states(database: Database, where: str, bindings: tuple[str, ...]) -> Iterator[tuple[str, PageState]]:
    sql = f"select path, agent_id, size, mtime_ns, ctime_ns, inode, inputs_sha256, next_us from pages{where}"
    for path, agent, size, mtime, ctime, inode, inputs, next_us in database.execute(sql, bindings):
        signature = Signature(size, mtime, ctime, inode) if size is not None else None
        yield path, PageState(agent, signature, inputs, next_us)


def store_page(database: Database, path: str, state: PageState) -> None:
    """Stores the state of a page; writes nothing if it is unchanged."""
    if page_state(database, path) == state:
        return
    database.execute(
        "insert or replace into pages(path, agent_id, size, mtime_ns, ctime_ns, inode, inputs_sha256, next_us)"
        " values(?, ?, ?, ?, ?, ?, ?, ?)",
        (
            path,
            state.agent_id,
            *(state.signature if state.signature is not None else (None, None, None, None)),
            state.inputs_sha256,
            state.next_us,
        ),
    )


def mark_stale(database: Database, days: Iterable[tuple[str, str]]) -> None:
    """Marks the session log pages of (agent, day) pairs as stale, so that they are rendered again."""
    paths = {path for agent_id, day in days for path in log_pages(agent_id, [day])}
    database.executemany("update pages set inputs_sha256 = '' where path = ?", [(path,) for path in sorted(paths)])


def forget_page(database: Database, path: str) -> None:
    """Drops the row of a page that is gone."""
    database.execute("delete from pages where path = ?", (path,))


def next_instant(database: Database) -> int | None:
    """Returns the next instant at which some page changes without an event, in microseconds since 1970 UTC."""
    found: int | None = database.value("select min(next_us) from pages where next_us is not null")
    return found


def count_in_window(database: Database, agent_id: str, first_us: int, last_us: int) -> int:
    """Counts the sessions of an agent in the window, both ends included."""
    count: int = database.value(
        "select count(*) from ledger_rows where agent_id = ? and membership_us between ? and ?",
        (agent_id, first_us, last_us),
    )
    return count


def window_rows(database: Database, agent_id: str, first_us: int, last_us: int, limit: int) -> list[WindowRow]:
    """Returns the lines of the window's sessions, newest first, ties by token; without the headless ones."""
    return [
        WindowRow((token, session_id), line, tokens, day)
        for token, session_id, line, tokens, day in database.execute(
            "select session_token, session_id, line, tokens, day from ledger_rows"
            " where agent_id = ? and membership_us between ? and ? and line <> ''"
            " order by membership_us desc, session_token, session_id limit ?",
            (agent_id, first_us, last_us, limit),
        )
    ]


def headless_projects(database: Database, agent_id: str, first_us: int, last_us: int) -> dict[str, list[str | None]]:
    """Returns the projects of the window's headless sessions by day, one for each session."""
    found: dict[str, list[str | None]] = {}
    for day, project in database.execute(
        "select day, project from ledger_rows where agent_id = ? and membership_us between ? and ? and line = ''",
        (agent_id, first_us, last_us),
    ):
        found.setdefault(day, []).append(project)
    return found


def window_months(database: Database, agent_id: str, first_us: int, last_us: int) -> list[str]:
    """Returns the months (`YYYY-MM`) that have a session in the window, newest first."""
    return [
        row[0]
        for row in database.execute(
            "select distinct substr(day, 1, 7) from ledger_days where agent_id = ? and day between ? and ?"
            " order by 1 desc",
            (agent_id, day_of(first_us), day_of(last_us)),
        )
    ]


def next_change(database: Database, agent_id: str, now_us: int, window_us: int) -> int | None:
    """Returns the next instant at which a session enters or leaves the window."""
    enters: int | None = database.value(
        "select min(membership_us) from ledger_rows where agent_id = ? and membership_us > ?",
        (agent_id, now_us),
    )
    oldest: int | None = database.value(
        "select min(membership_us) from ledger_rows where agent_id = ? and membership_us >= ?",
        (agent_id, now_us - window_us),
    )
    leaves = oldest + window_us + 1 if oldest is not None else None
    instants = [i for i in (enters, leaves) if i is not None]
    return min(instants) if instants else None


def months(database: Database, agent_id: str, limit: int) -> list[MonthView]:
    """Returns the newest months with sessions, and how many sessions each has."""
    found: list[MonthView] = []
    before = _LATER
    while len(found) < limit:
        day = database.value("select max(day) from ledger_days where agent_id = ? and day < ?", (agent_id, before))
        if day is None:
            break
        month = before = day[:7]
        found.append(MonthView(month, sum(days(database, agent_id, month).values())))
    return found


def days(database: Database, agent_id: str, month: str = "") -> dict[str, int]:
    """Counts an agent's sessions by UTC day, newest first: all of them, or those of a month (`YYYY-MM`)."""
    return dict(
        database.execute(
            "select day, sessions from ledger_days where agent_id = ? and day >= ? and day < ? order by day desc",
            (agent_id, month, month + _LATER),
        )
    )


def day_lines(database: Database, agent_id: str, day: str) -> tuple[list[str], list[tuple[str | None, str]]]:
    """Returns the lines of one day, newest first, ties by token; and project and path of its headless sessions."""
    lines: list[str] = []
    headless: list[tuple[str | None, str]] = []
    for line, project, path in database.execute(
        "select line, project, path from ledger_rows where agent_id = ? and day = ?"
        " order by membership_us desc, session_token, session_id",
        (agent_id, day),
    ):
        if line:
            lines.append(line)
        else:
            headless.append((project, path))
    return lines, headless


# ── the lease of a MEMORY.md ──


def take_lease(database: Database, agent_id: str, owner: str) -> int:
    """Takes the lease of an agent's page; returns its number, which fences off whoever held it before."""
    with database.transaction():
        fence: int = database.value(
            "insert into memory_md_heads(agent_id, lease_owner, fence) values(?1, ?2, 1)"
            " on conflict(agent_id) do update set lease_owner = ?2, fence = fence + 1 returning fence",
            (agent_id, owner),
        )
    return fence


def holds_lease(database: Database, agent_id: str, fence: int) -> bool:
    """Returns whether the lease was not taken over; checked right before a page is published."""
    held = "select exists(select 1 from memory_md_heads where agent_id = ? and fence = ?)"
    return bool(database.value(held, (agent_id, fence)))


def release_lease(database: Database, agent_id: str, fence: int, *, content_hash: str | None) -> None:
    """Releases the lease; with a hash, the page was written. In the caller's transaction."""
    database.execute(
        "update memory_md_heads set lease_owner = null, content_hash = coalesce(?, content_hash)"
        " where agent_id = ? and fence = ?",
        (content_hash, agent_id, fence),
    )


def head_written(database: Database, agent_id: str) -> bool:
    """Returns whether signet-sync ever wrote this agent's page."""
    written = "select exists(select 1 from memory_md_heads where agent_id = ? and content_hash is not null)"
    return bool(database.value(written, (agent_id,)))


def is_without_rows(database: Database, agent_id: str) -> bool:
    """Returns whether an agent has no memory, and none was ever forgotten here."""
    some: int = database.value(
        "select exists(select 1 from memories where agent_id = ?1) or exists(select 1 from forgotten_memories)",
        (agent_id,),
    )
    return not some


# ── a Signet in this workspace ──

_SIGNET = "beside_signet"


def signet_trouble(database: Database) -> str:
    """Returns what was last reported about Signet's database; empty if it could be read."""
    return database.state(_SIGNET, "trouble") or ""


def set_signet_trouble(database: Database, trouble: str) -> None:
    """Records what was reported about Signet's database. In the caller's transaction."""
    database.set_state(_SIGNET, "trouble", trouble or None)


def daemon_ended_at(database: Database) -> float | None:
    """Returns when Signet's daemon was found to have ended on this machine, in seconds since 1970."""
    ended: float | None = database.state(_SIGNET, "daemon_ended_at")
    return ended


def set_daemon_ended_at(database: Database, ended: float | None) -> None:
    """Records when it was found to have ended; None while it runs. In the caller's transaction."""
    database.set_state(_SIGNET, "daemon_ended_at", ended)
