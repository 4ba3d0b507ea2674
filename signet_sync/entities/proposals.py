"""Lists proposals that wait for a person's answer, from the event log."""

from __future__ import annotations

from signet_sync.entities.event_log.events import Event, states_of
from signet_sync.entities.repository import EntityRepository
from signet_sync.entities.results import Proposal
from signet_sync.errors import UsageError

_SHORTEST = 6


def waiting(repo: EntityRepository, entity_id: str | None = None) -> list[Proposal]:
    """Lists open proposals, oldest first, without those whose text a removal erased."""
    made = repo.log.events_holding('"op":"propose"')
    if not made:
        return []
    answered: set[str] = set()
    for op in ("approve", "reject"):
        entries = repo.log.holding(f'"op":"{op}"')
        states = states_of(entries)
        for entry in entries:
            if isinstance(entry, Event) and states[entry.id] != "failed":
                answered.add(str((entry.payload or {}).get("proposal")))
    found = (_read(event) for event in made if event.op == "propose" and event.id not in answered)
    return [one for one in found if one is not None and entity_id in (None, one.entity_id)]


def _read(event: Event) -> Proposal | None:
    match event.payload:
        case {"op": str(op), "text": str(text)} if event.entity_id is not None and event.section is not None:
            source = event.payload.get("source") if event.payload else None
            section = f"notes/{event.section}" if event.file == "notes" else event.section
            return Proposal(
                event.id,
                event.entity_id,
                section,
                op,
                text,
                event.at,
                event.rationale,
                source if isinstance(source, str) else None,
            )
    return None


def one(repo: EntityRepository, name: str) -> Proposal:
    """Returns the proposal with this id, beginning of an id, or `ev:…`. Raises `UsageError` (`unknown-proposal`)."""
    wanted = name.strip().rpartition("-")[2].upper()
    known = waiting(repo)
    found = [one for one in known if one.id == wanted]
    if not found and len(wanted) >= _SHORTEST:
        found = [one for one in known if one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{len(found) or 'no'} open proposal{'s' if len(found) > 1 else ''} called {name.strip()[:60]!r}",
        hint="signet-sync entity show lists them",
        code="unknown-proposal",
    )
