"""Stores the mirror of tombstone files, and deletes every row that a tombstone covers.

Of what only removed sessions had, handles and prompts, hashes stay, so that it is recognised when it comes back: lines
of former pages have the handles, copies of the sessions the prompts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import is_artifact_path, names_in
from signet_sync.formats.handle import SHORT_LENGTH
from signet_sync.formats.ids import hash_forgotten, token_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.storage.database.batches import Scope, drop_artifacts, make_condition
from signet_sync.storage.database.connection import Database, make_damage_error
from signet_sync.storage.database.tables import list_identified
from signet_sync.sync.store import violations
from signet_sync.sync.store.artifacts import delete_rows

_SHOWN = late(rb"\^([a-z]-[a-z2-7]{6,12})")
# A line as pages have them, which a person can hardly have typed: a list item that ends with a handle.
_OF_A_PAGE = late(rb"^[ \t]*+- .*\^([a-z]-[a-z2-7]{6,12})[ \t\r]*+$", re.MULTILINE)


def remember_marks(database: Database, agent_id: str, token: str, marks: Iterable[str]) -> None:
    """Keeps hashes of what else goes with a removal and may come back elsewhere. In the caller's transaction."""
    database.executemany(
        "insert or ignore into removed_handles(agent_id, mark, session_token) values(?, ?, ?)",
        [(agent_id, mark, token) for mark in sorted(marks)],
    )


def find_remembered(database: Database, agent_id: str, one: str) -> list[str]:
    """Returns the tokens of the removals with which an id of this short form went."""
    sql = "select session_token from removed_handles where agent_id = ? and mark = ?"
    return database.column(sql, (agent_id, hash_forgotten(agent_id, one[:SHORT_LENGTH])))


def are_removed(database: Database, agent_id: str, marks: Collection[str]) -> bool:
    """Returns whether any of these hashes was kept of a removal that stands."""
    sql = "select exists(select 1 from removed_handles where agent_id = ? and mark in (select value from json_each(?)))"
    return bool(database.value(sql, (agent_id, json.dumps(sorted(marks)))))


def find_removed(database: Database, agent_id: str, text: bytes) -> dict[bytes, frozenset[str]]:
    """Returns the handles in a text that only removed sessions of an agent had, each with the tokens of its removals.

    A handle that a row has again is left out: another session says the same.
    """
    shown: dict[str, set[str]] = {}
    for one in {found.decode("ascii") for found in _SHOWN.findall(text)}:
        shown.setdefault(hash_forgotten(agent_id, one[:SHORT_LENGTH]), set()).add(one)
    tokens: dict[str, set[str]] = {}
    for mark, token in database.execute(
        "select mark, session_token from removed_handles"
        " where agent_id = ? and mark in (select value from json_each(?))",
        (agent_id, json.dumps(sorted(shown))),
    ):
        tokens.setdefault(mark, set()).add(token)
    return {
        f"^{one}".encode(): frozenset(found)
        for mark, found in tokens.items()
        for one in shown[mark]
        if not has_row(database, agent_id, one)
    }


def are_kept(database: Database, agent_id: str, token: str) -> bool:
    """Returns whether handles of a removal are remembered: its sessions were known when it was carried out."""
    return bool(
        database.value(
            "select exists(select 1 from removed_handles where agent_id = ? and session_token = ?)", (agent_id, token)
        )
    )


def find_rowless_handles(database: Database, agent_id: str, text: bytes) -> set[bytes]:
    """Returns the handles at the ends of lines of former pages of an agent that no row has."""
    shown = {found.decode("ascii") for found in _OF_A_PAGE.findall(text)}
    return {f"^{one}".encode() for one in shown if not has_row(database, agent_id, one)}


def has_row(database: Database, agent_id: str, beginning: str) -> bool:
    """Returns whether anything that is derived has an id that begins so."""
    return any(
        database.value(
            f"select exists(select 1 from {table.name} where agent_id = ?1 and {table.handle} >= ?2"
            f" and {table.handle} < ?2 || '~')",
            (agent_id, beginning),
        )
        for table in list_identified()
    )


def list_mirrored(database: Database) -> list[Tombstone]:
    """Returns the tombstones that the database knows."""
    found = []
    for row in database.execute(
        "select agent_id, session_token, removed_at, reason, removed_paths, session_ids from memory_artifact_tombstones"
        " order by agent_id, session_token"
    ):
        try:
            found.append(tombstone_of(*row))
        except ValueError as error:
            raise make_damage_error(f"a tombstone cannot be read: {error}", database.path) from None
    return found


def tombstone_of(
    agent_id: str, token: str, removed_at: str, reason: str, paths: str, session_ids: str | None
) -> Tombstone:
    """Returns the tombstone of a row of the mirror. Raises `ValueError` for one that we never wrote."""
    fields: dict[str, Any] = {
        "kind": "tombstone",
        "agent_id": agent_id,
        "session_token": token,
        "removed_at": removed_at,
        "reason": reason,
        "removed_paths": json.loads(paths),
        "session_ids": json.loads(session_ids) if session_ids else None,
    }
    return Tombstone.read(fields)


def mirror(database: Database, tombstones: Sequence[Tombstone]) -> None:
    """Writes tombstones into the mirror; equal ones are not written again."""
    for tombstone in tombstones:
        database.execute(
            "insert into memory_artifact_tombstones"
            "(agent_id, session_token, removed_at, reason, removed_paths, session_ids) values(?, ?, ?, ?, ?, ?)"
            " on conflict(agent_id, session_token) do update set removed_at = excluded.removed_at,"
            " reason = excluded.reason, removed_paths = excluded.removed_paths, session_ids = excluded.session_ids,"
            " scrubbed = 0 where removed_at <> excluded.removed_at or reason <> excluded.reason"
            " or removed_paths <> excluded.removed_paths or session_ids is not excluded.session_ids",
            (
                tombstone.agent_id,
                tombstone.session_token,
                tombstone.removed_at.text,
                tombstone.reason,
                json.dumps(list(tombstone.removed_paths)),
                json.dumps(list(tombstone.session_ids)) if tombstone.session_ids else None,
            ),
        )


def name_tombstone(agent_id: str, token: str, now_iso: str) -> Tombstone:
    """Returns the tombstone that a file's name alone gives: every session of the token, until the file can be read."""
    return Tombstone.read(
        {
            "kind": "tombstone",
            "agent_id": agent_id,
            "session_token": token,
            "removed_at": now_iso,
            "reason": "its file cannot be read",
        }
    )


def lift(database: Database, agent_id: str, token: str) -> None:
    """Drops a tombstone from the mirror, and what was kept to recognise its sessions' lines."""
    database.execute("delete from removed_handles where agent_id = ? and session_token = ?", (agent_id, token))
    database.execute(
        "delete from memory_artifact_tombstones where agent_id = ? and session_token = ?", (agent_id, token)
    )


def list_gone_paths(database: Database, tombstone: Tombstone) -> list[str]:
    """Returns the artifacts that went with a tombstone; not those at which a session stands that it does not cover.

    A session may have been taken out of it again, and anybody may have written anything into the file.
    """
    agent_id, ids = tombstone.agent_id, tombstone.session_ids
    paths = [path for path in tombstone.removed_paths if is_artifact_path(path)]
    staying = set()
    for path, session_token, session_id, key in database.execute(
        "select source_path, session_token, session_id, session_key from memory_artifacts"
        " where agent_id = ? and source_path in (select value from json_each(?))",
        (agent_id, json.dumps(paths)),
    ):
        tokens = {session_token, *(token_of(agent_id, identity) for identity in (session_id, key) if identity)}
        if tombstone.session_token not in tokens or (ids and session_id not in ids):
            staying.add(path)
    return [path for path in paths if path not in staying]


def sessions_of(database: Database, covered: Scope) -> list[tuple[str, str | None]]:
    """Returns id and key of the sessions of a scope, as far as rows or seals of them exist."""
    scope, bindings = make_condition(covered)
    return [
        (session_id, key)
        for session_id, key in database.execute(
            f"select distinct session_id, session_key from memory_artifacts where {scope}"
            f" union select distinct session_id, null from seals where {scope}",
            [*bindings, *bindings],
        )
    ]


def list_sealed(database: Database, covered: Scope) -> list[tuple[str, str, str]]:
    """Returns the sessions (agent, token, id) of a scope that have seals."""
    scope, bindings = make_condition(covered)
    sealed = f"select distinct agent_id, session_token, session_id from seals where {scope}"
    return list(database.execute(sealed, bindings))


def paths_of(database: Database, covered: Scope) -> list[str]:
    """Returns the artifacts with rows or seals in a scope."""
    scope, bindings = make_condition(covered)
    rows = f"select source_path from memory_artifacts where {scope} union select path from seals where {scope}"
    return database.column(f"{rows} order by 1", [*bindings, *bindings])


def forget_returned(database: Database) -> int:
    """Deletes rows and seals of files that a tombstone covers by their session's other identity; returns how many rows.

    Their names carry another token than the tombstone's, so that only the verdict tells.
    """
    sealed = list(
        database.execute(
            # Said twice, so that the index of what is not simply indexed is seen to hold it.
            "select s.agent_id, s.path from files f cross join seals s on s.path = f.path"
            " where f.verdict = 'tombstoned' and f.verdict <> 'indexed'"
        )
    )
    dropped = delete_rows(database, [path for _, path in sealed])
    for agent_id, path in sealed:
        drop_artifacts(database, agent_id, [path])
    return len(dropped)


# What `scrubbed` says: a removal still has to be followed by its scrub, was, or something of it has come back since.
_DUE, _DONE, _RETURNED = 0, 1, 2


def list_unscrubbed(database: Database) -> frozenset[tuple[str, str]]:
    """Returns agent and token of the removals that have not yet been followed by their scrub, or need another."""
    return frozenset(
        database.execute(f"select agent_id, session_token from memory_artifact_tombstones where scrubbed <> {_DONE}")
    )


def is_due(database: Database, agent_id: str, token: str) -> bool:
    """Returns whether a removal has not been followed by its first scrub yet."""
    return bool(
        database.value(
            "select exists(select 1 from memory_artifact_tombstones"
            f" where agent_id = ? and session_token = ? and scrubbed = {_DUE})",
            (agent_id, token),
        )
    )


def remember_lines(database: Database, digests: Collection[str]) -> None:
    """Keeps the digests of lines that a scrub still has to take out of kept copies; in the transaction of the rows."""
    rows = [(digest,) for digest in digests]
    database.executemany("insert or replace into removed_lines(digest, fresh) values(?, 1)", rows)


def read_remembered_lines(database: Database) -> frozenset[str]:
    """Returns the digests that `remember_lines` was given since the last scrub."""
    return frozenset(database.column("select digest from removed_lines"))


def settle_lines(database: Database) -> bool:
    """Forgets the digests after a scrub, but for those of this very pass; then it is False, and another has to follow.

    Pages, and what is kept of them, are written after the scrub.
    """
    database.execute("delete from removed_lines where fresh = 0")
    database.execute("update removed_lines set fresh = 0")
    return not database.value("select exists(select 1 from removed_lines)")


def is_unscrubbed(database: Database) -> bool:
    """Returns whether a removal, of sessions, memories or redacted text, has not yet been followed by its scrub."""
    waiting = database.value(f"select exists(select 1 from memory_artifact_tombstones where scrubbed <> {_DONE})")
    return (
        bool(waiting)
        or bool(database.value("select exists(select 1 from unscrubbed_memories)"))
        or violations.is_redaction_due(database)
    )


def mark_scrubbed(database: Database) -> None:
    """Remembers that no byte of the removed sessions and forgotten memories is left in our files."""
    database.execute("delete from unscrubbed_memories")
    database.execute("update redactions set scrubbed = 1 where scrubbed = 0")
    database.execute(f"update memory_artifact_tombstones set scrubbed = {_DONE} where scrubbed <> {_DONE}")


def find_named(database: Database, agent_id: str, text: bytes) -> frozenset[str]:
    """Returns the tokens of an agent's removed sessions whose artifacts a text names: a page or entity came back."""
    named = names_in(text)
    found = set()
    for one in list_mirrored(database) if named else ():
        names = {name for name, token in named if (one.agent_id, token) == (agent_id, one.session_token)}
        if names and one.session_ids:
            # Under a key that sessions share the others stay, and may be named.
            names &= {path.rpartition("/")[2] for path in list_gone_paths(database, one)}
        if names:
            found.add(one.session_token)
    return frozenset(found)


def reopen(database: Database, agent_id: str, tokens: Collection[str]) -> None:
    """Has a removal scrubbed again, because something of it came back. In a transaction of its own."""
    with database.transaction(durable=True):
        database.executemany(
            f"update memory_artifact_tombstones set scrubbed = {_RETURNED}"
            f" where agent_id = ? and session_token = ? and scrubbed = {_DONE}",
            [(agent_id, token) for token in sorted(tokens)],
        )


def has_removals(database: Database) -> bool:
    """Returns whether anything was ever removed here."""
    return bool(database.value("select exists(select 1 from memory_artifact_tombstones)"))
