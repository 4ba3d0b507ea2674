"""What an agent's full text holds of a query's terms, and the rows behind it. Imports nothing heavy."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Sequence
from typing import NamedTuple

from signet_sync.contracts.timestamps import parse_instant
from signet_sync.index.batches import LISTED, listed
from signet_sync.index.bodies import text_of
from signet_sync.index.database import Database
from signet_sync.index.named import FACTS
from signet_sync.recall.query import Term

_LINES, _ARTIFACTS = "recall_lines_fts", "memory_artifacts_fts"
_TELLING = 5  # letters of a stem that few other words begin with
_CLOSE = 12  # words between two that stand close together
_COUNTED = 300  # artifacts that are looked at to tell how many there are
# By tier the table of what a line stands for, the column of its id and that of its time.
_TIMES = {
    "memory": ("memories", "id", "created_at"),
    "fact": ("entity_attributes", "id", "latest_us"),
    "curated": ("garden_files", "id", "updated_us"),
    "thread": ("memory_thread_heads", "thread_id", "latest_us"),
    "node": ("session_summaries", "id", "latest_us"),
}
# How ids of a tier begin that has few lines (`temporal.ids`).
_IDS = {"thread": "t", "node": "ae"}
# Of a tier's table the rows that are not found: private memories where they are not asked for, notes of entities.
_HIDDEN = {"memory": " and not t.private", "curated": " and t.file = 'profile'"}


Masks = dict[int, set[int]]
"""What holds some terms: row numbers by a mask of which bit n says that term n stands there, in any form."""


class Line(NamedTuple):
    """What a line stands for. `about` is what it is about, for people: a project, a thread; `kind` what it is."""

    id: str
    kind: str
    about: str | None
    text: str
    shown: str
    path: str | None
    at_us: int
    private: bool = False


class Artifact(NamedTuple):
    """An artifact as it is looked through; `content` is cut where it is longer than asked for."""

    path: str
    kind: str
    session: tuple[str, str]
    project: str | None
    at_us: int
    sentence: str
    content: str


class NodeAt(NamedTuple):
    """The node of the graph that tells a place of an artifact, and when it ends."""

    id: str
    at_us: int


# ── full text ──


def artifacts_with(database: Database, term: Term) -> array[int]:
    """Row numbers of all agents' artifacts that hold a term, in order."""
    return array("q", _rows(database, _ARTIFACTS, _any_form(term)))


def owned(database: Database, agent_id: str, holding: Sequence[array[int]]) -> list[int]:
    """About how many artifacts of each row of them are an agent's; exact for few."""
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
    """How many artifacts an agent has, and whether there are no others'."""
    count: int = database.value("select count(*) from memory_artifacts where agent_id = ?", (agent_id,))
    others = "exists(select 1 from memory_artifacts where agent_id"
    return count, not database.value(f"select {others} < ?1) or {others} > ?1)", (agent_id,))


def lines(database: Database, query: Sequence[Term], by: Sequence[int]) -> Masks:
    """All agents' lines that hold one of the terms `by`: what tells whose is read later."""
    forms = [_any_form(term) for term in query]
    found_by = " OR ".join(forms[number] for number in by)
    masks: Masks = {}
    for number in by:
        _mark(masks, number, set(_rows(database, _LINES, forms[number])), more=True)
    found_by = " OR ".join(forms[number] for number in by)
    for number in set(range(len(forms))).difference(by):
        _mark(masks, number, set(_rows(database, _LINES, f"({found_by}) AND ({forms[number]})")), more=False)
    return masks


def artifacts(
    database: Database,
    query: Sequence[Term],
    holding: Sequence[array[int]],
    by: Sequence[int],
    near: Sequence[tuple[int, int]],
) -> Masks:
    """All agents' artifacts that hold one of the terms `by`; `holding` says for each term what holds it.

    The bits behind those of the terms say that the terms of each pair in `near` stand close together.
    """
    masks: Masks = {}
    for number in by:
        _mark(masks, number, set(holding[number]), more=True)
    for number in set(range(len(query))).difference(by):
        _mark(masks, number, set(holding[number]), more=False)
    for bit, (one, other) in enumerate(near, len(query)):
        close = f"NEAR({_usual_form(query[one])} {_usual_form(query[other])}, {_CLOSE})"
        _mark(masks, bit, set(_rows(database, _ARTIFACTS, close)), more=True)
    return masks


def _mark(masks: Masks, bit: int, rows: set[int], *, more: bool) -> None:
    """Sets a bit for some rows; with `more` also for those that hold none of the others."""
    value = 1 << bit
    for mask in list(masks):
        held = masks[mask] & rows
        if held:
            masks[mask] -= held
            masks[mask | value] = held
            rows -= held
            if not masks[mask]:
                del masks[mask]
    if more and rows:
        masks[value] = rows


def _rows(database: Database, table: str, match: str) -> list[int]:
    """Row numbers of a full-text table that match, in order."""
    # As one text: thousands of rows of one number each cost twice as much.
    found: str = database.value(f"select json_group_array(rowid) from {table} where {table} match ?", (match,))
    rows: list[int] = json.loads(found)
    return rows


def named(database: Database, agent_id: str, ids: Sequence[int], kinds: Collection[str]) -> list[tuple[str, str]]:
    """Kind and path of those of some artifacts that are an agent's and of some kinds, in the order given."""
    return [
        (kind, path)
        for kind, path in database.execute(
            "select a.source_kind, a.source_path from json_each(?) j cross join memory_artifacts a on a.id = j.value"
            f" where a.agent_id = ? and a.source_kind {LISTED}",
            (listed(ids), agent_id, listed(kinds)),
        )
    ]


# Phrases, forms and beginnings hold no character that means anything to FTS5.
def _any_form(term: Term) -> str:
    """What finds a term in any form, and little else."""
    begun = _begun(term)
    forms = [form for form in (*term.phrases, *term.akin) if not (begun and form.startswith(begun))]
    return " OR ".join([*(f'"{form}"' for form in forms), *([f'"{begun}" *'] if begun else [])])


def _usual_form(term: Term) -> str:
    begun = _begun(term)
    return f'"{begun}" *' if begun else f'"{term.phrases[0]}"'


def _begun(term: Term) -> str:
    """What nearly all forms of a term begin with: one look for that is as dear as ten for forms."""
    return term.prefix or (term.stem if len(term.stem) >= _TELLING else "")


# ── rows ──


def has_any(database: Database, agent_id: str, tier: str) -> bool:
    """Whether an agent has anything that lines of a tier may stand for."""
    found: int = database.value(f"select exists(select 1 from {_TIMES[tier][0]} where agent_id = ?)", (agent_id,))
    return bool(found)


def narrowed(database: Database, agent_id: str, tier: str, groups: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """Lines in groups without most that are not an agent's and a tier's: where few of thousands are, by their ids."""
    if tier not in _IDS:
        return groups
    rows: set[int] = set()
    for letter in _IDS[tier]:
        within = "select json_group_array(rowid) from recall_lines where agent_id = ? and id >= ? and id < ?"
        rows.update(json.loads(database.value(within, (agent_id, f"{letter}-", f"{letter}."))))
    found = ([row for row in group if row in rows] for group in groups)
    return [group for group in found if group]


# `cross join` makes SQLite go from what matches to its rows: statistics that say so are never gathered.
def first(
    database: Database, agent_id: str, tier: str, groups: Sequence[Sequence[int]], limit: int, private: bool
) -> list[str]:
    """Of lines in groups those of an agent and a tier, group by group, the newest first: ids, at most `limit`.

    Without `private` no private memory.
    """
    table, column, time = _TIMES[tier]
    hidden = _HIDDEN.get(tier, "") if tier != "memory" or not private else ""
    rows = database.execute(
        "select l.id from json_each(?) g cross join json_each(g.value) j cross join recall_lines l on l.rowid = j.value"
        f" cross join {table} t on t.agent_id = l.agent_id and t.{column} = l.id"
        f" where l.agent_id = ? and l.tier = ?{hidden} order by g.key, t.{time} desc, l.id limit ?",
        (json.dumps(groups), agent_id, tier, limit),
    )
    return list(dict.fromkeys(row[0] for row in rows))


def memory(database: Database, agent_id: str, line_id: str) -> Line | None:
    """A memory; its tags stand below its words."""
    for kind, content, private, created_at, line in database.execute(
        "select m.type, m.content, m.private, m.created_at, l.text from memories m"
        " join recall_lines l on l.agent_id = m.agent_id and l.id = m.id where m.agent_id = ? and m.id = ?",
        (agent_id, line_id),
    ):
        at_us = parse_instant(created_at) or 0
        return Line(line_id, kind, None, line, content, None, at_us, bool(private))
    return None


def fact(database: Database, agent_id: str, line_id: str) -> Line | None:
    """A fact that holds; `about` is the project's path, None where it is the agent's own."""
    for aspect, text, path, at_us, project, line in database.execute(
        "select f.aspect, f.text, f.source_path, f.latest_us, iif(e.kind = 'project', e.norm, null), l.text"
        f" from {FACTS} f join recall_lines l on l.agent_id = f.agent_id and l.id = f.id"
        " left join entities e on e.agent_id = f.agent_id and e.id = f.entity_id"
        " where f.agent_id = ? and f.id = ? and f.status = 'active'",
        (agent_id, line_id),
    ):
        return Line(line_id, aspect, project, line, text, path, at_us)
    return None


def curated(database: Database, agent_id: str, line_id: str) -> Line | None:
    """The profile of an entity; `about` is its title, the first line of `text`, and `shown` its one sentence."""
    for kind, status, title, sentence, path, at_us, line in database.execute(
        "select g.kind, g.status, g.title, g.line, g.path, g.updated_us, l.text from garden_files g"
        " join recall_lines l on l.agent_id = g.agent_id and l.id = g.id"
        " where g.agent_id = ? and g.id = ? and g.file = 'profile' order by g.path limit 1",
        (agent_id, line_id),
    ):
        what = kind if status == "active" else f"{status} {kind}"
        return Line(line_id, what, title, line, sentence, path, at_us)
    return None


def thread(database: Database, agent_id: str, line_id: str) -> Line | None:
    """The head of a thread; `about` is its label."""
    for label, sample, next_action, path, at_us, line in database.execute(
        "select h.label, h.sample, h.next_action, h.source_ref, h.latest_us, l.text from memory_thread_heads h"
        " join recall_lines l on l.agent_id = h.agent_id and l.id = h.thread_id"
        " where h.agent_id = ? and h.thread_id = ?",
        (agent_id, line_id),
    ):
        shown = f"{label}: {sample}" + (f" Next: {next_action}" if next_action else "")
        return Line(line_id, "thread", label, line, shown, path, at_us)
    return None


def condensation(database: Database, agent_id: str, line_id: str) -> Line | None:
    """An arc or epoch; `about` is the label of its thread."""
    for kind, label, content, at_us, thread_label in database.execute(
        "select n.kind, n.label, n.content, n.latest_us, h.label from session_summaries n"
        " left join memory_thread_heads h on h.agent_id = n.agent_id and h.thread_id = n.thread_id"
        " where n.agent_id = ? and n.id = ?",
        (agent_id, line_id),
    ):
        return Line(line_id, kind, thread_label, content or label, label, None, at_us)
    return None


def artifact(database: Database, agent_id: str, path: str, limit: int) -> Artifact | None:
    """An artifact with at most `limit` characters of its content."""
    for row in database.execute(
        "select a.source_path, a.source_kind, a.session_token, a.session_id, a.project, a.membership_us,"
        f" coalesce(t.sentence, a.ledger_sentence, a.memory_sentence, ''), substr({text_of('a')}, 1, ?)"
        " from memory_artifacts a left join thread_sessions t on t.agent_id = a.agent_id"
        " and t.session_token = a.session_token and t.session_id = a.session_id and t.source_ref = a.source_path"
        " where a.agent_id = ? and a.source_path = ?",
        (limit, agent_id, path),
    ):
        return Artifact(row[0], row[1], (row[2], row[3]), *row[4:])
    return None


def node_at(database: Database, agent_id: str, path: str, place: int) -> NodeAt | None:
    """The node of an artifact that tells a place of it: the chunk that holds it, or the one node of a summary."""
    for row in database.execute(
        "select n.id, n.latest_us from memory_artifacts a join session_summaries n on n.artifact = a.id"
        " where a.source_path = ? and n.agent_id = ? and n.start <= ? order by n.start desc, n.end desc limit 1",
        (path, agent_id, place),
    ):
        return NodeAt(*row)
    return None
