"""Draws the temporal graph as Mermaid (as GitHub renders it), DOT or plain values; no text can leave its label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from signet_sync.formats.handle import in_words
from signet_sync.formats.timestamps import day_of, iso
from signet_sync.graph.nodes import GraphEdge, GraphNode
from signet_sync.text.sentences import flatten

LABEL = 60
# GitHub's Mermaid refuses longer texts and more edges.
MERMAID_CHARACTERS, MERMAID_EDGES = 50_000, 500

_SHAPES = {
    "epoch": ('[["', '"]]'), "arc": ('(["', '"])'), "compaction": ('{{"', '"}}'), "chunk": ('("', '")'),
    "summary": ('["', '"]'),
}  # fmt: skip
# ASCII characters with a meaning in Mermaid's grammar, its directives or its Markdown.
_ACTIVE = re.compile(r"[^\w .,!?/()'+=-]", re.ASCII)


class Picture(NamedTuple):
    """A part of one agent's graph: threads (id, label), nodes and the edges among them; how many nodes are missing."""

    threads: tuple[tuple[str, str], ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    left_out: int


def values(picture: Picture) -> dict[str, Any]:
    """Returns the document of `graph --format json`; threads are nodes too, and parents of nodes without a parent."""
    below = {edge.child_id for edge in picture.edges}
    tops = [(node.thread_id, node.id) for node in picture.nodes if node.id not in below]
    threads = [{"id": thread_id, "kind": "thread", "label": label} for thread_id, label in picture.threads]
    edges = [*tops, *((edge.parent_id, edge.child_id) for edge in picture.edges)]
    return {
        "nodes": [*threads, *map(_value, picture.nodes)],
        "edges": [{"parent": parent, "child": child} for parent, child in edges],
        "left_out": picture.left_out,
    }


def _value(node: GraphNode) -> dict[str, Any]:
    return {
        "id": node.id,
        "kind": node.source_type,
        "level": node.kind,
        "depth": node.depth,
        "label": node.label,
        "thread": node.thread_id,
        "path": node.source_ref,
        "earliest": iso(node.earliest_us),
        "latest": iso(node.latest_us),
    }


def mermaid(picture: Picture) -> str:
    """Draws a Mermaid flowchart: a frame for each thread, condensations on the left, transcripts on the right."""
    lines = ["flowchart LR"]
    if picture.left_out:
        lines.append(f"    %% {picture.left_out} older ones are left out")
    for thread_id, label, nodes in _by_thread(picture):
        lines.append(f'    subgraph {_name(thread_id)}["{_inert(label)}"]')
        lines += [f"        {_name(node.id)}{_shaped(node)}" for node in nodes]
        lines.append("    end")
    lines += [f"    {_name(edge.parent_id)} --> {_name(edge.child_id)}" for edge in picture.edges]
    return "\n".join(lines)


def dot(picture: Picture) -> str:
    """Draws the same for Graphviz."""
    lines = ["digraph memory {", "    rankdir=LR;", '    node [shape=box, fontname="sans-serif"];']
    if picture.left_out:
        lines.append(f"    // {picture.left_out} older ones are left out")
    for thread_id, label, nodes in _by_thread(picture):
        lines += [f'    subgraph "cluster_{thread_id}" {{', f'        label="{_quoted(label)}";']
        lines += [f'        "{node.id}" [label="{_dot_label(node)}"];' for node in nodes]
        lines.append("    }")
    lines += [f'    "{edge.parent_id}" -> "{edge.child_id}";' for edge in picture.edges]
    return "\n".join([*lines, "}"])


def _by_thread(picture: Picture) -> Iterator[tuple[str, str, list[GraphNode]]]:
    nodes: dict[str | None, list[GraphNode]] = {thread_id: [] for thread_id, _ in picture.threads}
    for node in picture.nodes:
        nodes[node.thread_id].append(node)
    for thread_id, label in picture.threads:
        yield thread_id, label, nodes[thread_id]


def _words(node: GraphNode) -> Iterable[str]:
    """Returns the lines of a node: kind and day, label, id."""
    kind = node.kind if node.depth else node.source_type
    return f"{in_words(kind)} {day_of(node.latest_us)}", flatten(node.label, LABEL), node.id


def _shaped(node: GraphNode) -> str:
    before, behind = _SHAPES[node.kind if node.depth else node.source_type]
    return before + "<br/>".join(map(_inert, _words(node))) + behind


def _name(node_id: str) -> str:
    return node_id.replace("-", "_")


def _inert(text: str) -> str:
    """Escapes text for a Mermaid label: characters with a meaning are written by their numbers."""
    return _ACTIVE.sub(_by_number, flatten(text, LABEL))


def _by_number(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};" if match[0].isascii() else match[0]


def _dot_label(node: GraphNode) -> str:
    return r"\n".join(map(_quoted, _words(node)))


def _quoted(text: str) -> str:
    return flatten(text, LABEL).replace("\\", "\\\\").replace('"', '\\"')


DRAWN: dict[str, Callable[[Picture], str]] = {"mermaid": mermaid, "dot": dot}


def drawable(picture: Picture, text: str) -> bool:
    """Returns whether GitHub's Mermaid draws a text."""
    return len(text) <= MERMAID_CHARACTERS and len(picture.edges) <= MERMAID_EDGES
