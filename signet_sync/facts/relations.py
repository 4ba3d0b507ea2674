"""Finds relations between the topics of an artifact."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signet_sync.facts.mentions import issues_in
from signet_sync.facts.tokens import person_at_start
from signet_sync.formats.fact import EntityKind, Item, Mention, Relation
from signet_sync.formats.lazy_pattern import late

RELATIONS_PER_ARTIFACT = 60
PATHS = 10
LINE_LENGTH = 2_000

_WAITS = late(r"\b(blocked by|depends on)\b[ \t:*_`]*+", re.IGNORECASE)
_CLAUSE = late(r"[.;!?]\s+")
_WORD = late(r"[@\w][\w./@-]*", re.ASCII)

_End = tuple[EntityKind, str]


def relations(body: str, items: Sequence[Item], mentions: Sequence[Mention]) -> tuple[Relation, ...]:
    """Returns the relations in a (sanitized) body with these items and mentions, each once. Linear, bounded.

    The first paths are part of the project, the project uses the packages, and people under a heading of people work on
    it. `blocked by` connects two issues; `depends on` precedes a package or an issue. Both ends of each relation are
    among the mentions.
    """
    known = {(mention.kind, mention.norm) for mention in mentions}
    own = next(((mention.kind, mention.norm) for mention in mentions if mention.kind == "project"), None)
    found: dict[tuple[str, _End, _End], Relation] = {}
    for relation in (*_waiting(body, known, own), *(_of_project(own, items, mentions) if own is not None else ())):
        ends = (relation.kind, relation.from_, relation.to)
        if (
            relation.from_ != relation.to
            and {relation.from_, relation.to} <= known
            and len(found) < RELATIONS_PER_ARTIFACT
        ):
            found.setdefault(ends, relation)
    return tuple(found.values())


def _of_project(own: _End, items: Sequence[Item], mentions: Sequence[Mention]) -> Iterator[Relation]:
    below = f"{own[1].rstrip('/')}/"
    paths = [mention for mention in mentions if mention.kind == "path" and mention.norm.startswith(below)]
    for item in items:
        person = person_at_start(item.text) if item.aspect == "person" and not item.done else None
        if person is not None:
            yield Relation("works-on", ("person", person[1]), own, item.line)
    for mention in mentions:
        if mention.kind == "package":
            yield Relation("uses", own, ("package", mention.norm), mention.line)
    for mention in paths[:PATHS]:
        yield Relation("part-of", ("path", mention.norm), own, mention.line)


def _waiting(body: str, known: set[_End], own: _End | None) -> Iterator[Relation]:
    lowered = body.lower() if body.isascii() else body.casefold()  # equal results, but faster
    if "blocked by" not in lowered and "depends on" not in lowered:
        return
    for number, (line, low) in enumerate(zip(body.split("\n"), lowered.split("\n"), strict=True), 1):
        if "blocked by" in low or "depends on" in low:
            for clause in _CLAUSE.split(line[:LINE_LENGTH]):
                yield from _of_clause(clause, number, known, own)


def _of_clause(clause: str, line: int, known: set[_End], own: _End | None) -> Iterator[Relation]:
    mark = _WAITS.search(clause)
    if mark is None:
        return
    project = own[1] if own is not None else None
    issues: list[_End] = [("issue", norm) for norm in issues_in(clause[: mark.start()], project)]
    start: _End | None = issues[-1] if issues else None
    causes: list[_End] = [("issue", norm) for norm in issues_in(clause[mark.end() :], project)]
    if mark[1].casefold() == "blocked by":
        yield from (Relation("blocked-by", start, cause, line) for cause in causes if start is not None)
        return
    target = _target(clause[mark.end() :], causes, known)
    start = start or own
    if start is not None and target is not None:
        yield Relation("depends-on", start, target, line)


def _target(text: str, issues: Sequence[_End], known: set[_End]) -> _End | None:
    """Returns what directly follows `depends on`: a package mentioned elsewhere, or else the first issue."""
    word = _WORD.match(text)
    package: _End = ("package", word[0].rstrip(".").casefold().replace("_", "-")) if word else ("package", "")
    if package in known:
        return package
    return issues[0] if issues else None
