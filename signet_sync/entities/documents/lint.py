"""Finds deviations of an entity file from the schema; they are shown to agents and people, and no file is refused."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signet_sync.entities.documents.document import DocumentSection, EntityDocument, text_of
from signet_sync.entities.documents.edits import items
from signet_sync.entities.documents.escaping import blocks
from signet_sync.entities.events import tokens_in
from signet_sync.entities.evidence import QUOTE_LENGTH, claims_token, read_item
from signet_sync.formats.entity_paths import Shape, kind_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.token_estimate import estimate_tokens

_STRAY = re.compile(r"[ \t]*<!--[ \t]*section\b")
_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:T\S*)?(?=[\s—:]|$)", re.ASCII)
_REQUIRED = ("kind", "id", "agent_id", "schema_version", "created_at", "updated_at")
_TIMES = ("created_at", "updated_at")


class LintFinding(NamedTuple):
    """A finding: the section's anchor (None: the file), a stable code, and the next step for a person."""

    anchor: str | None
    code: str
    message: str
    hint: str


def lint(document: EntityDocument, shapes: Sequence[Shape]) -> list[LintFinding]:
    """Compares a file with the schema (`entity_paths.shapes`): fields, the order of sections, then each section."""
    found = [*_fields(document), *_order(document, shapes)]
    by_anchor = {shape.anchor: shape for shape in shapes}
    for section in document.sections:
        shape = by_anchor.get(section.anchor or "")
        found.extend(_anchor(section, shape, shapes))
        found.extend(_structure(section))
        if shape is not None:
            found.extend(too_long(section, shape))
            found.extend(_timestamps(section, shape))
            found.extend(_evidence(section, shape))
    return found


def too_long(section: DocumentSection, shape: Shape) -> Iterator[LintFinding]:
    """Yields one finding, `too-long`, if a section is above its soft cap."""
    size, unit = size_of(section, shape), "tokens" if shape.form == "narrative" else "items"
    if size > shape.soft_cap:
        yield LintFinding(
            shape.anchor,
            "too-long",
            f"{shape.heading} has {size} {unit}; the soft cap is {shape.soft_cap}",
            "prune it, or say why it is kept: `why: …; until: …; plan: …`",
        )


def size_of(section: DocumentSection, shape: Shape) -> int:
    """Returns how long a section is: tokens of a narrative, items of a list or log."""
    return estimate_tokens(text_of(section)) if shape.form == "narrative" else len(items(section))


# --- the file ---


def _fields(document: EntityDocument) -> Iterator[LintFinding]:
    fields = document.fields
    for name in _REQUIRED:
        if fields.get(name) is None:
            yield LintFinding(
                None, "field-missing", f"the field `{name}` is missing", f"write `{name}:` between the `---`"
            )
    for name in _TIMES:
        value = fields.get(name)
        if value is not None and not _is_utc(value):
            yield LintFinding(
                None, "timestamp-not-utc", f"`{name}` is not ISO 8601 in UTC", "write 2026-03-28T22:34:06Z"
            )
    kind, entity_id = fields.get("kind"), fields.get("id")
    if isinstance(entity_id, str) and kind is not None and kind_of(entity_id) != kind:
        yield LintFinding(
            None, "field-invalid", "`id` is not the id of such a `kind`", "write the id in the folder's name"
        )
    people = fields.get("participants")
    if kind == "relationship" and "participants" in fields and (not isinstance(people, list) or len(people) < 2):
        yield LintFinding(
            None, "field-invalid", "a relationship has at least two participants", "write their ids as a list"
        )


def _is_utc(value: object) -> bool:
    return isinstance(value, str) and "T" in value and value.endswith("Z") and parse_instant(value) is not None


def _order(document: EntityDocument, shapes: Sequence[Shape]) -> Iterator[LintFinding]:
    """Finds missing sections of the schema, sections out of order, and other sections between them."""
    rank = {shape.anchor: at for at, shape in enumerate(shapes)}
    headings = {shape.heading.casefold() for shape in shapes}
    present = [section.anchor for section in document.sections]
    named = {section.heading.casefold() for section in document.sections if section.anchor not in rank}
    for shape in shapes:
        if shape.anchor not in present and shape.heading.casefold() not in named:
            yield LintFinding(
                shape.anchor,
                "section-missing",
                f"the section {shape.heading} is missing",
                f"write `## {shape.heading}` and `<!-- section {shape.anchor} -->` under it",
            )
    highest = -1
    last = max((at for at, anchor in enumerate(present) if anchor in rank), default=-1)
    for at, section in enumerate(document.sections):
        place = rank.get(section.anchor or "")
        if place is None:
            if at < last and section.heading.casefold() not in headings:
                yield LintFinding(
                    section.anchor,
                    "section-unknown",
                    f"{section.heading[:60]} is between sections of the schema",
                    "move it to the bottom, or under Extensions",
                )
        elif place < highest:
            yield LintFinding(
                section.anchor,
                "section-misordered",
                f"{section.heading[:60]} comes after {shapes[highest].heading}",
                "keep the order: " + ", ".join(shape.heading for shape in shapes),
            )
        else:
            highest = place


# --- a section ---


def _anchor(section: DocumentSection, shape: Shape | None, shapes: Sequence[Shape]) -> Iterator[LintFinding]:
    heading = section.heading.casefold()
    named = next((known for known in shapes if known.heading.casefold() == heading), None)
    if shape is not None:
        if section.heading == shape.heading:
            return
        code = "anchor-wrong" if named is not None else "heading-wrong"
        message = f"the section `{shape.anchor}` is headed {section.heading[:60]}"
        yield LintFinding(shape.anchor, code, message, f"head it `## {shape.heading}`")
    elif named is not None:
        code = "anchor-missing" if section.anchor is None else "anchor-wrong"
        hint = f"write `<!-- section {named.anchor} -->` under the heading"
        yield LintFinding(named.anchor, code, f"{named.heading} lacks its anchor", hint)
    elif section.anchor is not None:
        message = f"no section of the schema has the anchor `{section.anchor}`"
        yield LintFinding(section.anchor, "anchor-unknown", message, "remove it; new fields go under Extensions")


def _structure(section: DocumentSection) -> Iterator[LintFinding]:
    """Finds misplaced titles and anchors."""
    for token in blocks(section.body):
        if token.type == "heading_open" and token.level == 0 and token.tag == "h1":
            yield LintFinding(section.anchor, "title-twice", "there is a second title", "make it a `###` heading")
        elif token.type == "html_block" and token.level == 0 and _STRAY.match(token.content):
            hint = "keep it on the line under the heading, or remove it"
            yield LintFinding(section.anchor, "anchor-stray", "there is an anchor inside the section", hint)


def _timestamps(section: DocumentSection, shape: Shape) -> Iterator[LintFinding]:
    if shape.form != "log":
        return
    for item in items(section):
        dated = _DATED.match(item.text)
        if dated is None or not (_is_utc(dated[0]) or _is_utc(f"{dated[0]}T00:00Z")):
            yield LintFinding(
                shape.anchor,
                "timestamp-not-utc",
                f"item {item.number} does not begin with a day or an instant in UTC",
                "begin it with 2026-03-28 or 2026-03-28T22:34:06Z",
            )


def _evidence(section: DocumentSection, shape: Shape) -> Iterator[LintFinding]:
    if shape.anchor != "evidence":
        return
    for item in items(section):
        if not tokens_in(item.text):
            claims = claims_token(item.text)
            yield LintFinding(
                shape.anchor,
                "token-invalid" if claims else "evidence-without-token",
                f"item {item.number} has {'a damaged' if claims else 'no'} event name",
                "`entity log` lists the events with their names, ev:…",
            )
        read = read_item(item.text)
        if read is not None and len(read.quote) > QUOTE_LENGTH:
            yield LintFinding(
                shape.anchor,
                "quote-too-long",
                f"the quote of item {item.number} has {len(read.quote)} characters",
                f"keep at most {QUOTE_LENGTH}; the event holds the rest",
            )
