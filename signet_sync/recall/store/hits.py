"""Finds the full-text rows, of all agents, with a query's terms, and reads an agent's rows behind them.

Imports no slow module.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.recall.query import Term
from signet_sync.storage.database.batches import LISTED, listed
from signet_sync.storage.database.connection import Database, unsealed
from signet_sync.storage.database.named_rows import FACTS
from signet_sync.sync.store.bodies import KEPT

LONGEST = 4_000_000  # characters of one artifact that are read
_LINES, _ARTIFACTS = "recall_lines_fts", "memory_artifacts_fts"
_SELECTIVE = 5  # letters from which few other words begin with the same stem
# Letters from which a word may be misspelled by one letter, and by two; at most so many words are taken for it.
_SPELLED, _LONG, _MOST_ALIKE = 6, 9, 4
_CLOSE = 12  # words between two that count as close together
_COUNTED = 300  # artifacts that are sampled to estimate their number
# By tier, the table that its lines were made from, and the columns of its id and time.
_ROWS_OF_TIER = {
    "memory": ("memories", "id", "created_at"),
    "fact": ("entity_attributes", "id", "latest_us"),
    "curated": ("garden_files", "id", "updated_us"),
    "thread": ("memory_thread_heads", "thread_id", "latest_us"),
    "node": ("session_summaries", "id", "latest_us"),
}
# First letters of the ids of tiers that have few lines (`formats.handle`).
_IDS = {"thread": "t", "node": "ae"}
_LAST_US = 253_402_300_799_999_999  # the end of the year 9999, beyond which no time can be written
# By tier, rows that are not found: private memories unless requested, notes of entities.
_HIDDEN = {"memory": " and not t.private", "curated": " and t.file = 'profile'"}


class Period(NamedTuple):
    """A time that hits are limited to, both ends included. Microseconds since 1970 UTC."""

    since_us: int
    until_us: int

    def holds(self, at_us: int) -> bool:
        """Returns whether an instant is in it."""
        return self.since_us <= at_us <= self.until_us


class MatchedLine(NamedTuple):
    """What a line was made from. `about` names the project or thread as shown to the user; `kind` is its type.

    `session` is (token, session id) of a thread's only session.
    """

    id: str
    kind: str
    about: str | None
    text: str
    shown: str
    path: str | None
    at_us: int
    session: tuple[str, str] | None = None


class MatchedArtifact(NamedTuple):
    """An artifact to be searched; `content` is cut if longer than requested."""

    path: str
    kind: str
    session: tuple[str, str]
    project: str | None
    at_us: int
    sentence: str
    content: str


class NodeAt(NamedTuple):
    """The graph node that covers a place of an artifact, and when it ends."""

    id: str
    at_us: int


# ── full text ──


def artifacts_with(database: Database, term: Term) -> list[int]:
    """Returns row numbers of all agents' artifacts that contain a term, in order."""
    return _rows(database, _ARTIFACTS, _any_form(term))


def lines_with(database: Database, term: Term) -> list[int]:
    """Returns row numbers of all agents' lines that contain a term; their owner is read later."""
    return _rows(database, _LINES, _any_form(term))


def spelled_like(database: Database, word: str) -> list[str]:
    """Returns the words of the full text, of all agents, that differ from a word by the fewest letters, one or two.

    They begin with the same letter. [] if the word is too short to be told from others.
    """
    from rapidfuzz.distance import OSA  # slow import; few queries have a word that no text has

    most = 2 if len(word) >= _LONG else 1
    if len(word) < _SPELLED:
        return []
    near: dict[str, int] = {}
    for table in (_ARTIFACTS, _LINES):
        database.execute(f"create virtual table if not exists temp.{table}_words using fts5vocab('main', {table}, row)")
        rows = database.execute(
            f"select term from temp.{table}_words where term >= ?1 and term < ?2 and length(term) between ?3 and ?4",
            (word[0], chr(ord(word[0]) + 1), len(word) - most, len(word) + most),
        )
        near |= {term: OSA.distance(word, term, score_cutoff=most) for (term,) in rows}
    least = min(near.values(), default=most + 1)
    return sorted(term for term, distance in near.items() if distance == least <= most)[:_MOST_ALIKE]


def artifacts_near(database: Database, one: Term, other: Term) -> set[int]:
    """Returns all agents' artifacts in which two terms are close together."""
    return set(_rows(database, _ARTIFACTS, f"NEAR({_usual_form(one)} {_usual_form(other)}, {_CLOSE})"))


def owned(database: Database, agent_id: str, holding: Sequence[Sequence[int]]) -> list[int]:
    """Estimates how many artifacts of each row list are an agent's; exact for short lists."""
    some = [frozenset(rows[:_COUNTED]) for rows in holding]
    found: str = database.value(
        "select json_group_array(a.id) from json_each(?) j cross join memory_artifacts a on a.id = j.value"
        " where a.agent_id = ?",
        (json.dumps(sorted(frozenset[int]().union(*some))), agent_id),
    )
    own = frozenset(json.loads(found))
    counts = [len(own & looked_at) for looked_at in some]
    return [
        count if len(rows) < _COUNTED else len(rows) * count // _COUNTED
        for count, rows in zip(counts, holding, strict=True)
    ]


def artifacts_in_all(database: Database, agent_id: str) -> tuple[int, bool]:
    """Returns how many artifacts an agent has, and whether no other agent has any."""
    count: int = database.value("select count(*) from memory_artifacts where agent_id = ?", (agent_id,))
    others = "exists(select 1 from memory_artifacts where agent_id"
    return count, not database.value(f"select {others} < ?1) or {others} > ?1)", (agent_id,))


def _rows(database: Database, table: str, match: str) -> list[int]:
    """Returns the row numbers of a full-text table that match, in order."""
    # As one text: thousands of rows of one number each cost twice as much.
    found: str = database.value(f"select json_group_array(rowid) from {table} where {table} match ?", (match,))
    rows: list[int] = json.loads(found)
    return rows


def moments(database: Database, agent_id: str) -> list[tuple[int, int]]:
    """Returns number and time (microseconds) of each of an agent's artifacts."""
    rows = database.execute("select id, membership_us from memory_artifacts where agent_id = ?", (agent_id,))
    return [(number, at_us) for number, at_us in rows]


def kinds_of(database: Database, agent_id: str, ids: Sequence[int], kinds: Collection[str]) -> list[tuple[str, int]]:
    """Returns kind and number of the artifacts that are an agent's and of some kinds, in the order given."""
    return [
        (kind, number)
        for kind, number in database.execute(
            "select a.source_kind, a.id from json_each(?) j cross join memory_artifacts a on a.id = j.value"
            f" where a.agent_id = ? and a.source_kind {LISTED}",
            (listed(ids), agent_id, listed(kinds)),
        )
    ]


# Phrases, forms and beginnings contain no character that has a meaning in FTS5.
def _any_form(term: Term) -> str:
    """Returns an expression that finds a term in any form, and little else."""
    begun = _begun(term)
    forms = [form for form in (*term.phrases, *term.akin) if not (begun and form.startswith(begun))]
    return " OR ".join([*(f'"{form}"' for form in forms), *([f'"{begun}" *'] if begun else [])])


def _usual_form(term: Term) -> str:
    begun = _begun(term)
    return f'"{begun}" *' if begun else f'"{term.phrases[0]}"'


def _begun(term: Term) -> str:
    """Returns a beginning common to nearly all forms of a term: one search for it costs as much as ten for forms."""
    return term.prefix or (term.stem if len(term.stem) >= _SELECTIVE else "")


# ── rows ──


def has_any(database: Database, agent_id: str, tier: str) -> bool:
    """Returns whether an agent has any row from which lines of a tier are made."""
    found: int = database.value(
        f"select exists(select 1 from {_ROWS_OF_TIER[tier][0]} where agent_id = ?)", (agent_id,)
    )
    return bool(found)


def narrowed(database: Database, agent_id: str, tier: str) -> set[int] | None:
    """Returns the row numbers of an agent's lines in a tier with few lines (`_IDS`); None for other tiers."""
    if tier not in _IDS:
        return None
    rows: set[int] = set()
    for letter in _IDS[tier]:
        within = "select json_group_array(rowid) from recall_lines where agent_id = ? and id >= ? and id < ?"
        rows.update(json.loads(database.value(within, (agent_id, f"{letter}-", f"{letter}."))))
    return rows


def rows_of_project(
    database: Database, agent_id: str, threads: Sequence[str], topics: Sequence[int]
) -> tuple[set[int], set[int]]:
    """Returns the row numbers of the artifacts of some threads, and of the lines of these and of facts of topics."""
    named = json.dumps(threads)
    artifacts = database.value(
        "select json_group_array(a.id) from json_each(?2) t"
        " cross join thread_sessions s on s.agent_id = ?1 and s.thread_id = t.value"
        " cross join memory_artifacts a on a.agent_id = s.agent_id and a.session_token = s.session_token"
        " and a.session_id = s.session_id",
        (agent_id, named),
    )
    lines = database.value(
        "select json_group_array(rowid) from (select l.rowid from json_each(?2) t"
        " cross join recall_lines l on l.agent_id = ?1 and l.id = t.value"
        " union all select l.rowid from json_each(?3) t"
        " cross join entity_attributes f on f.entity = t.value and f.status = 'active'"
        " cross join recall_lines l on l.agent_id = f.agent_id and l.id = f.id)",
        (agent_id, named, json.dumps(topics)),
    )
    return set(json.loads(artifacts)), set(json.loads(lines))


# `cross join` makes SQLite start with the matches: the fixed statistics do not show how few they are.
def first(
    database: Database,
    agent_id: str,
    tier: str,
    groups: Sequence[Sequence[int]],
    limit: int,
    private: bool,
    period: Period | None = None,
) -> list[str]:
    """Returns at most `limit` ids of an agent's lines of a tier, group by group, the newest first.

    Without `private`, private memories are left out; with a period, what is of another time.
    """
    table, column, time = _ROWS_OF_TIER[tier]
    within = "" if period is None else f" and t.{time} between ? and ?"
    bounds: tuple[int | str, ...] = period or ()
    if period is not None and tier == "memory":
        bounds = tuple(iso(min(bound, _LAST_US)) for bound in period)
    hidden = _HIDDEN.get(tier, "") if tier != "memory" or not private else ""
    rows = database.execute(
        "select l.id from json_each(?) g cross join json_each(g.value) j cross join recall_lines l on l.rowid = j.value"
        f" cross join {table} t on t.agent_id = l.agent_id and t.{column} = l.id"
        f" where l.agent_id = ? and l.tier = ?{hidden}{within} order by g.key, t.{time} desc, l.id limit ?",
        (json.dumps(groups), agent_id, tier, *bounds, limit),
    )
    return list(dict.fromkeys(row[0] for row in rows))


# By tier, the columns of a `MatchedLine` by ids, in their order. A fact is about its project's path (null if it is the
# agent's own), an entity about its title, a thread and a condensation about the thread's label.
_MATCHED = {
    "memory": """select m.id, m.type, null, l.text, m.content, null, m.created_at from json_each(?2) j
        cross join memories m on m.agent_id = ?1 and m.id = j.value
        cross join recall_lines l on l.agent_id = m.agent_id and l.id = m.id""",
    "fact": f"""select f.id, f.aspect, iif(e.kind = 'project', e.norm, null), l.text, f.text, f.source_path, f.latest_us
        from json_each(?2) j cross join {FACTS} f on f.agent_id = ?1 and f.id = j.value
        cross join recall_lines l on l.agent_id = f.agent_id and l.id = f.id
        left join entities e on e.agent_id = f.agent_id and e.id = f.entity_id
        where f.status = 'active'""",
    "curated": """select g.id, iif(g.status = 'active', g.kind, g.status || ' ' || g.kind), g.title, l.text, g.line,
        g.path, g.updated_us from json_each(?2) j
        cross join garden_files g on g.agent_id = ?1 and g.id = j.value and g.file = 'profile'
        cross join recall_lines l on l.agent_id = g.agent_id and l.id = g.id order by j.key, g.path desc""",
    "thread": """select h.thread_id, 'thread', h.label, l.text,
        iif(substr(h.sample, 1, length(h.label) + 1) = h.label || ':', '', h.label || ': ') || h.sample
        || coalesce(' Next: ' || nullif(h.next_action, ''), ''), h.source_ref, h.latest_us,
        (select iif(count(*) = 1, json_array(session_token, session_id), null) from thread_sessions s
        where s.agent_id = h.agent_id and s.thread_id = h.thread_id)
        from json_each(?2) j cross join memory_thread_heads h on h.agent_id = ?1 and h.thread_id = j.value
        cross join recall_lines l on l.agent_id = h.agent_id and l.id = h.thread_id""",
    "node": """select n.id, n.kind, h.label, coalesce(nullif(n.content, ''), n.label), n.label, null, n.latest_us
        from json_each(?2) j cross join session_summaries n on n.agent_id = ?1 and n.id = j.value
        left join memory_thread_heads h on h.agent_id = n.agent_id and h.thread_id = n.thread_id""",
}


def lines(database: Database, agent_id: str, tier: str, ids: Sequence[str]) -> Iterator[MatchedLine]:
    """Yields the lines of a tier; of an entity whose folder was copied, the first by path."""
    rows = {row[0]: row for row in database.execute(_MATCHED[tier], (agent_id, json.dumps(ids)))}
    for name, kind, about, text, shown, path, at, *session in rows.values():
        at_us = parse_instant(at) or 0 if isinstance(at, str) else at
        only = tuple(json.loads(session[0])) if session and session[0] else None
        yield MatchedLine(name, kind, about, text, shown, path, at_us, only)


def artifacts(database: Database, ids: Sequence[int], longest: int, most: int) -> Iterator[MatchedArtifact]:
    """Yields artifacts by number: at most `longest` characters of content of each, at most `most` of all."""
    for *found, sentence, kept in database.execute(
        "select a.source_path, a.source_kind, a.session_token, a.session_id, a.project, a.membership_us,"
        f" coalesce(t.sentence, a.ledger_sentence, a.memory_sentence, ''), {KEPT}"
        " from json_each(?) j cross join memory_artifacts a on a.id = j.value"
        " left join thread_sessions t on t.agent_id = a.agent_id"
        " and t.session_token = a.session_token and t.session_id = a.session_id and t.source_ref = a.source_path",
        (json.dumps(ids),),
    ):
        path, kind, token, session_id, project, at_us = found
        text = kept if isinstance(kept, str) else unsealed(database.path, kept)
        content = text[: min(longest, most)]
        most -= len(content)
        yield MatchedArtifact(path, kind, (token, session_id), project, at_us, sentence, content)


def node_at(database: Database, agent_id: str, path: str, place: int) -> NodeAt | None:
    """Returns the node that covers a place of an artifact: the chunk with it, or the one node of a summary."""
    for row in database.execute(
        "select n.id, n.latest_us from memory_artifacts a join session_summaries n on n.artifact = a.id"
        " where a.source_path = ? and n.agent_id = ? and n.start <= ? order by n.start desc, n.end desc limit 1",
        (path, agent_id, place),
    ):
        return NodeAt(*row)
    return None
