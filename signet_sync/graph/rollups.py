"""Condenses threads: an arc summarizes the sessions of one week, an epoch the arcs of one quarter.

The text is deterministic, readable and within a token budget; ids in it refer to what it condenses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from signet_sync.formats.handle import id_of
from signet_sync.formats.timestamps import day_of, week_span
from signet_sync.graph.nodes import GraphEdge, GraphNode, NodeKind
from signet_sync.graph.threads import Thread, ThreadSession, newest_first
from signet_sync.text.sentences import shortened
from signet_sync.text.token_estimate import rough_tokens

BUDGET_TOKENS = 600
# How many tokens the lists below the sessions may take from these; how many of those are for open items.
_LISTS_TOKENS, _OPEN_TOKENS = 260, 130
SESSIONS, ARCS, LISTED = 12, 14, 8
_LABEL_LENGTH = 160
_ITEM_LENGTH = 180
# The more lines there are, the shorter each.
_WIDTHS = (320, 240, 180, 140, 110, 80, 50)

_DECISIONS, _OPEN = "Decisions:", "Open:"
_OPEN_KINDS = ("blocker", "next", "question")


def arc_id(thread: Thread, week: str) -> str:
    """Returns the id of a thread's arc over an ISO week, whether it exists or not."""
    return id_of("a", thread.agent_id, thread.id, week)


def epoch_id(thread: Thread, quarter: str) -> str:
    """Returns the id of a thread's epoch over a quarter, whether it exists or not."""
    return id_of("e", thread.agent_id, thread.id, quarter)


def arc(
    thread: Thread, week: str, sessions: Sequence[ThreadSession], stated: Iterable[tuple[str, str]] = ()
) -> tuple[GraphNode, tuple[GraphEdge, ...]] | None:
    """Condenses the sessions of a thread in one ISO week, in any order; None for fewer than two.

    The text has at most `BUDGET_TOKENS`: a line for each of the newest sessions, then what these `stated` and still
    holds: decisions, open items.
    """
    if len(sessions) < 2:
        return None
    newest = newest_first(sessions)
    first, last = week_span(week)
    title = f"{thread.label}, {day_of(first)} to {day_of(last)}: {len(newest)} sessions"
    held = [(kind, text) for kind, text in stated if kind in ("decision", *_OPEN_KINDS)]
    still = [f"{kind}: {text}" for wanted in _OPEN_KINDS for kind, text in held if kind == wanted]
    decided = [text for kind, text in held if kind == "decision"]
    lists = [(_DECISIONS, decided[:LISTED]), (_OPEN, still[:LISTED])]
    content = _fit_budget(title, len(newest), SESSIONS, lambda place, width: _session_line(newest[place], width), lists)
    label = f"{len(newest)} sessions of {week}: {newest[0].sentence}"
    node = _node(
        thread,
        arc_id(thread, week),
        "arc",
        (min(s.earliest_us for s in newest), newest[0].latest_us),
        label,
        content,
    )
    return node, _edges(node, [session.node_id for session in newest])


def epoch(thread: Thread, quarter: str, arcs: Sequence[GraphNode]) -> tuple[GraphNode, tuple[GraphEdge, ...]] | None:
    """Condenses the arcs of a thread in one quarter, in any order; None for fewer than two.

    The text has at most `BUDGET_TOKENS`: a line for each arc, and as many of their decisions as fit.
    """
    if len(arcs) < 2:
        return None
    newest = sorted(arcs, key=lambda node: (-node.latest_us, node.id))
    earliest = min(node.earliest_us for node in newest)
    latest = newest[0].latest_us
    title = f"{thread.label}, {quarter}, {day_of(earliest)} to {day_of(latest)}: {len(newest)} weeks"
    decisions = dict.fromkeys(text for node in newest for text in _decisions(node.content or ""))
    lists = [(_DECISIONS, tuple(decisions))]
    content = _fit_budget(title, len(newest), ARCS, lambda place, width: _arc_line(newest[place], width), lists)
    label = f"{len(newest)} weeks of {quarter}: {newest[0].label.partition(': ')[2]}"
    node = _node(thread, epoch_id(thread, quarter), "epoch", (earliest, latest), label, content)
    return node, _edges(node, [node.id for node in newest])


# ── lines ──


def _session_line(session: ThreadSession, width: int) -> str:
    return f"- {day_of(session.latest_us)} {shortened(session.sentence, width)} ({session.node_id})"


def _arc_line(node: GraphNode, width: int) -> str:
    return f"- {shortened(node.label, width)} ({node.id})"


def _decisions(content: str) -> list[str]:
    """Returns the decisions that an arc's content lists."""
    _, _, below = content.partition(f"\n\n{_DECISIONS}\n")
    return [line.removeprefix("- ") for line in below.partition("\n\n")[0].split("\n") if line]


# ── text ──


def _fit_budget(
    title: str, count: int, most: int, line_of: Callable[[int, int], str], lists: Sequence[tuple[str, Sequence[str]]]
) -> str:
    """Joins title, lines and lists within the budget: lists get their share, lines the rest, as wide as possible."""
    heading = _line(title)
    left = BUDGET_TOKENS - heading.cost
    listed = [(_line(name), [_line(f"- {shortened(text, _ITEM_LENGTH)}") for text in texts]) for name, texts in lists]
    wanted = sum(_cost([name, *lines]) for name, lines in listed if lines)
    lines = _lines(count, most, line_of, left - min(wanted, _LISTS_TOKENS))
    left -= _cost(lines)
    blocks = [[heading], lines]
    for place, (name, items) in enumerate(listed):
        later = sum(_cost(others) for _, others in listed[place + 1 :])
        block = _fitting(name, items, left - min(later, _OPEN_TOKENS))
        left -= _cost(block)
        blocks.append(block)
    return "\n\n".join("\n".join(line.text for line in block) for block in blocks if block)


def _lines(count: int, most: int, line_of: Callable[[int, int], str], room: int) -> list[_CostedLine]:
    """Returns a line for each of the newest, at most `most`, as wide as all fit; then how many more there are."""
    shown = min(count, most)
    more = _more(count - shown)
    for width in _WIDTHS:
        lines = [_line(line_of(place, width)) for place in range(shown)]
        if _cost(lines) + _cost(more) <= room:
            break
    while lines and _cost(lines) + _cost(more) > room:
        lines.pop()
        more = _more(count - len(lines))
    return [*lines, *more]


def _more(count: int) -> list[_CostedLine]:
    return [_line(f"- … {count} more …")] if count else []


def _fitting(name: _CostedLine, lines: Sequence[_CostedLine], room: int) -> list[_CostedLine]:
    """Returns a list under its name, with the lines that fit; nothing if none fits."""
    kept: list[_CostedLine] = []
    left = room - name.cost
    for line in lines:
        if line.cost <= left:
            kept.append(line)
            left -= line.cost
    return [name, *kept] if kept else []


class _CostedLine(NamedTuple):
    """A line, and its tokens including its newline; a blank line adds none (`rough_tokens`)."""

    text: str
    cost: int


@lru_cache(maxsize=4_000)  # a week is condensed again with each of its sessions
def _line(text: str) -> _CostedLine:
    return _CostedLine(text, rough_tokens(text) + 1)


def _cost(lines: Sequence[_CostedLine]) -> int:
    return sum(line.cost for line in lines)


# ── rows ──


def _node(thread: Thread, node_id: str, kind: NodeKind, span: tuple[int, int], label: str, content: str) -> GraphNode:
    return GraphNode(
        thread.agent_id,
        node_id,
        kind,
        "condensation",
        1 if kind == "arc" else 2,
        None,
        thread.id,
        None,
        None,
        *span,
        rough_tokens(content),
        0,
        len(content),
        shortened(label, _LABEL_LENGTH),
        content,
    )


def _edges(node: GraphNode, children: Sequence[str]) -> tuple[GraphEdge, ...]:
    return tuple(GraphEdge(node.agent_id, node.id, child) for child in sorted(set(children)))
