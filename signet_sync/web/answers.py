"""Recalls for a page what answers a question, with the view that each answer leads to; counts nothing."""

from typing import NamedTuple

from signet_sync.embeddings.meaning import Meaning
from signet_sync.recall import operations as recall_operations
from signet_sync.recall.as_text import handle_of
from signet_sync.recall.search import Within
from signet_sync.recall.shown import RankedHit
from signet_sync.storage.database.connection import Database
from signet_sync.web.link_targets import of_names
from signet_sync.web.links import LinkTarget
from signet_sync.web.request import ViewRequest

_ANSWERS = 20


class Answer(NamedTuple):
    """A hit of recall: its kind in plain words, why it was found, where it leads, and the file it comes from."""

    kind: str
    text: str
    why: str
    target: LinkTarget | None
    path: str
    source: LinkTarget | None


def answers(database: Database, request: ViewRequest, words: str, meaning: Meaning) -> list[Answer]:
    """Returns what the agent remembers that answers some words, the best first."""
    hits = recall_operations.recall(database, words, Within(request.agent), limit=_ANSWERS, meaning=meaning)
    named = {name for hit in hits for name in (handle_of(hit.id), hit.path) if name}
    targets = of_names(database, request.agent, named)
    return [_answer(hit, targets) for hit in hits]


def _answer(hit: RankedHit, targets: dict[str, LinkTarget]) -> Answer:
    source = targets.get(hit.path or "")
    place = LinkTarget("memory", {"memory": hit.id}) if hit.tier == "memory" else targets.get(handle_of(hit.id))
    own = (source or place) if hit.tier == "session" else (place or source)
    return Answer(hit.tier, hit.text, hit.why, own, hit.path or "", source if source != own else None)
