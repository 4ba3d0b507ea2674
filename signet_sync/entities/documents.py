"""The grammar of entity files: frontmatter, a title, sections with hidden anchors; read and written back alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as but
from hashlib import sha256
from typing import Any, NamedTuple

from markdown_it.token import Token

from signet_sync.contracts.bodies import body_sha256, normalize, utf8
from signet_sync.contracts.frontmatter import FrontmatterProblem, read, serialize, split
from signet_sync.contracts.gardens import SCHEMA_VERSION, File, Kind, Shape, shapes
from signet_sync.entities import heads
from signet_sync.entities.fitting import Fitted, blocks, fit_title
from signet_sync.errors import UsageError

SIZE_LIMIT = 256 * 1024  # characters
KEY_LENGTH = 8

_ANCHOR = re.compile(r"<!--[ \t]*section[ \t]+([a-z0-9][a-z0-9-]{0,63})[ \t]*-->", re.ASCII)
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_LIST_LINE = re.compile(r"[-*+](?:[ \t]|$)|[ \t]")
_BLANKS = " \t\r\n"


class DocumentProblem(ValueError):
    """A file that is no entity file; `line` counts from 1 (0: the whole file), `hint` is what a person does next."""

    def __init__(self, code: str, message: str, *, line: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Section:
    """A section as it stands in the file: `opening` is heading and anchor, `body` all up to the next heading."""

    anchor: str | None
    heading: str
    opening: str
    body: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file taken apart; `head + lead + opening + body + …` is the file, byte for byte.

    `head` is the frontmatter with its fences, `lead` all from there to the first section, the title among it. `fields`
    are the frontmatter as read: text, None or lists of text (numbers are text, an empty list is None).
    """

    head: str
    lead: str
    sections: tuple[Section, ...]
    fields: Mapping[str, Any]
    title: str


class Item(NamedTuple):
    """A top-level item of a section: its number from 1, a short hash of its text, the text without its marker.

    `start` and `end` are where its lines lie in the section's body.
    """

    number: int
    key: str
    text: str
    start: int
    end: int


class _Heading(NamedTuple):
    """A heading of level 2: lines of heading and anchor, counted from the first line of the body."""

    text: str
    anchor: str | None
    start: int
    end: int


def parse(text: str) -> Document:
    """A file taken apart.

    Raises `DocumentProblem`: `frontmatter-missing`, `frontmatter-invalid`, `title-missing`, `section-twice` (two
    sections with one anchor), `too-large`.
    """
    if len(text) > SIZE_LIMIT:
        raise DocumentProblem(
            "too-large",
            f"the file has more than {SIZE_LIMIT:,} characters",
            hint="move what is long into a note of its own and link it",
        )
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        inner, body = split(unified)
        fields = read(inner)
    except FrontmatterProblem as problem:
        raise DocumentProblem(problem.code, str(problem), line=1, hint="restore the lines between `---`") from None
    lines = heads.LINES.findall(text)
    first = unified.count("\n", 0, len(unified) - len(body)) if body else len(lines)
    tokens = blocks(body)
    headings = list(_headings(tokens))
    title = _title(tokens, headings, first)
    _refuse_twins(headings, first)
    starts = [first + heading.start for heading in headings] + [len(lines)]
    sections = tuple(
        Section(
            heading.anchor,
            heading.text,
            "".join(lines[start : first + heading.end]),
            "".join(lines[first + heading.end : end]),
        )
        for heading, start, end in zip(headings, starts, starts[1:], strict=False)
    )
    return Document("".join(lines[:first]), "".join(lines[first : starts[0]]), sections, fields, title)


def render(document: Document) -> str:
    """The file of a document: `render(parse(text)) == text`."""
    return document.head + document.lead + "".join(section.opening + section.body for section in document.sections)


def reread(document: Document) -> Document:
    """The document as its file is read, which is the same. Raises `DocumentProblem` (`edit-unclean`) where it isn't.

    The last look before an edit is written: text that is open in some way that nobody thought of must not swallow what
    follows.
    """
    try:
        found = parse(render(document))
    except DocumentProblem as problem:
        found, why = None, f": {problem.message}"
    else:
        why = ""
    if found != document:
        raise DocumentProblem(
            "edit-unclean",
            f"the edit would change how other parts of the file are read{why}",
            hint="look for a code fence, a comment or HTML in the section that is never closed",
        )
    return document


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
    sections: Sequence[Shape] | None = None,
) -> Document:
    """A new file with all its sections, empty.

    `created_at` in ISO 8601 UTC, `relation` the type of a relationship, `participants` ids; `sections` where the schema
    has others by now. Raises `UsageError` (`text-empty`) for a title that says nothing.
    """
    fields: dict[str, Any] = {
        "kind": kind,
        "id": entity_id,
        "agent_id": agent_id,
        "schema_version": SCHEMA_VERSION,
    }
    if file == "profile":
        fields |= {"type": relation, "participants": list(participants)}
    fields |= {"created_at": created_at, "updated_at": created_at}
    if file == "profile":
        fields |= {"status": "active", "pins": [], "locks": []}
    name = fit_title(title)
    wanted = shapes(kind, file) if sections is None else sections
    return Document(
        f"{serialize(fields)}\n",
        f"# {name}\n\n",
        tuple(
            Section(shape.anchor, shape.heading, _opening(shape), "" if shape is wanted[-1] else "\n")
            for shape in wanted
        ),
        {key: heads.as_read(value) for key, value in fields.items()},
        name,
    )


def _opening(shape: Shape) -> str:
    return f"## {shape.heading}\n<!-- section {shape.anchor} -->\n"


def find(document: Document, name: str) -> Section:
    """The section with this anchor, else with this heading in any case.

    Raises `UsageError` (`section-unknown`, `section-ambiguous`).
    """
    return document.sections[_position(document, name)]


def text_of(section: Section) -> str:
    """What a section says: its body, normalised (`body-normalized-v1`), without blank lines at its beginning."""
    return normalize(section.body).lstrip("\n")


def body_sha(section: Section) -> str:
    """Hex digest of what a section says (`text_of`); blank lines around it don't count."""
    return body_sha256(text_of(section))


def replace(document: Document, name: str, text: Fitted) -> Document:
    """The document with this text for the section's, every byte outside of it as it was. Raises as `find`."""
    return _with_text(document, name, text)


def append(document: Document, name: str, text: Fitted) -> Document:
    """The document with this text as new last paragraphs of a section. Raises as `find`."""
    return _with_text(document, name, text, gap="\n\n")


def append_item(document: Document, name: str, text: Fitted) -> Document:
    """The document with one more item at the end of a section. Raises as `find`."""
    gap = "\n" if _ends_in_list(_text(find(document, name).body)) else "\n\n"
    return _with_text(document, name, f"- {text}", gap=gap)


def put_body(document: Document, name: str, body: str) -> Document:
    """The document with these very bytes for a section's body: what a person wrote, observed and recorded."""
    at = _position(document, name)
    sections = (*document.sections[:at], but(document.sections[at], body=body), *document.sections[at + 1 :])
    return but(document, sections=sections)


def items(section: Section) -> tuple[Item, ...]:
    """The items of a section's top-level lists, in order."""
    lines = heads.LINES.findall(section.body)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    found: list[Item] = []
    for start, end in _item_lines(section.body):
        while end > start + 1 and not lines[end - 1].strip(_BLANKS):
            end -= 1
        text = _item_text(lines[start:end])
        key = sha256(utf8(text)).hexdigest()[:KEY_LENGTH]
        found.append(Item(len(found) + 1, key, text, offsets[start], offsets[end]))
    return tuple(found)


def prune_item(document: Document, name: str, item: str) -> tuple[Document, str]:
    """The document without an item, named by its key or number, and the text of what went.

    Raises as `find`, and `UsageError` (`item-unknown`, `item-ambiguous`).
    """
    section = find(document, name)
    gone = _item(section, item)
    left = section.body[: gone.start] + section.body[gone.end :]
    return put_body(document, name, _laid(document, section, _text(left))), gone.text


def with_fields(document: Document, changes: Mapping[str, Any]) -> Document:
    """The document with other values for some keys of its frontmatter; every other line of it stays as it is.

    Values are text, whole numbers, None or sequences of text; keys that are not there come last.
    """
    fields = {**document.fields, **{key: heads.as_read(value) for key, value in changes.items()}}
    return but(document, head=heads.changed(document.head, document.fields, changes), fields=fields)


def with_title(document: Document, title: str) -> Document:
    """The document with another title. Raises `UsageError` (`text-empty`)."""
    name = fit_title(title)
    lines = heads.LINES.findall(document.lead)
    start, end = next(
        token.map for token in blocks(document.lead) if token.type == "heading_open" and not token.level and token.map
    )
    closing = _LINE_END.search(lines[end - 1])
    lines[start:end] = [f"# {name}{closing[0] if closing else ''}"]
    return but(document, lead="".join(lines), title=name)


# --- reading ---


def _headings(tokens: Sequence[Token]) -> Iterator[_Heading]:
    """The headings of level 2 that stand in no quote, list or code."""
    for at, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.tag != "h2" or token.map is None:
            continue
        start, end = token.map
        anchor = None
        after = tokens[at + 3] if at + 3 < len(tokens) else None
        if after is not None and after.type == "html_block" and after.map is not None:
            mark = _ANCHOR.fullmatch(after.content.strip())
            if mark is not None:
                anchor, end = mark[1], after.map[1]
        yield _Heading(tokens[at + 1].content.strip(), anchor, start, end)


def _title(tokens: Sequence[Token], headings: Sequence[_Heading], first: int) -> str:
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and not token.level and token.tag in ("h1", "h2"):
            if token.tag == "h1":
                return tokens[at + 1].content.strip()
            break
    line = first + headings[0].start + 1 if headings else 0
    raise DocumentProblem(
        "title-missing",
        "there is no title above the first section",
        line=line,
        hint="write `# ` and the name under the frontmatter",
    )


def _refuse_twins(headings: Sequence[_Heading], first: int) -> None:
    seen: set[str] = set()
    for heading in headings:
        if heading.anchor is None:
            continue
        if heading.anchor in seen:
            raise DocumentProblem(
                "section-twice",
                f"two sections carry the anchor `{heading.anchor}`",
                line=first + heading.start + 1,
                hint="take the anchor comment out of the copy, or join the two",
            )
        seen.add(heading.anchor)


def _position(document: Document, name: str) -> int:
    for at, section in enumerate(document.sections):
        if section.anchor == name:
            return at
    wanted = " ".join(name.split()).casefold()
    found = [at for at, section in enumerate(document.sections) if section.heading.casefold() == wanted]
    found = found or [at for at, section in enumerate(document.sections) if section.anchor == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"several sections are called {name[:60]!r}", hint="name it by its anchor", code="section-ambiguous"
        )
    known = ", ".join(section.anchor or section.heading for section in document.sections)
    raise UsageError(f"there is no section {name[:60]!r}", hint=f"sections: {known}", code="section-unknown")


def _item_lines(body: str) -> Iterator[tuple[int, int]]:
    for token in blocks(body):
        if token.type == "list_item_open" and token.level == 1 and token.map is not None:
            yield token.map[0], token.map[1]


def _item_text(lines: Sequence[str]) -> str:
    """An item without its marker and the indentation of its further lines."""
    marker = _MARKER.match(lines[0].rstrip("\r\n"))
    width = marker.end() if marker is not None else 0
    further = (line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines[1:])
    return normalize(lines[0][width:] + "".join(further))


def _item(section: Section, name: str) -> Item:
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


def _with_text(document: Document, name: str, text: str, *, gap: str | None = None) -> Document:
    """A section with another text, or with one more behind a gap; its line ends are those of the file."""
    section = find(document, name)
    kept = _text(section.body) if gap is not None else ""
    added = f"{gap}{text}" if kept else text
    return put_body(document, name, _laid(document, section, kept + _with_ends(added, document)))


def _with_ends(text: str, document: Document) -> str:
    end = heads.line_end(document.head)
    return text if end == "\n" else text.replace("\n", end)


def _text(body: str) -> str:
    """A body without the blank lines around it, byte for byte."""
    return body[_lead_length(body) :].rstrip(_BLANKS)


def _lead_length(body: str) -> int:
    lead = _BLANK_LINES.match(body)
    return lead.end() if lead is not None else 0


def _laid(document: Document, section: Section, text: str) -> str:
    """A text with the blank lines that stood around the one before it, and as many as Markdown needs."""
    end = heads.line_end(document.head)
    last = section is document.sections[-1]
    open_line = not section.opening.endswith(("\n", "\r"))
    if not text:
        return "" if last else end
    old = _text(section.body)
    if not old:
        return f"{end if open_line else ''}{end}{text}{end if last else end * 2}"
    lead = section.body[: _lead_length(section.body)]
    trail = section.body[len(lead) + len(old) :]
    if not last and len(_LINE_END.findall(trail)) < 2:
        # Without a blank line some texts would take the next heading in.
        trail = end * 2
    return f"{lead}{text}{trail}"


def _ends_in_list(text: str) -> bool:
    """Whether an item may follow on the next line: the last lines up to a blank one are all of a list."""
    for line in reversed(_LINE_END.split(text)):
        if not line.strip(_BLANKS):
            break
        if _LIST_LINE.match(line) is None:
            return False
    return True
