"""Reads what happened between two instants: sessions, statements that came up, memories, promotions."""

from __future__ import annotations

from collections.abc import Collection

from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.memories.store.promotions import STANDS
from signet_sync.pages.period import PeriodInputs, PeriodLine, PeriodMemory
from signet_sync.storage.database.connection import Database

_PROJECT = "(select project from memory_thread_heads h where h.agent_id = {0}.agent_id and h.thread_id = {0}.thread_id)"
_SESSIONS = f"""
    select t.node_id, {_PROJECT.format("t")}, l.membership_us, t.status, l.sentence
    from ledger_rows l cross join thread_sessions t using (agent_id, session_token, session_id)
    where l.agent_id = ?1 and l.membership_us >= ?2 and l.membership_us < ?3
    order by l.membership_us, t.node_id"""
_STATED = """
    select id, nullif(project, ''), earliest_us, kind, text from (select s.*, (select min(at_us) from statements o
        where o.agent_id = s.agent_id and o.id = s.id) as earliest_us from statements s
        where agent_id = ?1 and kind in ('decision', 'constraint', 'blocker') and newest = 1 and status = 'open'
        and at_us >= ?2)
    where earliest_us >= ?2 and earliest_us < ?3 order by earliest_us, id"""
_REMEMBERED = """
    select id, type, created_at, content, private from memories
    where agent_id = ?1 and created_at >= ?2 and created_at < ?3
    order by created_at, id"""
_PROMOTED = f"""
    select m.id, m.type, s.at_us, m.content, m.private, 1 from dream_sweeps s
    cross join memory_promotions p on p.agent_id = s.agent_id and p.sweep_id = s.sweep_id
    cross join memories m on m.agent_id = p.agent_id and m.id = p.memory_id
    where s.agent_id = ?1 and s.at_us >= ?2 and s.at_us < ?3 and {STANDS}
    order by s.at_us, m.id"""


def period_inputs(
    database: Database, agent_id: str, from_us: int, to_us: int, chosen: Collection[str] | None = None
) -> PeriodInputs:
    """Returns what happened from `from_us` up to, but not at, `to_us`; with `chosen` only of these projects.

    Memories belong to no project.
    """
    span = agent_id, from_us, to_us
    sessions = [PeriodLine(*row) for row in database.execute(_SESSIONS, span)]
    statements = [PeriodLine(*row) for row in database.execute(_STATED, span)]
    if chosen is not None:
        sessions = [session for session in sessions if session.project in chosen]
        return PeriodInputs(
            from_us, to_us, sessions, [statement for statement in statements if statement.project in chosen]
        )
    written = agent_id, iso(from_us), iso(to_us)
    memories = [
        PeriodMemory(one, kind, parse_instant(at) or from_us, text, is_private)
        for one, kind, at, text, is_private in database.execute(_REMEMBERED, written)
    ]
    memories += [PeriodMemory(*row) for row in database.execute(_PROMOTED, span)]
    return PeriodInputs(from_us, to_us, sessions, statements, memories)


def projects(database: Database, agent_id: str) -> list[str]:
    """Returns the identities of an agent's projects, the one worked on last first."""
    query = (
        "select project from memory_thread_heads where agent_id = ? and project > ''"
        " group by project order by max(latest_us) desc, project"
    )
    return [project for (project,) in database.execute(query, (agent_id,))]
