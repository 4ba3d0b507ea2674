"""Finds deviations of an entity file from the schema; they are shown to agents and people, no file is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signet_sync.entities.agent_text import QUOTE_LENGTH, blocks, read_item
from signet_sync.entities.document import DocumentSection, EntityDocument, items, text_of
from signet_sync.entities.events import tokens_in
from signet_sync.entities.finding import Finding
from signet_sync.formats.entity_paths import Shape, kind_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.token_estimate import estimate_tokens

_STRAY = re.compile(r"[ \t]*<!--[ \t]*section\b[ \t]*([\w-]*)")
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:T\S*)?(?=[\s—:]|$)", re.ASCII)
_CLAIMS_TOKEN = re.compile(r"(?<![\w:])ev:\S+")
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
    kind, entity_id, people = fields.get("kind"), fields.get("id"), fields.get("participants")
    if isinstance(entity_id, str) and kind is not None and kind_of(entity_id) != kind:
        yield Finding("field-invalid", "`id` is not the id of such a `kind`", "write the id in the folder's name")
    if kind == "relationship" and "participants" in fields and (not isinstance(people, list) or len(people) < 2):
        message = "a relationship has at least two participants"
        yield Finding("field-invalid", message, "write their ids as a list")


def _is_utc(value: object) -> bool:
    return isinstance(value, str) and "T" in value and value.endswith("Z") and parse_instant(value) is not None


def _lint_order(document: EntityDocument, shapes: Sequence[Shape]) -> Iterator[Finding]:
    """Finds missing sections of the schema, sections out of order, and other sections between them."""
    rank = {shape.anchor: at for at, shape in enumerate(shapes)}
    present = [section.anchor for section in document.sections]
    named = {section.heading.casefold() for section in document.sections if section.anchor not in rank}
    # What lost its heading alone is not missing.
    held = {stray for one in document.sections for stray in _find_strays(one)}
    for shape in shapes:
        if shape.anchor not in {*present, *held} and shape.heading.casefold() not in named:
            hint = f"write `## {shape.heading}` and `<!-- section {shape.anchor} -->` under it, or close a fence above"
            yield Finding("section-missing", f"the section {shape.heading} is missing", hint, anchor=shape.anchor)
    highest, headings = -1, {shape.heading.casefold() for shape in shapes}
    last = max((at for at, anchor in enumerate(present) if anchor in rank), default=-1)
    for at, section in enumerate(document.sections):
        place, heading = rank.get(section.anchor or ""), section.heading[:60]
        if place is None:
            if at < last and section.heading.casefold() not in headings:
                message, hint = f"{heading} is between sections of the schema", "move it to the bottom"
                yield Finding("section-unknown", message, f"{hint}, or under Extensions", anchor=section.anchor)
        elif place < highest:
            message = f"{heading} comes after {shapes[highest].heading}"
            hint = "keep the order: " + ", ".join(shape.heading for shape in shapes)
            yield Finding("section-misordered", message, hint, anchor=section.anchor)
        else:
            highest = place


def _lint_sections(document: EntityDocument, shapes: Sequence[Shape]) -> Iterator[Finding]:
    """Finds wrong headings and anchors; in a section of the schema what is too long, undated or without its event."""
    by_anchor = {shape.anchor: shape for shape in shapes}
    by_heading = {shape.heading.casefold(): shape for shape in shapes}
    present = {section.anchor for section in document.sections}
    for section in document.sections:
        shape, named = by_anchor.get(section.anchor or ""), by_heading.get(section.heading.casefold())
        if shape is not None and section.heading != shape.heading:
            code = "anchor-wrong" if named is not None else "heading-wrong"
            message = f"the section `{shape.anchor}` is headed {section.heading[:60]}"
            yield Finding(code, message, f"head it `## {shape.heading}`", anchor=shape.anchor)
        elif shape is None and named is not None:
            code = "anchor-missing" if section.anchor is None else "anchor-wrong"
            hint = f"write `<!-- section {named.anchor} -->` under the heading"
            yield Finding(code, f"{named.heading} lacks its anchor", hint, anchor=named.anchor)
        elif shape is None and section.anchor is not None:
            message = f"no section of the schema has the anchor `{section.anchor}`"
            yield Finding("anchor-unknown", message, "remove it; new fields go under Extensions", anchor=section.anchor)
        for stray in _find_strays(section):
            lost = by_anchor.get(stray) if stray is not None and stray not in present else None
            if stray is None:
                message, hint = "there is a second title", "make it a `###` heading"
                yield Finding("title-twice", message, hint, anchor=section.anchor)
            elif lost is not None:
                message, hint = f"{lost.heading} lacks its heading", f"write `## {lost.heading}` above its anchor"
                yield Finding("heading-missing", message, hint, anchor=lost.anchor)
            else:
                hint = "keep it on the line under the heading, or remove it"
                yield Finding("anchor-stray", "there is an anchor inside the section", hint, anchor=section.anchor)
        if shape is not None:
            yield from _lint_content(section, shape)


def _find_strays(section: DocumentSection) -> Iterator[str | None]:
    """Yields the anchors inside a section, and None for a second title."""
    for token in blocks(section.body):
        if token.type == "heading_open" and token.level == 0 and token.tag == "h1":
            yield None
        elif token.type == "html_block" and token.level == 0 and (stray := _STRAY.match(token.content)):
            yield stray[1]


def _lint_content(section: DocumentSection, shape: Shape) -> Iterator[Finding]:
    yield from too_long(section, shape)
    for item in items(section) if shape.form == "log" else ():
        dated = _DATED.match(item.text)
        if dated is None or not (_is_utc(dated[0]) or _is_utc(f"{dated[0]}T00:00Z")):
            message = f"item {item.number} does not begin with a day or an instant in UTC"
            hint = "begin it with 2026-03-28 or 2026-03-28T22:34:06Z"
            yield Finding("timestamp-not-utc", message, hint, anchor=shape.anchor)
    for item in items(section) if shape.anchor == "evidence" else ():
        read, claims = read_item(item.text), _CLAIMS_TOKEN.search(item.text) is not None
        if not tokens_in(item.text):
            code, what = ("token-invalid", "a damaged") if claims else ("evidence-without-token", "no")
            hint = "`entity log` lists the events with their names, ev:…"
            yield Finding(code, f"item {item.number} has {what} event name", hint, anchor=shape.anchor)
        if read is not None and len(read.quote) > QUOTE_LENGTH:
            message = f"the quote of item {item.number} has {len(read.quote)} characters"
            hint = f"keep at most {QUOTE_LENGTH}; the event holds the rest"
            yield Finding("quote-too-long", message, hint, anchor=shape.anchor)
