"""What an agent's full text holds of a query's terms, and the rows behind it. Imports nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from signet_sync.contracts.timestamps import parse_instant
from signet_sync.index.database import Database
from signet_sync.recall.query import Term

_LINES, _ARTIFACTS = "recall_lines_fts", "memory_artifacts_fts"
_TELLING = 5  # letters of a stem that few other words begin with
_CLOSE = 12  # words between two that stand close together
_COUNTED = 300  # artifacts that are looked at to tell how many there are
# By tier the table of what a line stands for, the column of its id and that of its time.
_TIMES = {
    "memory": ("memories", "id", "created_at"),
    "fact": ("entity_attributes", "id", "latest_us"),
    "thread": ("memory_thread_heads", "thread_id", "latest_us"),
    "node": ("session_summaries", "id", "latest_us"),
}


class Match(NamedTuple):
    """A line that holds some of the terms: bit n of `mask` says that term n stands there, in any form."""

    mask: int
    tier: str
    id: str


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


def artifacts_with(database: Database, agent_id: str, term: Term) -> int:
    """About how many artifacts of an agent hold a term; exact where few do."""
    form = _any_form(term)
    rows = database.execute(
        "select count(*), coalesce(sum(a.agent_id = ?), 0)"
        f" from (select rowid from {_ARTIFACTS} where {_ARTIFACTS} match ? limit {_COUNTED}) m"
        " cross join memory_artifacts a on a.id = m.rowid",
        (agent_id, form),
    )
    seen, own = next(iter(rows))
    if seen < _COUNTED:
        return int(own)
    everybody: int = database.value(f"select count(*) from {_ARTIFACTS} where {_ARTIFACTS} match ?", (form,))
    return everybody * int(own) // _COUNTED


def artifacts_in_all(database: Database, agent_id: str) -> int:
    """How many artifacts an agent has."""
    count: int = database.value("select count(*) from memory_artifacts where agent_id = ?", (agent_id,))
    return count


def lines(
    database: Database, agent_id: str, query: Sequence[Term], by: Sequence[int], tiers: Collection[str], private: bool
) -> list[Match]:
    """The lines of an agent, in some tiers, that hold one of the terms `by`; without `private` no private memory."""
    sql, bindings = _masks(_LINES, query, by)
    hidden = "" if private else " and not exists(select 1 from memories where agent_id = ? and id = l.id and private)"
    return [
        Match(*row)
        for row in database.execute(
            f"select m.mask, l.tier, l.id from ({sql}) m cross join recall_lines l on l.rowid = m.id"
            f" where l.agent_id = ? and l.tier in ({_marks(tiers)}){hidden}",
            (*bindings, agent_id, *tiers, *([] if private else [agent_id])),
        )
    ]


def artifacts(
    database: Database, query: Sequence[Term], by: Sequence[int], near: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Mask and row number of all agents' artifacts that hold one of the terms `by`: what tells whose is read later.

    The bits behind those of the terms say that the terms of each pair in `near` stand close together.
    """
    sql, bindings = _masks(_ARTIFACTS, query, by, near)
    return list(database.execute(f"select mask, id from ({sql})", bindings))


def named(database: Database, agent_id: str, ids: Sequence[int], kinds: Collection[str]) -> list[tuple[str, str]]:
    """Kind and path of those of some artifacts that are an agent's and of some kinds, in the order given."""
    return [
        (kind, path)
        for kind, path in database.execute(
            "select a.source_kind, a.source_path from json_each(?) j cross join memory_artifacts a on a.id = j.value"
            f" where a.agent_id = ? and a.source_kind in ({_marks(kinds)})",
            (json.dumps(ids), agent_id, *kinds),
        )
    ]


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


# `cross join` makes SQLite go from what matches to its rows: statistics that say so are never gathered.
def _masks(
    table: str, query: Sequence[Term], by: Sequence[int], near: Sequence[tuple[int, int]] = ()
) -> tuple[str, list[str]]:
    """A select of (id, mask) over a full-text table, and its bindings."""
    forms = [_any_form(term) for term in query]
    found_by = " OR ".join(forms[number] for number in by)
    matches = [form if number in by else f"({found_by}) AND ({form})" for number, form in enumerate(forms)]
    matches += [f"NEAR({_usual_form(query[one])} {_usual_form(query[other])}, {_CLOSE})" for one, other in near]
    union = " union all ".join(
        f"select rowid as id, {1 << bit} as bit from {table} where {table} match ?" for bit in range(len(matches))
    )
    return f"select id, sum(bit) as mask from ({union}) group by id", matches


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


def newest(database: Database, agent_id: str, tier: str, ids: Sequence[str], limit: int) -> list[str]:
    """The things that lines of a tier stand for, newest first, at most `limit`."""
    table, column, time = _TIMES[tier]
    rows = database.execute(
        f"select t.{column} from json_each(?) j join {table} t on t.agent_id = ? and t.{column} = j.value"
        f" order by t.{time} desc, t.{column} limit ?",
        (json.dumps(ids), agent_id, limit),
    )
    return [row[0] for row in rows]


def memory(database: Database, agent_id: str, line_id: str) -> Line | None:
    """A memory."""
    for kind, content, private, created_at in database.execute(
        "select type, content, private, created_at from memories where agent_id = ? and id = ?", (agent_id, line_id)
    ):
        at_us = parse_instant(created_at) or 0
        return Line(line_id, kind, None, content, content, None, at_us, bool(private))
    return None


def fact(database: Database, agent_id: str, line_id: str) -> Line | None:
    """A fact that holds; `about` is the project's path, None where it is the agent's own."""
    for aspect, text, path, at_us, project, line in database.execute(
        "select f.aspect, f.text, f.source_path, f.latest_us, iif(e.kind = 'project', e.norm, null), l.text"
        " from entity_attributes f join recall_lines l on l.agent_id = f.agent_id and l.id = f.id"
        " left join entities e on e.agent_id = f.agent_id and e.id = f.entity_id"
        " where f.agent_id = ? and f.id = ? and f.status = 'active'",
        (agent_id, line_id),
    ):
        return Line(line_id, aspect, project, line, text, path, at_us)
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
        "select source_path, source_kind, session_token, session_id, project, membership_us,"
        " coalesce(ledger_sentence, memory_sentence, ''), substr(content, 1, ?) from memory_artifacts"
        " where agent_id = ? and source_path = ?",
        (limit, agent_id, path),
    ):
        return Artifact(row[0], row[1], (row[2], row[3]), *row[4:])
    return None


def node_at(database: Database, agent_id: str, path: str, place: int) -> NodeAt | None:
    """The node of an artifact that tells a place of it: the chunk that holds it, or the one node of a summary."""
    for row in database.execute(
        "select id, latest_us from session_summaries where source_ref = ? and agent_id = ? and start <= ?"
        " order by start desc, end desc limit 1",
        (path, agent_id, place),
    ):
        return NodeAt(*row)
    return None
