"""Finds what an agent's memory holds on a prompt that is worth interrupting a session for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from signet_sync.digest.sentences import split
from signet_sync.embeddings.store import measure_nearness
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import RUNNING
from signet_sync.pages.board import Said
from signet_sync.pages.context import PromptHit
from signet_sync.pages.sections import clause, outcome_of
from signet_sync.pages.store import views
from signet_sync.recall import query, search
from signet_sync.recall.operations import RankedHit, drop_repeats, is_question, name_of_project, rank_hits
from signet_sync.recall.store.rows import Within, ranges, statements
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.text.digest_mark import ASKED
from signet_sync.text.prompt import is_about_earlier_work
from signet_sync.text.sentences import basename

# Words of a sentence; fewer beside one are a heading.
_LEAST = 4
_PIECE = 240  # characters of what a session came to
_JOINT = late(r"\s(?:…|-)\s")

# The least share of a prompt's words, weighed by rarity, that a hit anywhere covers.
_FLOOR = 0.6
# The same if the prompt asks about earlier work: anywhere, and in the project at hand.
_ASKED_FLOOR, _OWN_FLOOR = 0.34, 0.1
# A hit anywhere covers at least this many times the weight of a word that is in one text only.
_RARE = 1.6
_KEPT = 0.6  # of the best hit's score
_MOST = 12
# Of what is near in meaning only the nearest counts, and only if it is as clear as it was for none of 100 unrelated
# prompts in 18 projects. More characters of a prompt would take longer than it may wait.
_CLEAR, _ASKED = 0.5, 300


def choose_hits(
    database: Database,
    agent_id: str,
    prompt: str,
    belongs: Callable[[str | None], bool] | None,
    *,
    shared: bool = False,
    session_id: str = "",
    given: Collection[str] = (),
) -> list[PromptHit]:
    """Returns the hits that are worth interrupting a session for, the best first.

    `belongs` tells whether a recorded project is the one at hand; None: work has no place. Left out is what the session
    said itself, what says no more than the lines with the ids `given` to it, what only asks, and what is of another
    project, unless the prompt names that. Raises what reading the database raises.
    """
    asks = is_about_earlier_work(prompt)
    own = views.names(database, agent_id, belongs) if asks and not shared and belongs is not None else ()
    within = Within(agent_id, shared)
    found = _choose(database, prompt, within, own, asks_about_earlier_work=asks)
    itself = views.find_from_session(database, agent_id, session_id, [one.id for one in found])
    paths = [one.path for one in found if one.path is not None]
    of_memories = views.memories(database, agent_id, [one.id for one in found if one.tier == "memory"])
    places, told_of = sessions.projects(database, paths), views.read_outcomes(database, agent_id, paths)
    said, stated, named = Said(), Said(), prompt.casefold()
    closed = views.list_ended(database, agent_id, {one.thread for one in told_of.values()})
    for text in (*words_of(database, agent_id, given).values(), *closed):
        said.add(text, sentence=True)
    for one in found:
        if one.tier != "session":
            stated.add(one.text, sentence=True)
    hits = list[PromptHit]()
    for one in found:
        memory = of_memories.get(one.id)
        of_session, project = places.get(one.path or "", ("", memory.project if memory is not None else None))
        is_own = one.id in itself or one.path == RUNNING + session_id or (session_id and of_session == session_id)
        name = re.escape(basename(project).casefold())
        is_near = not name or belongs is None or belongs(project) or re.search(rf"(?<!\w){name}(?!\w)", named)
        if is_own or not is_near or one.id in given or is_question(one.text) or all(map(said.holds, _pieces(one.text))):
            continue
        shown = PromptHit(one.text, one.why.partition(", in ")[2], one.path, one.id)
        if one.tier == "session" and (session := told_of.get(one.path or "")) is not None:
            pieces = [piece for piece in _pieces(one.text) if not said.holds(piece) and not stated.holds(piece)]
            text = _tell_session(session, pieces, said)
            shown = shown._replace(text=text, where=f"a session{name_of_project(session.project)}, {one.day}")
        if shown.text:
            hits.append(shown)
    return hits


def _choose(
    database: Database, prompt: str, within: Within, own: Sequence[str], *, asks_about_earlier_work: bool
) -> list[RankedHit]:
    """Returns few hits above a floor, the best first, each of another session; `own` names the project at hand.

    Hits of that project count even with few words of a prompt that asks about earlier work; in the agent, what clearly
    means it counts without any.
    """
    question = query.read(prompt)
    if not question.terms or question.common:
        return []
    weighed, found = search.search(database, question, within)
    floor = _ASKED_FLOOR if asks_about_earlier_work else _FLOOR
    least = max(floor, _RARE * weighed.heaviest / weighed.total)
    good = [one for one in found if one.covered >= least]
    for name in own if asks_about_earlier_work else ():
        _, of_project = search.search(database, question, within._replace(project=name))
        good += [one for one in of_project if one.covered >= _OWN_FLOOR and one.text not in {of.text for of in good}]
    best = max((one.covered for one in good), default=0.0)
    if best >= _FLOOR:  # few words are enough for a hit, but not beside one that has most of them
        good = [one for one in good if one.covered >= _KEPT * best]
    good.sort(key=lambda one: (-round(one.covered, 2), one.text.tier == "session", -one.text.at_us, one.text.name))
    meaning = measure_nearness(database, ranges(database, within), prompt[:_ASKED], at_once=True)
    if meaning is not None and meaning.clearness >= _CLEAR:
        _, meant = search.search(database, question, within, near=meaning)
        good = [
            *good[: _MOST - 1],
            *(one for one in meant if one.meant == 1 and one.text not in {g.text for g in good}),
        ]
    hits = list(rank_hits(database, within.agent_id, question, weighed, good[:_MOST]))
    return drop_repeats(hits)


def _tell_session(session: views.Told, pieces: Sequence[str], said: Said) -> str:
    """Returns what a session came to, if that was not said, and what was found in it."""
    outcome = outcome_of(session.sentence, basename(session.project))
    outcome = "" if said.holds(outcome) else clause(ASKED.sub("", outcome), _PIECE)
    return " … ".join(filter(None, [outcome, *(piece for piece in pieces if piece not in outcome)]))


def _pieces(text: str) -> list[str]:
    """Returns the sentences of a hit, which may join list items and places of a session, without headings."""
    pieces = [sentence for part in _JOINT.split(text) for sentence in split(part)]
    return [piece for piece in pieces if len(piece.split()) >= _LEAST] or pieces


def words_of(database: Database, agent_id: str, ids: Collection[str]) -> dict[str, str]:
    """Returns today's words of things that can be shown, by id; without those that are gone."""
    found: dict[str, str] = {}
    for letters, tier in _TIERS.items():
        some = sorted(one for one in ids if one[0] in letters)
        found |= {line.id: line.shown for line in statements(database, agent_id, tier, some)}
    return found | views.outcomes(database, agent_id, ids)


# By the first letters of ids (`formats.handle`).
_TIERS = {"m": "memory", "f": "statement", "upr": "entity"}
