"""Remembers hashes of what only removed sessions had, handles and prompts, so that it is recognised when it comes back.

Lines of former pages have the handles, copies of the sessions the prompts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

from signet_sync.formats.handle import SHORT_LENGTH
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.session_token import forgotten_mark
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import identified

_SHOWN = late(rb"\^([a-z]-[a-z2-7]{6,12})")
# A line as pages have them, which a person can hardly have typed: a list item that ends with a handle.
_OF_A_PAGE = late(rb"^[ \t]*+- .*\^([a-z]-[a-z2-7]{6,12})[ \t\r]*+$", re.MULTILINE)


def remember(database: Database, agent_id: str, token: str, ids: Iterable[str]) -> None:
    """Keeps hashes of the short forms of ids that go with a removal. In the caller's transaction."""
    remember_marks(database, agent_id, token, {forgotten_mark(agent_id, one[:SHORT_LENGTH]) for one in ids})


def remember_marks(database: Database, agent_id: str, token: str, marks: Iterable[str]) -> None:
    """Keeps hashes of what else goes with a removal and may come back elsewhere. In the caller's transaction."""
    database.executemany(
        "insert or ignore into removed_handles(agent_id, mark, session_token) values(?, ?, ?)",
        [(agent_id, mark, token) for mark in sorted(marks)],
    )


def are_removed(database: Database, agent_id: str, marks: Collection[str]) -> bool:
    """Returns whether any of these hashes was kept of a removal that stands."""
    sql = "select exists(select 1 from removed_handles where agent_id = ? and mark in (select value from json_each(?)))"
    return bool(database.value(sql, (agent_id, json.dumps(sorted(marks)))))


def drop(database: Database, agent_id: str, token: str) -> None:
    """Forgets what was kept of a removal that is lifted. In the caller's transaction."""
    database.execute("delete from removed_handles where agent_id = ? and session_token = ?", (agent_id, token))


def removed_in(database: Database, agent_id: str, text: bytes) -> dict[bytes, frozenset[str]]:
    """Returns the handles in a text that only removed sessions of an agent had, each with the tokens of its removals.

    A handle that a row has again is left out: another session says the same.
    """
    shown: dict[str, set[str]] = {}
    for one in {found.decode("ascii") for found in _SHOWN.findall(text)}:
        shown.setdefault(forgotten_mark(agent_id, one[:SHORT_LENGTH]), set()).add(one)
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
        if not _has_row(database, agent_id, one)
    }


def are_kept(database: Database, agent_id: str, token: str) -> bool:
    """Returns whether handles of a removal are remembered: its sessions were known when it was carried out."""
    return bool(
        database.value(
            "select exists(select 1 from removed_handles where agent_id = ? and session_token = ?)", (agent_id, token)
        )
    )


def rowless_in(database: Database, agent_id: str, text: bytes) -> set[bytes]:
    """Returns the handles at the ends of lines of former pages of an agent that no row has."""
    shown = {found.decode("ascii") for found in _OF_A_PAGE.findall(text)}
    return {f"^{one}".encode() for one in shown if not _has_row(database, agent_id, one)}


def _has_row(database: Database, agent_id: str, beginning: str) -> bool:
    return any(
        database.value(
            f"select exists(select 1 from {table.name} where agent_id = ?1 and {table.handle} >= ?2"
            f" and {table.handle} < ?2 || '~')",
            (agent_id, beginning),
        )
        for table in identified()
    )
