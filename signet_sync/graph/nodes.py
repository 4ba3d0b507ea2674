"""Derives nodes of the temporal graph: those of each artifact of a session, the edges between them, its project.

A project is named by the origin of its repository, else by the repository's root, else by the session's own folder.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.formats.body import js_trim
from signet_sync.formats.handle import Letter, id_of, row_id_of
from signet_sync.formats.paths import normalize_path
from signet_sync.sync.index_records import KINDS, weight
from signet_sync.text import chunking
from signet_sync.text.sentences import flatten

SourceType = Literal["summary", "chunk", "compaction", "condensation"]
NodeKind = Literal["session", "arc", "epoch"]

_TYPES: Mapping[str, tuple[SourceType, Letter]] = {
    "summary": ("summary", "s"), "transcript": ("chunk", "k"), "compaction": ("compaction", "c"),
}  # fmt: skip

NO_WORDS = "no words"


class ArtifactText(NamedTuple):
    """What the graph needs of a content artifact. Instants are microseconds since 1970 UTC; `content` is sanitized."""

    source_path: str
    source_kind: str  # summary, transcript, compaction
    agent_id: str
    session_id: str
    session_key: str | None
    session_token: str
    project: str | None
    harness: str | None
    started_us: int | None
    captured_us: int
    membership_us: int
    noise: int
    content: str
    sentence: str
    identity: str = ""  # of its project
    branch: str | None = None
    tree: str | None = None


class GraphNode(NamedTuple):
    """One row of `session_summaries`.

    `source_type` is its provenance, `depth` 0 for an artifact (`kind` session), 1 for an arc, 2 for an epoch.
    `source_ref` is the artifact's path (None for a condensation). `start` and `end` are the character range of the
    artifact's content: all of it, or from a place of a transcript on; a transcript has one row, whose id is that of its
    beginning. A condensation carries its own `content`; for others it is None, because their artifact has it.
    `thread_id` is None for noise. `label` is one line that distinguishes it from others (flattened).
    """

    agent_id: str
    id: str
    kind: NodeKind
    source_type: SourceType
    depth: int
    source_ref: str | None
    thread_id: str | None
    session_token: str | None
    session_id: str | None
    earliest_us: int
    latest_us: int
    start: int
    end: int
    label: str
    content: str | None


class GraphEdge(NamedTuple):
    """A child and one of its parents: a transcript and the summary (or compaction) of it, a session and its arc."""

    agent_id: str
    parent_id: str
    child_id: str


class SessionNodes(NamedTuple):
    """The nodes of one session, oldest first, and the edges among them; `best` represents the session."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    best: str | None


def best_of(sources: Sequence[ArtifactText]) -> ArtifactText | None:
    """Returns the artifact that represents a session: summary before compaction before transcript, newest first."""
    return max(sources, key=lambda s: (weight(s.source_kind, s.noise), s.captured_us, s.source_path), default=None)


def span_of(source: ArtifactText) -> tuple[int, int]:
    """Returns the period that an artifact covers, in microseconds since 1970 UTC."""
    begun = source.captured_us if source.started_us is None else source.started_us
    return min(begun, source.membership_us), source.membership_us


def make_nodes(sources: Sequence[ArtifactText], thread_id: str | None) -> SessionNodes:
    """Returns the nodes of one session and the edges among them, the same for any order of its artifacts.

    All sources have one agent, token and session id. Each gives a node, even an empty transcript, so that every
    artifact shown can be expanded. A transcript leads to its segment's summary, else compaction.
    """
    made: dict[str, GraphNode] = {}
    equals: Counter[tuple[str, int]] = Counter()
    segments: dict[int, str] = {}
    edges = set()
    for source in sorted(sources, key=lambda s: (s.captured_us, -KINDS[s.source_kind], s.source_path)):
        identity = source.source_kind, source.captured_us
        node = made[source.source_path] = _node(source, thread_id, equals[identity])
        equals[identity] += 1
        if source.source_kind != "transcript":
            segments.setdefault(source.captured_us, node.id)
        elif source.captured_us in segments:
            edges.add(GraphEdge(source.agent_id, segments[source.captured_us], node.id))
    best = best_of(sources)
    return SessionNodes(
        tuple(made.values()), tuple(sorted(edges)), made[best.source_path].id if best is not None else None
    )


# ── nodes ──


def _node(source: ArtifactText, thread_id: str | None, place: int) -> GraphNode:
    """Returns the node of one artifact.

    `place` distinguishes artifacts of one kind and instant, whose files may spell the instant differently.
    """
    source_type, letter = _TYPES[source.source_kind]
    session = source.agent_id, source.session_token, source.session_id
    node_id = id_of(letter, *session, source.source_kind, source.captured_us, *([place] if place else ()))
    said = chunking.first_words(source.content) if source_type == "chunk" else flatten(source.sentence)
    return GraphNode(
        source.agent_id, row_id_of(node_id), "session", source_type, 0, source.source_path, thread_id, *session[1:],
        *span_of(source), 0, len(source.content), said or NO_WORDS, None,
    )  # fmt: skip


# ── projects ──

# Folders above a session's own that may be the root of a repository.
_PARENTS = 64


class Place(NamedTuple):
    """Where a session worked: its folder, and root and origin of its repository as its files name them.

    An empty text is none.
    """

    folder: str
    root: str
    origin: str


def make_place(project: str | None, root: str | None, origin: str | None) -> Place:
    """Returns a place as texts that are equal for equal folders. What is no root of a repository is left out."""
    folder = _folder(root)
    if not re.match("/[^/]", folder) or posixpath.normpath(folder) != folder:
        return Place(_folder(project), "", "")
    return Place(_folder(project), folder, js_trim(origin or ""))


def _folder(path: str | None) -> str:
    trimmed = normalize_path(js_trim(path or ""))
    return trimmed.rstrip("/") or trimmed[:1]


def possible_roots(place: Place) -> Iterator[str]:
    """Yields the roots that a place without an origin may belong to, the nearest first: its own, else those above.

    A folder at the top of the file system, or where homes are, holds unrelated projects, whatever a file says.
    """
    if place.root:
        yield place.root
        return
    path = place.folder
    for _ in range(_PARENTS):
        above = path.rpartition("/")[0]
        if above in ("", "/home") or above.endswith("/Users"):  # also of a Windows below /mnt
            return
        yield path
        path = above
