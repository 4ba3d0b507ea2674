"""Marks blockers and next steps as done that a later summary of their project reports as resolved or done.

A blocker that by its own words lasts no longer than its day ends with the next summary that is a day younger.

Whether a report ends an item depends on these two alone, so the order in which they come in does not matter; the first
report that does is kept. A change reads the project's open items of `HORIZON`, not more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from signet_sync.facts import reports
from signet_sync.facts.reports import OpenWords, open_words
from signet_sync.formats.fact import Report
from signet_sync.formats.timestamps import DAY
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import path_of

# After three half-lives few equal words are about something else; it also bounds what a change reads.
HORIZON = 45 * DAY

ReportKey = tuple[int, int, int]  # topic, instant, artifact

_ITEM = """
    select f.fact, f.agent_id, f.id, f.entity, f.aspect, f.latest_us, f.ended_by, s.text from {some}
    cross join attribute_sources s on s.fact = f.fact and s.at_us = f.latest_us and s.artifact = f.artifact
    where s.done = 0"""
_OF_ASPECT = "f.aspect in ('blocker', 'next')"
_GIVEN = _ITEM.format(some=f"json_each(?) k cross join entity_attributes f on f.fact = k.value and {_OF_ASPECT}")
_ENDED = _ITEM.format(some="json_each(?) k cross join entity_attributes f on f.ended_by = k.value")
_BEFORE = _ITEM.format(
    some=f"""json_each(?) k cross join entity_attributes f indexed by entity_attributes_open
        on f.entity = k.value->>0 and f.latest_us >= k.value->>1 and f.latest_us < k.value->>2 and {_OF_ASPECT}"""
)
_REPORTS = f"""
    select r.entity, r.at_us, {path_of("r.artifact")} as path, r.artifact, r.told from json_each(?) k
    cross join fact_reports r on r.entity = k.value->>0 and r.at_us > k.value->>1 and r.at_us <= k.value->>2
    order by r.entity, r.at_us, path"""
_END = "update entity_attributes set status = ?, ended_by = ? where fact = ?"


class _Open(NamedTuple):
    fact: int
    agent_id: str
    id: str
    entity: int
    aspect: str
    latest_us: int
    ended_by: int | None
    text: str

    @property
    def words(self) -> OpenWords | None:
        return open_words(self.aspect, self.text)


class _Told(NamedTuple):
    at_us: int
    artifact: int
    report: Report


class _ReportIndex:
    """The reports about one topic in order, found by their words."""

    def __init__(self, told: Iterable[_Told]) -> None:
        self.told = list(told)
        self.by_word: dict[str, list[int]] = {}
        for place, one in enumerate(self.told):
            for word in set(one.report.words):
                self.by_word.setdefault(word, []).append(place)

    def first(self, item: _Open) -> int | None:
        """Returns the artifact of the first report that ends an item; of one of a day, that of a later day does."""
        words = item.words if self.told else None
        if words is None:
            return None
        if words.is_of_a_day:
            later = (one for one in self.told if item.latest_us + DAY <= one.at_us <= item.latest_us + HORIZON)
            return next((one.artifact for one in later), None) or self._first(words, item)
        return self._first(words, item)

    def _first(self, words: OpenWords, item: _Open) -> int | None:
        places = {place for word in {*words.words, *words.issues} for place in self.by_word.get(word, ())}
        for place in sorted(places):
            one = self.told[place]
            if item.latest_us < one.at_us <= item.latest_us + HORIZON and reports.ends(words, one.report):
                return one.artifact
        return None


def settle(
    database: Database, facts: Collection[int], come: Collection[ReportKey], gone: Collection[ReportKey]
) -> set[tuple[str, str]]:
    """Updates which of some facts are ended, and which others are by changed reports; returns agent and id of these."""
    items = {row[0]: _Open(*row) for row in database.execute(_GIVEN, (json.dumps(sorted(facts)),))}
    ended = database.execute(_ENDED, (json.dumps(sorted({artifact for _, _, artifact in gone})),))
    items |= {row[0]: _Open(*row) for row in ended}
    items |= _ended_by(database, come)
    spans: dict[int, tuple[int, int]] = {}
    for item in items.values():
        start, end = spans.get(item.entity, (item.latest_us, item.latest_us))
        spans[item.entity] = min(start, item.latest_us), max(end, item.latest_us)
    asked = [[entity, start, end + HORIZON] for entity, (start, end) in sorted(spans.items())]
    told = _told(database, asked) if items else {}
    none = _ReportIndex(())
    outdated = []
    for item in items.values():
        artifact = told.get(item.entity, none).first(item)
        if artifact != item.ended_by:
            outdated.append(("active" if artifact is None else "done", artifact, item.fact))
    database.executemany(_END, outdated)
    changed = {row[2] for row in outdated}
    return {(item.agent_id, item.id) for item in items.values() if item.fact in changed}


def _ended_by(database: Database, come: Collection[ReportKey]) -> dict[int, _Open]:
    """Returns the items that new reports end."""
    told: dict[int, tuple[int, int]] = {}
    for entity, at_us, _ in come:
        start, end = told.get(entity, (at_us, at_us))
        told[entity] = min(start, at_us), max(end, at_us)
    if not told:
        return {}
    artifacts = {artifact for _, _, artifact in come}
    every = _told(database, [[entity, start - 1, end] for entity, (start, end) in sorted(told.items())])
    new = {
        entity: _ReportIndex(one for one in index.told if one.artifact in artifacts) for entity, index in every.items()
    }
    asked = [[entity, start - HORIZON, end] for entity, (start, end) in sorted(told.items())]
    rows = map(_Open._make, database.execute(_BEFORE, (json.dumps(asked),)))
    return {item.fact: item for item in rows if new[item.entity].first(item) is not None}


def _told(database: Database, asked: list[list[int]]) -> dict[int, _ReportIndex]:
    """Returns the reports about topics between two instants."""
    found: dict[int, list[_Told]] = {}
    for entity, at_us, _, artifact, told in database.execute(_REPORTS, (json.dumps(asked),)):
        found.setdefault(entity, []).extend(
            _Told(at_us, artifact, Report(tuple(words), resolves, finished))
            for words, resolves, finished in json.loads(told)
        )
    return {entity: _ReportIndex(some) for entity, some in found.items()}
