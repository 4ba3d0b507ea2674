"""Reads one artifact from disk for a page: its fields, its text in parts, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signet_sync.formats.frontmatter import FrontmatterProblem, open_source, read
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace
from signet_sync.sync.store import artifacts, bodies
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.web import transcript
from signet_sync.web.transcript import Script, TurnView


@dataclass(frozen=True)
class ArtifactView:
    """A file to show: `turns` are those of `part` (from 0); `trouble` explains why there is nothing to show.

    `code` is its verdict's (`indexed` for a valid file). `mark` begins the anchors of its lines, `L` for the requested
    file;
    `asked` is the requested line.
    """

    path: str
    kind: str
    code: str
    mark: str
    script: Script | None = None
    part: int = 0
    turns: list[TurnView] = field(default_factory=list)
    fields: Mapping[str, str | list[str] | None] = field(default_factory=dict)
    asked: int = 0
    trouble: str = ""

    @property
    def parts(self) -> int:
        """Returns how many parts its text has."""
        return len(self.script.parts) if self.script else 0

    @property
    def first_line(self) -> int:
        """Returns the first line of the part."""
        return self.script.line_at(self.script.parts[self.part].start) if self.script and self.turns else 0

    @property
    def last_line(self) -> int:
        """Returns the last line of the part."""
        return self.script.line_at(self.script.parts[self.part].end - 1) if self.script and self.turns else 0


@dataclass(frozen=True)
class PartRequest:
    """Which part of a file to show: a part (from 0), or the one with a line of the file or (`of_body`) of its body."""

    part: int = 0
    line: int = 0
    of_body: bool = False


def opened(
    place: IndexPlace, database: Database, path: str, kind: str, code: str, *, mark: str, wanted: PartRequest
) -> ArtifactView:
    """Reads a file of the vault safely; secrets and control characters are removed as everywhere."""
    found = files.read(place.root, path, place.settings().max_file_bytes)
    if isinstance(found, Trouble):
        return ArtifactView(path, kind, code, mark, trouble=found.message)
    fields, body, first = _taken_apart(found.raw)
    text = _clean_text(database, path, found, body)
    script = transcript.cut(text, first, spoken=kind == "transcript")
    line = wanted.line + (first - 1) * wanted.of_body if wanted.line > 0 else 0
    part = script.part_of(line) if line else min(max(wanted.part, 0), max(len(script.parts) - 1, 0))
    return ArtifactView(path, kind, code, mark, script, part, transcript.read(script, part), fields, line)


def _clean_text(database: Database, path: str, found: Found, body: str) -> str:
    """Returns the body without secrets and control characters; for an unchanged indexed file, the indexed text."""
    known = artifacts.known_files(database, [path]).get(path)
    if known is not None and known.verdict == "indexed" and known.signature == found.signature:
        return bodies.text_at(database, path)
    return sanitize_transcript_v2(body)


def _taken_apart(raw: bytes) -> tuple[Mapping[str, str | list[str] | None], str, int]:
    """Returns fields, body and the number of the body's first line; without frontmatter everything is body."""
    try:
        source = open_source(raw)
    except FrontmatterProblem:
        return {}, raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"), 1
    # Two fences, and the frontmatter between them unless it is empty.
    first = source.head.count("\n") + (4 if source.head else 3)
    try:
        fields = read(source.head)
    except FrontmatterProblem:
        fields = {}
    return {sanitize_line(name): _clean(value) for name, value in fields.items()}, source.body, first


def _clean(value: Any) -> str | list[str] | None:
    """Returns a property as one text or several."""
    if isinstance(value, list):
        return [_line(one) for one in value]
    return None if value is None else _line(value)


def _line(value: Any) -> str:
    return sanitize_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
