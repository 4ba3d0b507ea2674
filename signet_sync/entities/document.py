"""Parses, makes and edits the text of entity files: frontmatter, title, sections with hidden anchors. Pure.

An edit changes one section, item or field; every other byte stays the same.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as but
from itertools import takewhile
from typing import Any, NamedTuple

from signet_sync.entities.agent_text import SafeText, blocks, fit_title
from signet_sync.errors import UsageError
from signet_sync.formats.body import fix_surrogates, normalize, text_sha256
from signet_sync.formats.entity_paths import SCHEMA_VERSION, File, Kind, shapes
from signet_sync.formats.frontmatter import FrontmatterProblem, read, serialize, split, unknown_entries
from signet_sync.text.sentences import escape, unescape

SIZE_LIMIT = 256 * 1024  # characters
LINE_LIMIT = 10_000  # the Markdown parser needs a second for a list of this many items
KEY_LENGTH = 8

_BLANKS = " \t\r\n"
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK_LINES = re.compile(r"\A(?:[ \t]*(?:\r\n|\r|\n))+")
_ANCHOR = re.compile(r"<!--[ \t]*section[ \t]+([a-z0-9][a-z0-9-]{0,63})[ \t]*-->", re.ASCII)
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)", re.ASCII)
_LIST_LINE = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)|[ \t]")


class DocumentProblem(UsageError):
    """What is wrong with a file that is no entity file, or not its entity's; `line` counts from 1 (0: all of it)."""

    def __init__(self, code: str, message: str, hint: str, *, line: int = 0) -> None:
        super().__init__(message, hint=hint, code=code)
        self.line = line


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A section of a file: `opening` is heading and anchor, `body` the text up to the next heading."""

    anchor: str | None
    heading: str
    opening: str
    body: str

    @property
    def name(self) -> str:
        """Returns the name by which operations and events know it: its anchor, else its heading."""
        return self.anchor or self.heading


@dataclass(frozen=True, slots=True)
class EntityDocument:
    """A parsed file; `head + lead + opening + body + …` is the file, byte for byte.

    `head` is the frontmatter with its fences; `lead` is the text from there to the first section, with the title.
    `fields` is the frontmatter as read: text, None or lists of text (numbers are text, an empty list is None).
    """

    head: str
    lead: str
    sections: tuple[DocumentSection, ...]
    fields: Mapping[str, Any]
    title: str


class ListItem(NamedTuple):
    """A top-level item of a section: its number from 1, a short hash of its text, the text without its marker.

    `start` and `end` are the offsets of its lines in the section's body.
    """

    number: int
    key: str
    text: str
    start: int
    end: int


# ── text and document ──


def parse(text: str) -> EntityDocument:
    """Parses a file.

    Raises `DocumentProblem`: `frontmatter-missing`, `frontmatter-invalid`, `title-missing`, `section-twice` (two
    sections with one anchor), `too-large`.
    """
    unified = _unify(text)
    if len(text) > SIZE_LIMIT or unified.count("\n") > LINE_LIMIT:
        message = f"the file has more than {SIZE_LIMIT:,} characters or {LINE_LIMIT:,} lines"
        raise DocumentProblem("too-large", message, "move what is long into a note of its own and link it")
    try:
        inner, body = split(unified)
        fields = read(inner)
    except FrontmatterProblem as problem:
        raise DocumentProblem(problem.code, str(problem), "restore the lines between `---`", line=1) from None
    lines = _LINES.findall(text)
    first = unified.count("\n", 0, len(unified) - len(body)) if body else len(lines)
    # Headings of level 2 outside quotes, lists and code: text, anchor, lines of heading and anchor.
    found: list[tuple[str, str | None, int, int]] = []
    title, anchors, tokens = None, set[str](), blocks(body)
    for at, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        heading, (start, end), anchor = tokens[at + 1].content.strip(), token.map, None
        if token.tag == "h1" and title is None and not found:
            title = unescape(heading)
        elif token.tag == "h2":
            after = tokens[at + 3] if at + 3 < len(tokens) else None
            if after is not None and after.type == "html_block" and after.map is not None:
                mark = _ANCHOR.fullmatch(after.content.strip())
                anchor, end = (mark[1], after.map[1]) if mark is not None else (None, end)
            if anchor in anchors:
                message, hint = f"two sections have the anchor `{anchor}`", "remove the anchor comment from the copy"
                raise DocumentProblem("section-twice", message, f"{hint}, or merge the two", line=first + start + 1)
            anchors |= {anchor} if anchor is not None else set()
            found.append((heading, anchor, first + start, first + end))
    if title is None:
        line, hint = found[0][2] + 1 if found else 0, "write `# ` and the name under the frontmatter"
        raise DocumentProblem("title-missing", "there is no title above the first section", hint, line=line)
    starts = [start for *_, start, _ in found] + [len(lines)]
    sections = tuple(
        DocumentSection(anchor, heading, "".join(lines[start:end]), "".join(lines[end:stop]))
        for (heading, anchor, start, end), stop in zip(found, starts[1:], strict=True)
    )
    return EntityDocument("".join(lines[:first]), "".join(lines[first : starts[0]]), sections, fields, title)


def render(document: EntityDocument) -> str:
    """Writes a document as text: `render(parse(text)) == text`."""
    return document.head + document.lead + "".join(section.opening + section.body for section in document.sections)


def document_of(text: str | None) -> EntityDocument | None:
    """Parses a file; returns None if there is none, or it is no entity file."""
    try:
        return None if text is None else parse(text)
    except DocumentProblem:
        return None


def reread(document: EntityDocument) -> EntityDocument:
    """Returns the document if its text parses back to it. Raises `DocumentProblem` (`edit-unclean`) otherwise.

    The last check before an edit is written: an unclosed construct of an unforeseen kind must not swallow what follows.
    """
    why = ""
    try:
        if parse(render(document)) == document:
            return document
    except DocumentProblem as problem:
        why = f": {problem.message}"
    message = f"the edit would change how other parts of the file are read{why}"
    hint = "look for a fence, a comment or HTML that is never closed, and for a heading that is indented"
    raise DocumentProblem("edit-unclean", message, hint)


def blank(
    kind: Kind,
    *,
    title: str,
    entity_id: str,
    agent_id: str,
    created_at: str,
    file: File = "profile",
    relation: str | None = None,
    participants: Sequence[str] = (),
) -> EntityDocument:
    """Makes a new file with all its sections, empty.

    `created_at` is ISO 8601 UTC, `relation` the type of a relationship, `participants` ids. Raises `UsageError`
    (`text-empty`) for a title of punctuation only.
    """
    name, is_profile = fit_title(title), file == "profile"
    fields: dict[str, Any] = {"kind": kind, "id": entity_id, "agent_id": agent_id, "schema_version": SCHEMA_VERSION}
    if is_profile:
        fields |= {"type": relation, "participants": list(participants)}
    fields |= {"created_at": created_at, "updated_at": created_at}
    if is_profile:
        fields |= {"status": "active", "pins": [], "locks": []}
    # For Obsidian: by which names links and the quick switcher find it, and how it may be styled.
    fields |= {"aliases": [name if is_profile else f"{name} notes"], "tags": [f"entity/{kind if is_profile else file}"]}
    fields |= {"cssclasses": ["signet-entity"]}
    wanted = shapes(kind, file)
    made = [
        DocumentSection(one.anchor, one.heading, f"## {one.heading}\n<!-- section {one.anchor} -->\n", "\n")
        for one in wanted
    ]
    made[-1] = but(made[-1], body="")
    read_back = {key: _normalize_value(value) for key, value in fields.items()}
    return EntityDocument(f"{serialize(fields)}\n", f"# {escape(name)}\n\n", tuple(made), read_back, name)


# ── sections ──


def find(document: EntityDocument, name: str) -> DocumentSection:
    """Finds the section with this anchor, else with this heading (case is ignored).

    Raises `UsageError` (`section-unknown`, `section-ambiguous`).
    """
    sections, wanted = document.sections, " ".join(name.split()).casefold()
    found = [one for one in sections if one.anchor == wanted]
    found = found or [one for one in sections if one.heading.casefold() == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        message, hint = f"several sections are called {name[:60]!r}", "name it by its anchor"
        raise UsageError(message, hint=hint, code="section-ambiguous")
    known = ", ".join(section.name for section in sections)
    raise UsageError(f"there is no section {name[:60]!r}", hint=f"sections: {known}", code="section-unknown")


def text_of(section: DocumentSection) -> str:
    """Returns the text of a section: its body, normalised (`body-normalized-v1`), without leading blank lines."""
    return normalize(section.body).lstrip("\n")


def body_sha(section: DocumentSection) -> str:
    """Returns the hex digest of a section's text (`text_of`), by which a writer says which version it has read."""
    return text_sha256(text_of(section))


def replace(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Replaces the text of a section. Raises as `find`."""
    return _replace_text(document, find(document, name), text)


def append(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Appends paragraphs to a section. Raises as `find`."""
    section = find(document, name)
    return _replace_text(document, section, text, _inner(section), "\n\n")


def append_item(document: EntityDocument, name: str, text: SafeText) -> EntityDocument:
    """Appends an item to a section. Raises as `find`."""
    section = find(document, name)
    kept = _inner(section)
    # It follows on the next line if all lines after the last blank one belong to a list.
    last = takewhile(lambda line: line.strip(_BLANKS), reversed(_LINE_END.split(kept)))
    return _replace_text(document, section, f"- {text}", kept, "\n" if all(map(_LIST_LINE.match, last)) else "\n\n")


def _replace_text(
    document: EntityDocument, section: DocumentSection, text: str, kept: str = "", gap: str = ""
) -> EntityDocument:
    """Gives a section a text, after a part of the old one that is kept; uses the line ends of the file."""
    end = _line_end(document.head)
    text = kept + (gap + text if kept else text).replace("\n", end)
    # Without a blank line below it some texts would include the next heading.
    below = "" if section is document.sections[-1] else end
    body = f"{end}{text}{end}{below}" if text else below
    opening = section.opening
    if body and not opening.endswith(("\n", "\r")):  # the file ended directly after the anchor
        opening += end
    new = but(section, opening=opening, body=body)
    return but(document, sections=tuple(new if one is section else one for one in document.sections))


def _inner(section: DocumentSection) -> str:
    """Returns a section's body without the blank lines around it, with the line ends of the file."""
    return _BLANK_LINES.sub("", section.body, count=1).rstrip(_BLANKS)


def _line_end(text: str) -> str:
    """Returns the line end of a text's first line; a line feed if there is none."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


# ── items ──


def items(section: DocumentSection) -> tuple[ListItem, ...]:
    """Returns the items of a section's top-level lists, in order."""
    lines = _LINES.findall(section.body)
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
    # The lines around it keep their meaning without it: a blank line beside them, or they are two items of one list.
    above, below = _LINE_END.split(before)[-2:-1], _LINE_END.split(after, maxsplit=1)[0]
    gap = ""
    if above and above[0].strip(_BLANKS) and below.strip(_BLANKS):
        beside = [one for one in known if one.end == gone.start or one.start == gone.end]
        # What the markers of one list have in common: the bullet, or the sign after the number.
        marks = [section.body[one.start : one.end].lstrip().lstrip("0123456789")[0] for one in beside]
        gap = "" if len(marks) == 2 and marks[0] == marks[1] else _line_end(document.head)
    kept = _inner(but(section, body=before + gap + after))
    return _replace_text(document, section, "", kept), gone.text


# ── frontmatter and title ──


def with_fields(document: EntityDocument, changes: Mapping[str, Any], gone: Collection[str] = ()) -> EntityDocument:
    """Changes values of the frontmatter; its other lines stay the same.

    Values are text, whole numbers, None or sequences of text; new keys come last. Keys in `gone` are removed. If the
    result would not be read as wanted (a value over several lines, a quoted key: what neither Obsidian nor we write by
    hand), the whole frontmatter is rewritten; the other keys keep their values.
    """
    fields = {key: value for key, value in document.fields.items() if key not in gone}
    fields |= {key: _normalize_value(value) for key, value in changes.items()}
    head = document.head
    end, lines = _line_end(head), _LINES.findall(head)
    for key in (*gone, *changes):
        start, stop = _lines_of(key, lines)
        new = serialize({key: changes[key]}).split("\n")[1:-1] if key in changes else ()
        lines[start:stop] = [f"{line}{end}" for line in new]
    after = "".join(lines)
    try:
        as_wanted = read(split(_unify(after))[0]) == fields
    except ValueError:
        as_wanted = False
    if not as_wanted:
        entries: dict[str, Any] = dict(unknown_entries(split(_unify(head))[0], frozenset(gone)))
        text = serialize({**entries, **changes}) + "\n"
        after = ("\ufeff" if head.startswith("\ufeff") else "") + text.replace("\n", end)
    return but(document, head=after, fields=fields)


def with_title(document: EntityDocument, title: str) -> EntityDocument:
    """Changes the title. Raises `UsageError` (`text-empty`)."""
    name = fit_title(title)
    lines = _LINES.findall(document.lead)
    start, end = next(
        token.map for token in blocks(document.lead) if token.type == "heading_open" and not token.level and token.map
    )
    closing = _LINE_END.search(lines[end - 1])
    lines[start:end] = [f"# {escape(name)}{closing[0] if closing else ''}"]
    return but(document, lead="".join(lines), title=name)


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


def _normalize_value(value: object) -> Any:
    """Returns a value as it will be read back: numbers are text, an empty sequence is None."""
    if isinstance(value, (list, tuple)):
        return [_normalize_value(item) for item in value] or None
    return None if value is None else fix_surrogates(str(value))


def _unify(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
