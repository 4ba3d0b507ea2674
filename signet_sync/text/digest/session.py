"""Derives the outcome of a session from its transcript: results, decisions, bounds, blockers, next steps, status."""

from __future__ import annotations

from signet_sync.text.digest.conversation import Dialogue, OutcomeItem, SessionOutcome, Status
from signet_sync.text.digest.distinct import distinct, newest_list
from signet_sync.text.digest.person import statements_of_person
from signet_sync.text.digest.reports import possible_blockers, prose_statements, reports, section_statements
from signet_sync.text.digest.selection import select_results
from signet_sync.text.digest.sentences import stems
from signet_sync.text.digest.status import is_trivial, parting_words, status_of

ITEMS = 24


def outcome(transcript: str) -> SessionOutcome:
    """Returns the outcome of a (sanitized) transcript. Total, deterministic, linear."""
    dialogue = Dialogue(transcript)
    if not dialogue.assistants and not dialogue.users:
        return SessionOutcome(edited=dialogue.edited(), commands=dialogue.commands(), opening=dialogue.opening())
    request = _request(dialogue)
    found = reports(dialogue)
    best = next((one.place for one in found if one.late), -1)
    prose = list(prose_statements(dialogue, found))
    stated = [*section_statements(dialogue, found), *statements_of_person(dialogue, best)]
    stated = [*newest_list(stated), *(item for item in prose if item.kind not in ("next", "blocker"))]
    if not any(item.kind == "blocker" and item.source == "section" for item in stated):
        reported = [item for item in prose if item.kind == "blocker"]
        if reported or not any(item.kind == "blocker" for item in stated):
            reported = reported or list(possible_blockers(dialogue, found))
            stated = [*(item for item in stated if item.kind != "blocker"), *reported[:1]]
    if not any(item.kind == "next" and item.source == "section" for item in stated):
        stated += [item for item in prose if item.kind == "next"]
    stated = distinct(_summed_up(stated))
    status = status_of(dialogue, stated, found)
    trivial = is_trivial(dialogue)
    stated = [item for item in stated if not trivial and _fits(item, status)][:ITEMS]
    results = () if trivial else select_results(dialogue, found, stated, request, status)
    parting = parting_words(dialogue) if status == "aborted" else ""
    return SessionOutcome(
        results, tuple(stated), status, request, dialogue.edited(), dialogue.commands(), dialogue.opening(), parting
    )


def _summed_up(stated: list[OutcomeItem]) -> list[OutcomeItem]:
    """Keeps the report's list of decisions, if there is one, and drops decisions stated before it."""
    listed = [item for item in stated if item.kind == "decision" and item.source == "section"]
    if len(listed) < 2:
        return stated
    last = max(item.order for item in listed)
    return [item for item in stated if item.kind != "decision" or item.source == "section" or item.order > last]


def _fits(item: OutcomeItem, status: Status) -> bool:
    """Returns whether an item is possible with a status: if only questions were asked, nothing was decided."""
    if item.kind == "blocker":
        return status == "blocked"
    return status != "question-only" or item.kind == "preference" or item.source in ("section", "bound")


def _request(dialogue: Dialogue) -> str:
    """Returns the first request that is more than a greeting."""
    lines = [
        sentence
        for place, _ in dialogue.users[:4]
        for sentence, _ in dialogue.sentences_of(place)
        if len(stems(sentence)) >= 2
    ]
    return next(
        (line for line in lines if len(stems(line)) > 3 or not dialogue.cues.has("mode", line)), "".join(lines[:1])
    )
