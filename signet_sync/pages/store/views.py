"""Reads what is known, for an agent's page and the context of a session: bounded, whatever the size of the vault.

Imports no slow module: a harness waits for it.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice, product
from typing import NamedTuple

from signet_sync.formats.handle import id_of
from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.graph.store import quotes
from signet_sync.memories.score import Use, day_start, rank, score
from signet_sync.memories.store import promotions
from signet_sync.pages.sections import (
    BoardInputs,
    EntityEntry,
    NodeView,
    StatementView,
    ThreadView,
)
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES, path_of
from signet_sync.sync.store.passes import halt_message
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import basename

THREADS, PINS, USED, ENTITIES, EARLIER = 400, 500, 200, 20, 12
OF_A_KIND = 60  # statements of a kind, memories of a type
NODES_LISTED = 200

OF_PROJECT = ("decision", "constraint", "blocker", "next", "question", "note")
AT_MOMENTS = ("tried", "constraint", "decision", "blocker", "note")
OF_PERSON = ("preference", "person")

_THREAD = (
    "select thread_id, project, session_key, harness, status, sessions, latest_us, sample, source_ref, node_id"
    " from memory_thread_heads where agent_id = ?1 and latest_us <= ?2"
)
# The parameters are JSON lists of kinds and of threads; of each pair the newest statements are read.
_STATEMENT = f"""
    select s.id, s.kind, s.text, nullif(s.project, ''), s.at_us, {path_of("s.artifact")}, '', s.speaker,
        s.line
    from {{some}} where s.agent_id = ?1 and s.newest = 1 and s.status {{among}}"""
_OF_THREADS = _STATEMENT.format(
    among="= 'open'",
    some=f"""(select a.value as kind, t.value as thread from json_each(?2) a cross join json_each(?3) t) w
        cross join statements s on s.statement in (select statement from statements
            where agent_id = ?1 and thread_id = w.thread and kind = w.kind and newest = 1 and status = 'open'
            order by at_us desc, id limit {OF_A_KIND})""",
)
_OF_KINDS = _STATEMENT.format(
    among="= 'open'",
    some=f"""json_each(?2) w cross join statements s on s.statement in (select statement from statements
        where agent_id = ?1 and kind = w.value and newest = 1 and status = 'open'
        order by at_us desc, id limit {OF_A_KIND})""",
)
# What is pinned is shown though a newer list leaves it out.
_BY_ID = _STATEMENT.format(
    among="in ('open', iif(exists(select 1 from pins p where p.agent_id = ?1 and p.id = s.id), 'replaced', 'open'))",
    some="json_each(?2) w cross join statements s on s.agent_id = ?1 and s.id = w.value",
)
_MEMORY = (
    "select m.id, m.type, m.content, m.created_at, m.project from json_each(?2) j"
    " cross join memories m on m.agent_id = ?1 and m.id"
)
_ENTITIES = (
    "select id, kind, title, type, status, line, max(updated_us, 0), path from garden_files"
    " where agent_id = ? and file = 'profile' and status <> 'deprecated' order by updated_us desc, path desc limit ?"
)


# ── for page and context ──


def warnings(database: Database, agent_id: str, halted: str) -> list[str]:
    """Returns a line for each warning, with the command that shows more; of a halt (why, "" if there is none) alone."""
    if halted:
        return [f"signet-sync is halted, nothing was dropped ({halted}): signet-sync status"]
    found = []
    violations = "select count(*) from violations v cross join seals s on s.path = v.path where s.agent_id = ?"
    if count := database.value(violations, (agent_id,)):
        what = count_noun(count, "file of this vault was", "files of this vault were")
        found.append(f"{what} changed or lost after being sealed: signet-sync violations list")
    if drifted := database.value("select count(*) from garden_drift where agent_id = ?", (agent_id,)):
        what = count_noun(drifted, "entity file is", "entity files are")
        found.append(f"{what} not what was recorded: signet-sync entity check")
    return found


def statements(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, StatementView]:
    """Returns those of some statements that still hold, or are pinned."""
    return _statements(database, _BY_ID, agent_id, json.dumps(list(ids)))


def memories(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, StatementView]:
    """Returns some memories."""
    return _memories(database, f"{_MEMORY} = j.value", agent_id, json.dumps(list(ids)))


def _statements(database: Database, sql: str, *bindings: str) -> dict[str, StatementView]:
    return {row[0]: StatementView(*row) for row in database.execute(sql, bindings)}


def _memories(database: Database, sql: str, *bindings: str) -> dict[str, StatementView]:
    found = database.execute(sql, bindings)
    return {one: StatementView(one, kind, text, of, parse_instant(at) or 0, "") for one, kind, text, at, of in found}


def _threads(database: Database, agent_id: str, now_us: int, limit: int) -> dict[str, ThreadView]:
    newest = f"{_THREAD} order by latest_us desc, thread_id limit ?3"
    return {row[0]: ThreadView(*row) for row in database.execute(newest, (agent_id, now_us, limit))}


def entities(database: Database, agent_id: str, limit: int) -> list[EntityEntry]:
    """Returns the entities changed last, each once: of a folder that was copied, the first by path."""
    return list({row[0]: EntityEntry(*row) for row in database.execute(_ENTITIES, (agent_id, limit))}.values())


def uses(database: Database, agent_id: str, day: str) -> dict[str, Use]:
    """Returns accesses before the UTC day, the latest used first, and pins; by id."""
    used = database.execute(
        "select last_day, id, accesses from node_telemetry where agent_id = ? and last_day < ?"
        " order by last_day desc, id desc limit ?",
        (agent_id, day, USED),
    )
    # For rows used today, take the counts from before: no access of today changes a page.
    before = database.execute(
        "select before_day, id, before from node_telemetry"
        " where agent_id = ? and last_day >= ? and before_day is not null",
        (agent_id, day),
    )
    found = {
        one: Use(accesses, parse_instant(f"{last}T00:00Z"))
        for last, one, accesses in sorted([*used, *before], reverse=True)[:USED]
    }
    for (one,) in database.execute("select id from pins where agent_id = ? order by id limit ?", (agent_id, PINS)):
        found[one] = found.get(one, Use())._replace(pinned=True)
    return found


# ── for the page ──

# What still holds of a kind, and what was remembered of a type, newest first: as a page reads them, one by one.
_NEWEST = (
    """select id, at_us from statements where agent_id = ? and kind = ? and newest = 1 and status = 'open'
        order by at_us desc, id limit ?""",
    "select id, created_at from memories where agent_id = ? and type = ? order by created_at desc, id limit ?",
)
# What the lineage lists: condensations, or nodes that have a file.
_LISTED = f"""
    select n.id, coalesce(h.project, ''), coalesce(h.label, ''), n.earliest_us, n.latest_us, n.label,
        coalesce(n.source_ref, (select source_ref from thread_sessions t where t.agent_id = n.agent_id
            and t.thread_id = n.thread_id and t.latest_us = n.latest_us order by session_token, session_id limit 1))
    from (select id from session_summaries where agent_id = ?1 and (depth > 0) = ?2 and source_type <> 'chunk'
        and thread_id is not null and latest_us < ?3 order by latest_us desc, depth desc, id limit {NODES_LISTED}) told
    cross join {NODES} n on n.agent_id = ?1 and n.id = told.id
    left join memory_thread_heads h on h.agent_id = n.agent_id and h.thread_id = n.thread_id"""


def page_inputs(database: Database, agent_id: str, now_us: int, limit: int) -> BoardInputs:
    """Returns what a page with room for `limit` lines may show at `now_us`, and what is pinned or used.

    Threads count from their own time on, all else at once.
    """
    used, today = uses(database, agent_id, day_of(now_us)), day_start(now_us)

    def rank_newest(remembered: bool, kind: str) -> Iterator[tuple[tuple[bool, float, int, str], str]]:
        """Yields the newest statements or memories of a kind, best first; each is read when it is asked for."""
        for one, at in database.execute(_NEWEST[remembered], (agent_id, kind, limit + 1)):
            at_us = parse_instant(at) or 0 if remembered else at
            yield rank(score(kind, at_us, today, remembered=remembered), at_us, one, pinned=False), one

    best = merge(*(rank_newest(*one) for one in product((False, True), SECTION_OF)))
    found = [*(one for _, one in islice(best, limit)), *used]
    promoted = promotions.list_dreamed(database, agent_id)
    threads = _threads(database, agent_id, now_us, limit)
    of_use = f"{_THREAD} and thread_id in (select value from json_each(?3))"
    threads |= {row[0]: ThreadView(*row) for row in database.execute(of_use, (agent_id, now_us, json.dumps([*used])))}
    return BoardInputs(
        [*threads.values()],
        [*statements(database, agent_id, found).values(), *memories(database, agent_id, {*found, *promoted}).values()],
        entities(database, agent_id, limit), used, promoted, next(best, None) is not None,
    )  # fmt: skip


def lineage(database: Database, agent_id: str, before_us: int, *, condensed: bool) -> Iterator[NodeView]:
    """Yields the newest condensations, or summaries and compactions, that end before an instant, ties by id."""
    # Each is read when it is asked for: a page shows a few of them.
    for one, project, thread, *node in database.execute(_LISTED, (agent_id, condensed, before_us)):
        if node[-1] is not None:  # else its sessions moved, and it waits to be derived again
            yield NodeView(one, basename(project) or thread, *node)


# ── for the context of a project ──


def project_inputs(
    database: Database,
    agent_id: str,
    now_us: int,
    belongs: Callable[[str | None], bool],
    folder: str | None = None,
) -> BoardInputs:
    """Returns what a context may show at `now_us`; `belongs` tells whether a recorded project is the one at hand.

    `folder` is where work begins or goes on.
    """
    threads = _threads(database, agent_id, now_us, THREADS).values()
    own = [one for one in threads if belongs(one.project)]
    ids = [one.id for one in own]
    running = filter(belongs, _list_running_projects(database, agent_id))
    threads_of = json.dumps([*ids, *(id_of("t", agent_id, "project", one) for one in running)])
    of_project = _statements(database, _OF_THREADS, agent_id, json.dumps(OF_PROJECT), threads_of)
    heads, steps, hidden = own, set[str](), set[str]()
    if folder:
        from signet_sync.pages import at_hand  # a page tells no branches apart

        heads, away, hidden = at_hand.separate_branches(database, agent_id, own, now_us, folder)
        steps = at_hand.find_steps_elsewhere(database, agent_id, of_project, away) if away else steps
    told = {one.newest for one in heads}
    used = uses(database, agent_id, day_of(now_us))
    pins = [one for one, use in used.items() if use.pinned]
    personal = _statements(database, _OF_KINDS, agent_id, json.dumps(OF_PERSON)) | statements(database, agent_id, pins)
    stated = {one: view for one, view in of_project.items() if one not in steps}
    stated |= {one: view for one, view in personal.items() if not view.project or belongs(view.project)}
    newest = f"{_MEMORY} in (select id from memories where agent_id = ?1 and type = j.value"
    newest = f"{newest} order by created_at desc, id limit {OF_A_KIND})"
    kept = _memories(database, newest, agent_id, json.dumps(list(SECTION_OF))) | memories(database, agent_id, pins)
    earlier = database.execute(
        "select t.node_id, t.latest_us, t.sentence from json_each(?2) j cross join thread_sessions t on t.rowid in"
        " (select rowid from thread_sessions where agent_id = ?1 and thread_id = j.value and latest_us <= ?3"
        f" and node_id not in (select value from json_each(?4)) order by latest_us desc, node_id limit {EARLIER})"
        f" order by t.latest_us desc, t.node_id limit {EARLIER}",
        (agent_id, json.dumps(ids), now_us, json.dumps([*told, *hidden])),
    )
    return BoardInputs(
        heads,
        [*stated.values(), *(view for view in kept.values() if not view.project or belongs(view.project))],
        entities(database, agent_id, ENTITIES),
        used,
        others=[one for one in threads if not belongs(one.project)],
        warning="; ".join(warnings(database, agent_id, halt_message(database))),
        quoted=quotes.read_last(database, agent_id, ids, now_us, folder, told if heads != own else (), hidden),
        earlier=[*earlier],
        ended=list_ended(database, agent_id, ids),
    )


def list_standing(
    database: Database, agent_id: str, now_us: int, belongs: Callable[[str | None], bool]
) -> list[StatementView]:
    """Returns what holds in the project at hand and may name a file, a command or an error; dead ends first."""
    threads = _threads(database, agent_id, now_us, THREADS).values()
    own = json.dumps([one.id for one in threads if belongs(one.project)])
    found = _statements(database, _OF_THREADS, agent_id, json.dumps(AT_MOMENTS), own)
    return sorted(found.values(), key=lambda one: (AT_MOMENTS.index(one.kind), -one.latest_us, one.id))


def _list_running_projects(database: Database, agent_id: str) -> list[str]:
    """Returns the projects of an agent's running sessions that state something."""
    return database.column(
        "select distinct project from statements where agent_id = ? and artifact < 0 and project > '' order by 1",
        (agent_id,),
    )


def names(database: Database, agent_id: str, belongs: Callable[[str | None], bool]) -> tuple[str, ...]:
    """Returns the names of the folders by which sessions recorded the project at hand."""
    heads = "select project from memory_thread_heads where agent_id = ? order by latest_us desc limit ?"
    recorded = database.column(heads, (agent_id, THREADS))
    own = filter(belongs, [*recorded, *_list_running_projects(database, agent_id)])
    return tuple(dict.fromkeys(filter(None, map(basename, own))))


def projects(database: Database, agent_id: str) -> list[str]:
    """Returns the identities of an agent's projects, the one worked on last first."""
    query = (
        "select project from memory_thread_heads where agent_id = ? and project > ''"
        " group by project order by max(latest_us) desc, project"
    )
    return database.column(query, (agent_id,))


# ── for a prompt, and for what a session has got ──


def list_ended(database: Database, agent_id: str, threads: Iterable[str]) -> list[str]:
    """Returns what some threads stated last that no longer holds."""
    return database.column(
        "select s.text from json_each(?2) t cross join statements s on s.agent_id = ?1 and s.thread_id = t.value"
        f" where s.newest = 1 and s.status <> 'open' order by s.at_us desc, s.id limit {THREADS}",
        (agent_id, json.dumps(list(threads))),
    )


def deeds(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Returns by id of a statement what the session did that states it last, a line each."""
    found = database.execute(
        "select s.id, n.deeds from json_each(?2) j cross join statements s on s.agent_id = ?1 and s.id = j.value"
        " and s.newest = 1 cross join session_notes n on n.session = s.session",
        (agent_id, json.dumps(list(ids))),
    )
    return dict(found)


def outcomes(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Returns what threads and nodes of the graph tell, by id."""
    found = database.execute(
        "select h.thread_id, h.sample from json_each(?2) j cross join memory_thread_heads h"
        " on h.agent_id = ?1 and h.thread_id = j.value"
        " union all select n.id, n.label from json_each(?2) j cross join session_summaries n"
        " on n.agent_id = ?1 and n.id = j.value",
        (agent_id, json.dumps(list(ids))),
    )
    return dict(found)


class Told(NamedTuple):
    """What a session came to, its project and thread."""

    project: str
    sentence: str
    thread: str


def read_outcomes(database: Database, agent_id: str, paths: Iterable[str]) -> dict[str, Told]:
    """Returns by path of an artifact what its session came to."""
    found = database.execute(
        "select a.source_path, coalesce(a.project, ''), t.sentence, t.thread_id"
        " from json_each(?2) p cross join memory_artifacts a on a.source_path = p.value"
        " join thread_sessions t on t.agent_id = ?1 and t.session_token = a.session_token"
        " and t.session_id = a.session_id",
        (agent_id, json.dumps(sorted(set(paths)))),
    )
    return {path: Told(*row) for path, *row in found}


def find_from_session(database: Database, agent_id: str, session_id: str, ids: Iterable[str]) -> set[str]:
    """Returns those of some memories that come from a session alone, and of some statements that it said last."""
    found = database.column(
        "select s.memory_id from json_each(?1) j"
        " cross join memory_sources s on s.agent_id = ?2 and s.memory_id = j.value"
        " group by s.memory_id having min(s.session_id = ?3) = 1"
        " union all select s.id from json_each(?1) j cross join statements s on s.agent_id = ?2 and s.id = j.value"
        " join sessions n on n.session = -s.artifact where s.newest = 1 and n.session_id = ?3",
        (json.dumps(list(ids)), agent_id, session_id),
    )
    return {*found}
