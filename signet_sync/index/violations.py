"""Open violations: sealed files that changed or went, as the passes found them, and what is left to heal them with."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.index.database import Database


class OpenViolation(NamedTuple):
    """A sealed file that is not what it was; `restorable`: the sealed bytes are still there.

    Agent and session are those of the seal; None where a database was lost together with it.
    """

    path: str
    code: str
    message: str
    restorable: bool
    agent_id: str | None
    session_token: str | None
    session_id: str | None


class Batch(NamedTuple):
    """What one pass found together; `found_at` is ISO 8601 UTC."""

    id: str
    found_at: str
    files: list[OpenViolation]


def batches(database: Database, agent_id: str | None = None) -> list[Batch]:
    """Open violations by the pass that found them, the oldest first.

    With an agent its own, and those of which nobody knows whose they are.
    """
    found: dict[str, Batch] = {}
    for batch, found_at, path, code, message, kept, *whose in database.execute(
        "select v.batch, v.found_at, v.path, v.code, v.message, coalesce(length(s.packed), 0) > 0, s.agent_id,"
        " s.session_token, s.session_id from violations v left join seals s on s.path = v.path"
        " where ?1 is null or s.agent_id is null or s.agent_id = ?1 order by v.found_at, v.batch, v.path",
        (agent_id,),
    ):
        one = OpenViolation(path, code, message, bool(kept), *whose)
        found.setdefault(batch, Batch(batch, found_at, [])).files.append(one)
    return list(found.values())


def is_open(database: Database, path: str) -> bool:
    """Whether a path holds an open violation."""
    return bool(database.value("select exists(select 1 from violations where path = ?)", (path,)))
