"""Counts what the index holds, and how often it was found or opened. Imports nothing heavy."""

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from signet_sync.errors import DatabaseError, UsageError
from signet_sync.formats.handle import HANDLE, ID_LENGTH
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.storage.database.connection import Database

# Each part is one step in an index, however many rows an agent has.
_NEXT_AGENT = """select min(agent_id) from (
    select min(agent_id) as agent_id from memory_artifacts where agent_id > ?1
    union all select min(agent_id) from memories where agent_id > ?1
    union all select min(agent_id) from garden_files where agent_id > ?1)"""


class Problem(NamedTuple):
    """A file that is not simply indexed; `is_file` is False for a changed one in whose place is no regular file."""

    path: str
    verdict: str
    code: str
    message: str
    agent_id: str | None
    is_file: bool


class StoredNote(NamedTuple):
    """A note about an indexed file."""

    path: str
    code: str
    message: str
    agent_id: str | None


def count_indexed(database: Database) -> int:
    """Returns how many files have the verdict `indexed`."""
    total: int = database.value("select count(*) from files")
    others: int = database.value("select count(*) from files where verdict <> 'indexed'")
    return total - others


def verdict_counts(database: Database) -> dict[str, int]:
    """Returns the number of files by verdict."""
    counts = {
        str(verdict): int(count)
        for verdict, count in database.execute(
            "select verdict, count(*) from files where verdict <> 'indexed' group by verdict"
        )
    }
    counts["indexed"] = count_indexed(database)
    return counts


def sum_bytes(database: Database) -> int:
    """Returns how many bytes the indexed files have."""
    return int(database.value("select coalesce(sum(size), 0) from files where verdict = 'indexed'"))


def count_tombstones(database: Database) -> int:
    """Returns how many tombstones the database knows."""
    return int(database.value("select count(*) from memory_artifact_tombstones"))


def problems(database: Database) -> list[Problem]:
    """Returns every file that is not simply indexed, by path. One without a row has the agent of its seal, if any."""
    return [
        Problem(path, verdict, code, message, agent_id, code != "mutated" or bool(found_sha256))
        for path, verdict, code, message, agent_id, found_sha256 in database.execute(
            "select f.path, f.verdict, f.code, f.message, coalesce(f.agent_id, s.agent_id), f.found_sha256 from files f"
            " left join seals s on s.path = f.path"
            " where f.verdict <> 'indexed' and f.verdict <> 'tombstone' order by f.path"
        )
    ]


def list_suspected(database: Database) -> list[str]:
    """Returns the files in which the sanitizer found something when they were last judged, by path."""
    sql = """select path from files where notes like '%"secret-suspected"%' order by path"""
    return database.column(sql)


def notes(database: Database, now_us: int) -> list[StoredNote]:
    """Returns every note: those stored with a file, broken links, and files dated in the future."""
    found: list[StoredNote] = []
    for path, stored, agent_id in database.execute("select path, notes, agent_id from files where notes is not null"):
        found.extend(StoredNote(path, code, message, agent_id) for code, message in json.loads(stored))
    for path, field, target, agent_id in database.execute(
        "select a.source_path, l.field, l.target_path, a.agent_id from links l"
        " join memory_artifacts a on a.id = l.source where l.broken = 1"
    ):
        found.append(StoredNote(path, "link-broken", f"`{field}` leads to {target}, which is not there", agent_id))
    for agent_id in agents(database):
        for path, membership in database.execute(
            "select source_path, coalesce(ended_at, captured_at) from memory_artifacts"
            " where agent_id = ? and membership_us > ? and source_kind <> 'manifest'",
            (agent_id, now_us),
        ):
            found.append(StoredNote(path, "future", f"it is dated in the future: {membership}", agent_id))
    return sorted(found)


def agents(database: Database) -> list[str]:
    """Returns every agent with an artifact, a memory or an entity, `default` first."""
    found: list[str] = []
    agent: str | None = ""
    while True:
        agent = database.value(_NEXT_AGENT, (agent,))
        if agent is None:
            return sorted(found, key=lambda a: (a != "default", a))
        found.append(agent)


def make_unknown_error(database: Database, agent_id: str) -> UsageError | None:
    """Returns the error for an agent of which nothing is indexed; None for others, and for the default agent."""
    known = agents(database)
    if agent_id in (DEFAULT_AGENT, *known):
        return None
    return UsageError(
        f"agent {agent_id!r} has neither an artifact nor a memory",
        hint=f"known agents: {', '.join(known) or DEFAULT_AGENT}",
        code="unknown-agent",
    )


def sessions(database: Database) -> int:
    """Returns the distinct sessions: agent, token and session id."""
    distinct = "select distinct agent_id, session_token, session_id from memory_artifacts"
    return int(database.value(f"select count(*) from ({distinct})"))


def counts_of(database: Database, agent_id: str) -> tuple[int, int]:
    """Returns how many sessions and artifacts an agent has."""
    held: int = database.value(
        "select count(*) from (select distinct session_token, session_id from memory_artifacts where agent_id = ?)",
        (agent_id,),
    )
    artifacts: int = database.value("select count(*) from memory_artifacts where agent_id = ?", (agent_id,))
    return held, artifacts


def count_ids(database: Database, agent_id: str, ids: Iterable[str], day: str) -> None:
    """Adds an access on a UTC day (`YYYY-MM-DD`) for each id of a node, thread, statement or memory.

    Other text is skipped; nothing is counted while the database is busy. What was counted up to the last day before
    stays known beside it, because a page shows what counted when its day began.
    """
    found = sorted({node_id for node_id in ids if len(node_id) == ID_LENGTH and HANDLE.fullmatch(node_id)})
    if not found:
        return
    with suppress(DatabaseError), database.transaction():
        database.executemany(
            "insert into node_telemetry(agent_id, id, accesses, last_day, before) values(?, ?, 1, ?, 0)"
            " on conflict(agent_id, id) do update set"
            " before = iif(excluded.last_day > last_day, accesses, before),"
            " before_day = iif(excluded.last_day > last_day, last_day, before_day),"
            " accesses = accesses + 1, last_day = max(last_day, excluded.last_day)",
            [(agent_id, node_id, day) for node_id in found],
        )
