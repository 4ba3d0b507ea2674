"""Shows one session: its files to read from disk, part by part, its neighbours, and its results."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from signet_sync.formats.filename import artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, open_source
from signet_sync.formats.snapshot import Found, Trouble
from signet_sync.graph.store import nodes
from signet_sync.recall import open_session
from signet_sync.recall.store import references
from signet_sync.sessions import store as results
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.sync.store import artifacts, sessions, texts
from signet_sync.sync.store.sessions import SessionFile, SessionRef
from signet_sync.text import chunking
from signet_sync.text.chunking import ChunkSpan, speaker_of
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.sentences import basename
from signet_sync.web.link_targets import find_prose_targets
from signet_sync.web.markdown import Prose
from signet_sync.web.request import ViewRequest, WebPage

PART = 8_000  # tokens: about ten screens


class Stretch(NamedTuple):
    """A segment or compaction in the page's list: its time in microseconds, its files by kind."""

    kind: str
    label: str
    at: int
    paths: dict[str, str]

    @property
    def opening(self) -> str:
        """Returns the file that opens it."""
        return self.paths.get("summary") or next(iter(self.paths.values()))


# ── a file in parts ──


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
        return TurnView(speaker, turn.label, turn.at, 0, True, Prose(script.text[begin:end], line))
    inner = line + script.text.count("\n", begin, turn.words)
    said = script.text[turn.words : end].removeprefix(" · ")
    # Words may follow the head on the same line.
    return TurnView(speaker, turn.label, turn.at, 0 if said[:1] not in ("", "\n") else inner, False, Prose(said, inner))


# ── one file ──


@dataclass(frozen=True)
class ArtifactView:
    """A file to show: `turns` are those of `part` (from 0); `trouble` explains why there is nothing to show.

    `code` is its verdict's (`indexed` for a valid file). `mark` begins the anchors of its blocks, `L` for the
    requested file; `asked` is the requested line.
    """

    path: str
    kind: str
    code: str
    mark: str
    script: Script | None = None
    part: int = 0
    turns: list[TurnView] = field(default_factory=list)
    asked: int = 0
    trouble: str = ""

    @property
    def parts(self) -> int:
        """Returns how many parts its text has."""
        return len(self.script.parts) if self.script else 0


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
    body, first = _take_apart(found.raw)
    text = _clean_text(database, path, found, body)
    script = split(text, first, spoken=kind == "transcript")
    line += (first - 1) * of_body * (line > 0)
    part = script.part_of(line) if line else min(max(part, 0), max(len(script.parts) - 1, 0))
    return ArtifactView(path, kind, code, mark, script, part, turns_of(script, part), line)


def _clean_text(database: Database, path: str, found: Found, body: str) -> str:
    """Returns the body without secrets and control characters; for an unchanged indexed file, the indexed text."""
    known = artifacts.list_known_files(database, [path]).get(path)
    if known is not None and known.verdict == "indexed" and known.signature == found.signature:
        return texts.text_at(database, path)
    return sanitize_transcript_v2(body)


def _take_apart(raw: bytes) -> tuple[str, int]:
    """Returns the body and the number of its first line; without frontmatter everything is body."""
    try:
        source = open_source(raw)
    except FrontmatterProblem:
        return raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"), 1
    # Two fences, and the frontmatter between them unless it is empty.
    return source.body, source.head.count("\n") + (4 if source.head else 3)


# ── the session ──


def session(request: ViewRequest) -> WebPage:
    """Shows a session that has files; else a page that explains what happened to it, and what to do."""
    token, session_id = request.path["token"], request.path["session"]
    with reading(request.site.place) as database:
        ref = results.find(database, request.agent, token, session_id)
        if ref is None:
            return _missing(request, results.find_removal(database, request.agent, token, session_id))
        return _show(request, database, ref)


def _show(request: ViewRequest, database: Database, ref: SessionRef) -> WebPage:
    held, strays = sessions.files(database, ref), results.problem_files(database, ref)
    document = open_session.describe_one(database, ref) if held else None
    stretches = _stretches(held)
    codes = {file.source_path: "indexed" for file in held} | {stray.path: stray.code for stray in strays}
    asked = request.query.get("path", "")
    path = next((path for path in (asked, f"memory/{asked}") if path in codes), None)  # by its path or its name
    # The stretch of the requested file, else the newest.
    wanted = [one for one in stretches if path is None or path in one.paths.values()]
    chosen = wanted[-1] if wanted else None
    shown = _read_files(request, database, chosen, path, codes)
    manifest = document and document["manifest"]
    title = (document and document["sentence"]) or "The files of this session are gone"
    thread_id, before, after = results.find_neighbours(database, ref)
    node = next(iter(references.best(database, ref)), None)
    thread = nodes.summary_of(database, ref.agent_id, thread_id) if thread_id and node else None
    project = document and document["project"]
    read = [turn.prose for artifact in shown for turn in artifact.turns]
    data = {
        "heading": title,
        "token": ref.session_token,
        "session_id": ref.session_id,
        "session_key": ref.session_key,
        "project": project,
        "project_name": basename(project) if project else None,
        "harness": document and document["harness"],
        "stretches": stretches,
        "chosen": chosen,
        "shown": shown,
        "strays": strays,
        "messages": {stray.path: stray.message for stray in strays},
        "manifest": manifest,
        "lineage": {"node": node, "thread": thread, "before": before, "after": after},
        "memories": results.memories(database, ref),
        "statements": results.statements(database, ref),
        "links": find_prose_targets(database, request.agent, read),
    }
    return WebPage("session", title, data)


def _stretches(held: Iterable[SessionFile]) -> list[Stretch]:
    """Returns segments, identified by their capture time, and compactions, ordered by time."""
    found: dict[tuple[int, bool], dict[str, str]] = {}
    for file in held:
        if file.source_kind != "manifest":
            key = (file.captured_us, file.source_kind == "compaction")
            found.setdefault(key, {})[file.source_kind] = file.source_path
    stretches: list[Stretch] = []
    segments = 0
    for (at, compacted), paths in sorted(found.items()):
        segments += not compacted
        label = "Compaction" if compacted else f"Segment {segments}"
        stretches.append(Stretch("compaction" if compacted else "segment", label, at, paths))
    return stretches


def _read_files(
    request: ViewRequest, database: Database, chosen: Stretch | None, path: str | None, codes: dict[str, str]
) -> list[ArtifactView]:
    """Reads the requested file, by part or line; without a request all files of the stretch, from their beginnings."""
    part, line, body = (_number(request, name) for name in ("part", "line", "body"))
    if path is not None:
        name = artifact_name(path.rpartition("/")[2])
        kind = name.kind if name else "file"
        at: dict[str, Any] = {"part": part - 1, "line": line or body, "of_body": not line}
        read = read_artifact(request.site.place, database, path, kind, codes[path], "L", **at)
        return [read]
    paths = chosen.paths if chosen is not None else {}
    kinds = [kind for kind in ("summary", "compaction", "transcript") if kind in paths]
    return [
        read_artifact(
            request.site.place, database, paths[kind], kind, codes[paths[kind]], "L" if kind == kinds[-1] else "S"
        )
        for kind in kinds
    ]


def _number(request: ViewRequest, name: str) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _missing(request: ViewRequest, removed_at: str | None) -> WebPage:
    name = request.path["session"] or request.path["token"]
    data = {
        "name": name,
        "removed_at": removed_at,
        "undo": request.command("remove", "--undo", name),
        "look": request.command("reindex", own_agent=False),
    }
    return WebPage("session_missing", "No such session", data, 404)
