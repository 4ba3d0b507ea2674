"""Stores a model's output: facts it extracted from artifacts, and its wordings of condensations.

Native rows, because a rebuild from markdown cannot make them again; not backed up, because they can be requested again.
A row without `model` records that an attempt failed, and when.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from signet_sync.formats.body import text_sha256
from signet_sync.formats.fact import Item
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_of

LOOKED_AT = 64 * 1024  # characters of an artifact that a model may be shown a part of


class Unread(NamedTuple):
    """A summary or compaction that no model has read as it is now."""

    agent_id: str
    session_token: str
    session_id: str
    source_path: str
    source_sha256: str
    project: str | None


class Unworded(NamedTuple):
    """A condensation for which there are no words of a model yet."""

    agent_id: str
    id: str
    content: str


def unread(database: Database, limit: int, failed_before: str) -> list[Unread]:
    """Artifacts to be read, newest first; those of a failed attempt only if it was before this instant (ISO 8601 UTC).

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
    """The beginning of an artifact's sanitized text; None where it is gone or another one by now."""
    found: str | None = database.value(
        f"select substr({text_of()}, 1, ?) from memory_artifacts where source_path = ? and agent_id = ?"
        " and source_sha256 = ?",
        (LOOKED_AT, artifact.source_path, artifact.agent_id, artifact.source_sha256),
    )
    return found


def put_items(database: Database, artifact: Unread, items: Sequence[Item], model: str, at: str) -> bool:
    """Keeps what a model distilled, or (no `model`) that it failed; False where the artifact is another one by now.

    While the model was thinking its session may have been removed. In the caller's transaction.
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
            json.dumps(items, ensure_ascii=False, separators=(",", ":")),
            model,
            at,
        ),
    )
    return True


def rests_until(database: Database, kind: str) -> str | None:
    """Until when a model that failed is left alone with questions of a kind (ISO 8601 UTC)."""
    found: str | None = database.value("select until from model_rests where kind = ?", (kind,))
    return found


def set_rests_until(database: Database, kind: str, until: str) -> None:
    """Leaves it alone until then. In the caller's transaction."""
    database.execute("insert or replace into model_rests(kind, until) values(?, ?)", (kind, until))


def unworded(database: Database, limit: int, failed_before: str) -> list[Unworded]:
    """Condensations without words of a model, newest first; after a failed attempt as in `unread`."""
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
    """Keeps a model's words, or (no `model`) that it failed; False where the node tells something else by now."""
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
    """A model's words for a condensation, as long as they are of what it tells now."""
    for digest, text in database.execute(
        "select content_sha256, text from node_wordings where agent_id = ? and id = ? and model <> ''",
        (agent_id, node_id),
    ):
        content = _content(database, agent_id, node_id)
        if content is not None and digest == text_sha256(content):
            return str(text)
    return None


def drop_stale(database: Database, nodes: Collection[tuple[str, str]] | None = None) -> int:
    """Drops words of what a node (agent, id; None: any) tells no longer; gives how many. In the caller's transaction.

    A removed session may have been told of in them.
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
