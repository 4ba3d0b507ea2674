"""Stores the mirror of tombstone files, and deletes every row that a tombstone covers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from signet_sync.capture import store as capture_store
from signet_sync.formats.filename import is_artifact_path, names_in
from signet_sync.formats.session_token import token_of
from signet_sync.memories.store import memories
from signet_sync.sessions.store import live
from signet_sync.storage.database.connection import Database, damaged
from signet_sync.storage.database.removal import Scope, drop_artifacts, drop_session, within
from signet_sync.sync.store import access_counts, redactions
from signet_sync.sync.store.artifacts import delete_rows, forget_files

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone


def mirrored(database: Database) -> list[Tombstone]:
    """The tombstones that the database knows."""
    found = []
    for row in database.execute(
        "select agent_id, session_token, removed_at, reason, removed_paths, session_ids from memory_artifact_tombstones"
        " order by agent_id, session_token"
    ):
        try:
            found.append(stone_of(*row))
        except ValueError as error:
            raise damaged(f"a tombstone cannot be read: {error}", database.path) from None
    return found


def stone_of(agent_id: str, token: str, removed_at: str, reason: str, paths: str, session_ids: str | None) -> Tombstone:
    """The tombstone of a row of the mirror. Raises `ValueError` for one that we never wrote."""
    fields: dict[str, Any] = {
        "kind": "tombstone",
        "agent_id": agent_id,
        "session_token": token,
        "removed_at": removed_at,
        "reason": reason,
        "removed_paths": json.loads(paths),
        "session_ids": json.loads(session_ids) if session_ids else None,
    }
    # Only a vault with tombstones pays for the models.
    from signet_sync.formats.artifact import validate_tombstone

    return validate_tombstone(fields)


def mirror(database: Database, stones: Sequence[Tombstone]) -> None:
    """Writes tombstones into the mirror; equal ones are not written again."""
    for stone in stones:
        database.execute(
            "insert into memory_artifact_tombstones"
            "(agent_id, session_token, removed_at, reason, removed_paths, session_ids) values(?, ?, ?, ?, ?, ?)"
            " on conflict(agent_id, session_token) do update set removed_at = excluded.removed_at,"
            " reason = excluded.reason, removed_paths = excluded.removed_paths, session_ids = excluded.session_ids,"
            " scrubbed = 0 where removed_at <> excluded.removed_at or reason <> excluded.reason"
            " or removed_paths <> excluded.removed_paths or session_ids is not excluded.session_ids",
            (
                stone.agent_id,
                stone.session_token,
                stone.removed_at.text,
                stone.reason,
                json.dumps(list(stone.removed_paths)),
                json.dumps(list(stone.session_ids)) if stone.session_ids else None,
            ),
        )


def by_name(agent_id: str, token: str, now_iso: str) -> Tombstone:
    """The tombstone that a file's name alone stands for: every session of the token, until the file can be read."""
    from signet_sync.formats.artifact import validate_tombstone

    return validate_tombstone(
        {
            "kind": "tombstone",
            "agent_id": agent_id,
            "session_token": token,
            "removed_at": now_iso,
            "reason": "its file cannot be read",
        }
    )


def lift(database: Database, agent_id: str, token: str) -> None:
    """Drops a tombstone from the mirror."""
    database.execute(
        "delete from memory_artifact_tombstones where agent_id = ? and session_token = ?", (agent_id, token)
    )


def remove_covered(database: Database, stones: Sequence[Tombstone]) -> tuple[list[tuple[str, str, str]], int]:
    """Deletes all rows the tombstones cover: full text, seals, answers, live turns, marks, telemetry, violations, too.

    Returns the sessions whose session log rows may go, and the number of rows deleted. Scope is agent and token (and
    ids).
    """
    touched: list[tuple[str, str, str]] = []
    removed = 0
    for stone in stones:
        scope, bindings = _scope(stone)
        known = _sessions(database, scope, bindings)
        ids = {session_id for session_id, _ in known} | set(stone.session_ids)
        capture_store.hide(database, stone.agent_id, ids, None if stone.session_ids else stone.session_token)
        for one in list(_live(database, stone, ids, {key for _, key in known if key is not None})):
            live.forget(database, *one)
        database.executemany(
            "delete from flow_results where agent_id = ? and session_id = ?", [(stone.agent_id, i) for i in sorted(ids)]
        )
        removed += _forget_memories(database, stone, known)
        # A manifest has no seal, and its row may have gone with its file.
        access_counts.forget(database, [(stone.agent_id, path) for path in gone_paths(database, stone)])
        if gone := _paths(database, scope, bindings):
            dropped = delete_rows(database, gone)
            removed += len(dropped)
            sealed = f"select distinct agent_id, session_token, session_id from seals where {scope}"
            touched += [*dropped, *((a, t, s) for a, t, s in database.execute(sealed, bindings))]
            drop_artifacts(database, stone.agent_id, gone)
            forget_files(database, gone)
        drop_session(database, _covered(stone), "native")
    return touched, removed


def gone_paths(database: Database, stone: Tombstone) -> list[str]:
    """The artifacts that went with a tombstone; not those at which a session stands that it does not cover.

    A session may have been taken out of it again, and anybody may have written anything into the file.
    """
    return _gone_paths(database, stone.agent_id, stone.session_token, stone.removed_paths, stone.session_ids)


def _gone_paths(
    database: Database, agent_id: str, token: str, removed: Sequence[str], session_ids: Collection[str]
) -> list[str]:
    paths = [path for path in removed if is_artifact_path(path)]
    standing = set()
    for path, session_token, session_id, key in database.execute(
        "select source_path, session_token, session_id, session_key from memory_artifacts"
        " where agent_id = ? and source_path in (select value from json_each(?))",
        (agent_id, json.dumps(paths)),
    ):
        tokens = {session_token, *(token_of(agent_id, identity) for identity in (session_id, key) if identity)}
        if token not in tokens or (session_ids and session_id not in session_ids):
            standing.add(path)
    return [path for path in paths if path not in standing]


_VANISHED = "not exists(select 1 from memory_artifacts a where a.source_path = seals.path)"


class Loose(NamedTuple):
    """What may have lost its ground by removals: condensations (agent, id), and agents whose vanished sessions went.

    `scopes` are sessions of removals that were not followed by their scrub yet.
    """

    above: set[tuple[str, str]]
    agents: set[str]
    scopes: Sequence[Scope] = ()


def forget_marks(database: Database, stones: Sequence[Tombstone]) -> Loose:
    """Forgets accesses and pins of what the tombstones cover, while the graph tells what that is.

    `forget_loose_marks` has to follow, once the graph has followed.
    """
    from signet_sync.graph.store import nodes  # whoever only asks whether there are tombstones needs no graph

    fresh = pending(database) if stones else ()
    loose = Loose(set(), set(), [_covered(one) for one in stones if (one.agent_id, one.session_token) in fresh])
    for stone in stones:
        loose.above.update(nodes.forget_marks(database, stone.agent_id, stone.session_token, stone.session_ids))
        scope, bindings = _scope(stone)
        if database.value(f"select exists(select 1 from seals where {scope} and {_VANISHED})", bindings):
            loose.agents.add(stone.agent_id)
    return loose


def forget_loose_marks(database: Database, loose: Loose) -> None:
    """Forgets accesses and pins of condensations that the rest is too little for, and of what vanished sessions were.

    The ids of these stand nowhere. While another vanished session of the agent may come back, they may be its own.
    Derived rows of removed sessions that nothing else has dropped go, too.
    """
    from signet_sync.graph.store import nodes

    for scope in loose.scopes:
        drop_session(database, scope, "derived")
    nodes.forget_marks_of_gone(database, loose.above)
    for agent_id in loose.agents:
        waiting = f"select exists(select 1 from seals where agent_id = ? and {_VANISHED})"
        if not database.value(waiting, (agent_id,)):
            nodes.forget_marks_of_nothing(database, agent_id)


def _scope(stone: Tombstone) -> tuple[str, list[str]]:
    return within(_covered(stone))


def _covered(stone: Tombstone) -> Scope:
    return stone.agent_id, stone.session_token, tuple(stone.session_ids)


def _sessions(database: Database, scope: str, bindings: Sequence[str]) -> list[tuple[str, str | None]]:
    """Id and key of the sessions of a scope that are still known."""
    return [
        (session_id, key)
        for session_id, key in database.execute(
            f"select distinct session_id, session_key from memory_artifacts where {scope}"
            f" union select distinct session_id, null from seals where {scope}",
            [*bindings, *bindings],
        )
    ]


def _paths(database: Database, scope: str, bindings: Sequence[str]) -> list[str]:
    rows = database.execute(
        f"select source_path from memory_artifacts where {scope} union select path from seals where {scope} order by 1",
        [*bindings, *bindings],
    )
    return [row[0] for row in rows]


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


def live_of(database: Database, stone: Tombstone) -> list[tuple[str, str, str]]:
    """Agent, key and id of the buffered turns that a tombstone covers, while rows tell whose they are."""
    scope, bindings = _scope(stone)
    known = _sessions(database, scope, bindings)
    ids = {session_id for session_id, _ in known} | set(stone.session_ids)
    return list(_live(database, stone, ids, {key for _, key in known if key is not None}))


def covers_live(stones: Sequence[Tombstone], agent_id: str, session_key: str, session_id: str) -> bool:
    """Whether a tombstone covers buffered turns by what their session is called."""
    names = {name for name in (session_key, session_id) if name}
    tokens = {token_of(agent_id, name) for name in names} if stones else set()
    return any(
        stone.agent_id == agent_id
        and (not names.isdisjoint(stone.session_ids) or (stone.session_token in tokens and not stone.session_ids))
        for stone in stones
    )


def _live(
    database: Database, stone: Tombstone, ids: Collection[str], of_rows: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """By their ids, by what they are called where the token covers all of it.

    Under a key that sessions outside the tombstone share, turns whose session nobody named may tell of the removed one:
    they go once, with the removal. Later ones are another session's.
    """
    agent_id, token = stone.agent_id, stone.session_token
    fresh = bool(
        database.value(
            "select exists(select 1 from memory_artifact_tombstones"
            f" where agent_id = ? and session_token = ? and scrubbed = {_DUE})",
            (agent_id, token),
        )
    )
    for key, session_id, *_ in live.sessions(database, agent_id):
        names = {name for name in (key, session_id) if name}
        tokens = {token_of(agent_id, name) for name in names}
        named = not names.isdisjoint(ids) or (token in tokens and not stone.session_ids)
        shared = not session_id and (token in tokens or key in of_rows)
        if named or (shared and fresh):
            yield agent_id, key, session_id


def _forget_memories(database: Database, stone: Tombstone, known: Sequence[tuple[str, str | None]]) -> int:
    """Forgets what is remembered of the sessions alone, by whichever of their identities; gives how many."""
    gone = memories.forget_session(database, stone.agent_id, stone.session_token, stone.session_ids)
    others: dict[str, set[str]] = {}
    for session_id, key in known:
        for identity in filter(None, (session_id, key)):
            others.setdefault(token_of(stone.agent_id, identity), set()).add(session_id)
    others.pop(stone.session_token, None)
    for token, ids in others.items():
        gone += memories.forget_session(database, stone.agent_id, token, sorted(ids))
    return gone


# What `scrubbed` says: a removal still has to be followed by its scrub, was, or something of it has come back since.
_DUE, _DONE, _RETURNED = 0, 1, 2


def pending(database: Database) -> frozenset[tuple[str, str]]:
    """Agent and token of the removals that have not yet been followed by their scrub, or need another."""
    return frozenset(
        database.execute(f"select agent_id, session_token from memory_artifact_tombstones where scrubbed <> {_DONE}")
    )


def remember_lines(database: Database, digests: Collection[str]) -> None:
    """Keeps the digests of lines that a scrub still has to take out of kept copies; in the transaction of the rows."""
    rows = [(digest,) for digest in digests]
    database.executemany("insert or replace into removed_lines(digest, fresh) values(?, 1)", rows)


def remembered_lines(database: Database) -> frozenset[str]:
    """The digests that `remember_lines` was given since the last scrub."""
    return frozenset(digest for (digest,) in database.execute("select digest from removed_lines"))


def settle_lines(database: Database) -> bool:
    """After a scrub: forgets the digests, but for those of this very pass; then it is False, and another has to follow.

    Pages, and what is kept of them, are written after the scrub.
    """
    database.execute("delete from removed_lines where fresh = 0")
    database.execute("update removed_lines set fresh = 0")
    return not database.value("select exists(select 1 from removed_lines)")


def unscrubbed(database: Database) -> bool:
    """Whether a removal, of sessions, memories or redacted text, has not yet been followed by its scrub."""
    waiting = database.value(f"select exists(select 1 from memory_artifact_tombstones where scrubbed <> {_DONE})")
    return bool(waiting) or bool(memories.forgotten(database)) or redactions.is_due(database)


def mark_scrubbed(database: Database) -> None:
    """Remembers that no byte of the removed sessions and forgotten memories is left in our files."""
    memories.mark_scrubbed(database)
    redactions.mark_scrubbed(database)
    database.execute(f"update memory_artifact_tombstones set scrubbed = {_DONE} where scrubbed <> {_DONE}")


def told_by(database: Database, agent_id: str, text: bytes) -> frozenset[str]:
    """The tokens of an agent's removed sessions whose artifacts a text names: a page or an entity that came back."""
    named = names_in(text)
    if not named:
        return frozenset()
    found = set()
    for token, removed, session_ids in list(
        database.execute(
            "select session_token, removed_paths, session_ids from memory_artifact_tombstones where agent_id = ?",
            (agent_id,),
        )
    ):
        names = {name for name, each in named if each == token}
        if names and session_ids:
            # Under a key that sessions share the others stay, and may be named.
            gone = _gone_paths(database, agent_id, token, json.loads(removed), json.loads(session_ids))
            names &= {path.rpartition("/")[2] for path in gone}
        if names:
            found.add(token)
    return frozenset(found)


def reopen(database: Database, agent_id: str, tokens: Collection[str]) -> None:
    """Has a removal scrubbed again, because something of it came back. In a transaction of its own."""
    with database.transaction(durable=True):
        database.executemany(
            f"update memory_artifact_tombstones set scrubbed = {_RETURNED}"
            f" where agent_id = ? and session_token = ? and scrubbed = {_DONE}",
            [(agent_id, token) for token in sorted(tokens)],
        )


def any_stand(database: Database) -> bool:
    """Whether anything was ever removed here."""
    return bool(database.value("select exists(select 1 from memory_artifact_tombstones)"))
