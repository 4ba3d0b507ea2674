"""Parses and writes entity files: frontmatter, title, sections with hidden anchors. Unchanged parts keep every byte."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markdown_it.token import Token

from signet_sync.entities.documents import frontmatter_edit
from signet_sync.entities.documents.escaping import blocks, fit_title
from signet_sync.errors import UsageError
from signet_sync.formats.body import body_sha256, normalize
from signet_sync.formats.entity_paths import SCHEMA_VERSION, File, Kind, Shape, shapes
from signet_sync.formats.frontmatter import FrontmatterProblem, read, serialize, split
from signet_sync.text.sentences import escape, unescape

SIZE_LIMIT = 256 * 1024  # characters
LINE_LIMIT = 10_000  # the Markdown parser needs a second for a list of this many items

_ANCHOR = re.compile(r"<!--[ \t]*section[ \t]+([a-z0-9][a-z0-9-]{0,63})[ \t]*-->", re.ASCII)


class DocumentProblem(ValueError):
    """A file that is no entity file; `line` counts from 1 (0: the whole file), `hint` is the next step for a person."""

    def __init__(self, code: str, message: str, *, line: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.hint = hint


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A section of a file: `opening` is heading and anchor, `body` the text up to the next heading."""

    anchor: str | None
    heading: str
    opening: str
    body: str


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


class _Heading(NamedTuple):
    """A heading of level 2; `start` and `end` are the lines of heading and anchor, counted from the body's first."""

    text: str
    anchor: str | None
    start: int
    end: int


def parse(text: str) -> EntityDocument:
    """Parses a file.

    Raises `DocumentProblem`: `frontmatter-missing`, `frontmatter-invalid`, `title-missing`, `section-twice` (two
    sections with one anchor), `too-large`.
    """
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > SIZE_LIMIT or unified.count("\n") > LINE_LIMIT:
        raise DocumentProblem(
            "too-large",
            f"the file has more than {SIZE_LIMIT:,} characters or {LINE_LIMIT:,} lines",
            hint="move what is long into a note of its own and link it",
        )
    try:
        inner, body = split(unified)
        fields = read(inner)
    except FrontmatterProblem as problem:
        raise DocumentProblem(problem.code, str(problem), line=1, hint="restore the lines between `---`") from None
    lines = frontmatter_edit.LINES.findall(text)
    first = unified.count("\n", 0, len(unified) - len(body)) if body else len(lines)
    tokens = blocks(body)
    headings = list(_headings(tokens))
    title = _title(tokens, headings, first)
    _refuse_twins(headings, first)
    starts = [first + heading.start for heading in headings] + [len(lines)]
    sections = tuple(
        DocumentSection(
            heading.anchor,
            heading.text,
            "".join(lines[start : first + heading.end]),
            "".join(lines[first + heading.end : end]),
        )
        for heading, start, end in zip(headings, starts, starts[1:], strict=False)
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
            hint="look for a fence, a comment or HTML that is never closed, and for a heading that is indented",
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
) -> EntityDocument:
    """Makes a new file with all its sections, empty.

    `created_at` is ISO 8601 UTC, `relation` the type of a relationship, `participants` ids; `sections` replaces those
    of the first schema version. Raises `UsageError` (`text-empty`) for a title of punctuation only.
    """
    fields: dict[str, Any] = {"kind": kind, "id": entity_id, "agent_id": agent_id, "schema_version": SCHEMA_VERSION}
    if file == "profile":
        fields |= {"type": relation, "participants": list(participants)}
    fields |= {"created_at": created_at, "updated_at": created_at}
    if file == "profile":
        fields |= {"status": "active", "pins": [], "locks": []}
    name = fit_title(title)
    # For Obsidian: by which names links and the quick switcher find it, and how it may be styled.
    is_profile = file == "profile"
    fields |= {"aliases": [name if is_profile else f"{name} notes"], "tags": [f"entity/{kind if is_profile else file}"]}
    fields |= {"cssclasses": ["signet-entity"]}
    wanted = shapes(kind, file) if sections is None else sections
    return EntityDocument(
        f"{serialize(fields)}\n",
        f"# {escape(name)}\n\n",
        tuple(
            DocumentSection(shape.anchor, shape.heading, opening_of(shape), "" if shape is wanted[-1] else "\n")
            for shape in wanted
        ),
        {key: frontmatter_edit.as_read(value) for key, value in fields.items()},
        name,
    )


def opening_of(shape: Shape) -> str:
    """Returns heading and anchor of a section of the schema."""
    return f"## {shape.heading}\n<!-- section {shape.anchor} -->\n"


def find(document: EntityDocument, name: str) -> DocumentSection:
    """Finds the section with this anchor, else with this heading (case is ignored).

    Raises `UsageError` (`section-unknown`, `section-ambiguous`).
    """
    return document.sections[position(document, name)]


def position(document: EntityDocument, name: str) -> int:
    """Returns the index of the section that `find` returns. Raises as `find`."""
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


def text_of(section: DocumentSection) -> str:
    """Returns the text of a section: its body, normalised (`body-normalized-v1`), without leading blank lines."""
    return normalize(section.body).lstrip("\n")


def body_sha(section: DocumentSection) -> str:
    """Returns the hex digest of a section's text (`text_of`), by which a writer says which version it has read."""
    return body_sha256(text_of(section))


# --- reading ---


def _headings(tokens: Sequence[Token]) -> Iterator[_Heading]:
    """Yields the headings of level 2 outside quotes, lists and code."""
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
                return unescape(tokens[at + 1].content.strip())
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
                f"two sections have the anchor `{heading.anchor}`",
                line=first + heading.start + 1,
                hint="remove the anchor comment from the copy, or merge the two",
            )
        seen.add(heading.anchor)
