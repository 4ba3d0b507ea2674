"""Finds what an agent remembers that answers a query, from memories and facts down to transcripts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.formats.paths import file_of
from signet_sync.formats.timestamps import day_of, local, parse_instant
from signet_sync.memories.store import recall_events
from signet_sync.recall import places
from signet_sync.recall.echoes import is_echo, title_alone, unanswered, words_of
from signet_sync.recall.groups import by_worth
from signet_sync.recall.passages import PassageFinder, QueryPassage
from signet_sync.recall.query import MOST_READ, Query, read
from signet_sync.recall.rank import (
    KEPT_AT_PROMPT,
    LINE_TIERS,
    TIER_OF,
    TIERS,
    RecallCandidate,
    Tier,
    choose,
    covered,
    pairs,
    rarity,
    scored,
    selective_terms,
    weights,
    why,
)
from signet_sync.recall.snippets import around, label_with_snippet, turn_text
from signet_sync.recall.store import hits
from signet_sync.recall.store.hits import MatchedArtifact, MatchedLine, Period
from signet_sync.sessions.store import live
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, counting
from signet_sync.sync.store import access_counts
from signet_sync.text.digest_mark import end_of
from signet_sync.text.sanitizer import sanitize_beginning
from signet_sync.text.sentences import basename, flatten
from signet_sync.text.turn_heads import label_of, speaker_of

if TYPE_CHECKING:
    from signet_sync.embeddings.meaning import Meaning

_SHOWN = 400  # characters of a hit's text
_SHOWN_TURNS = 700  # characters of them
_MOST_OF_RUNNING = 400_000  # characters of a running session in which its best turns are looked for

_BATCH, _LINES, _EQUAL = 200, 60, 400


class SearchLimits(NamedTuple):
    """How a query is searched.

    `looked_at` artifacts and `lines` lines of each tier are read: those that contain most of the query; of artifacts at
    most `most_read` characters. `found_by` is how much of the query's weight finds them, `of_asking` the weight of
    words that only ask. With `spelling`, words that no text has are taken for words spelled alike.
    """

    looked_at: int
    lines: int
    most_read: int
    found_by: float
    of_asking: float
    spelling: bool
    score: Callable[[Sequence[float], QueryPassage, float], float]


FOR_RECALL = SearchLimits(20, 12, 12_000_000, 1.0, 0.5, True, scored)
# The person waits, and few texts are worth interrupting for.
AT_PROMPT = SearchLimits(8, 8, 1_000_000, 0.45, 1.0, False, covered)
_OF_QUESTION = 0.8  # of the score of what a running session asks
_MISSPELLED = 0.7  # worth of a word that is spelled like one of the query
# The length of a line in relation to that of an artifact, next to nothing; a condensation tells of many sessions.
_LINE, _CONDENSATION = 0.0, 1.0

Select = Callable[[Query, Sequence[RecallCandidate]], Sequence[RecallCandidate]]


class RankedHit(NamedTuple):
    """A hit as shown; a higher score is better. `path` is None if the hit has no file."""

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
    period: Period | None = None,
    meaning: Meaning | None = None,
) -> list[RankedHit]:
    """Returns what an agent remembers that answers a text, best first; accepts any text.

    With a period, only what is of that time. Without `private`, private memories are left out. Texts that are only
    similar in `meaning` come last, with score 0.
    """
    query, found = select_candidates(
        database, text, agent_id, lambda query, found: choose(found, limit), tiers=tiers, private=private, period=period
    )
    if meaning is not None and query.terms and meaning.is_ready(database):
        from signet_sync.recall import similar  # most readers have no vectors

        found += similar.candidates(
            database, text, agent_id, found, limit, meaning, tiers=tiers, private=private, period=period
        )
    return [
        RankedHit(
            one.tier,
            one.id,
            flatten(one.text, _SHOWN_TURNS if one.tier == "transcript" else _SHOWN),
            file_of(one.path),
            round(one.score, 3),
            (why(query, one) if one.score else f"similar in meaning, in {one.where}"),
        )
        for one in found
    ]


def record(database: Database, agent_id: str, text: str, hits: Sequence[RankedHit], at_us: int) -> bool:
    """Records which memories a query found and at which place, for the dream sweep; False if the database was busy.

    Only those count that answer nearly as well as the best hit, none that is only similar in meaning. The score is
    1/rank in the whole answer. The query is stored sanitized and on one line.
    """
    least = KEPT_AT_PROMPT * max((hit.score for hit in hits), default=0.0)
    scored = [(hit.id, 1 / rank) for rank, hit in enumerate(hits, 1) if hit.tier == "memory" and hit.score >= least > 0]
    if not scored:
        return True
    return recall_events.record(database, agent_id, stored_query(text), scored, at_us)


def count_hits(place: IndexPlace, agent_id: str, text: str, hits: Sequence[RankedHit], at_us: int) -> None:
    """Counts the hits if the database can be written at once: an answer never waits for a counter."""
    with counting(place, wanted=bool(hits)) as database:
        if database is not None:
            access_counts.count_ids(database, agent_id, [hit.id for hit in hits], day_of(at_us))
            record(database, agent_id, text, hits, at_us)


def stored_query(text: str) -> str:
    """Returns a query as it is stored: without secrets, on one line, not longer than a hit."""
    return flatten(sanitize_beginning(text, MOST_READ), _SHOWN)


def select_candidates(
    database: Database,
    text: str,
    agent_id: str,
    select: Select,
    *,
    tiers: Collection[Tier] = TIERS,
    private: bool = True,
    period: Period | None = None,
) -> tuple[Query, list[RecallCandidate]]:
    """Returns the parsed text, and the candidates that `select` selects; private memories only with `private`."""
    query = read(text)
    if not query.terms:
        return query, []
    search = _QuerySearch(database, agent_id, query, period=period)
    found = [*search.lines(tiers, private), *search.artifacts(tiers), *search.turns(tiers)]
    return query, [one for candidate in select(query, found) if (one := search.located(candidate)) is not None]


class PromptCandidates(NamedTuple):
    """What may answer a prompt: of all that an agent remembers, and of one project.

    `weights` are those of the query's terms, `heaviest` is that of a plain word which one artifact contains.
    """

    query: Query
    weights: Sequence[float]
    heaviest: float
    anywhere: Sequence[RecallCandidate]
    own: Sequence[RecallCandidate]
    located: Callable[[RecallCandidate], RecallCandidate | None]


def prompt_candidates(
    database: Database,
    text: str,
    agent_id: str,
    *,
    tiers: Collection[Tier],
    private: bool,
    threads: Sequence[str],
    topics: Sequence[int],
) -> PromptCandidates | None:
    """Returns what may answer a prompt; None if it has no words. `threads` and `topics` are those of one project.

    Within the project every word of the prompt finds, elsewhere only the rarer ones do.
    """
    query = read(text)
    if not query.terms or query.common:
        return None
    search = _QuerySearch(database, agent_id, query, AT_PROMPT)
    anywhere = [*search.lines(tiers, private), *search.artifacts(tiers), *search.turns(tiers)]
    own: list[RecallCandidate] = []
    if threads or topics:
        artifacts, lines = hits.rows_of_project(database, agent_id, threads, topics)
        own_tiers = [tier for tier in tiers if tier in ("fact", "thread", "node", "transcript")]
        own += search.lines([tier for tier in own_tiers if tier != "node"], private, lines)
        own += search.artifacts(own_tiers, artifacts)
    return PromptCandidates(query, search.weights, search.heaviest, anywhere, own, search.located)


class _QuerySearch:
    """One query over one agent's rows."""

    def __init__(
        self,
        database: Database,
        agent_id: str,
        query: Query,
        limits: SearchLimits = FOR_RECALL,
        period: Period | None = None,
    ) -> None:
        self.database = database
        self.agent_id = agent_id
        self.limits = limits
        self.terms = list(query.terms)
        self.dates = query.dates
        self.holding = [hits.artifacts_with(database, term) for term in query.terms]
        if limits.spelling:
            self._correct_spelling()
        self._add_dated()
        documents, alone = hits.artifacts_in_all(database, agent_id)
        counts = [len(rows) for rows in self.holding] if alone else hits.owned(database, agent_id, self.holding)
        self.weights = weights(query, counts, documents, limits.of_asking)
        self.heaviest = rarity(1, documents)
        self.selective = selective_terms(self.weights, counts, limits.found_by)
        self.period, self._in_period = period, None if period is None else self._rows_of(period)
        if self._in_period is not None:
            self.holding = [[row for row in rows if row in self._in_period] for rows in self.holding]
        self.passages = PassageFinder(self.terms, self.weights)
        self.words = words_of(query)
        self.places: dict[str, tuple[int, str]] = {}
        self._lines_with: list[list[int]] | None = None
        self.projects: dict[str | None, Mapping[int, float]] = {}

    def _rows_of(self, period: Period) -> frozenset[int]:
        """Returns the agent's artifacts of that time."""
        return frozenset(row for row, at_us in hits.moments(self.database, self.agent_id) if period.holds(at_us))

    def _correct_spelling(self) -> None:
        """Takes words that are spelled alike for each plain word that no text has."""
        for number, term in enumerate(self.terms):
            plain = not (self.holding[number] or term.name or term.dense or number in self.dates)
            if plain and not hits.lines_with(self.database, term):
                alike = hits.spelled_like(self.database, term.phrases[0])
                self.terms[number] = term._replace(akin=(*term.akin, *alike), worth=_MISSPELLED)
                self.holding[number] = hits.artifacts_with(self.database, self.terms[number])

    def _add_dated(self) -> None:
        """Adds to the rows that contain a date's word those of the artifacts from that date."""
        if self.dates:
            moments = [(number, local(at_us)) for number, at_us in hits.moments(self.database, self.agent_id)]
            for term, date in self.dates.items():
                dated = {number for number, at in moments if date.holds(at)}
                self.holding[term] = sorted(dated.union(self.holding[term]))

    def _dated(self, at_us: int) -> dict[int, float]:
        """Returns the terms that name the date of an instant."""
        at = local(at_us) if self.dates else None
        return {term: 1.0 for term, date in self.dates.items() if at is not None and date.holds(at)}

    # ── memories, facts, entities, threads, condensations ──

    def lines(
        self, tiers: Collection[Tier], private: bool, within: set[int] | None = None
    ) -> Iterator[RecallCandidate]:
        """Yields the best lines; `within` limits them to these rows, of which any term finds."""
        best = self._best_lines([tier for tier in LINE_TIERS if tier in tiers], private, within)
        for tier, ids in best.items():
            for line in hits.lines(self.database, self.agent_id, tier, ids):
                yield self._from_line(tier, line)

    def _best_lines(self, tiers: Sequence[Tier], private: bool, within: set[int] | None) -> dict[Tier, list[str]]:
        """Returns of each tier the lines that contain most of the query; of equal ones the newest.

        Of more than `_EQUAL` equal ones these are taken from those indexed last.
        """
        best: dict[Tier, list[str]] = {tier: [] for tier in tiers if hits.has_any(self.database, self.agent_id, tier)}
        if not best:
            return best
        if self._lines_with is None:
            self._lines_with = [hits.lines_with(self.database, term) for term in self.terms]
        found, holding = self._rows_by_term(self._lines_with, within)
        for tier, ids in best.items():
            few = hits.narrowed(self.database, self.agent_id, tier)
            groups = _in_pieces(by_worth([(found if few is None else found & few, 0)], holding, self.weights))
            # Nearly always the first few of thousands of lines fill a tier.
            batch = _LINES
            while (wanted := self.limits.lines - len(ids)) > 0 and (some := _next_groups(groups, batch)):
                ids += hits.first(self.database, self.agent_id, tier, some, wanted, private, self.period)
                batch *= 8
        return best

    def _rows_by_term(self, holding: Sequence[list[int]], within: set[int] | None) -> tuple[set[int], list[set[int]]]:
        """Returns the rows with a term by which texts are found, and for each term which of these contain it."""
        if within is None:
            found = set[int]().union(*(holding[number] for number in self.selective))
        else:
            found = set[int]().union(*(within.intersection(rows) for rows in holding))
        # Intersect with these rows instead of building a set of all rows of a frequent word.
        return found, [found.intersection(rows) for rows in holding]

    def _from_line(self, tier: Tier, line: MatchedLine) -> RecallCandidate:
        passage = self.passages.best(line.text, self._dated(line.at_us))
        text = line.shown
        if tier == "node":
            text = label_with_snippet(line.shown, line.text, passage.start)
        elif tier == "curated":
            text = _of_entity(line, passage.start)
        size = _CONDENSATION if tier == "node" else _LINE
        candidate = self._candidate(
            tier, line.id, text, line.path, line.at_us, passage, places.of_line(tier, line), size
        )
        return candidate._replace(session=line.session, by_rules=line.session is not None)

    # ── summaries, compactions, transcripts ──

    def artifacts(self, tiers: Collection[Tier], within: set[int] | None = None) -> list[RecallCandidate]:
        """Returns the best artifacts; `within` limits them to these rows, of which any term finds."""
        found = self._best_artifacts({kind: tier for kind, tier in TIER_OF.items() if tier in tiers}, within)
        most = self.limits.most_read
        artifacts = list(hits.artifacts(self.database, found, min(hits.LONGEST, most), most))
        usual = sum(len(one.content) for one in artifacts) / max(len(artifacts), 1)
        return [self._from_artifact(one, len(one.content) / max(usual, 1.0)) for one in artifacts]

    def _best_artifacts(self, tier_of: Mapping[str, Tier], within: set[int] | None) -> list[int]:
        """Returns of each tier the artifacts that contain most of the query; of equal ones those indexed last."""
        found: dict[Tier, list[int]] = {tier: [] for tier in tier_of.values()}
        if not found:
            return []
        selected, terms = self._rows_by_term(self.holding, within)
        near, bonus = pairs(self.weights, self.selective) if within is None else ([], [])
        close = [hits.artifacts_near(self.database, self.terms[one], self.terms[other]) for one, other in near]
        if self._in_period is not None:
            close = [rows & self._in_period for rows in close]
        # What only words close together find is scored by that alone.
        roots = [(selected, 0), (set[int]().union(*close) - selected, len(terms))]
        groups = by_worth(roots, [*terms, *close], [*self.weights, *bonus])
        order = (row for rows in groups for row in sorted(rows, reverse=True))
        while some := list(islice(order, _BATCH)):
            for kind, number in hits.kinds_of(self.database, self.agent_id, some, list(tier_of)):
                found[tier_of[kind]].append(number)
            if all(len(numbers) >= self.limits.looked_at for numbers in found.values()):
                break
        return [number for numbers in found.values() for number in numbers[: self.limits.looked_at]]

    def _from_artifact(self, found: MatchedArtifact, size: float) -> RecallCandidate:
        about = {**self._about(found.project), **self._dated(found.at_us)}
        sentence, passage = (self.passages.best(text, about) for text in (found.sentence, found.content))
        place = None if sentence.weight >= passage.weight else passage.start
        self.places[found.path] = place or 0, found.content
        tier = TIER_OF[found.kind]
        first = end_of(found.content) if tier == "node" else 0
        if tier == "node":
            text = label_with_snippet(found.sentence, found.content, place, first)
            where = f"{places.WHAT[found.kind]}{places.of_project(found.project)}"
        else:
            text = found.sentence if place is None else around(found.content, place)
            where = f"a transcript{places.of_project(found.project)}"
        both = self.passages.better(sentence, passage)
        candidate = self._candidate(tier, found.path, text, found.path, found.at_us, both, where, size)
        asked = title_alone(found.content, first) if tier == "node" else unanswered(found.content, passage.start or 0)
        return candidate._replace(
            session=found.session, by_rules=first > 0, unanswered=bool(asked) and is_echo(asked, self.words)
        )

    def _about(self, project: str | None) -> Mapping[int, float]:
        """Returns the terms in a project's name; everything done in the project is about them."""
        if project not in self.projects:
            self.projects[project] = self.passages.best(basename(project)).terms
        return self.projects[project]

    def located(self, candidate: RecallCandidate) -> RecallCandidate | None:
        """Returns a candidate with its node's id, its speaker and its time; None if it has no node yet.

        Of a transcript and a running session it has the best turns.
        """
        if candidate.tier == "transcript" and candidate.path is None and candidate.session is not None:
            from signet_sync.sessions.live_turns import SpokenTurn, render  # slow import; few hits are of running ones

            running = live.newest(self.database, self.agent_id, *candidate.session, _MOST_OF_RUNNING)
            said, _ = self._said(render(SpokenTurn(turn.role, turn.content, turn.at) for turn in running))
            return candidate._replace(text=said or candidate.text)
        if candidate.id not in self.places:
            return candidate
        place, content = self.places[candidate.id]
        node = hits.node_at(self.database, self.agent_id, candidate.id, place)
        if node is None:
            return None
        text, role = self._said(content, place) if candidate.tier == "transcript" else ("", "")
        where = places.with_turn(role, candidate.where, node.at_us)
        return candidate._replace(id=node.id, at_us=node.at_us, where=where, text=text or candidate.text)

    def _said(self, content: str, place: int = 0) -> tuple[str, str]:
        """Returns what a transcript's turns say to the query, with their speakers if these differ; and the speaker.

        That is whose words they are, else who speaks at the place.
        """
        from signet_sync.recall.best_turns import best_turns  # slow imports; most hits at a prompt are no transcripts
        from signet_sync.text.chunking import speaker_at, turns

        begun = list(turns(content))
        shown = best_turns(content, begun, self.passages)
        labels = {turn.label for turn in shown}
        named = len(labels) > 1
        said = " … ".join(
            f"{label}: {text}" if named and label and not text.startswith(f"{label}:") else text
            for label, text in ((turn.label, turn_text(turn.text, turn.place)) for turn in shown)
        )
        label = labels.pop() if len(labels) == 1 else speaker_at(begun, place)
        return said.replace("… …", "…").replace("… …", "…"), label

    # ── sessions still running ──

    def turns(self, tiers: Collection[Tier]) -> Iterator[RecallCandidate]:
        if "transcript" not in tiers:
            return
        for turn in live.find(self.database, self.agent_id, self.passages.needles):
            passage = self.passages.best(turn.content)
            at_us = parse_instant(turn.at) or 0
            if self.period is not None and not self.period.holds(at_us):
                continue
            where = places.with_turn(label_of(turn.role), "a running session", at_us)
            text = around(turn.content, passage.start or 0)
            line_id = f"{turn.session_key}#{turn.turn}"
            candidate = self._candidate("transcript", line_id, text, None, at_us, passage, where)
            if speaker_of(turn.role) == "user" and is_echo(turn.content, self.words):
                # With an answer it counts as one, after what states the same.
                left = not live.is_answered(self.database, self.agent_id, turn)
                candidate = candidate._replace(score=_OF_QUESTION * candidate.score, unanswered=left)
            yield candidate._replace(session=(turn.session_key, turn.session_id))

    def _candidate(
        self,
        tier: Tier,
        line_id: str,
        text: str,
        path: str | None,
        at_us: int,
        passage: QueryPassage,
        where: str,
        size: float = _LINE,
    ) -> RecallCandidate:
        # The reason given for a long transcript covers only the passage shown.
        terms = passage.terms if tier == "transcript" else passage.held
        return RecallCandidate(
            tier, line_id, text, path, at_us, self.limits.score(self.weights, passage, size), terms, where
        )


def _in_pieces(groups: Iterable[list[int]]) -> Iterator[list[int]]:
    """Yields the groups, large ones in pieces of `_EQUAL` rows, the highest row numbers first."""
    for group in groups:
        rows = group if len(group) <= _EQUAL else sorted(group, reverse=True)
        yield from (rows[start : start + _EQUAL] for start in range(0, len(rows), _EQUAL))


def _next_groups(groups: Iterable[list[int]], rows: int) -> list[list[int]]:
    """Returns the next groups that together have at least `rows` rows; all that are left if they have fewer."""
    some: list[list[int]] = []
    for group in groups:
        some.append(group)
        rows -= len(group)
        if rows <= 0:
            break
    return some


def _of_entity(line: MatchedLine, place: int | None) -> str:
    """Returns an entity's title and its profile's text around a place; its one sentence if the title has the place."""
    title = line.about or ""
    below = -1 if place is None else place - len(title) - 1
    text = line.shown if below < 0 else around(line.text[len(title) + 1 :], below)
    return f"{title}: {text}" if text else title
