"""Stores a model's output: facts it extracted from artifacts, and wordings of condensations.

Native rows, because a rebuild from markdown cannot make them again; not backed up, because they can be requested again.
A row without `model` records that an attempt failed, and when.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from signet_sync.formats.body import text_sha256
from signet_sync.formats.fact import Item
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_of

LOOKED_AT = 64 * 1024  # characters of an artifact that a model may be shown a part of


class Unread(NamedTuple):
    """A summary or compaction that no model has read, as it is now."""

    agent_id: str
    session_token: str
    session_id: str
    source_path: str
    source_sha256: str
    project: str | None


class Unworded(NamedTuple):
    """A condensation that no model has reworded yet."""

    agent_id: str
    id: str
    content: str


def unread(database: Database, limit: int, failed_before: str) -> list[Unread]:
    """Returns artifacts to be read, newest first; after a failure only if it was before an instant (ISO 8601 UTC).

    Sessions that are noise have no facts and are left out.
    """
    return [
        Unread(*row)
        for row in database.execute(
            "select a.agent_id, a.session_token, a.session_id, a.source_path, a.source_sha256, a.project"
            " from memory_artifacts a left join extractions e"
            " on e.agent_id = a.agent_id and e.source_path = a.source_path and e.source_sha256 = a.source_sha256"
            " where a.source_kind in ('summary', 'compaction') and a.noise = 0"
            " and (e.source_path is null or (e.model = '' and e.at < ?))"
            " order by a.membership_us desc, a.source_path limit ?",
            (failed_before, limit),
        )
    ]


def content_of(database: Database, artifact: Unread) -> str | None:
    """Returns the beginning of an artifact's sanitized text; None if it is gone or has changed."""
    found: str | None = database.value(
        f"select substr({text_of()}, 1, ?) from memory_artifacts where source_path = ? and agent_id = ?"
        " and source_sha256 = ?",
        (LOOKED_AT, artifact.source_path, artifact.agent_id, artifact.source_sha256),
    )
    return found


def put_items(database: Database, artifact: Unread, items: Sequence[Item], model: str, at: str) -> bool:
    """Stores what a model extracted, or (no `model`) that it failed; False if the artifact has changed meanwhile.

    Its session may have been removed while the model was working. In the caller's transaction.
    """
    if content_of(database, artifact) is None:
        return False
    database.execute(
        "insert or replace into extractions(agent_id, source_path, source_sha256, items, model, at)"
        " values(?, ?, ?, ?, ?, ?)",
        (
            artifact.agent_id,
            artifact.source_path,
            artifact.source_sha256,
            json.dumps([one[:3] for one in items], ensure_ascii=False, separators=(",", ":")),
            model,
            at,
        ),
    )
    return True


def extracted(database: Database, agent_id: str, paths: Iterable[str]) -> dict[str, list[Item]]:
    """Returns what a model extracted from some artifacts, by path, if their bodies are those that it read."""
    found: dict[str, list[Item]] = {}
    for path in paths:
        for (items,) in database.execute(
            "select e.items from extractions e join memory_artifacts a"
            " on a.source_path = e.source_path and a.source_sha256 = e.source_sha256 and a.agent_id = e.agent_id"
            " where e.agent_id = ? and e.source_path = ?",
            (agent_id, path),
        ):
            # Older rows have two more fields, which a model never filled.
            found[path] = [Item(*item[:3]) for item in json.loads(items)]
    return found


def any_extracted(database: Database) -> bool:
    """Returns whether a model ever extracted anything."""
    return bool(database.value("select exists(select 1 from extractions)"))


def rests_until(database: Database, kind: str) -> str | None:
    """Returns until when no requests of a kind are sent, after failures (ISO 8601 UTC)."""
    found: str | None = database.value("select until from model_rests where kind = ?", (kind,))
    return found


def set_rests_until(database: Database, kind: str, until: str) -> None:
    """Stores until when no requests of a kind are sent. In the caller's transaction."""
    database.execute("insert or replace into model_rests(kind, until) values(?, ?)", (kind, until))


def unworded(database: Database, limit: int, failed_before: str) -> list[Unworded]:
    """Returns condensations without a model's wording, newest first; after a failed attempt as in `unread`."""
    return [
        Unworded(*row)
        for row in database.execute(
            "select n.agent_id, n.id, n.content from session_summaries n left join node_wordings w"
            " on w.agent_id = n.agent_id and w.id = n.id"
            " where n.source_type = 'condensation' and n.content is not null"
            " and (w.id is null or (w.model = '' and w.at < ?))"
            " order by n.latest_us desc, n.id limit ?",
            (failed_before, limit),
        )
    ]


def put_wording(database: Database, node: Unworded, text: str, model: str, at: str) -> bool:
    """Stores a model's wording, or (no `model`) that it failed; False if the node's text has changed meanwhile."""
    with database.transaction():
        if _content(database, node.agent_id, node.id) != node.content:
            return False
        database.execute(
            "insert or replace into node_wordings(agent_id, id, content_sha256, text, model, at)"
            " values(?, ?, ?, ?, ?, ?)",
            (node.agent_id, node.id, text_sha256(node.content), text, model, at),
        )
    return True


def wording(database: Database, agent_id: str, node_id: str) -> str | None:
    """Returns a model's wording of a condensation, if it was made from its present text."""
    for digest, text in database.execute(
        "select content_sha256, text from node_wordings where agent_id = ? and id = ? and model <> ''",
        (agent_id, node_id),
    ):
        content = _content(database, agent_id, node_id)
        if content is not None and digest == text_sha256(content):
            return str(text)
    return None


def drop_stale(database: Database, nodes: Collection[tuple[str, str]] | None = None) -> int:
    """Deletes wordings of texts that nodes (agent, id; None: all) no longer have; returns how many.

    They may contain words of a removed session. In the caller's transaction.
    """
    kept = "select agent_id, id, content_sha256 from node_wordings"
    if nodes is None:
        rows = list(database.execute(kept))
    else:
        one = f"{kept} where agent_id = ? and id = ?"
        rows = [row for node in sorted(nodes) for row in database.execute(one, node)]
    stale = []
    for agent_id, node_id, digest in rows:
        content = _content(database, agent_id, node_id)
        if content is None or text_sha256(content) != digest:
            stale.append((agent_id, node_id))
    database.executemany("delete from node_wordings where agent_id = ? and id = ?", stale)
    return len(stale)


def _content(database: Database, agent_id: str, node_id: str) -> str | None:
    found: str | None = database.value(
        "select content from session_summaries where agent_id = ? and id = ?", (agent_id, node_id)
    )
    return found
