"""Edits one section, item or field of an entity file; every other byte stays the same."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as but
from typing import Any, NamedTuple

from signet_sync.entities.documents import frontmatter_edit
from signet_sync.entities.documents.document import DocumentSection, EntityDocument, find, position
from signet_sync.entities.documents.escaping import SafeText, blocks, fit_title
from signet_sync.errors import UsageError
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.text.sentences import escape

KEY_LENGTH = 8

_BLANKS = " \t\r\n"
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_LIST_LINE = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)|[ \t]")


class ListItem(NamedTuple):
    """A top-level item of a section: its number from 1, a short hash of its text, the text without its marker.

    `start` and `end` are the offsets of its lines in the section's body.
    """

    number: int
    key: str
    text: str
    start: int
    end: int


def replace(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Replaces the text of a section. Raises as `find`."""
    return _with_text(document, name, text)


def append(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Appends paragraphs to a section. Raises as `find`."""
    return _with_text(document, name, text, gap="\n\n")


def append_item(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Appends an item to a section. Raises as `find`."""
    gap = "\n" if _ends_in_list(_text(find(document, name).body)) else "\n\n"
    return _with_text(document, name, f"- {text}", gap=gap)


def put_body(document: EntityDocument, name: str, body: str) -> EntityDocument:
    """Sets the exact body of a section, as a person wrote it."""
    at = position(document, name)
    section = but(document.sections[at], body=body)
    if body and not section.opening.endswith(("\n", "\r")):
        # The file ended directly after the anchor.
        section = but(section, opening=section.opening + frontmatter_edit.line_end(document.head))
    return but(document, sections=(*document.sections[:at], section, *document.sections[at + 1 :]))


def items(section: DocumentSection) -> tuple[ListItem, ...]:
    """Returns the items of a section's top-level lists, in order."""
    lines = frontmatter_edit.LINES.findall(section.body)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    found: list[ListItem] = []
    for start, end in _item_lines(section.body):
        while end > start + 1 and not lines[end - 1].strip(_BLANKS):
            end -= 1
        text = _item_text(lines[start:end])
        key = text_sha256(text)[:KEY_LENGTH]
        found.append(ListItem(len(found) + 1, key, text, offsets[start], offsets[end]))
    return tuple(found)


def prune_item(document: EntityDocument, name: str, item: str) -> tuple[EntityDocument, str]:
    """Removes an item, given by key or number; returns the document and the text of the item.

    Raises as `find`, and `UsageError` (`item-unknown`, `item-ambiguous`).
    """
    section = find(document, name)
    gone = _item(section, item)
    before, after = section.body[: gone.start], section.body[gone.end :]
    gap = "" if _may_meet(section, gone) else frontmatter_edit.line_end(document.head)
    return put_body(document, name, _laid(document, section, _text(before + gap + after))), gone.text


def with_fields(document: EntityDocument, changes: Mapping[str, Any], gone: Collection[str] = ()) -> EntityDocument:
    """Changes values of the frontmatter; its other lines stay the same.

    Values are text, whole numbers, None or sequences of text; new keys come last. Keys in `gone` are removed.
    """
    fields = {key: value for key, value in document.fields.items() if key not in gone}
    fields |= {key: frontmatter_edit.as_read(value) for key, value in changes.items()}
    return but(document, head=frontmatter_edit.changed(document.head, document.fields, changes, gone), fields=fields)


def with_title(document: EntityDocument, title: str) -> EntityDocument:
    """Changes the title. Raises `UsageError` (`text-empty`)."""
    name = fit_title(title)
    lines = frontmatter_edit.LINES.findall(document.lead)
    start, end = next(
        token.map for token in blocks(document.lead) if token.type == "heading_open" and not token.level and token.map
    )
    closing = _LINE_END.search(lines[end - 1])
    lines[start:end] = [f"# {escape(name)}{closing[0] if closing else ''}"]
    return but(document, lead="".join(lines), title=name)


# --- items ---


def _item_lines(body: str) -> Iterator[tuple[int, int]]:
    for token in blocks(body):
        if token.type == "list_item_open" and token.level == 1 and token.map is not None:
            yield token.map[0], token.map[1]


def _item_text(lines: Sequence[str]) -> str:
    """Returns an item's text without its marker and the indentation of its further lines."""
    marker = _MARKER.match(lines[0].rstrip("\r\n"))
    width = marker.end() if marker is not None else 0
    further = (line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines[1:])
    return normalize(lines[0][width:] + "".join(further))


def _item(section: DocumentSection, name: str) -> ListItem:
    known = items(section)
    wanted = name.strip().removeprefix("#")
    found = [item for item in known if item.key == wanted]
    if not found and wanted.isascii() and wanted.isdigit():
        found = [item for item in known if str(item.number) == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        numbers = ", ".join(str(item.number) for item in found)
        raise UsageError(
            f"{len(found)} items of {section.heading} are alike",
            hint=f"name one by its number: {numbers}",
            code="item-ambiguous",
        )
    raise UsageError(
        f"{section.heading} has no item {name[:60]!r}",
        hint=f"it has {len(known)}; `entity show` lists them with their keys",
        code="item-unknown",
    )


# --- laying out ---


def _with_text(document: EntityDocument, name: str, text: str, *, gap: str | None = None) -> EntityDocument:
    """Replaces a section's text, or appends to it after `gap`; uses the line ends of the file."""
    section = find(document, name)
    kept = _text(section.body) if gap is not None else ""
    added = f"{gap}{text}" if kept else text
    return put_body(document, name, _laid(document, section, kept + _with_ends(added, document)))


def _with_ends(text: str, document: EntityDocument) -> str:
    end = frontmatter_edit.line_end(document.head)
    return text if end == "\n" else text.replace("\n", end)


def _text(body: str) -> str:
    """Returns a body without the blank lines around it; other bytes stay the same."""
    return body[_lead_length(body) :].rstrip(_BLANKS)


def _lead_length(body: str) -> int:
    lead = _BLANK_LINES.match(body)
    return lead.end() if lead is not None else 0


def _laid(document: EntityDocument, section: DocumentSection, text: str) -> str:
    """Returns a body with the blank lines of the old one around `text`, and as many as Markdown needs."""
    end = frontmatter_edit.line_end(document.head)
    last = section is document.sections[-1]
    if not text:
        return "" if last else end
    old = _text(section.body)
    if not old:
        return f"{end}{text}{end if last else end * 2}"
    lead = section.body[: _lead_length(section.body)]
    trail = section.body[len(lead) + len(old) :]
    if not last and len(_LINE_END.findall(trail)) < 2:
        # Without a blank line some texts would include the next heading.
        trail = end * 2
    return f"{lead}{text}{trail}"


def _ends_in_list(text: str) -> bool:
    """Checks whether an item may follow on the next line: all lines after the last blank one belong to a list."""
    for line in reversed(_LINE_END.split(text)):
        if not line.strip(_BLANKS):
            break
        if _LIST_LINE.match(line) is None:
            return False
    return True


def _may_meet(section: DocumentSection, gone: ListItem) -> bool:
    """Checks that the lines around an item keep their meaning without it: two items of one list, or a blank line."""
    body = section.body
    above, below = _LINE_END.split(body[: gone.start])[-2:-1], _LINE_END.split(body[gone.end :], maxsplit=1)[0]
    if not above or not above[0].strip(_BLANKS) or not below.strip(_BLANKS):
        return True
    neighbours = [item for item in items(section) if item.end == gone.start or item.start == gone.end]
    return len({_list_of(body[item.start : item.end]) for item in neighbours}) == 1 and len(neighbours) == 2


def _list_of(item: str) -> str:
    """Returns what the markers of one list have in common: the bullet, or the sign after the number."""
    return item.lstrip().lstrip("0123456789")[0]
