"""The grammar of entity files: frontmatter, a title, sections with hidden anchors; what is read is written back alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from signet_sync.contracts.gardens import File, Kind
from signet_sync.entities.fitting import Fitted


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


def parse(text: str) -> Document:
    """A file taken apart.

    Raises `DocumentProblem`: `frontmatter-missing`, `frontmatter-invalid`, `title-missing`, `section-twice` (two
    sections with one anchor), `too-large`.
    """
    raise NotImplementedError


def render(document: Document) -> str:
    """The file of a document: `render(parse(text)) == text`."""
    return document.head + document.lead + "".join(section.opening + section.body for section in document.sections)


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
) -> Document:
    """A new file with all its sections, empty; `created_at` ISO 8601 UTC, `relation` the type of a relationship."""
    raise NotImplementedError


def find(document: Document, name: str) -> Section:
    """The section with this anchor, else with this heading in any case.

    Raises `UsageError` (`section-unknown`, `section-ambiguous`).
    """
    raise NotImplementedError


def text_of(section: Section) -> str:
    """What a section says: its body, normalised (`body-normalized-v1`), without blank lines at its beginning."""
    raise NotImplementedError


def body_sha(section: Section) -> str:
    """Hex digest of what a section says; blank lines around it don't count."""
    raise NotImplementedError


def replace(document: Document, name: str, text: Fitted) -> Document:
    """The document with this text for the section's, every byte outside of it as it was."""
    raise NotImplementedError


def append(document: Document, name: str, text: Fitted) -> Document:
    """The document with this text as new last paragraphs of a section."""
    raise NotImplementedError


def put_body(document: Document, name: str, body: str) -> Document:
    """The document with these very bytes for a section's body: what a person has written, observed and recorded."""
    raise NotImplementedError


def items(section: Section) -> tuple[Item, ...]:
    """The items of a section's top-level lists, in order."""
    raise NotImplementedError


def append_item(document: Document, name: str, text: Fitted) -> Document:
    """The document with one more item at the end of a section."""
    raise NotImplementedError


def prune_item(document: Document, name: str, item: str) -> tuple[Document, str]:
    """The document without an item, named by its key or number, and the lines that went.

    Raises `UsageError` (`item-unknown`, `item-ambiguous`).
    """
    raise NotImplementedError


def with_fields(document: Document, changes: Mapping[str, Any]) -> Document:
    """The document with other values for some keys of its frontmatter; every other line of it stays as it is.

    Values are text, whole numbers, None or sequences of text; keys that are not there come last.
    """
    raise NotImplementedError
