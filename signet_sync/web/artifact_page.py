"""Reads one artifact from disk for a page: its fields, its text in parts, and what is wrong with it."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from signet_sync.formats.frontmatter import FrontmatterProblem, open_source, read
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace
from signet_sync.sync.store import artifacts, texts
from signet_sync.text import chunking
from signet_sync.text.chunking import ChunkSpan, speaker_of
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.web.markdown import Prose, open_fence

PART = 8_000  # tokens: about ten screens


class TurnView(NamedTuple):
    """What one speaker said; `goes_on` if it began in an earlier part. `at` is in microseconds.

    `line` is that of its heading, 0 if it has none.
    """

    speaker: str
    label: str
    at: int | None
    line: int
    goes_on: bool
    prose: Prose


@dataclass(frozen=True)
class Script:
    """A text that was split: `first` is the number of its first line, `begun` are the starts of turns."""

    text: str
    first: int
    begun: tuple[chunking.TurnStart, ...]
    parts: tuple[ChunkSpan, ...]

    def line_at(self, place: int) -> int:
        """Returns the line that contains a position."""
        return self.first + self.text.count("\n", 0, place)

    def part_of(self, line: int) -> int:
        """Returns which part (from 0) contains a line; the last one if the text ends before it."""
        place = 0
        for _ in range(line - self.first):
            following = self.text.find("\n", place) + 1
            if not following:
                break
            place = following
        return max(bisect_right(self.parts, place, key=lambda piece: piece.start) - 1, 0)


# A reader usually requests the next part of the same text.
@lru_cache(maxsize=1)
def split(text: str, first: int = 1, *, spoken: bool) -> Script:
    """Splits a text into parts; `spoken`: it is a conversation."""
    begun = tuple(chunking.turns(text)) if spoken else ()
    return Script(text, first, begun, tuple(chunking.pieces(text, PART, begun)))


def turns_of(script: Script, part: int) -> list[TurnView]:
    """Returns the turns of a part, counted from 0; none if there is no such part."""
    if not 0 <= part < len(script.parts):
        return []
    return [turn for turn in _turns(script, script.parts[part]) if turn.prose or turn.label]


def _turns(script: Script, piece: ChunkSpan) -> Iterator[TurnView]:
    next_turn = bisect_right(script.begun, piece.start, key=lambda turn: turn.start)
    starts = [turn for turn in script.begun[max(next_turn - 1, 0) :] if turn.start < piece.end]
    line = script.line_at(piece.start)
    if not starts or starts[0].start > piece.start:
        end = starts[0].start if starts else piece.end
        yield TurnView("other", "", None, 0, False, Prose(script.text[piece.start : end], line))
        line += script.text.count("\n", piece.start, end)
    for place, turn in enumerate(starts):
        end = min(starts[place + 1].start if place + 1 < len(starts) else piece.end, piece.end)
        if end <= piece.start:
            continue
        begin = max(turn.start, piece.start)
        yield _turn(script, turn, begin, end, line)
        line += script.text.count("\n", begin, end)


def _turn(script: Script, turn: chunking.TurnStart, begin: int, end: int, line: int) -> TurnView:
    """Returns a turn between two positions, without its head."""
    speaker = speaker_of(turn.label)
    if begin > turn.start:
        fence = open_fence(script.text[turn.start : begin].split("\n"))
        return TurnView(speaker, turn.label, turn.at, 0, True, Prose(script.text[begin:end], line, fence))
    inner = line + script.text.count("\n", begin, turn.words)
    said = script.text[turn.words : end].removeprefix(" · ")
    # Words may follow the head on the same line.
    return TurnView(speaker, turn.label, turn.at, 0 if said[:1] not in ("", "\n") else inner, False, Prose(said, inner))


# ── one file ──


@dataclass(frozen=True)
class ArtifactView:
    """A file to show: `turns` are those of `part` (from 0); `trouble` explains why there is nothing to show.

    `code` is its verdict's (`indexed` for a valid file). `mark` begins the anchors of its lines, `L` for the requested
    file; `asked` is the requested line.
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


def read_artifact(
    place: IndexPlace,
    database: Database,
    path: str,
    kind: str,
    code: str,
    mark: str,
    *,
    part: int = 0,
    line: int = 0,
    of_body: bool = False,
) -> ArtifactView:
    """Reads a file of the vault safely; secrets and control characters are removed as everywhere.

    It shows a part (from 0), or the one with a line of the file or (`of_body`) of its body.
    """
    found = files.read(place.root, path, place.settings().max_file_bytes)
    if isinstance(found, Trouble):
        return ArtifactView(path, kind, code, mark, trouble=found.message)
    fields, body, first = _take_apart(found.raw)
    text = _clean_text(database, path, found, body)
    script = split(text, first, spoken=kind == "transcript")
    line += (first - 1) * of_body * (line > 0)
    part = script.part_of(line) if line else min(max(part, 0), max(len(script.parts) - 1, 0))
    return ArtifactView(path, kind, code, mark, script, part, turns_of(script, part), fields, line)


def _clean_text(database: Database, path: str, found: Found, body: str) -> str:
    """Returns the body without secrets and control characters; for an unchanged indexed file, the indexed text."""
    known = artifacts.list_known_files(database, [path]).get(path)
    if known is not None and known.verdict == "indexed" and known.signature == found.signature:
        return texts.text_at(database, path)
    return sanitize_transcript_v2(body)


def _take_apart(raw: bytes) -> tuple[Mapping[str, str | list[str] | None], str, int]:
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
