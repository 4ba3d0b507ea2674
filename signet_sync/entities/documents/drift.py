"""Compares a file with its events; distinguishes a person's edits, a lost anchor that can be restored, and drift."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from signet_sync.entities.documents.document import DocumentProblem, DocumentSection, EntityDocument, parse, render
from signet_sync.entities.documents.patch import change
from signet_sync.formats.entity_paths import Shape

Verdict = Literal["same", "human_edit", "reanchored", "drift"]

SIMILARITY = 0.85
# A change of one of these means that the file belongs to another entity or has another form.
GUARDED = ("kind", "id", "agent_id", "schema_version")
# The largest distance, in sections, between a section that lost its anchor and its former position.
_NEARBY = 2
# Bodies are compared up to this length, in characters.
_COMPARED = 20_000
# Shorter bodies, in characters, may be alike by chance.
_TELLING = 40


class Differences(NamedTuple):
    """The differences between a file and its events; sections by anchor, or by `#` and heading.

    `changed` have another body, `retitled` another heading or anchor line, `missing` and `added` exist on one side
    only, `moved` are in another order than the rest. `fields` are keys of the frontmatter with another value. `title`:
    the text above the first section differs. `layout`: only the frontmatter's formatting differs.
    """

    changed: tuple[str, ...] = ()
    retitled: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    title: bool = False
    layout: bool = False


NONE = Differences()


@dataclass(frozen=True, slots=True)
class DriftVerdict:
    """The verdict on a difference.

    `payload` is that of the `human_edit` that makes the events agree with the file (None for `same` and `drift`).
    `healed`, for `reanchored`, is the file with the one anchor that it had lost; it is written with an event of its own
    after the person's. `code`, `message` and `hint` explain drift to the maintainer.
    """

    verdict: Verdict
    drift: Differences = NONE
    payload: Mapping[str, Any] | None = None
    healed: EntityDocument | None = None
    code: str = ""
    message: str = ""
    hint: str = ""


def compare(on_disk: EntityDocument, replayed: EntityDocument) -> Differences:
    """Lists the differences between a file and its events."""
    there, known = _named(on_disk), _named(replayed)
    shared = [name for name in known if name in there]
    keys = {**replayed.fields, **on_disk.fields}
    fields = tuple(key for key in keys if _field(on_disk, key) != _field(replayed, key))
    return Differences(
        changed=tuple(name for name in shared if there[name].body != known[name].body),
        retitled=tuple(name for name in shared if there[name].opening != known[name].opening),
        missing=tuple(name for name in known if name not in there),
        added=tuple(name for name in there if name not in known),
        moved=_moved(shared, [name for name in there if name in known]),
        fields=fields,
        title=on_disk.lead != replayed.lead,
        layout=not fields and on_disk.head != replayed.head,
    )


def reanchor(
    on_disk: EntityDocument, section: DocumentSection, place: int, known: frozenset[str], similarity: float
) -> int | None:
    """Finds a section that lost its anchor (its position from 0); returns None if that is uncertain.

    Candidates are sections at most two places from its own whose anchor is not in `known`. The one with the same
    heading wins, otherwise the one most similar by heading or body, if the similarity is at least `similarity` (0 to
    1).
    """
    near = range(max(0, place - _NEARBY), min(len(on_disk.sections), place + _NEARBY + 1))
    free = [position for position in near if on_disk.sections[position].anchor not in known]
    ranked = sorted(((_likeness(on_disk.sections[position], section), position) for position in free), reverse=True)
    if not ranked or ranked[0][0] < similarity:
        return None
    if len(ranked) > 1 and ranked[1][0] == ranked[0][0]:
        return None
    return ranked[0][1]


def judge_against_events(
    text: str | None, replayed: EntityDocument, shapes: Sequence[Shape], *, similarity: float = SIMILARITY
) -> DriftVerdict:
    """Judges a file against its events.

    A person may change anything as long as the file still belongs to this entity and has all sections of its schema
    (`shapes`); one of these may have lost its anchor if it can be found. Everything else is drift: the file is not
    written before a maintainer has looked at it. `similarity` (0 to 1) is the limit for `reanchor`.
    """
    if text is None:
        return _drift(NONE, "file-missing", "the file is gone", "put it back, or have it rewritten from its events")
    if text == render(replayed):
        return DriftVerdict("same")
    try:
        on_disk = parse(text)
    except DocumentProblem as problem:
        return _drift(NONE, problem.code, problem.message, problem.hint)
    drift = compare(on_disk, replayed)
    taken = [key for key in GUARDED if key in drift.fields]
    if taken:
        return _drift(drift, "identity-changed", f"`{taken[0]}` was changed", "restore its former value")
    lost = [name for name in drift.missing if name in {shape.anchor for shape in shapes}]
    if not lost:
        return DriftVerdict("human_edit", drift, _payload(on_disk, replayed, drift))
    healed = _healed(on_disk, replayed, lost[0], similarity) if len(lost) == 1 else None
    if healed is None:
        hint = "put its heading and its anchor line back, or close the code fence or comment above it"
        return _drift(drift, "section-missing", f"the section `{lost[0]}` is gone", hint)
    return DriftVerdict("reanchored", drift, _payload(on_disk, replayed, drift), healed)


def _drift(drift: Differences, code: str, message: str, hint: str) -> DriftVerdict:
    return DriftVerdict("drift", drift, code=code, message=message, hint=hint)


def _payload(on_disk: EntityDocument, replayed: EntityDocument, drift: Differences) -> Mapping[str, Any]:
    sections = [*drift.changed, *drift.retitled, *drift.missing, *drift.added, *drift.moved]
    return {**change(replayed, on_disk), "sections": list(dict.fromkeys(sections)), "fields": list(drift.fields)}


def _healed(on_disk: EntityDocument, replayed: EntityDocument, name: str, similarity: float) -> EntityDocument | None:
    known = _named(replayed)
    place = list(known).index(name)
    found = reanchor(on_disk, known[name], place, frozenset(known), similarity)
    if found is None:
        return None
    sections = list(on_disk.sections)
    sections[found] = replace(sections[found], opening=known[name].opening)
    text = render(replace(on_disk, sections=tuple(sections)))
    try:
        healed = parse(text)
    except DocumentProblem:
        return None
    return healed if name in _named(healed) else None


def _named(document: EntityDocument) -> dict[str, DocumentSection]:
    """Returns the sections by name; a second one without anchor and with the same heading has its position appended."""
    named: dict[str, DocumentSection] = {}
    for place, section in enumerate(document.sections):
        name = section.anchor or f"#{section.heading}"
        named[f"{name}#{place}" if name in named else name] = section
    return named


def _field(document: EntityDocument, key: str) -> tuple[bool, Any]:
    return key in document.fields, document.fields.get(key)


def _moved(before: list[str], after: list[str]) -> tuple[str, ...]:
    """Returns the names out of order: the fewest that must be left out so that the others are in order."""
    place = {name: number for number, name in enumerate(after)}
    # The longest run of names that kept their order; of several the one that ends first.
    ends: list[str] = []
    earlier: dict[str, str | None] = {}
    for name in before:
        length = bisect_left(ends, place[name], key=place.__getitem__)
        earlier[name] = ends[length - 1] if length else None
        ends[length : length + 1] = [name]
    kept = set()
    last = ends[-1] if ends else None
    while last is not None:
        kept.add(last)
        last = earlier[last]
    return tuple(name for name in before if name not in kept)


def _likeness(found: DocumentSection, section: DocumentSection) -> float:
    if found.heading.casefold() == section.heading.casefold():
        return 2.0
    from rapidfuzz import fuzz

    heading = fuzz.ratio(found.heading.casefold(), section.heading.casefold())
    body = 0.0
    if min(len(found.body), len(section.body)) >= _TELLING:
        body = fuzz.ratio(found.body[:_COMPARED], section.body[:_COMPARED])
    return max(heading, body) / 100
