"""Derives nodes of the temporal graph: the nodes of each artifact of a session, and the edges between them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.formats.body import text_sha256
from signet_sync.formats.handle import id_of
from signet_sync.formats.temporary_sessions import KINDS, weight
from signet_sync.graph.projects import Project
from signet_sync.text import chunking
from signet_sync.text.sentences import flatten
from signet_sync.text.token_estimate import rough_tokens

SourceType = Literal["summary", "chunk", "compaction", "condensation"]
NodeKind = Literal["session", "arc", "epoch"]

CHUNK_TOKENS = 1_000

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
    found: Project = Project("", "")


class GraphNode(NamedTuple):
    """One row of `session_summaries`.

    `source_type` is its provenance, `depth` 0 for a part of an artifact (`kind` session), 1 for an arc, 2 for an epoch.
    `source_ref` is the artifact's path (None for a condensation). `start` and `end` are the character range of the
    artifact's content: all of it for a summary or compaction, its piece for a chunk. A condensation carries its own
    `content`; for others it is None, because their artifact has it. `thread_id` is None for noise. `label` is one line
    that distinguishes it from others (flattened).
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
    token_count: int
    start: int
    end: int
    label: str
    content: str | None


class GraphEdge(NamedTuple):
    """A child and one of its parents: a chunk and the summary (or compaction) made of it, a session and its arc."""

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


def of_session(sources: Sequence[ArtifactText], thread_id: str | None) -> SessionNodes:
    """Returns the nodes of one session and the edges among them, the same for any order of its artifacts.

    All sources have one agent, token and session id. Each gives at least one node, even an empty transcript, so that
    every artifact shown can be expanded.
    """
    made: dict[str, tuple[GraphNode, ...]] = {}
    equals: Counter[tuple[str, int]] = Counter()
    ordered = sorted(sources, key=lambda s: (s.captured_us, -KINDS[s.source_kind], s.source_path))
    for source in ordered:
        identity = source.source_kind, source.captured_us
        made[source.source_path] = tuple(_nodes_of(source, thread_id, equals[identity]))
        equals[identity] += 1
    best = best_of(sources)
    return SessionNodes(
        tuple(node for nodes in made.values() for node in nodes),
        tuple(sorted(set(_edges(ordered, made)))),
        made[best.source_path][0].id if best is not None else None,
    )


# ── nodes ──


def _nodes_of(source: ArtifactText, thread_id: str | None, place: int) -> Iterator[GraphNode]:
    """Yields the nodes of one artifact.

    `place` distinguishes artifacts of one kind and instant, whose files may spell the instant differently.
    """
    parts = [
        source.session_token,
        source.session_id,
        source.source_kind,
        source.captured_us,
        *([place] if place else ()),
    ]
    if source.source_kind == "transcript":
        yield from _chunks(source, thread_id, parts)
        return
    node_type: SourceType = "summary" if source.source_kind == "summary" else "compaction"
    node_id = id_of("s" if node_type == "summary" else "c", source.agent_id, *parts)
    label = flatten(source.sentence) or NO_WORDS
    whole = chunking.ChunkSpan(0, len(source.content), rough_tokens(source.content))
    yield _node(source, thread_id, node_id, node_type, span_of(source), whole, label)


def _chunks(source: ArtifactText, thread_id: str | None, parts: Sequence[str | int]) -> Iterator[GraphNode]:
    text = source.content
    begun = list(chunking.turns(text))
    pieces = list(chunking.pieces(text, CHUNK_TOKENS, begun)) or [chunking.ChunkSpan(0, 0, 0)]
    equals: Counter[str] = Counter()
    for piece, span in zip(pieces, chunking.times(begun, pieces), strict=True):
        words = text[piece.start : piece.end]
        digest = text_sha256(words)
        node_id = id_of("k", source.agent_id, *parts, digest, equals[digest])
        equals[digest] += 1
        label = chunking.first_words(words, chunking.speaker_at(begun, piece.start)) or NO_WORDS
        yield _node(source, thread_id, node_id, "chunk", span or span_of(source), piece, label)


def _node(
    source: ArtifactText,
    thread_id: str | None,
    node_id: str,
    source_type: SourceType,
    span: tuple[int, int],
    piece: chunking.ChunkSpan,
    label: str,
) -> GraphNode:
    return GraphNode(
        source.agent_id,
        node_id,
        "session",
        source_type,
        0,
        source.source_path,
        thread_id,
        source.session_token,
        source.session_id,
        *span,
        piece.tokens,
        piece.start,
        piece.end,
        label,
        None,
    )


# ── edges ──


def _edges(ordered: Sequence[ArtifactText], made: Mapping[str, Sequence[GraphNode]]) -> Iterator[GraphEdge]:
    """Yields edges from each chunk to its segment's summary (else compaction), and to the compaction it went into."""
    segments: dict[int, str] = {}
    compactions: list[tuple[int, str]] = []
    for source in ordered:
        if source.source_kind == "transcript":
            continue
        node_id = made[source.source_path][0].id
        segments.setdefault(source.captured_us, node_id)
        if source.source_kind == "compaction":
            compactions.append((source.membership_us, node_id))
    compactions.sort()
    for source in ordered:
        if source.source_kind != "transcript":
            continue
        for chunk in made[source.source_path]:
            if source.captured_us in segments:
                yield GraphEdge(source.agent_id, segments[source.captured_us], chunk.id)
            later = bisect_left(compactions, (chunk.latest_us, ""))
            if later < len(compactions):
                yield GraphEdge(source.agent_id, compactions[later][1], chunk.id)
