"""Nodes of the temporal graph: what each artifact of a session becomes, and which leads to which."""

from __future__ import annotations

from typing import Literal, NamedTuple

SourceType = Literal["summary", "chunk", "compaction", "condensation"]
NodeKind = Literal["session", "arc", "epoch"]

CHUNK_TOKENS = 1_000


class Source(NamedTuple):
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


class Node(NamedTuple):
    """One row of `session_summaries`.

    `source_type` is its provenance, `depth` 0 for what stands in an artifact (`kind` session), 1 for an arc, 2 for an
    epoch. `source_ref` is the artifact's path (None for a condensation). `start` and `end` are the characters of the
    artifact's content that the node tells: all of it for a summary or compaction, its piece for a chunk. A
    condensation carries its own `content`, the others leave it None: it stands in their artifact. `thread_id` is None
    for noise. `label` is one line that tells it from others (flattened).
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


class Edge(NamedTuple):
    """A child and one of its parents: a chunk and the summary (or compaction) made of it, a session and its arc."""

    agent_id: str
    parent_id: str
    child_id: str


class SessionNodes(NamedTuple):
    """The nodes of one session, oldest first, and the edges among them; `best` stands for the session."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    best: str | None
