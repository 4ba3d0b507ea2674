"""Edits one section, item or field of an entity file; every other byte stays the same."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace as but
from typing import Any, NamedTuple

from signet_sync.entities.documents.document import (
    LINES,
    DocumentSection,
    EntityDocument,
    as_read,
    find,
    position,
)
from signet_sync.entities.documents.escaping import SafeText, blocks, fit_title
from signet_sync.errors import UsageError
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.frontmatter import read, serialize, split, unknown_entries
from signet_sync.text.sentences import escape

KEY_LENGTH = 8

_BLANKS = " \t\r\n"
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)", re.ASCII)
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
    return _with_text(document, name, text, None)


def append(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Appends paragraphs to a section. Raises as `find`."""
    return _with_text(document, name, text, "\n\n")


def append_item(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Appends an item to a section. Raises as `find`."""
    gap = "\n" if _ends_in_list(_text(find(document, name).body)) else "\n\n"
    return _with_text(document, name, f"- {text}", gap)


def put_body(document: EntityDocument, name: str, body: str) -> EntityDocument:
    """Sets the exact body of a section, as a person wrote it."""
    at = position(document, name)
    section = but(document.sections[at], body=body)
    if body and not section.opening.endswith(("\n", "\r")):
        # The file ended directly after the anchor.
        section = but(section, opening=section.opening + _line_end(document.head))
    return but(document, sections=(*document.sections[:at], section, *document.sections[at + 1 :]))


def items(section: DocumentSection) -> tuple[ListItem, ...]:
    """Returns the items of a section's top-level lists, in order."""
    lines = LINES.findall(section.body)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    found: list[ListItem] = []
    for token in blocks(section.body):
        if token.type != "list_item_open" or token.level != 1 or token.map is None:
            continue
        start, end = token.map
        while end > start + 1 and not lines[end - 1].strip(_BLANKS):
            end -= 1
        marker = _MARKER.match(lines[start].rstrip("\r\n"))
        width = marker.end() if marker is not None else 0
        further = (line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines[start + 1 : end])
        text = normalize(lines[start][width:] + "".join(further))
        key = text_sha256(text)[:KEY_LENGTH]
        found.append(ListItem(len(found) + 1, key, text, offsets[start], offsets[end]))
    return tuple(found)


def prune_item(document: EntityDocument, name: str, item: str) -> tuple[EntityDocument, str]:
    """Removes an item, given by key or number; returns the document and the text of the item.

    Raises as `find`, and `UsageError` (`item-unknown`, `item-ambiguous`).
    """
    section = find(document, name)
    known, wanted = items(section), item.strip().removeprefix("#")
    found = [one for one in known if one.key == wanted]
    if not found and wanted.isascii() and wanted.isdigit():
        found = [one for one in known if str(one.number) == wanted]
    if len(found) > 1:
        message, numbers = f"{len(found)} items of {section.heading} are alike", ", ".join(str(o.number) for o in found)
        raise UsageError(message, hint=f"name one by its number: {numbers}", code="item-ambiguous")
    if not found:
        hint = f"it has {len(known)}; `entity show` lists them with their keys"
        raise UsageError(f"{section.heading} has no item {item[:60]!r}", hint=hint, code="item-unknown")
    gone = found[0]
    before, after = section.body[: gone.start], section.body[gone.end :]
    gap = "" if _may_meet(section, gone) else _line_end(document.head)
    return put_body(document, name, _laid(document, section, _text(before + gap + after))), gone.text


def with_fields(document: EntityDocument, changes: Mapping[str, Any], gone: Collection[str] = ()) -> EntityDocument:
    """Changes values of the frontmatter; its other lines stay the same.

    Values are text, whole numbers, None or sequences of text; new keys come last. Keys in `gone` are removed. If the
    other keys would then be read differently (values over several lines, in forms of YAML that people do not write by
    hand), the whole frontmatter is rewritten; each of the other keys keeps its lines.
    """
    fields = {key: value for key, value in document.fields.items() if key not in gone}
    fields |= {key: as_read(value) for key, value in changes.items()}
    head = document.head
    end, lines = _line_end(head), LINES.findall(head)
    for key in (*gone, *changes):
        start, stop = _lines_of(key, lines)
        new = serialize({key: changes[key]}).split("\n")[1:-1] if key in changes else ()
        lines[start:stop] = [f"{line}{end}" for line in new]
    after = "".join(lines)
    try:
        as_wanted = read(_inner(after)) == fields
    except ValueError:
        as_wanted = False
    if not as_wanted:
        entries: dict[str, Any] = dict(unknown_entries(_inner(head), frozenset(gone)))
        text = serialize({**entries, **changes}) + "\n"
        after = ("\ufeff" if head.startswith("\ufeff") else "") + text.replace("\n", end)
    return but(document, head=after, fields=fields)


def with_title(document: EntityDocument, title: str) -> EntityDocument:
    """Changes the title. Raises `UsageError` (`text-empty`)."""
    name = fit_title(title)
    lines = LINES.findall(document.lead)
    start, end = next(
        token.map for token in blocks(document.lead) if token.type == "heading_open" and not token.level and token.map
    )
    closing = _LINE_END.search(lines[end - 1])
    lines[start:end] = [f"# {escape(name)}{closing[0] if closing else ''}"]
    return but(document, lead="".join(lines), title=name)


# --- frontmatter ---


def _lines_of(key: str, lines: list[str]) -> tuple[int, int]:
    """Returns the lines of a top-level key; for an unknown key, the position before the closing fence."""
    last = next(at for at in range(1, len(lines)) if lines[at].rstrip() == "---")
    for start in range(1, last):
        match = _KEY.match(lines[start])
        if match is None or match[1] != key:
            continue
        stop = start + 1
        # List items need no indentation; blank lines and comments after the value are not ours.
        for at in range(start + 1, last):
            if lines[at].startswith((" ", "\t", "- ")) and lines[at].strip():
                stop = at + 1
            elif lines[at].strip():
                break
        return start, stop
    return last, last


def _inner(head: str) -> str:
    text = head.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return split(text)[0]


def _line_end(text: str) -> str:
    """Returns the line end of a text's first line; a line feed if there is none."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


# --- laying out ---


def _with_text(document: EntityDocument, name: str, text: str, gap: str | None) -> EntityDocument:
    """Replaces a section's text, or appends to it after `gap`; uses the line ends of the file."""
    section, end = find(document, name), _line_end(document.head)
    kept = _text(section.body) if gap is not None else ""
    added = f"{gap}{text}" if kept else text
    return put_body(document, name, _laid(document, section, kept + added.replace("\n", end)))


def _text(body: str) -> str:
    """Returns a body without the blank lines around it; other bytes stay the same."""
    return body[_lead_length(body) :].rstrip(_BLANKS)


def _lead_length(body: str) -> int:
    lead = _BLANK_LINES.match(body)
    return lead.end() if lead is not None else 0


def _laid(document: EntityDocument, section: DocumentSection, text: str) -> str:
    """Returns a body with the blank lines of the old one around `text`, and as many as Markdown needs."""
    end = _line_end(document.head)
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
    # What the markers of one list have in common: the bullet, or the sign after the number.
    marks = [body[item.start : item.end].lstrip().lstrip("0123456789")[0] for item in neighbours]
    return len(marks) == 2 and marks[0] == marks[1]
