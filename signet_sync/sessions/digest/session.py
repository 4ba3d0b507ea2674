"""Derives the outcome of a session from its transcript: results, decisions, bounds, blockers, next steps, status."""

from __future__ import annotations

from signet_sync.sessions.digest.conversation import Kind, Outcome, Stated, Status, Talk
from signet_sync.sessions.digest.current import distinct, standing
from signet_sync.sessions.digest.person import of_person
from signet_sync.sessions.digest.reports import hindered, of_prose, of_sections, reports
from signet_sync.sessions.digest.selection import told_of
from signet_sync.sessions.digest.sentences import stems
from signet_sync.sessions.digest.status import is_trivial, parting_of, status_of

__all__ = ["ITEMS", "Kind", "Outcome", "Stated", "Status", "outcome"]

ITEMS = 24


def outcome(transcript: str) -> Outcome:
    """Returns the outcome of a (sanitized) transcript. Total, deterministic, linear."""
    talk = Talk(transcript)
    if not talk.assistants and not talk.users:
        return Outcome(edited=talk.edited(), commands=talk.commands(), opening=talk.opening())
    asked = _request(talk)
    found = reports(talk)
    best = next((one.place for one in found if one.late), -1)
    prose = list(of_prose(talk, found))
    stated = [*of_sections(talk, found), *of_person(talk, best)]
    stated = standing(talk, [*stated, *(item for item in prose if item.kind not in ("next", "blocker"))])
    if not any(item.kind == "blocker" and item.source == "section" for item in stated):
        reported = standing(talk, [item for item in prose if item.kind == "blocker"])
        if reported or not any(item.kind == "blocker" for item in stated):
            reported = reported or standing(talk, list(hindered(talk, found)))
            stated = [*(item for item in stated if item.kind != "blocker"), *reported[:1]]
    if not any(item.kind == "next" and item.source == "section" for item in stated):
        stated += standing(talk, [item for item in prose if item.kind == "next"])
    stated = distinct(_summed_up(stated))
    status = status_of(talk, stated, found)
    trivial = is_trivial(talk)
    stated = [item for item in stated if not trivial and _fits(item, status)][:ITEMS]
    told = () if trivial else told_of(talk, found, stated, asked, status)
    parting = parting_of(talk) if status == "aborted" else ""
    return Outcome(told, tuple(stated), status, asked, talk.edited(), talk.commands(), talk.opening(), parting)


def _summed_up(stated: list[Stated]) -> list[Stated]:
    """Keeps the report's list of decisions, if there is one, and drops decisions stated before it."""
    listed = [item for item in stated if item.kind == "decision" and item.source == "section"]
    if len(listed) < 2:
        return stated
    last = max(item.order for item in listed)
    return [item for item in stated if item.kind != "decision" or item.source == "section" or item.order > last]


def _fits(item: Stated, status: Status) -> bool:
    """Whether an item is possible with a status: if only questions were asked, nothing was decided."""
    if item.kind == "blocker":
        return status == "blocked"
    return status != "question-only" or item.kind == "preference" or item.source in ("section", "bound")


def _request(talk: Talk) -> str:
    """Returns the first request that is more than a greeting."""
    lines = [sentence for place, _ in talk.users[:4] for sentence, _ in talk.heard(place) if len(stems(sentence)) >= 2]
    return next((line for line in lines if len(stems(line)) > 3 or not talk.cues.has("mode", line)), "".join(lines[:1]))
