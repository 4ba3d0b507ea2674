"""Stores what happened to sealed files: open violations, what a person accepted, redactions."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from signet_sync.storage.database.connection import Database


class OpenViolation(NamedTuple):
    """A sealed file that is changed or missing; `restorable`: the sealed bytes are still there.

    `acceptable`: the file is missing, or a file with sealable content exists. Agent and session are those of the
    seal; None where a database was lost together with it. `found_at` is ISO 8601 UTC.
    """

    path: str
    code: str
    message: str
    found_at: str
    restorable: bool
    acceptable: bool
    agent_id: str | None
    session_token: str | None
    session_id: str | None


_OPEN = """select v.path, v.code, v.message, v.found_at, coalesce(length(s.packed), 0) > 0,
    v.code = 'vanished' or v.found_sha256 <> '', s.agent_id, s.session_token, s.session_id
    from violations v left join seals s on s.path = v.path
    where (?1 is null or s.agent_id is null or s.agent_id = ?1) order by v.found_at, v.path"""


def list_open(database: Database, agent_id: str | None = None) -> list[OpenViolation]:
    """Returns the open violations, those that were found first before the others.

    With an agent its own, and those whose agent is unknown.
    """
    return [
        OpenViolation(path, code, message, found_at, bool(kept), bool(acceptable), *whose)
        for path, code, message, found_at, kept, acceptable, *whose in database.execute(_OPEN, (agent_id,))
    ]


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


def list_sealed_paths(database: Database) -> list[str]:
    """Returns the paths of all sealed files."""
    return database.column("select path from seals order by path")


def list_unseen(database: Database) -> list[str]:
    """Returns the paths of sealed files of which there is no verdict."""
    return database.column("select path from seals where path not in (select path from files) order by path")


# The first term is that of the partial index; SQLite does not conclude it from the second.
_VIOLATED = "verdict <> 'indexed' and verdict = 'violation'"


def follow_verdicts(database: Database, moment: str) -> set[str]:
    """Makes open violations follow the verdicts; returns the agents of those that moved. In a transaction."""
    known = "select v.path, s.agent_id from violations v left join seals s on s.path = v.path"
    before = set(database.execute(known))
    database.execute(
        "insert into violations(path, code, message, found_at, found_sha256)"
        f" select path, code, message, ?, coalesce(found_sha256, '') from files where {_VIOLATED}"
        " on conflict(path) do update set code = excluded.code, message = excluded.message,"
        " found_sha256 = excluded.found_sha256 where code <> excluded.code or found_sha256 <> excluded.found_sha256"
        " or message <> excluded.message",
        (moment,),
    )
    database.execute(f"delete from violations where path not in (select path from files where {_VIOLATED})")
    # An accepted file that is there again: if it disappears again, that is a new violation.
    database.execute(
        "delete from acceptances where gone = 1"
        " and exists(select 1 from files f where f.path = acceptances.path and f.code <> 'vanished')"
    )
    return {agent for _, agent in before ^ set(database.execute(known)) if agent is not None}


# ── redactions ──


def list_redactable(database: Database) -> list[str]:
    """Returns the indexed files in which a secret is suspected, and the sealed ones that are not indexed now."""
    return database.column(
        "select path from files where verdict = 'indexed' and notes like '%\"secret-suspected\"%'"
        " union select s.path from seals s where not exists"
        " (select 1 from files f where f.path = s.path and f.verdict = 'indexed') order by 1"
    )


def is_redacted(database: Database, path: str) -> bool:
    """Returns whether a file was redacted, here or on another machine."""
    return bool(database.value("select exists(select 1 from redactions where path = ?)", (path,)))


def list_redacted_paths(database: Database) -> frozenset[str]:
    """Returns every file that was redacted."""
    return frozenset(database.column("select path from redactions"))


def record_redactions(database: Database, paths: Collection[str], at: str, reason: str) -> None:
    """Keeps when and why files were redacted, and that a scrub has to follow; in the transaction of their seals."""
    database.executemany(
        "insert or replace into redactions(path, at, reason, scrubbed) values(?, ?, ?, 0)",
        [(path, at, reason) for path in paths],
    )


def is_redaction_due(database: Database) -> bool:
    """Returns whether redactions have not yet been followed by their scrub."""
    return bool(database.value("select exists(select 1 from redactions where scrubbed = 0)"))
