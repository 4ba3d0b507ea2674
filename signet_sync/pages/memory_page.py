"""Renders MEMORY.md: sections in order, within the budget, the same bytes for the same inputs on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from signet_sync.formats.artifact_record import LEDGER_HEADING
from signet_sync.formats.handle import handle
from signet_sync.formats.paths import month_page
from signet_sync.formats.session_log_rows import MonthView as MonthView
from signet_sync.formats.timestamps import DAY, day_of
from signet_sync.formats.wikilinks import wikilink
from signet_sync.pages.budget import Shares
from signet_sync.pages.sections import SECTIONS, SectionCandidate, fill, inert, link_to
from signet_sync.pages.session_log import clipping_notice
from signet_sync.text.phrases import counted
from signet_sync.text.sentences import flatten_cell
from signet_sync.text.token_estimate import estimate_tokens, page_tokens

TITLE = "# Working Memory"
# Explains handles to a reader who does not know them.
HINT = "Each ^handle on this page opens with: signet-sync expand HANDLE"


class NodeView(NamedTuple):
    """A node of the temporal index. Instants are microseconds since 1970 UTC.

    `kind` is `session`, `arc` or `epoch`, `thread` the label of its thread; of its children a few are named and `more`
    counts the others. `path` is its transcript, else its own artifact; a condensation has neither.
    """

    id: str
    kind: str
    source_type: str
    thread: str
    earliest_us: int
    latest_us: int
    parents: tuple[str, ...]
    children: tuple[str, ...]
    more: int
    path: str | None


class NodeLineage(NamedTuple):
    """The newest condensations of an agent, and its newest summaries and compactions; newest first.

    Each is read only when requested: a page shows only a few of them.
    """

    condensations: Iterable[NodeView]
    sessions: Iterable[NodeView]


@dataclass(frozen=True, slots=True)
class Projection:
    """All inputs of a page.

    `rows` yields (session, line, tokens, day) newest first, `lineage` the newest nodes; each as many as requested.
    """

    agent_id: str
    warning: str
    candidates: Sequence[SectionCandidate]
    in_window: int
    window_months: Sequence[str]
    rows: Callable[[int], Sequence[tuple[tuple[str, str], str, int, str]]]
    months: Sequence[MonthView]
    lineage: Callable[[int], NodeLineage]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a page, the sessions (token, id) in its session log, and the figures of the report."""

    text: str
    shown: frozenset[tuple[str, str]]
    rows: int
    clipped: int
    tokens: int


def window(now_us: int, days: int) -> tuple[int, int]:
    """Returns first and last instant of the window, both included, in microseconds since 1970 UTC."""
    return now_us - days * DAY, now_us


def render(projection: Projection, shares: Shares) -> Rendered:
    """Returns the generated text of MEMORY.md. Unused budget passes on in order: page sections, session log, index."""
    parts: list[str] = [TITLE]
    if projection.warning:
        parts.append(f"> [!warning] {projection.warning}")
    hint_costs = estimate_tokens(HINT) + 2
    hinted = hint_costs * 10 <= shares.head
    room = shares.head - sum(estimate_tokens(part) + 1 for part in parts) - 1 - (hint_costs if hinted else 0)
    # Reserve what the session log section needs even without a session, however small its share.
    spare = shares.ledger + shares.index - _least_ledger(projection)
    head = fill(projection.candidates, max(room + min(spare, 0), 0))
    for key, heading in SECTIONS:
        if head.lines[key]:
            parts.append("\n".join([heading, "", *head.lines[key]]))
    left = room - head.tokens + shares.ledger
    ledger, shown, rows, spent = _ledger(projection, left)
    parts.append(ledger)
    index = _index(projection, left - spent + shares.index, head.shown)
    if index:
        parts.append(index)
    if hinted and (head.shown or " ^" in index):
        parts.insert(1, HINT)  # at the top: the context at a session's start may be cut before the index
    text = "\n\n".join(parts)
    return Rendered(text, shown, rows, projection.in_window - rows, page_tokens(text))


_LEDGER_HEADING_COSTS = estimate_tokens(f"## {LEDGER_HEADING}") + 3
_DAY_COSTS = estimate_tokens("### 2026-03-28") + 1


def _least_ledger(projection: Projection) -> int:
    """Returns the cost of a session log section that shows no session: its heading, and how many it leaves out."""
    if projection.in_window == 0:
        return _LEDGER_HEADING_COSTS + 10
    notice = clipping_notice(projection.in_window, projection.in_window, projection.agent_id, projection.window_months)
    return _LEDGER_HEADING_COSTS + estimate_tokens(notice) + 2


def _ledger(projection: Projection, budget: int) -> tuple[str, frozenset[tuple[str, str]], int, int]:
    heading = f"## {LEDGER_HEADING}"
    least = _least_ledger(projection)
    if projection.in_window == 0:
        return f"{heading}\n\n- no in-window sessions yet.", frozenset(), 0, least
    used = _LEDGER_HEADING_COSTS
    candidates = projection.rows(max(budget, 0) // 24 + 2)
    whole = len(candidates) >= projection.in_window and (
        used + sum(tokens + 1 for _, _, tokens, _ in candidates) + _DAY_COSTS * len({day for *_, day in candidates})
        <= budget
    )
    if not whole:
        used = least
    lines: list[str] = []
    shown: set[tuple[str, str]] = set()
    day_before = ""
    for session, line, tokens, day in candidates:
        cost = tokens + 1 + (_DAY_COSTS if day != day_before else 0)
        if used + cost > budget and not whole:
            break
        if day != day_before:
            lines.extend(["", f"### {day}", ""])
            day_before = day
        lines.append(line)
        shown.add(session)
        used += cost
    top = [heading]
    if len(shown) < projection.in_window:
        top += [
            "",
            clipping_notice(len(shown), projection.in_window, projection.agent_id, projection.window_months),
        ]
    return "\n".join([*top, *lines]), frozenset(shown), len(shown), used


def _index(projection: Projection, budget: int, in_head: frozenset[str]) -> str:
    heading = "## Temporal Index"
    left = budget - estimate_tokens(heading) - 5
    lineage = projection.lineage(min(max(left, 0) // _LEAST_NODE + len(in_head), MOST_NODES))
    months = (_month_line(projection.agent_id, month) for month in projection.months)
    condensations = (node_line(node) for node in lineage.condensations if node.id not in in_head)
    sessions = (node_line(node) for node in lineage.sessions if node.id not in in_head)
    lines = _shared_out((months, condensations, sessions), left)
    return "\n".join([heading, "", *lines]) if lines else ""


# The least that a node's line costs, in tokens, and the most nodes that a page is made from.
_LEAST_NODE = 40
MOST_NODES = 200


def _shared_out(groups: Sequence[Iterator[str]], budget: int) -> list[str]:
    """Returns the first lines of each group: each gets an even share of the rest, then in order what others leave."""
    coming = [next(group, None) for group in groups]
    kept: list[list[str]] = [[] for _ in groups]
    for fair in (True, False):
        for place, group in enumerate(groups):
            share = budget // (len(groups) - place) if fair else budget
            line = coming[place]
            while line is not None and (cost := page_tokens(line) + 1) <= share:
                kept[place].append(line)
                share -= cost
                budget -= cost
                line = next(group, None)
            coming[place] = line
    return list(chain.from_iterable(kept))


def _month_line(agent_id: str, month: MonthView) -> str:
    extra = f", {month.compactions} compacted" if month.compactions else ""
    return (
        f"- {month.month} · {counted(month.sessions, 'session')}{extra} · {wikilink(month_page(agent_id, month.month))}"
    )


def node_line(node: NodeView) -> str:
    """Returns `- summary 2026-03-28 · lantern (codex) · up a-… · down k-… k-… +3 [[…|transcript]] ^s-…`."""
    thread, day = inert(flatten_cell(node.thread, 80)), day_of(node.latest_us)
    parts = [f"- {node.source_type} {day}", thread]
    if node.kind != "session":
        first, count = day_of(node.earliest_us), len(node.children) + node.more
        days = day if first == day else f"{first} to {day}"
        parts = [f"- {node.source_type} {days}", f"{thread}, {count} {_PARTS[node.kind]}"]
    if node.parents:
        parts.append(f"up {' '.join(node.parents)}")
    if node.children:
        parts.append(f"down {' '.join(node.children)}{f' +{node.more}' if node.more else ''}")
    link = f" {link_to(node.path)}" if node.path else ""
    return f"{' · '.join(parts)}{link} {handle(node.id)}"


_PARTS = {"arc": "sessions", "epoch": "arcs"}
