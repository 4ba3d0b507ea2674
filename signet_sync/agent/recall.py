"""Recall: what an agent remembers that answers a query, from memories and facts down to transcripts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from signet_sync.agent.asking import Place, counting
from signet_sync.contracts.sanitizer import sanitize_line
from signet_sync.contracts.sentences import basename, flatten
from signet_sync.contracts.timestamps import day_of, parse_instant
from signet_sync.index import events, live, telemetry
from signet_sync.index import recall as door
from signet_sync.index.database import Database
from signet_sync.index.recall import Artifact, Line
from signet_sync.recall.places import Finder, Passage
from signet_sync.recall.query import MOST_READ, Query, read
from signet_sync.recall.rank import TIERS, Candidate, Tier, choose, finders, pairs, rarity, scored, weights, why, worth
from signet_sync.recall.snippets import around, speaker, told

# Of each tier so many are looked at closely: those that hold most of what is asked for.
LOOKED_AT = 20
_LONGEST, _MOST_READ = 4_000_000, 12_000_000  # characters of one artifact, and of all for one query
_SHOWN = 400  # characters of a hit's text

_WHAT = {
    "next": "a next step", "question": "an open question", "person": "a note on people", "blocker": "a blocker",
    "decision": "a decision", "constraint": "a constraint", "preference": "a preference", "note": "a note",
    "arc": "a week", "epoch": "a quarter", "summary": "a summary", "compaction": "a compaction",
}  # fmt: skip
_READERS: dict[Tier, Callable[[Database, str, str], Line | None]] = {
    "memory": door.memory, "fact": door.fact, "curated": door.curated, "thread": door.thread,
    "node": door.condensation,
}  # fmt: skip
_BATCH, _LINES = 200, 60
_TIER_OF: dict[str, Tier] = {"summary": "node", "compaction": "node", "transcript": "transcript"}


Choose = Callable[[Query, Sequence[Candidate]], Sequence[Candidate]]


class Hit(NamedTuple):
    """What is shown of something that was found; a higher score is a better hit. `path` is None where no file is."""

    tier: Tier
    id: str
    text: str
    path: str | None
    score: float
    why: str


def recall(
    database: Database,
    text: str,
    *,
    agent_id: str,
    limit: int = 10,
    tiers: Collection[Tier] = TIERS,
    private: bool = True,
) -> list[Hit]:
    """What an agent remembers that answers a text, best first within the tiers; any text will do.

    Without `private` no private memory does.
    """
    query, found = find(
        database, text, agent_id, lambda query, found: choose(found, limit), tiers=tiers, private=private
    )
    return [
        Hit(one.tier, one.id, flatten(one.text, _SHOWN), one.path, round(one.score, 3), why(query, one))
        for one in found
    ]


def record(database: Database, agent_id: str, text: str, hits: Sequence[Hit], at_us: int) -> bool:
    """Notes which memories a query found and how far up, for the dream sweep; False where the database was busy.

    The score is 1/rank in the whole answer. A query is kept sanitized and on one line (issue 5, point 1).
    """
    scored = [(hit.id, 1 / rank) for rank, hit in enumerate(hits, 1) if hit.tier == "memory"]
    if not scored:
        return True
    return events.record(database, agent_id, asked(text), scored, at_us)


def note(place: Place, agent_id: str, text: str, hits: Sequence[Hit], at_us: int) -> None:
    """Counts what was found, where the database can be written at once: an answer never waits for a counter."""
    with counting(place, wanted=bool(hits)) as database:
        if database is not None:
            telemetry.count_nodes(database, agent_id, [hit.id for hit in hits], day_of(at_us))
            record(database, agent_id, text, hits, at_us)


def asked(text: str) -> str:
    """A query as it is kept: without secrets, on one line, not longer than a hit."""
    # No secret may be cut in two.
    whole = text if len(text) <= MOST_READ else " ".join(text[:MOST_READ].split()[:-1])
    return flatten(sanitize_line(whole), _SHOWN)


def find(
    database: Database,
    text: str,
    agent_id: str,
    choose: Choose,
    *,
    tiers: Collection[Tier] = TIERS,
    private: bool = True,
) -> tuple[Query, list[Candidate]]:
    """What a text asks for, and what is chosen of all that may answer it; without `private` no private memory does."""
    query = read(text)
    if not query.terms:
        return query, []
    search = _Search(database, agent_id, query)
    found = [*search.lines(tiers, private), *search.artifacts(tiers), *search.turns(tiers)]
    return query, [one for candidate in choose(query, found) if (one := search.located(candidate)) is not None]


class _Search:
    """One query, put to one agent's rows."""

    def __init__(self, database: Database, agent_id: str, query: Query) -> None:
        self.database = database
        self.agent_id = agent_id
        self.terms = query.terms
        self.holding = [door.artifacts_with(database, term) for term in query.terms]
        self.documents, alone = door.artifacts_in_all(database, agent_id)
        counts = [len(rows) for rows in self.holding] if alone else door.owned(database, agent_id, self.holding)
        self.weights = weights(query, counts, self.documents)
        self.by = finders(self.weights, counts)
        self.finder = Finder(query.terms, self.weights)
        self.places: dict[str, tuple[int, str]] = {}
        self.projects: dict[str | None, Mapping[int, float]] = {}

    # ── memories, facts, entities, threads, condensations ──

    def lines(self, tiers: Collection[Tier], private: bool) -> Iterator[Candidate]:
        best = self._best([tier for tier in _READERS if tier in tiers], private)
        for tier, ids in best.items():
            for line_id in ids:
                line = _READERS[tier](self.database, self.agent_id, line_id)
                if line is not None:
                    yield self._of_line(tier, line)

    def _best(self, tiers: Sequence[Tier], private: bool) -> dict[Tier, list[str]]:
        """Of each tier the lines that hold most; of equal ones the newest."""
        best: dict[Tier, list[str]] = {tier: [] for tier in tiers if door.has_any(self.database, self.agent_id, tier)}
        if not best:
            return best
        groups = self._by_worth(door.lines(self.database, self.terms, self.by), self.weights)
        # Nearly always the first few lines of thousands fill a tier.
        for tier, ids in best.items():
            left, batch = door.narrowed(self.database, self.agent_id, tier, groups), _LINES
            while left and (wanted := LOOKED_AT - len(ids)) > 0:
                enough = _enough(left, batch)
                ids += door.first(self.database, self.agent_id, tier, left[:enough], wanted, private)
                left, batch = left[enough:], 8 * batch
        return best

    @staticmethod
    def _by_worth(masks: door.Masks, weights: Sequence[float]) -> list[list[int]]:
        """Row numbers in groups of equal worth, those that are worth most first."""
        groups: dict[float, list[int]] = {}
        for mask, rows in masks.items():
            groups.setdefault(worth(weights, mask), []).extend(rows)
        return [groups[value] for value in sorted(groups, reverse=True)]

    def _of_line(self, tier: Tier, line: Line) -> Candidate:
        passage = self.finder.best(line.text)
        text = line.shown
        if tier == "node":
            text = told(line.shown, line.text, passage.start)
        elif tier == "curated":
            text = _of_entity(line, passage.start)
        return self._candidate(tier, line.id, text, line.path, line.at_us, passage, _where(tier, line))

    # ── summaries, compactions, transcripts ──

    def artifacts(self, tiers: Collection[Tier]) -> Iterator[Candidate]:
        left = _MOST_READ
        for path in self._paths({kind: tier for kind, tier in _TIER_OF.items() if tier in tiers}):
            found = door.artifact(self.database, self.agent_id, path, min(_LONGEST, left))
            if found is not None:
                left -= len(found.content)
                yield self._of_artifact(found)

    def _paths(self, tier_of: Mapping[str, Tier]) -> list[str]:
        """Of each tier the artifacts that hold most; of equal ones those that were indexed last."""
        paths: dict[Tier, list[str]] = {tier: [] for tier in tier_of.values()}
        if not paths:
            return []
        near, bonus = pairs(self.weights, self.by)
        masks = door.artifacts(self.database, self.terms, self.holding, self.by, near)
        groups = self._by_worth(masks, [*self.weights, *bonus])
        order = [row for rows in groups for row in sorted(rows, reverse=True)]
        for start in range(0, len(order), _BATCH):
            for kind, path in door.named(self.database, self.agent_id, order[start : start + _BATCH], list(tier_of)):
                paths[tier_of[kind]].append(path)
            if all(len(found) >= LOOKED_AT for found in paths.values()):
                break
        return [path for found in paths.values() for path in found[:LOOKED_AT]]

    def _of_artifact(self, found: Artifact) -> Candidate:
        about = self._about(found.project)
        sentence, passage = (self.finder.best(text, about) for text in (found.sentence, found.content))
        place = None if sentence.weight >= passage.weight else passage.start
        self.places[found.path] = place or 0, found.content
        tier = _TIER_OF[found.kind]
        if tier == "node":
            text, where = told(found.sentence, found.content, place), f"{_WHAT[found.kind]}{_of(found.project)}"
        else:
            text = found.sentence if place is None else around(found.content, place)
            where = f"a transcript{_of(found.project)}"
        both = self.finder.better(sentence, passage)
        candidate = self._candidate(tier, found.path, text, found.path, found.at_us, both, where)
        return candidate._replace(session=found.session)

    def _about(self, project: str | None) -> Mapping[int, float]:
        """The terms that a project's name holds; all that was done in it is about them."""
        if project not in self.projects:
            self.projects[project] = self.finder.best(basename(project)).terms
        return self.projects[project]

    def located(self, candidate: Candidate) -> Candidate | None:
        """A candidate with its node for its id, who said it, and when; None where it has no node yet."""
        if candidate.id not in self.places:
            return candidate
        place, content = self.places[candidate.id]
        node = door.node_at(self.database, self.agent_id, candidate.id, place)
        if node is None:
            return None
        role = speaker(content, place) if candidate.tier == "transcript" else ""
        return candidate._replace(id=node.id, at_us=node.at_us, where=_said(role, candidate.where, node.at_us))

    # ── sessions that still run ──

    def turns(self, tiers: Collection[Tier]) -> Iterator[Candidate]:
        if "transcript" not in tiers:
            return
        for turn in live.find(self.database, self.agent_id, self.finder.needles):
            passage = self.finder.best(turn.content)
            at_us = parse_instant(turn.at) or 0
            where = _said(turn.role, "a session that still runs", at_us)
            text = around(turn.content, passage.start or 0)
            line_id = f"{turn.session_key}#{turn.turn}"
            candidate = self._candidate("transcript", line_id, text, None, at_us, passage, where)
            yield candidate._replace(session=(turn.session_key, turn.session_id))

    def _candidate(
        self, tier: Tier, line_id: str, text: str, path: str | None, at_us: int, passage: Passage, where: str
    ) -> Candidate:
        # Of a long transcript only what is shown says why.
        terms = passage.terms if tier == "transcript" else passage.held
        score, rare = scored(self.weights, passage), rarity(passage, self.documents)
        return Candidate(tier, line_id, text, path, at_us, score, terms, where, rarity=rare)


def _enough(groups: Sequence[Sequence[int]], rows: int) -> int:
    """How many groups hold so many rows together; all of them where they hold fewer."""
    return next((n for n, held in enumerate(accumulate(map(len, groups)), 1) if held >= rows), len(groups))


def _where(tier: Tier, line: Line) -> str:
    day = day_of(line.at_us)
    if tier == "memory":
        return f"a remembered {line.kind}, {day}"
    if tier in ("curated", "thread"):
        return f"the {line.kind} {line.about}, {day}"
    return f"{_WHAT[line.kind]}{_of(line.about)}, {day}"


def _of_entity(line: Line, place: int | None) -> str:
    """An entity's title, and what its profile says around a place; its one sentence where that is in the title."""
    title = line.about or ""
    below = -1 if place is None else place - len(title) - 1
    said = line.shown if below < 0 else around(line.text[len(title) + 1 :], below)
    return f"{title}: {said}" if said else title


def _of(project: str | None) -> str:
    name = flatten(basename(project))
    return f" of {name}" if name else ""


def _said(role: str, where: str, at_us: int) -> str:
    return f"{where}: {role}, {day_of(at_us)}" if role else f"{where}, {day_of(at_us)}"
