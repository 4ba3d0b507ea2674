"""Keeps patterns of relationships as marked items among the highlights of an agent's user."""

from __future__ import annotations

from signet_sync.entities import observe, section_edits, write_ahead
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import SafeText, fit_item
from signet_sync.entities.relations import Member, Relationship, patterns
from signet_sync.entities.repository import Entity, EntityRepository
from signet_sync.entities.write_ahead import EditPlan
from signet_sync.errors import UsageError
from signet_sync.sync.workspace import Workspace

PREFIX = "pattern: "
_MOST = 40
_HIGHLIGHTS = "highlights"


def update_patterns(workspace: Workspace, agent_id: str, now_us: int) -> tuple[str, ...]:
    """Adds new patterns and prunes those that no longer hold; returns the ids of the events.

    Does nothing without a user, or if a person has locked or pinned the highlights. The workspace's lock is held.
    """
    repo = EntityRepository(workspace, agent_id, now_us)
    observe.catch_up(repo)
    return update_patterns_in(repo)


def update_patterns_in(repo: EntityRepository) -> tuple[str, ...]:
    """Does the same with entities that are already open."""
    wanted = _pattern_items(repo)
    done: list[str] = []
    # Bounded: an item that is read differently because of a person's Markdown must not be added without end.
    for _ in range(_MOST):
        entity = _user(repo)
        plan = _next(repo, entity, wanted) if entity is not None else None
        if entity is None or plan is None:
            return tuple(done)
        event = write_ahead.write_as("observer", repo, entity, plan)
        if event is None:
            return tuple(done)  # the next change of a relationship tries again
        done.append(event.id)
    return tuple(done)


def _pattern_items(repo: EntityRepository) -> list[SafeText]:
    """Returns the items of the current patterns, the most significant first."""
    rows = [
        row for row in entities_store.entities(repo.workspace.database, repo.agent_id) if row.status != "deprecated"
    ]
    members = {row.id: Member(row.id, row.title, row.path) for row in rows if row.kind != "relationship"}
    edges = [Relationship(row.id, row.type, row.participants) for row in rows if row.kind == "relationship"]
    return [fit_item(PREFIX + pattern.line) for pattern in patterns(edges, members)] if edges else []


def _user(repo: EntityRepository) -> Entity | None:
    """Returns the agent's user, the first by title if there are several; None if it cannot be written."""
    rows = entities_store.entities(repo.workspace.database, repo.agent_id)
    user = next((row for row in rows if row.kind == "user" and row.status != "deprecated"), None)
    return observe.writable(repo, user.id) if user is not None else None


def _next(repo: EntityRepository, entity: Entity, wanted: list[SafeText]) -> EditPlan | None:
    """Plans one item to prune or to add; returns None if nothing is left to do."""
    try:
        where = section_edits.open_target(repo, entity, _HIGHLIGHTS, "observer")
    except UsageError:
        return None
    known = [item for item in edits.items(where.section) if item.text.startswith(PREFIX)]
    texts = [item.text for item in known]
    for item in known:
        if item.text not in wanted or texts.index(item.text) != known.index(item):
            after, gone = edits.prune_item(where.document, where.name, str(item.number))
            return section_edits.plan_edit(
                repo, entity, where, after, section_edits.Draft(fit_item(gone)), op="prune_item",
                actor="observer",
                reason="no relationships say so any more", extra={"gone": gone},
            )  # fmt: skip
    for text in wanted:
        if text not in texts:
            after = edits.append_item(where.document, where.name, text)
            return section_edits.plan_edit(
                repo, entity, where, after, section_edits.Draft(text), op="append_item", actor="observer"
            )
    return None
