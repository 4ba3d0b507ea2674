"""Makes hits of what was found: the words that answer, who said them, when and in which file."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import file_of, running_session
from signet_sync.formats.timestamps import local_day
from signet_sync.recall.as_text import GAP
from signet_sync.recall.query import Question
from signet_sync.recall.search import Match, WeighedTerms
from signet_sync.recall.snippets import around, turn_text
from signet_sync.recall.store import hits
from signet_sync.recall.store.hits import FoundArtifact, Statement
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.texts import Place
from signet_sync.text.sentences import basename, flatten

if TYPE_CHECKING:
    from signet_sync.text.passages import Voice

Tier = Literal["memory", "statement", "entity", "session", "file"]
KNOWN = 0.75  # of the question's weight; what covers less is only the nearest that there is
_SHOWN, _SHOWN_TURNS, _MOST_SHOWN = 400, 900, 1_000  # characters of a statement, of turns of a session, in all
_OF_UNANSWERED = 0.5
_LONGEST_QUESTION = 4_000  # characters; a longer text says something
_SENTENCE = late(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_ASKS = late(r"[?？][\W_]*\Z|[吗呢か][。?？]?\Z")
_SPEAKERS: "dict[Voice, str]" = {"person": "User", "agent": "Assistant"}
_WHAT = {
    "next": "a next step", "question": "an open question", "person": "a note on people", "blocker": "a blocker",
    "decision": "a decision", "constraint": "a constraint", "preference": "a preference", "note": "a note",
    "tried": "a dead end",
    "summary": "a summary", "compaction": "a compaction", "transcript": "a transcript",
}  # fmt: skip


class RankedHit(NamedTuple):
    """A hit as shown; a higher score is better, one that is not `known` is only the nearest.

    `path` is None if the hit has no file; `speaker` is "" where not one person or agent says it; `turn` counts from 1,
    0 where there are none. `day` is the person's. What `answers` nothing is a question that nobody answered.
    """

    tier: Tier
    id: str
    text: str
    path: str | None
    score: float
    known: bool
    speaker: str
    turn: int
    day: str
    why: str
    answers: bool = True


def rank_hits(
    database: Database, agent_id: str, question: Question, weighed: WeighedTerms, matches: Sequence[Match]
) -> Iterator[RankedHit]:
    """Yields the hits of matches, in their order."""
    statements = {
        (tier, found.id): found
        for tier in {one.text.tier for one in matches} - {"session"}
        for found in hits.statements(database, agent_id, tier, [m.text.name for m in matches if m.text.tier == tier])
    }
    for one in matches:
        if (statement := statements.get((one.text.tier, one.text.name))) is not None:
            yield _make_statement_hit(question, weighed, one, statement)
        elif one.found is not None:
            places = _rank_passages(one.found, weighed) if one.covered or one.nearest is None else []
            if one.nearest in one.found.passages:  # the best by words, then by meaning
                places = list(dict.fromkeys([*places[:1], one.nearest, *places]))
            hit = _make_artifact_hit(database, agent_id, question, weighed, one, one.found, places)
            asks = bool(places) and _only_asks(database, one, one.found, places[0])
            yield mark_as_question(hit) if asks else hit


def mark_as_question(hit: RankedHit) -> RankedHit:
    """Returns the hit of a question that nobody answered: it is found, but answers nothing."""
    return hit._replace(score=round(_OF_UNANSWERED * hit.score, 3), known=False, answers=False)


def _rank_passages(found: FoundArtifact, weighed: WeighedTerms) -> list[int]:
    """Returns the passages by how much of the question they have, the best first; without those that have nothing."""
    worth: dict[int, float] = {}
    for place, one in found.passages.items():
        held = weighed.in_text(found.words(one))
        if one.voice != "tool" and (held or not weighed.terms):
            worth[place] = weighed.share(held)
    said = [place for place, one in found.passages.items() if one.voice != "tool"]
    return sorted(worth, key=lambda place: (-worth[place], place)) or said[:1]


def _make_statement_hit(question: Question, weighed: WeighedTerms, match: Match, found: Statement) -> RankedHit:
    text = found.shown
    if place := weighed.first_in(found.words):
        text = around(found.words, place)
    if match.text.tier == "memory":
        where = f"a remembered {found.kind}{name_of_project(found.about)}"
    elif match.text.tier == "entity":
        where, text = f"the {found.kind} {found.about}", f"{found.about}: {text}" if text else found.about or ""
    else:
        where = _WHAT[found.kind] + name_of_project(found.about)
        where += " in a running session" if running_session(found.path) is not None else ""
    speaker = "User" if match.text.tier == "memory" else ""
    return make_hit(
        question, match.terms, match.text.tier, found.id, flatten(text, _SHOWN), where, speaker, found.at_us,
        match.covered, match.score, file_of(found.path),
    )  # fmt: skip


def _make_artifact_hit(
    database: Database,
    agent_id: str,
    question: Question,
    weighed: WeighedTerms,
    match: Match,
    found: FoundArtifact,
    places: Sequence[int],
) -> RankedHit:
    first = found.passages[places[0]] if places else Place(0, 0, -1, "text", 0)
    node = hits.node_at(database, agent_id, found.path, first.start)
    text = GAP.join(_texts(found, places, weighed)) if places else found.sentence
    speaker = _SPEAKERS.get(first.voice, "") if found.kind == "transcript" else ""
    where = _WHAT[found.kind] + name_of_project(found.project)
    at_us = found.at_us if node is None else node.at_us
    name = found.path if node is None else node.id
    return make_hit(
        question, match.terms, match.text.tier, name, flatten(text, _MOST_SHOWN), where, speaker, at_us,
        match.covered, match.score, file_of(found.path), first.turn + 1,
    )  # fmt: skip


def _only_asks(database: Database, match: Match, found: FoundArtifact, best: int) -> bool:
    """Returns whether what answers best is a question of the person, after which no agent spoke."""
    one = found.passages[best]
    asks = one.voice == "person" and is_question(found.words(one))
    return asks and not hits.is_answered(database, best, match.text.last)


def is_question(text: str) -> bool:
    """Returns whether every sentence of a short text asks."""
    sentences = [one.strip() for one in _SENTENCE.split(text[:_LONGEST_QUESTION]) if one.strip()]
    return len(text) <= _LONGEST_QUESTION and all(_ASKS.search(one) for one in sentences)


def _texts(found: FoundArtifact, places: Sequence[int], weighed: WeighedTerms) -> list[str]:
    """Returns the passages at the best places, each with the turn that follows it, as many as there is room for.

    They are in their own order, with speakers where these differ.
    """
    texts: dict[int, str] = {}
    for place in (near for best in places for near in (best, best + 1)):
        one = found.passages.get(place)
        if one is None or place in texts or (place not in places and one.voice not in _SPEAKERS):
            continue
        text = turn_text(found.words(one), weighed.first_in(found.words(one)))
        if text in texts.values():
            continue  # a branch of the session that was tried again begins with the same turns
        texts[place] = text
        if sum(map(len, texts.values())) > _SHOWN_TURNS:
            del texts[place]
            break
    voices = {place: found.passages[place].voice for place in texts}
    named = len(set(voices.values())) > 1
    labels = {place: f"{_SPEAKERS[voice]}: " for place, voice in voices.items() if named and voice in _SPEAKERS}
    return [labels.get(place, "") + texts[place] for place in sorted(texts)]


def make_hit(
    question: Question,
    held: int,
    tier: Tier,
    name: str,
    text: str,
    where: str,
    speaker: str,
    at_us: int,
    covered: float,
    score: float,
    path: str | None = None,
    turn: int = 0,
) -> RankedHit:
    """Returns a hit that has the terms `held` of a question; why it is one says how many, where, by whom and when."""
    day = local_day(at_us)
    who = f": {speaker}" if speaker and tier == "session" else ""
    why = f"{share_of(question, held)}, in {where}{who}, {day}"
    return RankedHit(tier, name, text, path, round(score, 3), covered >= KNOWN, speaker, turn, day, why)


def name_of_project(project: str | None) -> str:
    """Returns a project's name as the end of a phrase; "" without one."""
    name = flatten(basename(project))
    return f" of {name}" if name else ""


def share_of(question: Question, held: int) -> str:
    """Returns how much of a question is there, for the user: `3 of 4 words`."""
    whole = words_held(question, held)
    if whole == question.words:
        return "the word" if whole == 1 else "all words"
    return f"{whole} of {question.words} words" if whole else "part of a word"


def words_held(question: Question, held: int) -> int:
    """Returns how many words of a question are there with all of their parts."""
    parts: dict[int, list[bool]] = {}
    for number, term in enumerate(question.terms):
        parts.setdefault(term.word, []).append(bool(held >> number & 1))
    return sum(all(found) for found in parts.values())
