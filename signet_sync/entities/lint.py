"""Finds deviations of an entity file from the schema; they are shown to agents and people, no file is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signet_sync.entities.document import DocumentSection, EntityDocument, items, text_of
from signet_sync.entities.events import tokens_in
from signet_sync.entities.finding import Finding
from signet_sync.formats.entity_paths import Shape
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.token_estimate import estimate_tokens

_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:T\S*)?(?=[\s—:]|$)", re.ASCII)
_REQUIRED = ("kind", "id", "agent_id", "schema_version", "created_at", "updated_at")


def lint(document: EntityDocument, shapes: Sequence[Shape]) -> list[Finding]:
    """Compares a file with the schema (`entity_paths.shapes`): fields, the order of sections, then each section."""
    return [*_lint_fields(document), *_lint_order(document, shapes), *_lint_sections(document, shapes)]


def too_long(section: DocumentSection, shape: Shape) -> Iterator[Finding]:
    """Yields one finding, `too-long`, if a section is above its soft cap."""
    size, unit = size_of(section, shape), "tokens" if shape.form == "narrative" else "items"
    if size > shape.soft_cap:
        message = f"{shape.heading} has {size} {unit}; the soft cap is {shape.soft_cap}"
        hint = "prune it, or say why it is kept: `why: …; until: …; plan: …`"
        yield Finding("too-long", message, hint, anchor=shape.anchor)


def size_of(section: DocumentSection, shape: Shape) -> int:
    """Returns how long a section is: tokens of a narrative, items of a list or log."""
    return estimate_tokens(text_of(section)) if shape.form == "narrative" else len(items(section))


def _lint_fields(document: EntityDocument) -> Iterator[Finding]:
    fields = document.fields
    for name in _REQUIRED:
        if fields.get(name) is None:
            yield Finding("field-missing", f"the field `{name}` is missing", f"write `{name}:` between the `---`")
        elif name.endswith("_at") and not _is_utc(fields[name]):
            yield Finding("timestamp-not-utc", f"`{name}` is not ISO 8601 in UTC", "write 2026-03-28T22:34:06Z")


def _is_utc(value: object) -> bool:
    return isinstance(value, str) and "T" in value and value.endswith("Z") and parse_instant(value) is not None


def _lint_order(document: EntityDocument, shapes: Sequence[Shape]) -> Iterator[Finding]:
    """Finds missing sections of the schema, and those that are out of order."""
    rank = {shape.anchor: at for at, shape in enumerate(shapes)}
    present = {name for section in document.sections for name in (section.anchor, section.heading.casefold())}
    for shape in shapes:
        if present.isdisjoint((shape.anchor, shape.heading.casefold())):
            hint = f"write `## {shape.heading}` and `<!-- section {shape.anchor} -->` under it, or close a fence above"
            yield Finding("section-missing", f"the section {shape.heading} is missing", hint, anchor=shape.anchor)
    highest = -1
    for section in document.sections:
        place = rank.get(section.anchor or "", highest)
        if place < highest:
            message = f"{section.heading[:60]} comes after {shapes[highest].heading}"
            hint = "keep the order: " + ", ".join(shape.heading for shape in shapes)
            yield Finding("section-misordered", message, hint, anchor=section.anchor)
        highest = max(highest, place)


def _lint_sections(document: EntityDocument, shapes: Sequence[Shape]) -> Iterator[Finding]:
    """Finds wrong headings and anchors; in a section of the schema what is too long, undated or without its event."""
    by_anchor = {shape.anchor: shape for shape in shapes}
    by_heading = {shape.heading.casefold(): shape for shape in shapes}
    for section in document.sections:
        shape, named = by_anchor.get(section.anchor or ""), by_heading.get(section.heading.casefold())
        if shape is not None:
            if section.heading != shape.heading:
                message = f"the section `{shape.anchor}` is headed {section.heading[:60]}"
                yield Finding("heading-wrong", message, f"head it `## {shape.heading}`", anchor=shape.anchor)
            yield from _lint_content(section, shape)
        elif named is not None:
            hint = f"write `<!-- section {named.anchor} -->` under the heading"
            yield Finding("anchor-wrong", f"{named.heading} lacks its anchor", hint, anchor=named.anchor)
        elif section.anchor is not None:
            message = f"no section of the schema has the anchor `{section.anchor}`"
            yield Finding("anchor-unknown", message, "remove it; new fields go under Extensions", anchor=section.anchor)


def _lint_content(section: DocumentSection, shape: Shape) -> Iterator[Finding]:
    yield from too_long(section, shape)
    for item in items(section) if shape.form == "log" else ():
        dated = _DATED.match(item.text)
        if dated is None or not (_is_utc(dated[0]) or _is_utc(f"{dated[0]}T00:00Z")):
            message = f"item {item.number} does not begin with a day or an instant in UTC"
            hint = "begin it with 2026-03-28 or 2026-03-28T22:34:06Z"
            yield Finding("timestamp-not-utc", message, hint, anchor=shape.anchor)
    for item in items(section) if shape.anchor == "evidence" else ():
        if not tokens_in(item.text):
            hint = "`entity log` lists the events with their names, ev:…"
            yield Finding("evidence-without-token", f"item {item.number} names no event", hint, anchor=shape.anchor)
