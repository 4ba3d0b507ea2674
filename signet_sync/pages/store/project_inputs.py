"""Reads what a session's context may show: of its own project, of the person, of other projects. Read-only, bounded.

Imports no slow module: a harness waits for it.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from signet_sync.formats.handle import id_of
from signet_sync.formats.paths import running_session
from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.graph.store import quotes
from signet_sync.memories.score import Use
from signet_sync.pages.project_context import EarlierSession, ProjectInputs
from signet_sync.pages.sections import QUIET_AFTER, EntityEntry, MemoryView, StatementView, ThreadView
from signet_sync.statements.store import rows
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import path_of
from signet_sync.sync.store.passes import halt_message
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import basename

THREADS = 400
STATEMENTS_OF_A_KIND = 60
MEMORIES_OF_A_TYPE = 60
ENTITIES = 20
PINS = 500
USED = 200
EARLIER = 12

OF_PROJECT = ("decision", "constraint", "blocker", "next", "question", "note")
AT_MOMENTS = ("tried", "constraint", "decision", "blocker", "note")
OF_PERSON = ("preference", "person")

THREAD = (
    "select thread_id, project, session_key, harness, status, sessions, latest_us, sample, source_ref, node_id"
    " from memory_thread_heads where agent_id = ?1 and latest_us <= ?2"
)
# A thread whose newest session is dated in the future is told by the newest before.
NEWEST_THREADS = f"""
    select * from ({THREAD} order by latest_us desc, thread_id limit ?3)
    union all select h.thread_id, h.project, h.session_key, t.harness, coalesce(t.status, ''), h.sessions, t.latest_us,
        t.sentence, t.source_ref, t.node_id
    from memory_thread_heads h join thread_sessions t on t.rowid = (select rowid from thread_sessions
        where agent_id = ?1 and thread_id = h.thread_id and latest_us <= ?2 order by latest_us desc, node_id limit 1)
    where h.agent_id = ?1 and h.latest_us > ?2 order by latest_us desc, thread_id limit ?3"""
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
            order by at_us desc, id limit {STATEMENTS_OF_A_KIND})""",
)
_OF_KINDS = _STATEMENT.format(
    among="= 'open'",
    some=f"""json_each(?2) w cross join statements s on s.statement in (select statement from statements
        where agent_id = ?1 and kind = w.value and newest = 1 and status = 'open'
        order by at_us desc, id limit {STATEMENTS_OF_A_KIND})""",
)
# What is pinned is shown though a newer list leaves it out.
_BY_ID = _STATEMENT.format(
    among="in ('open', iif(exists(select 1 from pins p where p.agent_id = ?1 and p.id = s.id), 'replaced', 'open'))",
    some="json_each(?2) w cross join statements s on s.agent_id = ?1 and s.id = w.value",
)
_MEMORY = (
    "select m.id, m.type, m.content, m.created_at, m.project from json_each(?2) j"
    " cross join memories m on m.agent_id = ?1"
)
_NEWEST_MEMORIES = f"""{_MEMORY} and m.id in (select id from memories where agent_id = ?1 and type = j.value
    order by created_at desc, id limit {MEMORIES_OF_A_TYPE})"""
_ENTITIES = (
    "select id, kind, title, type, status, line, max(updated_us, 0), path from garden_files"
    " where agent_id = ? and file = 'profile' and status <> 'deprecated' order by updated_us desc, path desc limit ?"
)


def names(database: Database, agent_id: str, belongs: Callable[[str | None], bool]) -> tuple[str, ...]:
    """Returns the names of the folders by which sessions recorded the project at hand."""
    heads = "select project from memory_thread_heads where agent_id = ? order by latest_us desc limit ?"
    recorded = [project for (project,) in database.execute(heads, (agent_id, THREADS))]
    own = filter(belongs, [*recorded, *rows.running_projects(database, agent_id)])
    return tuple(dict.fromkeys(filter(None, map(basename, own))))


def project_inputs(
    database: Database,
    agent_id: str,
    now_us: int,
    belongs: Callable[[str | None], bool],
    folder: str | None = None,
    without: str = "",
) -> ProjectInputs:
    """Returns what a context may show at `now_us`; `belongs` tells whether a recorded project is the one at hand.

    `folder` is where work begins or goes on; the session called `without` is not quoted to itself.
    """
    threads = [ThreadView(*row) for row in database.execute(NEWEST_THREADS, (agent_id, now_us, THREADS))]
    own = [one for one in threads if belongs(one.project)]
    running = filter(belongs, rows.running_projects(database, agent_id))
    ids = [one.id for one in own]
    threads_of = json.dumps([*ids, *(id_of("t", agent_id, "project", one) for one in running)])
    of_project = _statements(database, _OF_THREADS, agent_id, json.dumps(OF_PROJECT), threads_of)
    heads, elsewhere, hidden = own, list[EarlierSession](), set[str]()
    if folder:
        from signet_sync.pages.store import branches  # a page tells none apart

        heads, away, hidden = branches.tell_branches_apart(database, agent_id, own, now_us, folder)
        since_us = max((one.latest_us for one in heads), default=0) - QUIET_AFTER
        steps, elsewhere = (
            branches.find_steps_elsewhere(database, agent_id, of_project, away, since_us) if away else ((), [])
        )
        of_project = {one: view for one, view in of_project.items() if one not in steps}
    told = {one.newest for one in heads}
    personal = _statements(database, _OF_KINDS, agent_id, json.dumps(OF_PERSON))
    used = uses(database, agent_id, day_of(now_us))
    pins = [one for one, use in used.items() if use.pinned]
    pinned = statements(database, agent_id, pins)
    personal |= {one: statement for one, statement in pinned.items() if one not in of_project}
    kept = _memories(database, _NEWEST_MEMORIES, agent_id, json.dumps(list(SECTION_OF)))
    kept |= memories(database, agent_id, pins)
    kept = {one: view for one, view in kept.items() if not view.project or belongs(view.project)}
    return ProjectInputs(
        tuple(heads),
        tuple(of_project.values()),
        tuple(personal.values()),
        tuple(kept.values()),
        tuple(entities(database, agent_id, ENTITIES)),
        tuple(one for one in threads if not belongs(one.project)),
        used,
        "; ".join(warnings(database, agent_id, halt_message(database))),
        quotes.read_of_newest(database, agent_id, ids, now_us, folder, without, told if heads != own else (), hidden),
        tuple(_earlier(database, agent_id, ids, now_us, told | hidden)),
        tuple(ended(database, agent_id, ids)),
        tuple(elsewhere),
    )


def standing(
    database: Database, agent_id: str, now_us: int, belongs: Callable[[str | None], bool]
) -> list[StatementView]:
    """Returns what holds in the project at hand and may name a file, a command or an error; dead ends first."""
    threads = [ThreadView(*row) for row in database.execute(NEWEST_THREADS, (agent_id, now_us, THREADS))]
    own = json.dumps([one.id for one in threads if belongs(one.project)])
    found = _statements(database, _OF_THREADS, agent_id, json.dumps(AT_MOMENTS), own)
    return sorted(found.values(), key=lambda one: (AT_MOMENTS.index(one.kind), -one.latest_us, one.id))


def _earlier(
    database: Database, agent_id: str, threads: Iterable[str], now_us: int, but: Collection[str]
) -> Iterator[EarlierSession]:
    """Yields the newest sessions of some threads, but those of some nodes."""
    rows = database.execute(
        "select t.node_id, t.latest_us, t.sentence from json_each(?2) j cross join thread_sessions t on t.rowid in"
        " (select rowid from thread_sessions where agent_id = ?1 and thread_id = j.value and latest_us <= ?3"
        f" and node_id not in (select value from json_each(?4)) order by latest_us desc, node_id limit {EARLIER})"
        f" order by t.latest_us desc, t.node_id limit {EARLIER}",
        (agent_id, json.dumps(list(threads)), now_us, json.dumps(list(but))),
    )
    return (EarlierSession(*row) for row in rows)


def ended(database: Database, agent_id: str, threads: Iterable[str]) -> list[str]:
    """Returns what some threads stated last that no longer holds."""
    rows = database.execute(
        "select s.text from json_each(?2) t cross join statements s on s.agent_id = ?1 and s.thread_id = t.value"
        f" where s.newest = 1 and s.status <> 'open' order by s.at_us desc, s.id limit {THREADS}",
        (agent_id, json.dumps(list(threads))),
    )
    return [text for (text,) in rows]


def deeds(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Returns by id of a statement what the session did that states it last, a line each."""
    rows = database.execute(
        "select s.id, n.deeds from json_each(?2) j cross join statements s on s.agent_id = ?1 and s.id = j.value"
        " and s.newest = 1 cross join session_notes n on n.session = s.session",
        (agent_id, json.dumps(list(ids))),
    )
    return dict(rows)


def recorded_origin(database: Database, agent_id: str, root: str) -> str | None:
    """Returns the origin of a repository's root, if sessions recorded exactly one."""
    rows = database.execute(
        "select distinct origin from session_projects where agent_id = ? and root = ? and origin > '' limit 2",
        (agent_id, root),
    )
    origins = [origin for (origin,) in rows]
    return origins[0] if len(origins) == 1 else None


def outcomes(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Returns what threads and nodes of the graph tell, by id."""
    rows = database.execute(
        "select h.thread_id, h.sample from json_each(?2) j cross join memory_thread_heads h"
        " on h.agent_id = ?1 and h.thread_id = j.value"
        " union all select n.id, n.label from json_each(?2) j cross join session_summaries n"
        " on n.agent_id = ?1 and n.id = j.value",
        (agent_id, json.dumps(list(ids))),
    )
    return dict(rows)


class Told(NamedTuple):
    """A session, its project, what it came to, and its thread."""

    token: str
    id: str
    project: str
    sentence: str
    thread: str


def told(database: Database, agent_id: str, paths: Iterable[str]) -> dict[str, Told]:
    """Returns by path of an artifact what its session came to."""
    rows = database.execute(
        "select a.source_path, t.session_token, t.session_id, coalesce(a.project, ''), t.sentence, t.thread_id"
        " from json_each(?2) p cross join memory_artifacts a on a.source_path = p.value"
        " join thread_sessions t on t.agent_id = ?1 and t.session_token = a.session_token"
        " and t.session_id = a.session_id",
        (agent_id, json.dumps(sorted(set(paths)))),
    )
    return {path: Told(*row) for path, *row in rows}


def sessions_of(database: Database, paths: Iterable[str]) -> dict[str, str]:
    """Returns by path of an artifact, or of a running session's source, the id of its session."""
    wanted = set(paths)
    rows = database.execute(
        "select a.source_path, a.session_id from json_each(?) p"
        " cross join memory_artifacts a on a.source_path = p.value",
        (json.dumps(sorted(wanted)),),
    )
    return {**dict(rows), **{path: session for path in wanted if (session := running_session(path)) is not None}}


def of_session(database: Database, agent_id: str, session_id: str, ids: Iterable[str]) -> set[str]:
    """Returns those of some memories that come from a session alone, and of some statements that it said last."""
    rows = database.execute(
        "select s.memory_id from json_each(?1) j"
        " cross join memory_sources s on s.agent_id = ?2 and s.memory_id = j.value"
        " group by s.memory_id having min(s.session_id = ?3) = 1"
        " union all select s.id from json_each(?1) j cross join statements s on s.agent_id = ?2 and s.id = j.value"
        " join sessions n on n.session = -s.artifact where s.newest = 1 and n.session_id = ?3",
        (json.dumps(list(ids)), agent_id, session_id),
    )
    return {one for (one,) in rows}


# ── for the page, too ──


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


def memories(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, MemoryView]:
    """Returns some memories."""
    return _memories(database, f"{_MEMORY} and m.id = j.value", agent_id, json.dumps(list(ids)))


def entities(database: Database, agent_id: str, limit: int) -> list[EntityEntry]:
    """Returns the entities changed last, each once: of a folder that was copied, the first by path."""
    found = [EntityEntry(*row) for row in database.execute(_ENTITIES, (agent_id, limit))]
    return list({one.id: one for one in found}.values())


def _statements(database: Database, sql: str, *bindings: str | int) -> dict[str, StatementView]:
    return {row[0]: StatementView(*row) for row in database.execute(sql, bindings)}


def _memories(database: Database, sql: str, *bindings: str) -> dict[str, MemoryView]:
    rows = database.execute(sql, bindings)
    views = (MemoryView(one, kind, text, parse_instant(at) or 0, of) for one, kind, text, at, of in rows)
    return {view.id: view for view in views}


def uses(database: Database, agent_id: str, day: str) -> dict[str, Use]:
    """Returns accesses before the UTC day, the latest used first, and pins; by id."""
    used = [
        *database.execute(
            "select last_day, id, accesses from node_telemetry where agent_id = ? and last_day < ?"
            " order by last_day desc, id limit ?",
            (agent_id, day, USED),
        ),
        # For rows used today, take the counts from before: no access of today changes a page.
        *database.execute(
            "select before_day, id, before from node_telemetry"
            " where agent_id = ? and last_day >= ? and before_day is not null",
            (agent_id, day),
        ),
    ]
    used.sort(key=lambda row: row[1])
    used.sort(key=lambda row: row[0], reverse=True)
    found = {one: Use(accesses, parse_instant(f"{last}T00:00Z")) for last, one, accesses in used[:USED]}
    for (one,) in database.execute("select id from pins where agent_id = ? order by id limit ?", (agent_id, PINS)):
        found[one] = found.get(one, Use())._replace(pinned=True)
    return found
