"""Lists proposals that wait for a person's answer, from the event log."""

from typing import NamedTuple

from signet_sync.entities.events import Event
from signet_sync.entities.repository import EntityRepository
from signet_sync.errors import UsageError

_SHORTEST = 6


class Proposal(NamedTuple):
    """A text that an agent proposes for a section; `op` is `set`, `append` or `append_item`, `at` ISO 8601 UTC.

    `source` is `PATH#LINE` of the artifact that supports it.
    """

    id: str
    entity_id: str
    section: str
    op: str
    text: str
    at: str
    rationale: str | None
    source: str | None = None


def waiting(repo: EntityRepository, entity_id: str | None = None) -> list[Proposal]:
    """Lists open proposals, oldest first, without those whose text a removal erased."""
    made = repo.log.events('"op":"propose"')
    answered = {
        event.fact("proposal") for op in ("approve", "reject") for event in repo.log.events(f'"op":"{op}"')
    } if made else set()  # fmt: skip
    found = (_read(event) for event in made if event.op == "propose" and event.id not in answered)
    return [one for one in found if one is not None and entity_id in (None, one.entity_id)]


def _read(event: Event) -> Proposal | None:
    op, text = event.said("op"), event.said("proposed")
    if not isinstance(op, str) or not isinstance(text, str) or event.entity_id is None or event.section is None:
        return None
    section = f"notes/{event.section}" if event.file == "notes" else event.section
    rests = event.said("rationale"), event.said("source")
    return Proposal(event.id, event.entity_id, section, op, text, event.at, *rests)


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
