"""Reads single facts and topics of one agent for display. Imports nothing heavy."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import FACTS


class Fact(NamedTuple):
    """A fact: `entity` is its topic, `superseded_by` the fact that replaced it."""

    aspect: str
    text: str
    entity_id: str
    entity: str
    status: str
    superseded_by: str | None
    earliest_us: int
    latest_us: int
    thread_id: str | None


class Entity(NamedTuple):
    """A topic that artifacts mention."""

    kind: str
    name: str
    mentions: int
    latest_us: int


def fact(database: Database, agent_id: str, fact_id: str) -> Fact | None:
    """Returns a fact of any status."""
    for row in database.execute(
        "select f.aspect, f.text, f.entity_id, coalesce(e.name, ''), f.status, f.superseded_by, f.earliest_us,"
        f" f.latest_us, f.thread_id from {FACTS} f"
        " left join entities e on e.agent_id = f.agent_id and e.id = f.entity_id"
        " where f.agent_id = ? and f.id = ?",
        (agent_id, fact_id),
    ):
        return Fact(*row)
    return None


def entity(database: Database, agent_id: str, entity_id: str) -> Entity | None:
    """Returns a topic."""
    for row in database.execute(
        "select kind, name, mentions, latest_us from entities where agent_id = ? and id = ?", (agent_id, entity_id)
    ):
        return Entity(*row)
    return None
