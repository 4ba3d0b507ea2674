"""Makes hits of what was found: the words that answer, who said them, when and in which file."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import file_of, running_session
from signet_sync.formats.timestamps import local_day, parse_instant
from signet_sync.recall.as_text import GAP
from signet_sync.recall.query import Question, around, turn_text
from signet_sync.recall.search import Match, WeighedTerms, Within
from signet_sync.recall.store import rows
from signet_sync.recall.store.rows import FoundArtifact, Statement
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.texts import Place
from signet_sync.text.chunking import label_of, speaker_of
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.sentences import basename, flatten

if TYPE_CHECKING:
    from signet_sync.capture.harness_files import HarnessFile
    from signet_sync.text.passages import Voice

Tier = Literal["memory", "statement", "entity", "session", "file"]
FLOOR = 0.02  # of the question's weight; what covers less answers nothing
KNOWN = 0.75  # of the question's weight; what covers less is only the nearest that there is
SHOWN = 400  # characters of a statement, a live turn or a file
_SHOWN_TURNS, _MOST_SHOWN = 900, 1_000  # characters of turns of a session, and of all that is shown of one
_OF_UNANSWERED = 0.5
_OF_RUNNING = 0.8  # of what a turn of a running session covers: its score beside those of other texts
_LEAST_OF_FILE = 0.5  # of the question's weight: these files are about everything
_LONGEST_QUESTION = 4_000  # characters; a longer text says something
_SENTENCE = late(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_ASKS = late(r"[?？][\W_]*\Z|[吗呢か][。?？]?\Z")
_PARAGRAPH = late(r"\n\s*\n|\n(?=[ \t]{0,8}(?:[-*+]|\d+\.) )")
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


def _make_hit(
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
    *,
    answers: bool = True,
) -> RankedHit:
    """Returns a hit that has the terms `held` of a question; why it is one says how many, where, by whom and when.

    A question that nobody `answers` is found, but answers nothing.
    """
    day, whole = local_day(at_us), words_held(question, held)
    share = f"{whole} of {question.words} words" if whole else "part of a word"
    if whole == question.words:
        share = "the word" if whole == 1 else "all words"
    why = f"{share}, in {where}{f': {speaker}' if speaker and tier == 'session' else ''}, {day}"
    score = round(score if answers else _OF_UNANSWERED * round(score, 3), 3)
    return RankedHit(tier, name, text, path, score, answers and covered >= KNOWN, speaker, turn, day, why, answers)


def words_held(question: Question, held: int) -> int:
    """Returns how many words of a question are there with all of their parts."""
    missing = {term.word for number, term in enumerate(question.terms) if not held >> number & 1}
    return question.words - len(missing)


def name_of_project(project: str | None) -> str:
    """Returns a project's name as the end of a phrase; "" without one."""
    name = flatten(basename(project))
    return f" of {name}" if name else ""


def is_question(text: str) -> bool:
    """Returns whether every sentence of a short text asks."""
    sentences = [one.strip() for one in _SENTENCE.split(text[:_LONGEST_QUESTION]) if one.strip()]
    return len(text) <= _LONGEST_QUESTION and all(_ASKS.search(one) for one in sentences)


# ── of the index ──


def rank_hits(
    database: Database, agent_id: str, question: Question, weighed: WeighedTerms, matches: Sequence[Match]
) -> Iterator[RankedHit]:
    """Yields the hits of matches, in their order."""
    statements = {
        (tier, found.id): found
        for tier in {one.text.tier for one in matches} - {"session"}
        for found in rows.statements(database, agent_id, tier, [m.text.name for m in matches if m.text.tier == tier])
    }
    for one in matches:
        if (statement := statements.get((one.text.tier, one.text.name))) is not None:
            yield _make_statement_hit(question, weighed, one, statement)
        elif one.found is not None:
            yield _make_artifact_hit(database, agent_id, question, weighed, one, one.found)


def _make_statement_hit(question: Question, weighed: WeighedTerms, match: Match, found: Statement) -> RankedHit:
    text, tier = found.shown, match.text.tier
    if place := weighed.first_in(found.words):
        text = around(found.words, place)
    if tier == "memory":
        where = f"a remembered {found.kind}{name_of_project(found.about)}"
    elif tier == "entity":
        where, text = f"the {found.kind} {found.about}", f"{found.about}: {text}" if text else found.about or ""
    else:
        where = _WHAT[found.kind] + name_of_project(found.about)
        where += " in a running session" if running_session(found.path) is not None else ""
    return _make_hit(
        question, match.terms, tier, found.id, flatten(text, SHOWN), where, "User" if tier == "memory" else "",
        found.at_us, match.covered, match.score, file_of(found.path),
    )  # fmt: skip


def _make_artifact_hit(
    database: Database, agent_id: str, question: Question, weighed: WeighedTerms, match: Match, found: FoundArtifact
) -> RankedHit:
    """Returns the hit of a session, which shows its best passages: by words, then by meaning.

    If what answers best is a question of the person, after which no agent spoke, nobody answered it.
    """
    places = _rank_passages(found, weighed) if match.covered or match.nearest is None else []
    if match.nearest in found.passages:
        places = list(dict.fromkeys([*places[:1], match.nearest, *places]))
    first = found.passages[places[0]] if places else Place(0, 0, -1, "text", 0)
    asks = bool(places) and first.voice == "person" and is_question(found.words(first))
    name, at_us = rows.node_at(database, agent_id, found.path, first.start) or (found.path, found.at_us)
    text = GAP.join(_show_passages(found, places, weighed)) if places else found.sentence
    speaker = _SPEAKERS.get(first.voice, "") if found.kind == "transcript" else ""
    return _make_hit(
        question, match.terms, match.text.tier, name, flatten(text, _MOST_SHOWN),
        _WHAT[found.kind] + name_of_project(found.project), speaker, at_us, match.covered, match.score,
        file_of(found.path), first.turn + 1,
        answers=not asks or rows.is_answered(database, places[0], match.text.last),
    )  # fmt: skip


def _rank_passages(found: FoundArtifact, weighed: WeighedTerms) -> list[int]:
    """Returns the passages by how much of the question they have, the best first; without those that have nothing."""
    said = [place for place, one in found.passages.items() if one.voice != "tool"]
    held = {place: weighed.in_text(found.words(found.passages[place])) for place in said}
    having = [place for place in said if held[place] or not weighed.terms]
    return sorted(having, key=lambda place: (-weighed.share(held[place]), place)) or said[:1]


def _show_passages(found: FoundArtifact, places: Sequence[int], weighed: WeighedTerms) -> list[str]:
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
        if sum(map(len, texts.values())) + len(text) > _SHOWN_TURNS:
            break
        texts[place] = text
    voices = {place: found.passages[place].voice for place in texts}
    named = len(set(voices.values())) > 1
    labels = {place: f"{_SPEAKERS[voice]}: " for place, voice in voices.items() if named and voice in _SPEAKERS}
    return [labels.get(place, "") + texts[place] for place in sorted(texts)]


# ── of running sessions and of harnesses' files ──


def list_running_hits(
    database: Database, question: Question, weighed: WeighedTerms, within: Within
) -> Iterator[RankedHit]:
    """Yields the best turn of each running session that covers enough of the question: a question with its answer."""
    if within.statements or within.project is not None or not within.private:  # a live turn tells no project
        return
    best: dict[str, RankedHit] = {}
    for turn in live.find(database, within.agent_id, [term.needle for term in weighed.terms]):
        held, at_us = weighed.in_text(turn.content), parse_instant(turn.at) or 0
        covered = weighed.share(held)
        if covered < FLOOR or not within.holds(at_us):
            continue
        label, text = label_of(turn.role), turn_text(turn.content, weighed.first_in(turn.content))
        asks = speaker_of(turn.role) == "user" and is_question(turn.content)
        answer = live.answer_of(database, within.agent_id, turn) if asks else None
        if answer is not None:
            text = f"{label}: {text}{GAP}{label_of(answer.role)}: {turn_text(answer.content, 0)}"
        hit = _make_hit(
            question, held, "session", f"{turn.session_key}#{turn.turn}", flatten(text, SHOWN), "a running session",
            label, at_us, covered, _OF_RUNNING * covered, turn=turn.turn, answers=not asks or answer is not None,
        )  # fmt: skip
        if turn.session_key not in best or hit.score > best[turn.session_key].score:
            best[turn.session_key] = hit
    yield from best.values()


def list_file_hits(
    question: Question, weighed: WeighedTerms, within: Within, files: "Iterable[HarnessFile]"
) -> Iterator[RankedHit]:
    """Yields the best paragraph of each of the harnesses' files that covers enough of the question."""

    def find_best(text: str) -> tuple[int, str]:
        parts = ((weighed.in_text(one), one) for one in _PARAGRAPH.split(text))
        return max(parts, key=lambda part: weighed.share(part[0]))

    for file in files:
        if not within.holds(file.at_us) or weighed.share(find_best(file.text)[0]) < _LEAST_OF_FILE:
            continue
        held, paragraph = find_best(sanitize_transcript_v2(file.text))  # as a whole, so that no secret is cut
        text, covered = flatten(turn_text(paragraph, weighed.first_in(paragraph)), SHOWN), weighed.share(held)
        where = f"a file of {file.harness or 'the project'}"
        name, score = sanitize_transcript_v2(file.path), _OF_RUNNING * covered
        yield _make_hit(question, held, "file", name, text, where, "file", file.at_us, covered, score)
