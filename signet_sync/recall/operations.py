"""Finds what answers a question: sessions by what was said, memories, statements and entities.

Of what was found it makes hits: the words that answer, who said them, when and in which file.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.embeddings.store import measure_nearness
from signet_sync.formats.filename import find_carried_token
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import file_of, name_running_session
from signet_sync.formats.timestamps import day_of, local_day, parse_instant
from signet_sync.recall.as_text import GAP
from signet_sync.recall.query import Question, cut_around, read, turn_text
from signet_sync.recall.search import MOST_FOUND, Match, WeighedTerms, search
from signet_sync.recall.store import rows
from signet_sync.recall.store.rows import FoundArtifact, Statement, Within, ranges
from signet_sync.sessions.live import store as live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, open_to_count
from signet_sync.sync.store import counts
from signet_sync.sync.store.texts import Place
from signet_sync.text.chunking import label_of, speaker_of
from signet_sync.text.index_words import fold
from signet_sync.text.sentences import basename, flatten

if TYPE_CHECKING:
    from signet_sync.capture.harness_files import HarnessFile
    from signet_sync.text.passages import Voice

Tier = Literal["memory", "statement", "entity", "session", "file"]
FLOOR = 0.02  # of the question's weight; what covers less answers nothing
KNOWN = 0.75  # of the question's weight; what covers less is only the nearest that there is
SHOWN = 400  # characters of a statement, a live turn or a file
_SHOWN_TURNS, _MOST_SHOWN = 900, 1_000  # characters of turns of a session, and of all that is shown of one
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
_MEANT = 0.5  # of what the nearest text has over others; without a word of the question, what means less is no answer
_CLEAR = 0.35  # `Nearness.clearness` that unrelated questions seldom have
_KEPT = 0.05  # of the best hit's score
_LEADING, _LEAD, _LEADING_WORDS = 0.5, 0.2, 3  # what a hit covers that alone has so much: see `_leads`
_BESIDE = 0.45  # of the first hit's score, if it is surely an answer: what scores less would only be read
_COUNTED = 0.75  # of the best hit's score; memories that score less were not what was looked for
_MOST_FILES = 3  # a harness tells its sessions of them anyway


class RankedHit(NamedTuple):
    """A hit as shown; a higher score is better, one that is not `known` is only the nearest.

    `path` is None if the hit has no file; `speaker` is "" where not one person or agent says it; `turn` counts from 1,
    0 where there are none. `day` is the person's.
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


def recall(
    database: Database,
    text: str,
    within: Within,
    *,
    limit: int = 10,
    beside: "Iterable[HarnessFile]" = (),
) -> list[RankedHit]:
    """Returns what answers a text, best first; accepts any text. [] where nothing covers enough of it.

    `beside` are files that harnesses give to their sessions. In the agent the order is by words and meaning, where a
    model is set up.
    """
    question = read(text)
    if not question.terms:
        return []
    meaning = measure_nearness(database, ranges(database, within), text)
    weighed, matches = search(database, question, within, min(2 * limit, MOST_FOUND), meaning)
    matches = _keep_enough(matches, clear=meaning is not None and meaning.clearness >= _CLEAR)
    found = list(rank_hits(database, within.agent_id, question, weighed, matches))
    found += list_running_hits(database, question, weighed, within)
    files = sorted(list_file_hits(question, weighed, within, beside), key=lambda hit: -hit.score)
    found = drop_repeats([*found, *files[:_MOST_FILES]])
    if found and matches and _leads(question, matches[0], found):  # a damaged row may match and show nothing
        found[0] = found[0]._replace(known=True)
    if found and found[0].known:
        found = [hit for hit in found if hit.known or hit.score >= _BESIDE * found[0].score]
    return found[:limit]


def _keep_enough(matches: Sequence[Match], *, clear: bool) -> list[Match]:
    """Returns the matches that say enough by their words, and beside those, or if it is `clear`, what only means it."""
    best = max((one.score for one in matches), default=0.0)
    found = [one for one in matches if one.score >= _KEPT * best]
    if not clear and not any(one.covered and one.near >= FLOOR for one in found):
        return []
    return [one for one in found if (one.covered and one.near >= FLOOR) or one.meant >= _MEANT]


def _leads(question: Question, best: Match, found: Sequence[RankedHit]) -> bool:
    """Returns whether the first hit has several words, half of the question, and clearly more than other sessions."""
    if best.covered < _LEADING or count_held_words(question, best.terms) < _LEADING_WORDS:
        return False
    session_of = [(find_carried_token(hit.path) if hit.path else None) or hit.id for hit in found]
    of_others = (hit.score for hit, session in zip(found, session_of, strict=True) if session != session_of[0])
    return found[0].score * (1 - _LEAD) >= max(of_others, default=0.0)


def drop_repeats(found: Sequence[RankedHit]) -> list[RankedHit]:
    """Orders hits, each text once; a statement stands before the session that it comes from.

    A session is known again by its longest turn, after which a fork goes on otherwise.
    """
    kept: list[RankedHit] = []
    texts: set[str] = set()
    for hit in sorted(found, key=lambda hit: -hit.score):
        turns = (turn.removeprefix("User: ").removeprefix("Assistant: ") for turn in hit.text.split(GAP))
        told = " ".join(fold(max(turns, key=len)).split()).rstrip(".!?…")
        if told in texts:
            continue
        texts.add(told)
        place = len(kept)
        if hit.tier == "statement" and hit.path is not None:
            session = hit.path.rpartition("--")[0]
            sessions = ((n, one.path or "") for n, one in enumerate(kept) if one.tier == "session")
            place = next((n for n, path in sessions if path.startswith(session)), place)
        kept.insert(place, hit if place == len(kept) else hit._replace(score=kept[place].score))
    return kept


def count_hits(place: IndexPlace, agent_id: str, text: str, hits: Sequence[RankedHit], at_us: int) -> None:
    """Counts the hits if the database can be written at once: an answer never waits for a counter.

    For the dream sweep it records the memories among them that answer nearly as well as the best hit; their score is
    1/rank in the whole answer.
    """
    hits = [hit for hit in hits if hit.tier != "file"]
    least = _COUNTED * max((hit.score for hit in hits), default=0.0)
    scored = [(hit.id, 1 / rank) for rank, hit in enumerate(hits, 1) if hit.tier == "memory" and hit.score >= least > 0]
    with open_to_count(place) as database:
        if hits and database is not None:
            counts.count_ids(database, agent_id, [hit.id for hit in hits], day_of(at_us))
            if scored:
                from signet_sync.memories.store import promotions  # few questions find one

                promotions.record(database, agent_id, " ".join(text.split()), scored, at_us)


# ── hits: of the index ──


def _explain(question: Question, held: int, where: str, at_us: int) -> tuple[str, str]:
    """Returns the day of a hit that has the terms `held` of a question, and why it is one: how many, where and when."""
    day, whole = local_day(at_us), count_held_words(question, held)
    share = "all words" if whole == question.words else f"{whole} of {question.words} words"
    return day, f"{share}, in {where}, {day}"


def count_held_words(question: Question, held: int) -> int:
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
    if place := weighed.find_first(found.words):
        text = cut_around(found.words, place)
    if tier == "memory":
        where = f"a remembered {found.kind}{name_of_project(found.about)}"
    elif tier == "entity":
        where, text = f"the {found.kind} {found.about}", f"{found.about}: {text}" if text else found.about or ""
    else:
        where = _WHAT[found.kind] + name_of_project(found.about)
        where += " in a running session" if name_running_session(found.path) is not None else ""
    day, why = _explain(question, match.terms, where, found.at_us)
    return RankedHit(
        tier=tier, id=found.id, text=flatten(text, SHOWN), path=file_of(found.path), score=round(match.score, 3),
        known=match.covered >= KNOWN, speaker="User" if tier == "memory" else "", turn=0, day=day, why=why,
    )  # fmt: skip


def _make_artifact_hit(
    database: Database, agent_id: str, question: Question, weighed: WeighedTerms, match: Match, found: FoundArtifact
) -> RankedHit:
    """Returns the hit of a session, which shows its best passages: by words, then by meaning."""
    places = _rank_passages(found, weighed) if match.covered or match.nearest is None else []
    if match.nearest in found.passages:
        places = list(dict.fromkeys([*places[:1], match.nearest, *places]))
    first = found.passages[places[0]] if places else Place(0, 0, -1, "text", 0)
    name, at_us = rows.node_at(database, agent_id, found.path, first.start) or (found.path, found.at_us)
    text = GAP.join(_show_passages(found, places, weighed)) if places else found.sentence
    speaker = _SPEAKERS.get(first.voice, "") if found.kind == "transcript" else ""
    where = _WHAT[found.kind] + name_of_project(found.project) + (f": {speaker}" if speaker else "")
    day, why = _explain(question, match.terms, where, at_us)
    return RankedHit(
        tier=match.text.tier, id=name, text=flatten(text, _MOST_SHOWN), path=file_of(found.path),
        score=round(match.score, 3), known=match.covered >= KNOWN, speaker=speaker, turn=first.turn + 1, day=day,
        why=why,
    )  # fmt: skip


def _rank_passages(found: FoundArtifact, weighed: WeighedTerms) -> list[int]:
    """Returns the passages by how much of the question they have, the best first; without those that have nothing."""
    said = [place for place, one in found.passages.items() if one.voice != "tool"]
    held = {place: weighed.find_terms(found.words(found.passages[place])) for place in said}
    having = [place for place in said if held[place] or not weighed.terms]
    return sorted(having, key=lambda place: (-weighed.share(held[place]), place)) or said[:1]


def _show_passages(found: FoundArtifact, places: Sequence[int], weighed: WeighedTerms) -> list[str]:
    """Returns the passages at the best places, each with the turn that follows it, as many as there is room for.

    They are in their own order, with speakers where these differ.
    """
    texts: dict[int, str] = {}
    for place in (one for best in places for one in (best, best + 1)):
        one = found.passages.get(place)
        if one is None or place in texts or (place not in places and one.voice not in _SPEAKERS):
            continue
        text = turn_text(found.words(one), weighed.find_first(found.words(one)))
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
    """Yields the best turn of each running session that covers enough of the question.

    A question stands with its answer; one that has none is most often what is asked right now.
    """
    if within.shared or within.project is not None:  # a live turn tells no project
        return
    best: dict[str, RankedHit] = {}
    for turn in live.find(database, within.agent_id, [term.needle for term in weighed.terms]):
        held, at_us = weighed.find_terms(turn.content), parse_instant(turn.at) or 0
        covered = weighed.share(held)
        if covered < FLOOR or not within.holds(at_us):
            continue
        label, text = label_of(turn.role), turn_text(turn.content, weighed.find_first(turn.content))
        if speaker_of(turn.role) == "user" and is_question(turn.content):
            answer = live.answer_of(database, within.agent_id, turn)
            if answer is None:
                continue
            text = f"{label}: {text}{GAP}{label_of(answer.role)}: {turn_text(answer.content, 0)}"
        day, why = _explain(question, held, f"a running session{f': {label}' if label else ''}", at_us)
        hit = RankedHit(
            tier="session", id=f"{turn.session_key}#{turn.turn}", text=flatten(text, SHOWN), path=None,
            score=round(_OF_RUNNING * covered, 3), known=covered >= KNOWN, speaker=label, turn=turn.turn, day=day,
            why=why,
        )  # fmt: skip
        if turn.session_key not in best or hit.score > best[turn.session_key].score:
            best[turn.session_key] = hit
    yield from best.values()


def list_file_hits(
    question: Question, weighed: WeighedTerms, within: Within, files: "Iterable[HarnessFile]"
) -> Iterator[RankedHit]:
    """Yields the best paragraph of each of the harnesses' files that covers enough of the question."""

    def find_best(text: str) -> tuple[int, str]:
        parts = ((weighed.find_terms(one), one) for one in _PARAGRAPH.split(text))
        return max(parts, key=lambda part: weighed.share(part[0]))

    for file in files:
        if not within.holds(file.at_us) or weighed.share(find_best(file.text)[0]) < _LEAST_OF_FILE:
            continue
        from signet_sync.text.sanitizer import sanitize_transcript_v2  # slow import; few questions find such a file

        held, paragraph = find_best(sanitize_transcript_v2(file.text))  # as a whole, so that no secret is cut
        text, covered = flatten(turn_text(paragraph, weighed.find_first(paragraph)), SHOWN), weighed.share(held)
        day, why = _explain(question, held, f"a file of {file.harness or 'the project'}", file.at_us)
        yield RankedHit(
            tier="file", id=sanitize_transcript_v2(file.path), text=text, path=None,
            score=round(_OF_RUNNING * covered, 3), known=covered >= KNOWN, speaker="file", turn=0, day=day, why=why,
        )  # fmt: skip
