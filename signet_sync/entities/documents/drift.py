"""Where a file and its events differ: what a person may have done, what can be healed once, and what is drift."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from signet_sync.entities.documents.document import Document, DocumentProblem, Section, parse, render
from signet_sync.entities.documents.patch import change
from signet_sync.formats.entity_paths import Shape

Verdict = Literal["same", "human_edit", "reanchored", "drift"]

SIMILARITY = 0.85
# Whoever changes one of these says that the file is another entity's, or of another form.
GUARDED = ("kind", "id", "agent_id", "schema_version")
# How many places a section that lost its anchor may stand from where it stood.
_NEARBY = 2
# Bodies are compared up to here: characters.
_COMPARED = 20_000
# Two bodies that say hardly anything are alike by chance: characters.
_TELLING = 40


class Drift(NamedTuple):
    """What differs between a file and its events; sections by their anchors, one without by `#` and its heading.

    `changed` have another body, `retitled` another heading or anchor line, `missing` and `added` stand on one side
    only, `moved` in another order than the rest. `fields` are keys of the frontmatter with another value, `title` says
    whether what stands above the first section differs, `layout` whether only the frontmatter's formatting does.
    """

    changed: tuple[str, ...] = ()
    retitled: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    title: bool = False
    layout: bool = False


NONE = Drift()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a difference is.

    `payload` is that of the `human_edit` which makes the events agree with the file (None for `same` and `drift`);
    `healed` the file with the one anchor that it had lost, for `reanchored`: it is written by an event of its own,
    after the person's. `code`, `message` and `hint` say why a file is drift, to the maintainer.
    """

    verdict: Verdict
    drift: Drift = NONE
    payload: Mapping[str, Any] | None = None
    healed: Document | None = None
    code: str = ""
    message: str = ""
    hint: str = ""


def compare(on_disk: Document, replayed: Document) -> Drift:
    """What is otherwise in the file than in its events."""
    there, known = _named(on_disk), _named(replayed)
    shared = [name for name in known if name in there]
    keys = {**replayed.fields, **on_disk.fields}
    fields = tuple(key for key in keys if _field(on_disk, key) != _field(replayed, key))
    return Drift(
        changed=tuple(name for name in shared if there[name].body != known[name].body),
        retitled=tuple(name for name in shared if there[name].opening != known[name].opening),
        missing=tuple(name for name in known if name not in there),
        added=tuple(name for name in there if name not in known),
        moved=_moved(shared, [name for name in there if name in known]),
        fields=fields,
        title=on_disk.lead != replayed.lead,
        layout=not fields and on_disk.head != replayed.head,
    )


def reanchor(on_disk: Document, section: Section, place: int, known: frozenset[str], similarity: float) -> int | None:
    """Where a section that lost its anchor stands now (its position from 0); None where that is not sure.

    Looked at are only sections at most two places from its own whose anchor is none of `known`. It is the one whose
    heading is the same, else the one that is most like it by heading or body, by at least `similarity` (0 to 1).
    """
    near = range(max(0, place - _NEARBY), min(len(on_disk.sections), place + _NEARBY + 1))
    free = [position for position in near if on_disk.sections[position].anchor not in known]
    ranked = sorted(((_likeness(on_disk.sections[position], section), position) for position in free), reverse=True)
    if not ranked or ranked[0][0] < similarity:
        return None
    if len(ranked) > 1 and ranked[1][0] == ranked[0][0]:
        return None
    return ranked[0][1]


def judge(
    text: str | None, replayed: Document, shapes: Sequence[Shape], *, similarity: float = SIMILARITY
) -> Judgement:
    """What stands in a file against what its events say.

    A person may change whatever they like as long as the file stays one of this entity with all the sections of its
    schema (`shapes`); one of these may have lost its anchor, if it is found again. Anything else is drift: nobody
    writes to such a file before a maintainer has looked. `similarity` (0 to 1) is what `reanchor` asks for.
    """
    if text is None:
        return _drift(NONE, "file-missing", "the file is gone", "put it back, or have it written again from its events")
    if text == render(replayed):
        return Judgement("same")
    try:
        on_disk = parse(text)
    except DocumentProblem as problem:
        return _drift(NONE, problem.code, problem.message, problem.hint)
    drift = compare(on_disk, replayed)
    taken = [key for key in GUARDED if key in drift.fields]
    if taken:
        return _drift(drift, "identity-changed", f"`{taken[0]}` is not what it was", "give it the value that it had")
    lost = [name for name in drift.missing if name in {shape.anchor for shape in shapes}]
    if not lost:
        return Judgement("human_edit", drift, _payload(on_disk, replayed, drift))
    healed = _healed(on_disk, replayed, lost[0], similarity) if len(lost) == 1 else None
    if healed is None:
        hint = "put its heading and its anchor line back, or close the code fence or comment above it"
        return _drift(drift, "section-missing", f"the section `{lost[0]}` is gone", hint)
    return Judgement("reanchored", drift, _payload(on_disk, replayed, drift), healed)


def _drift(drift: Drift, code: str, message: str, hint: str) -> Judgement:
    return Judgement("drift", drift, code=code, message=message, hint=hint)


def _payload(on_disk: Document, replayed: Document, drift: Drift) -> Mapping[str, Any]:
    sections = [*drift.changed, *drift.retitled, *drift.missing, *drift.added, *drift.moved]
    return {
        **change(replayed, on_disk),
        "sections": list(dict.fromkeys(sections)),
        "fields": list(drift.fields),
    }


def _healed(on_disk: Document, replayed: Document, name: str, similarity: float) -> Document | None:
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


def _named(document: Document) -> dict[str, Section]:
    """The sections by their names; a second one without anchor and with the same heading counts its place too."""
    named: dict[str, Section] = {}
    for place, section in enumerate(document.sections):
        name = section.anchor or f"#{section.heading}"
        named[f"{name}#{place}" if name in named else name] = section
    return named


def _field(document: Document, key: str) -> tuple[bool, Any]:
    return key in document.fields, document.fields.get(key)


def _moved(before: list[str], after: list[str]) -> tuple[str, ...]:
    """The names that stand in another order: the fewest that must be taken out for the others to be in order."""
    place = {name: number for number, name in enumerate(after)}
    # The longest run of names that kept their order: of all runs of one length the one that ends first.
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


def _likeness(found: Section, section: Section) -> float:
    if found.heading.casefold() == section.heading.casefold():
        return 2.0
    from rapidfuzz import fuzz

    heading = fuzz.ratio(found.heading.casefold(), section.heading.casefold())
    body = 0.0
    if min(len(found.body), len(section.body)) >= _TELLING:
        body = fuzz.ratio(found.body[:_COMPARED], section.body[:_COMPARED])
    return max(heading, body) / 100
