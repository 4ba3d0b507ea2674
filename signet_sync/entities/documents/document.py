"""Parses and writes entity files: frontmatter, title, sections with hidden anchors. Unchanged parts keep every byte."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signet_sync.entities.documents.escaping import blocks, fit_title
from signet_sync.errors import UsageError
from signet_sync.formats.body import body_sha256, normalize, well_formed
from signet_sync.formats.entity_paths import SCHEMA_VERSION, File, Kind, Shape, shapes
from signet_sync.formats.frontmatter import FrontmatterProblem, read, serialize, split
from signet_sync.text.sentences import escape, unescape

SIZE_LIMIT = 256 * 1024  # characters
LINE_LIMIT = 10_000  # the Markdown parser needs a second for a list of this many items

LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ANCHOR = re.compile(r"<!--[ \t]*section[ \t]+([a-z0-9][a-z0-9-]{0,63})[ \t]*-->", re.ASCII)


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


def parse(text: str) -> EntityDocument:
    """Parses a file.

    Raises `DocumentProblem`: `frontmatter-missing`, `frontmatter-invalid`, `title-missing`, `section-twice` (two
    sections with one anchor), `too-large`.
    """
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > SIZE_LIMIT or unified.count("\n") > LINE_LIMIT:
        message = f"the file has more than {SIZE_LIMIT:,} characters or {LINE_LIMIT:,} lines"
        raise DocumentProblem("too-large", message, "move what is long into a note of its own and link it")
    try:
        inner, body = split(unified)
        fields = read(inner)
    except FrontmatterProblem as problem:
        raise DocumentProblem(problem.code, str(problem), "restore the lines between `---`", line=1) from None
    lines = LINES.findall(text)
    first = unified.count("\n", 0, len(unified) - len(body)) if body else len(lines)
    # Headings of level 2 outside quotes, lists and code: text, anchor, lines of heading and anchor.
    found: list[tuple[str, str | None, int, int]] = []
    title, tokens = None, blocks(body)
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
            found.append((heading, anchor, first + start, first + end))
    if title is None:
        line, hint = found[0][2] + 1 if found else 0, "write `# ` and the name under the frontmatter"
        raise DocumentProblem("title-missing", "there is no title above the first section", hint, line=line)
    anchors = [anchor for _, anchor, *_ in found]
    for at, (_, anchor, start, _) in enumerate(found):
        if anchor is not None and anchor in anchors[:at]:
            message, hint = f"two sections have the anchor `{anchor}`", "remove the anchor comment from the copy"
            raise DocumentProblem("section-twice", message, f"{hint}, or merge the two", line=start + 1)
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
    sections: Sequence[Shape] | None = None,
    schema_version: int = SCHEMA_VERSION,
) -> EntityDocument:
    """Makes a new file with all its sections, empty.

    `created_at` is ISO 8601 UTC, `relation` the type of a relationship, `participants` ids; `sections` replaces those
    of the first schema version. Raises `UsageError` (`text-empty`) for a title of punctuation only.
    """
    name, is_profile = fit_title(title), file == "profile"
    fields: dict[str, Any] = {"kind": kind, "id": entity_id, "agent_id": agent_id, "schema_version": schema_version}
    if is_profile:
        fields |= {"type": relation, "participants": list(participants)}
    fields |= {"created_at": created_at, "updated_at": created_at}
    if is_profile:
        fields |= {"status": "active", "pins": [], "locks": []}
    # For Obsidian: by which names links and the quick switcher find it, and how it may be styled.
    fields |= {"aliases": [name if is_profile else f"{name} notes"], "tags": [f"entity/{kind if is_profile else file}"]}
    fields |= {"cssclasses": ["signet-entity"]}
    wanted = shapes(kind, file) if sections is None else sections
    made = [
        DocumentSection(one.anchor, one.heading, opening_of(one), "" if one is wanted[-1] else "\n") for one in wanted
    ]
    read_back = {key: as_read(value) for key, value in fields.items()}
    return EntityDocument(f"{serialize(fields)}\n", f"# {escape(name)}\n\n", tuple(made), read_back, name)


def as_read(value: object) -> Any:
    """Returns a value as it will be read back: numbers are text, an empty sequence is None."""
    if isinstance(value, (list, tuple)):
        return [as_read(item) for item in value] or None
    return None if value is None else well_formed(str(value))


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
