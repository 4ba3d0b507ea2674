"""Stores open violations: sealed files that changed or are gone, and whether they can be restored."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from signet_sync.storage.database.connection import Database


class OpenViolation(NamedTuple):
    """A sealed file that is changed or missing; `restorable`: the sealed bytes are still there.

    `acceptable`: the file is missing, or a file with sealable content exists. Agent and session are those of the
    seal; None where a database was lost together with it.
    """

    path: str
    code: str
    message: str
    restorable: bool
    acceptable: bool
    agent_id: str | None
    session_token: str | None
    session_id: str | None


class Batch(NamedTuple):
    """What one pass found together; `found_at` is ISO 8601 UTC."""

    id: str
    found_at: str
    files: list[OpenViolation]


_OPEN = """select v.batch, v.found_at, v.path, v.code, v.message, coalesce(length(s.packed), 0) > 0,
    v.code = 'vanished' or v.found_sha256 <> '', s.agent_id, s.session_token, s.session_id
    from violations v left join seals s on s.path = v.path
    where (?1 is null or s.agent_id is null or s.agent_id = ?1)"""


def _violation(row: Sequence[Any]) -> OpenViolation:
    path, code, message, kept, acceptable, *whose = row
    return OpenViolation(path, code, message, bool(kept), bool(acceptable), *whose)


def batches(database: Database, agent_id: str | None = None) -> list[Batch]:
    """Returns open violations by the pass that found them, the oldest first.

    With an agent its own, and those whose agent is unknown.
    """
    found: dict[str, Batch] = {}
    for batch, found_at, *one in database.execute(f"{_OPEN} order by v.found_at, v.batch, v.path", (agent_id,)):
        found.setdefault(batch, Batch(batch, found_at, [])).files.append(_violation(one))
    return list(found.values())


def is_open(database: Database, path: str) -> bool:
    """Returns whether a path holds an open violation."""
    return bool(database.value("select exists(select 1 from violations where path = ?)", (path,)))


class AcceptedGone(NamedTuple):
    """A sealed file whose absence was accepted; `restorable`: the sealed bytes are still there."""

    path: str
    at: str
    reason: str
    restorable: bool


def list_accepted_gone(database: Database) -> list[AcceptedGone]:
    """Returns sealed files that went, and whose absence a person has accepted; none that were seen since."""
    return [
        AcceptedGone(path, at, reason, bool(kept))
        for path, at, reason, kept in database.execute(
            "select a.path, a.at, a.reason, coalesce(length(s.packed), 0) > 0 from acceptances a"
            " join seals s on s.path = a.path where a.gone = 1"
            " and not exists(select 1 from files f where f.path = a.path and f.code <> 'vanished') order by a.path"
        )
    ]


def accept(database: Database, path: str, at: str, reason: str) -> None:
    """Remembers that the changed content of a sealed file was accepted. In the caller's transaction."""
    database.execute(
        "insert or replace into acceptances(path, gone, at, reason) values(?, 0, ?, ?)", (path, at, reason)
    )


def accept_gone(database: Database, paths: Iterable[str], at: str, reason: str) -> None:
    """Marks the absence of sealed files as accepted, each once. In the caller's transaction."""
    database.executemany(
        "insert into acceptances(path, gone, at, reason) values(?, 1, ?, ?) on conflict(path)"
        " do update set gone = 1, at = excluded.at, reason = excluded.reason where gone = 0",
        [(path, at, reason) for path in paths],
    )


def forget_returned(database: Database) -> None:
    """Drops the marks of files that are there again: if one disappears again, it is a new violation.

    In a transaction.
    """
    database.execute(
        "delete from acceptances where gone = 1"
        " and exists(select 1 from files f where f.path = acceptances.path and f.code <> 'vanished')"
    )


def list_sealed_paths(database: Database) -> list[str]:
    """Returns the paths of all sealed files."""
    return [path for (path,) in database.execute("select path from seals order by path")]


def unseen(database: Database) -> list[str]:
    """Returns the paths of sealed files of which there is no verdict."""
    rows = database.execute("select path from seals where path not in (select path from files) order by path")
    return [path for (path,) in rows]


def open_ones(database: Database) -> set[tuple[str, str | None]]:
    """Returns path and agent of every open violation."""
    rows = database.execute("select v.path, s.agent_id from violations v left join seals s on s.path = v.path")
    return {(path, agent) for path, agent in rows}


# The first term is that of the partial index; SQLite does not conclude it from the second.
_VIOLATED = "verdict <> 'indexed' and verdict = 'violation'"


def follow_verdicts(database: Database, moment: str) -> None:
    """Makes open violations follow the verdicts; what one pass finds together is one batch. In a transaction."""
    database.execute(
        "insert into violations(path, code, message, found_at, found_sha256, batch)"
        f" select path, code, message, ?, coalesce(found_sha256, ''), ? from files where {_VIOLATED}"
        " on conflict(path) do update set code = excluded.code, message = excluded.message,"
        " found_sha256 = excluded.found_sha256 where code <> excluded.code or found_sha256 <> excluded.found_sha256"
        " or message <> excluded.message",
        (moment, moment),
    )
    database.execute(f"delete from violations where path not in (select path from files where {_VIOLATED})")
    forget_returned(database)
