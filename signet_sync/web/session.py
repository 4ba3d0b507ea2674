"""Shows one session: its files to read, part by part, and what it states."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.frontmatter import FrontmatterProblem, open_source
from signet_sync.formats.snapshot import Found
from signet_sync.recall import open_session
from signet_sync.recall.store import references
from signet_sync.statements import store as statements_store
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import open_index
from signet_sync.sync.store import sessions, texts, violations
from signet_sync.sync.store.sessions import SessionFile, SessionRef
from signet_sync.text import chunking
from signet_sync.text.chunking import ChunkSpan, TurnStart, speaker_of
from signet_sync.text.sentences import basename
from signet_sync.web.link_targets import find_targets
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
    def first_path(self) -> str:
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


def turns_of(text: str, first: int, begun: Sequence[TurnStart], piece: ChunkSpan) -> list[TurnView]:
    """Returns the turns of a part of a text, whose first line has the number `first`; what is empty is left out."""
    inside = [turn.start for turn in begun if piece.start < turn.start < piece.end]
    found = []
    for start, end in pairwise([piece.start, *inside, piece.end]):
        line, number = first + text.count("\n", 0, start), bisect_right(begun, start, key=lambda turn: turn.start)
        if not number:
            found.append(TurnView("other", "", None, 0, False, Prose(text[start:end], line)))
            continue
        turn = begun[number - 1]
        of_turn = speaker_of(turn.label), turn.label, turn.at
        if start > turn.start:
            found.append(TurnView(*of_turn, 0, True, Prose(text[start:end], line)))
            continue
        line += text.count("\n", start, turn.words)
        said = text[turn.words : end].removeprefix(" · ")
        # Words may follow the head on the same line.
        found.append(TurnView(*of_turn, 0 if said[:1] not in ("", "\n") else line, False, Prose(said, line)))
    return [turn for turn in found if turn.prose or turn.label]


# ── one file ──


@dataclass(frozen=True)
class ArtifactView:
    """An indexed file: `turns` are those of `part` (from 0) of `parts`, their lines counted from that of its body.

    `mark` begins the anchors of its blocks, `L` for the requested file; `asked` is the requested line.
    """

    path: str
    kind: str
    mark: str
    parts: int
    part: int
    turns: Sequence[TurnView]
    asked: int


def read_artifact(database: Database, path: str, kind: str, mark: str, *, part: int = 0, line: int = 0) -> ArtifactView:
    """Reads the text of a file, as it was sealed: a part (from 0), or the one with a line of its body."""
    text = texts.text_at(database, path)
    begun = tuple(chunking.turns(text)) if kind == "transcript" else ()
    pieces = list(chunking.pieces(text, PART, begun))
    if line:
        offset = len("\n".join(["", *text.split("\n")[: max(line - 1, 0)]]))
        part = bisect_right(pieces, offset, key=lambda piece: piece.start) - 1
    part = min(max(part, 0), max(len(pieces) - 1, 0))
    turns = turns_of(text, 1, begun, pieces[part]) if pieces else []
    return ArtifactView(path, kind, mark, len(pieces), part, turns, line)


def _line_of_body(request: ViewRequest, path: str, line: int) -> int:
    """Returns the line of a file's body, from 1, that is a line of the file."""
    place = request.site.place
    found = files.read(place.root, path, place.settings().max_file_bytes)
    try:
        head = open_source(found.raw).head if isinstance(found, Found) else ""
    except FrontmatterProblem:
        return line
    # Two fences, and the frontmatter between them unless it is empty.
    return max(line - head.count("\n") - (3 if head else 2), 1)


# ── the session ──


def session(request: ViewRequest) -> WebPage:
    """Shows a session that has files. Raises `UsageError` for any other."""
    token, session_id = request.path["token"], request.path["session"]
    with open_index(request.site.place) as database:
        ref = sessions.find_exact(database, request.agent, token, session_id)
        if ref is None:
            hint = "it still runs, is another agent's, was removed, or is newer than the last pass: signet-sync reindex"
            raise UsageError(f"there is no session {session_id or token}", hint=hint, code="unknown-session")
        return _show(request, database, ref)


def _show(request: ViewRequest, database: Database, ref: SessionRef) -> WebPage:
    held = sessions.files(database, ref)
    document = open_session.describe_one(database, ref) if held else {}
    stretches = _stretches(held)
    asked = request.query.get("path", "")
    known = {path for one in stretches for path in one.paths.values()}
    path = next((path for path in (asked, f"memory/{asked}") if path in known), None)  # by its path or its name
    # The stretch of the requested file, else the newest.
    wanted = [one for one in stretches if path is None or path in one.paths.values()]
    chosen = wanted[-1] if wanted else None
    shown = _read_files(request, database, chosen, path)
    title = document.get("sentence") or "The files of this session are gone"
    project = document.get("project")
    targets = {target for artifact in shown for turn in artifact.turns for target in turn.prose.targets}
    data = {
        "heading": title,
        "token": ref.session_token,
        "session_id": ref.session_id,
        "session_key": ref.session_key,
        "project": project,
        "project_name": basename(project) if project else None,
        "harness": document.get("harness"),
        "stretches": stretches,
        "chosen": chosen,
        "shown": shown,
        "problems": [
            one
            for one in violations.list_open(database, request.agent)
            if (one.session_token, one.session_id) == ref[1:3]
        ],
        "node": next(iter(references.best(database, ref)), None),
        "statements": statements_store.list_of_session(database, ref[:3]),
        "links": find_targets(database, request.agent, targets),
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
    request: ViewRequest, database: Database, chosen: Stretch | None, path: str | None
) -> list[ArtifactView]:
    """Reads the requested file, by part or line; without a request all files of the stretch, from their beginnings."""
    paths = chosen.paths if chosen is not None else {}
    if path is not None:
        part, line, body = (_number(request, name) for name in ("part", "line", "body"))
        kind = next(kind for kind, one in paths.items() if one == path)
        asked = _line_of_body(request, path, line) if line else body
        return [read_artifact(database, path, kind, "L", part=part - 1, line=asked)]
    kinds = [kind for kind in ("summary", "compaction", "transcript") if kind in paths]
    return [read_artifact(database, paths[kind], kind, "L" if kind == kinds[-1] else "S") for kind in kinds]


def _number(request: ViewRequest, name: str) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
