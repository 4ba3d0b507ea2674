"""Condenses threads: an arc summarizes the sessions of one week, an epoch the arcs of one quarter.

The text is deterministic, readable and within a token budget; ids in it refer to what it condenses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signet_sync.formats.handle import id_of
from signet_sync.formats.timestamps import day_of, week_span
from signet_sync.graph.nodes import GraphNode, NodeKind
from signet_sync.graph.threads import Thread, ThreadSession, newest_first
from signet_sync.text.sentences import shorten
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
) -> GraphNode | None:
    """Condenses the sessions of a thread in one ISO week, in any order; None for fewer than two.

    The text has at most `BUDGET_TOKENS`: a line for each of the newest sessions, then what these `stated` and still
    holds: decisions, open items.
    """
    if len(sessions) < 2:
        return None
    newest = newest_first(sessions)
    first, last = week_span(week)
    title = f"{thread.label}, {day_of(first)} to {day_of(last)}: {len(newest)} sessions"
    held = list(stated)
    decided = [text for kind, text in held if kind == "decision"]
    still = [f"{kind}: {text}" for wanted in _OPEN_KINDS for kind, text in held if kind == wanted]
    told = [(day_of(one.latest_us), one.sentence, one.node_id) for one in newest[:SESSIONS]]
    content = _fit_budget(title, told, len(newest), decided[:LISTED], still[:LISTED])
    label = f"{len(newest)} sessions of {week}: {newest[0].sentence}"
    span = min(one.earliest_us for one in newest), newest[0].latest_us
    return _node(thread, arc_id(thread, week), "arc", span, label, content)


def epoch(thread: Thread, quarter: str, arcs: Sequence[GraphNode]) -> GraphNode | None:
    """Condenses the arcs of a thread in one quarter, in any order; None for fewer than two.

    The text has at most `BUDGET_TOKENS`: a line for each arc, and as many of their decisions as fit.
    """
    if len(arcs) < 2:
        return None
    newest = sorted(arcs, key=lambda node: (-node.latest_us, node.id))
    span = min(node.earliest_us for node in newest), newest[0].latest_us
    title = f"{thread.label}, {quarter}, {day_of(span[0])} to {day_of(span[1])}: {len(newest)} weeks"
    below = (content.partition(f"\n\n{_DECISIONS}\n")[2] for content in (node.content or "" for node in newest))
    decisions = dict.fromkeys(
        line.removeprefix("- ") for text in below for line in text.partition("\n\n")[0].split("\n") if line
    )
    told = [("", node.label, node.id) for node in newest[:ARCS]]
    content = _fit_budget(title, told, len(newest), list(decisions), [])
    label = f"{len(newest)} weeks of {quarter}: {newest[0].label.partition(': ')[2]}"
    return _node(thread, epoch_id(thread, quarter), "epoch", span, label, content)


def _fit_budget(
    title: str, told: Sequence[tuple[str, str, str]], count: int, decided: Sequence[str], still: Sequence[str]
) -> str:
    """Joins title, lines and lists within the budget: the lists get their share, the lines the rest, as wide as fits.

    `told` are day, words and id of the newest of `count`.
    """
    left = BUDGET_TOKENS - rough_tokens(title) - 2
    opened, spent = _fit_list(_OPEN, still, min(left, _OPEN_TOKENS))
    decisions, more = _fit_list(_DECISIONS, decided, min(left, _LISTS_TOKENS) - spent)
    left -= spent + more
    for width in (*_WIDTHS, *(0 for _ in told)):
        told = told if width else told[:-1]
        lines = [f"- {f'{day} ' * bool(day)}{shorten(said, width or _WIDTHS[-1])} ({one})" for day, said, one in told]
        lines += [f"- … {count - len(told)} more …"] if count > len(told) else []
        if sum(rough_tokens(line) + 1 for line in lines) <= left:
            break
    return "\n\n".join("\n".join(block) for block in ([title], lines, decisions, opened) if block)


def _fit_list(name: str, texts: Sequence[str], room: int) -> tuple[list[str], int]:
    """Returns a list under its name, with the lines that fit, and its tokens; nothing if none fits."""
    kept, spent = [name], rough_tokens(name) + 1
    for text in texts:
        line = f"- {shorten(text, _ITEM_LENGTH)}"
        if (cost := rough_tokens(line) + 1) <= room - spent:
            kept.append(line)
            spent += cost
    return (kept, spent) if len(kept) > 1 else ([], 0)


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
        0,
        len(content),
        shorten(label, _LABEL_LENGTH),
        content,
    )
