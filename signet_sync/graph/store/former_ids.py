"""Finds threads and facts by ids that they had before: when their project, or what makes a thread, had another name."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.storage.database.connection import Database


class _Aliases(NamedTuple):
    """The table of a kind's former ids, the table `n` of the present ones, and how its rows are found and ordered."""

    table: str
    present: str
    using: str
    id: str
    newest: str


_OF = {
    "t": _Aliases(
        "thread_aliases",
        "thread_sessions",
        "using (agent_id, session_token, session_id)",
        "thread_id",
        "n.latest_us desc, n.session_token, n.session_id",
    ),
    "f": _Aliases(
        "fact_aliases",
        "entity_attributes",
        "using (fact)",
        "id",
        "n.latest_us desc, n.id",
    ),
}
KINDS = "".join(_OF)


def once_called(database: Database, agent_id: str, beginning: str, limit: int) -> dict[str, str]:
    """Returns threads or facts by ids that they had before and that begin like this; of several the newest.

    An id that something has now means that.
    """
    of = _OF.get(beginning[:1])
    if of is None:
        return {}
    rows = database.execute(
        f"select alias, (select n.{of.id} from {of.table} o join {of.present} n {of.using}"
        f" where o.agent_id = ?1 and o.alias = a.alias order by {of.newest} limit 1)"
        # `{` sorts directly after `z`, the last letter of an id.
        f" from (select distinct alias from {of.table} t where agent_id = ?1 and alias >= ?2 and alias < ?2 || '{{'"
        f" and not exists(select 1 from {of.present} n where n.agent_id = ?1 and n.{of.id} = t.alias)"
        " order by alias limit ?3) a",
        (agent_id, beginning, limit),
    )
    return {alias: present for alias, present in rows if present is not None}


def present_id(database: Database, agent_id: str, thing_id: str) -> str:
    """Returns the id that a thread or fact has now, which had this one before; any other id as it is."""
    return once_called(database, agent_id, thing_id, 1).get(thing_id, thing_id)


def former_ids(database: Database, agent_id: str, thing_id: str) -> list[str]:
    """Returns the former ids that mean a thread or fact now."""
    of = _OF.get(thing_id[:1])
    if of is None:
        return []
    rows = database.execute(
        f"select distinct a.alias from {of.present} n cross join {of.table} a {of.using}"
        f" where n.agent_id = ? and n.{of.id} = ? order by 1",
        (agent_id, thing_id),
    )
    return [one for (one,) in list(rows) if present_id(database, agent_id, one) == thing_id]
