"""Keeps the patterns of relationships as items at the end of a user's Overview, in words and with links.

A pattern that a person pruned or deleted stays away; one that no relationship shows any more goes by itself.
"""

from __future__ import annotations

from signet_sync.entities import observe, replay, sections, write
from signet_sync.entities import store as entities_store
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import SafeText, fit_item
from signet_sync.entities.relations import Member, Relationship, patterns
from signet_sync.entities.repository import PATTERN, Entity, EntityRepository
from signet_sync.entities.write import EditPlan
from signet_sync.errors import UsageError

_MOST = 40
OVERVIEW = "overview"


def update(repo: EntityRepository) -> bool:
    """Adds new patterns and prunes those that no longer hold; returns whether it wrote.

    Does nothing without a user, or if a person has locked or pinned the section. The workspace's lock is held.
    """
    wanted, wrote = _wanted(repo), False
    # Bounded: an item that is read differently because of a person's Markdown must not be added without end.
    for _ in range(_MOST):
        entity = _user(repo)
        plan = _next(repo, entity, wanted) if entity is not None else None
        # If a person is editing the file, the next change of a relationship tries again.
        if entity is None or plan is None or write.write_own("observer", repo, entity, plan) is None:
            break
        wrote = True
    return wrote


def _wanted(repo: EntityRepository) -> list[SafeText]:
    """Returns the items of the current patterns, the most significant first."""
    rows = [
        row for row in entities_store.entities(repo.workspace.database, repo.agent_id) if row.status != "deprecated"
    ]
    members = {row.id: Member(row.id, row.title, row.path) for row in rows if row.kind != "relationship"}
    edges = [Relationship(row.id, row.type, row.participants) for row in rows if row.kind == "relationship"]
    return [fit_item(PATTERN + pattern.line) for pattern in patterns(edges, members)] if edges else []


def _user(repo: EntityRepository) -> Entity | None:
    """Returns the agent's user, the first by title if there are several; None if it cannot be written."""
    rows = entities_store.entities(repo.workspace.database, repo.agent_id)
    user = next((row for row in rows if row.kind == "user" and row.status != "deprecated"), None)
    return observe.writable(repo, user.id) if user is not None else None


def _next(repo: EntityRepository, entity: Entity, wanted: list[SafeText]) -> EditPlan | None:
    """Plans one item to prune or to add; returns None if nothing is left to do."""
    try:
        where = sections.open_target(repo, entity, OVERVIEW, "observer")
    except UsageError:
        return None
    known = [item for item in edits.items(where.section) if item.text.startswith(PATTERN)]
    texts = [item.text for item in known]
    for item in known:
        if item.text not in wanted or texts.index(item.text) != known.index(item):
            after, gone = edits.prune_item(where.document, where.name, str(item.number))
            said = {"reason": "no relationships say so any more", "gone": gone}
            return sections.plan_edit(repo, where, after, op="prune_item", actor="observer", text=said)
    missing = [text for text in wanted if text not in texts]
    pruned = _pruned(repo, entity.id) if missing else set()
    for text in missing:
        if text not in pruned:
            after = edits.append_item(where.document, where.name, text)
            return sections.plan_edit(repo, where, after, op="append_item", actor="observer")
    return None


def _pruned(repo: EntityRepository, entity_id: str) -> set[str]:
    """Returns the patterns that somebody else than we took out last."""
    gone: set[str] = set()
    for event in repo.log.of(entity_id):
        before, after = replay.section_texts(event).get(OVERVIEW, ("", ""))
        old, new = (
            {line[2:] for line in text.split("\n") if line.startswith(f"- {PATTERN}")} for text in (before, after)
        )
        gone |= old - new if event.actor != "observer" else set()
        gone -= new
    return gone
