"""Finds deviations of an entity file from the schema; they are shown to agents and people, and no file is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from signet_sync.entities.documents.document import DocumentSection, EntityDocument, text_of
from signet_sync.entities.documents.edits import items
from signet_sync.entities.documents.escaping import blocks
from signet_sync.entities.events import tokens_in
from signet_sync.entities.evidence import QUOTE_LENGTH, claims_token, read_item
from signet_sync.entities.finding import Finding
from signet_sync.formats.entity_paths import Shape, kind_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.token_estimate import estimate_tokens

_STRAY = re.compile(r"[ \t]*<!--[ \t]*section\b[ \t]*([\w-]*)")
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:T\S*)?(?=[\s—:]|$)", re.ASCII)
_REQUIRED = ("kind", "id", "agent_id", "schema_version", "created_at", "updated_at")
_TIMES = ("created_at", "updated_at")


def lint(document: EntityDocument, shapes: Sequence[Shape]) -> list[Finding]:
    """Compares a file with the schema (`entity_paths.shapes`): fields, the order of sections, then each section."""
    found = [*_fields(document), *_order(document, shapes)]
    by_anchor = {shape.anchor: shape for shape in shapes}
    lost = {shape.anchor: shape for shape in shapes} | dict.fromkeys(
        section.anchor or "" for section in document.sections
    )
    for section in document.sections:
        shape = by_anchor.get(section.anchor or "")
        found.extend(_anchor(section, shape, shapes))
        found.extend(_content(section, shape, lost))
    headless = {one.anchor for one in found if one.code == "heading-missing"}
    return [one for one in found if one.code != "section-missing" or one.anchor not in headless]


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


def _fields(document: EntityDocument) -> Iterator[Finding]:
    fields = document.fields
    for name in _REQUIRED:
        if fields.get(name) is None:
            yield Finding("field-missing", f"the field `{name}` is missing", f"write `{name}:` between the `---`")
    for name in _TIMES:
        if fields.get(name) is not None and not _is_utc(fields.get(name)):
            yield Finding("timestamp-not-utc", f"`{name}` is not ISO 8601 in UTC", "write 2026-03-28T22:34:06Z")
    kind, entity_id, people = fields.get("kind"), fields.get("id"), fields.get("participants")
    if isinstance(entity_id, str) and kind is not None and kind_of(entity_id) != kind:
        yield Finding("field-invalid", "`id` is not the id of such a `kind`", "write the id in the folder's name")
    if kind == "relationship" and "participants" in fields and (not isinstance(people, list) or len(people) < 2):
        message = "a relationship has at least two participants"
        yield Finding("field-invalid", message, "write their ids as a list")


def _is_utc(value: object) -> bool:
    return isinstance(value, str) and "T" in value and value.endswith("Z") and parse_instant(value) is not None


def _order(document: EntityDocument, shapes: Sequence[Shape]) -> Iterator[Finding]:
    """Finds missing sections of the schema, sections out of order, and other sections between them."""
    rank = {shape.anchor: at for at, shape in enumerate(shapes)}
    headings = {shape.heading.casefold() for shape in shapes}
    present = [section.anchor for section in document.sections]
    named = {section.heading.casefold() for section in document.sections if section.anchor not in rank}
    for shape in shapes:
        if shape.anchor not in present and shape.heading.casefold() not in named:
            hint = f"write `## {shape.heading}` and `<!-- section {shape.anchor} -->` under it, or close a fence above"
            yield Finding("section-missing", f"the section {shape.heading} is missing", hint, anchor=shape.anchor)
    highest = -1
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


def _anchor(section: DocumentSection, shape: Shape | None, shapes: Sequence[Shape]) -> Iterator[Finding]:
    heading = section.heading.casefold()
    named = next((known for known in shapes if known.heading.casefold() == heading), None)
    if shape is not None:
        if section.heading != shape.heading:
            code = "anchor-wrong" if named is not None else "heading-wrong"
            message = f"the section `{shape.anchor}` is headed {section.heading[:60]}"
            yield Finding(code, message, f"head it `## {shape.heading}`", anchor=shape.anchor)
    elif named is not None:
        code = "anchor-missing" if section.anchor is None else "anchor-wrong"
        hint = f"write `<!-- section {named.anchor} -->` under the heading"
        yield Finding(code, f"{named.heading} lacks its anchor", hint, anchor=named.anchor)
    elif section.anchor is not None:
        message = f"no section of the schema has the anchor `{section.anchor}`"
        yield Finding("anchor-unknown", message, "remove it; new fields go under Extensions", anchor=section.anchor)


def _content(section: DocumentSection, shape: Shape | None, lost: Mapping[str, Shape | None]) -> Iterator[Finding]:
    """Finds misplaced titles and anchors; in a section of the schema what is too long, undated or without its event.

    `lost` are the sections of the schema that are missing: one whose anchor is here lost only its heading.
    """

    def say(code: str, message: str, hint: str) -> Finding:
        return Finding(code, message, hint, anchor=section.anchor)

    for token in blocks(section.body):
        if token.type == "heading_open" and token.level == 0 and token.tag == "h1":
            yield say("title-twice", "there is a second title", "make it a `###` heading")
        elif token.type == "html_block" and token.level == 0 and (stray := _STRAY.match(token.content)):
            if (headless := lost.get(stray[1])) is not None:
                message, hint = (
                    f"{headless.heading} lacks its heading",
                    f"write `## {headless.heading}` above its anchor",
                )
                yield Finding("heading-missing", message, hint, anchor=headless.anchor)
                continue
            hint = "keep it on the line under the heading, or remove it"
            yield say("anchor-stray", "there is an anchor inside the section", hint)
    if shape is None:
        return
    yield from too_long(section, shape)
    for item in items(section) if shape.form == "log" else ():
        dated = _DATED.match(item.text)
        if dated is None or not (_is_utc(dated[0]) or _is_utc(f"{dated[0]}T00:00Z")):
            message = f"item {item.number} does not begin with a day or an instant in UTC"
            yield say("timestamp-not-utc", message, "begin it with 2026-03-28 or 2026-03-28T22:34:06Z")
    for item in items(section) if shape.anchor == "evidence" else ():
        if not tokens_in(item.text):
            claims, hint = claims_token(item.text), "`entity log` lists the events with their names, ev:…"
            code = "token-invalid" if claims else "evidence-without-token"
            yield say(code, f"item {item.number} has {'a damaged' if claims else 'no'} event name", hint)
        read = read_item(item.text)
        if read is not None and len(read.quote) > QUOTE_LENGTH:
            message = f"the quote of item {item.number} has {len(read.quote)} characters"
            yield say("quote-too-long", message, f"keep at most {QUOTE_LENGTH}; the event holds the rest")
