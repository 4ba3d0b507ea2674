"""MEMORY.md as text: sections in order, within the budget, the same bytes for the same inputs on every machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from signet_sync.contracts.places import month_page
from signet_sync.contracts.records import LEDGER_HEADING
from signet_sync.contracts.timestamps import DAY
from signet_sync.contracts.tokencount import estimate_tokens
from signet_sync.contracts.wikilinks import wikilink
from signet_sync.projection.budget import Shares
from signet_sync.projection.head import SECTIONS, HeadItem, ProjectView, fill
from signet_sync.projection.ledger import clipping_notice

TITLE = "# Working Memory"


@dataclass(frozen=True, slots=True)
class MonthView:
    """A month of the temporal index."""

    month: str
    sessions: int
    compactions: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction of the temporal index."""

    path: str
    day: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Projection:
    """All that a page is made of. `rows` yields (session, line, tokens, day) newest first, as many as asked for."""

    agent_id: str
    warning: str
    projects: Sequence[ProjectView]
    items: Sequence[HeadItem]
    in_window: int
    window_months: Sequence[str]
    rows: Callable[[int], Sequence[tuple[tuple[str, str], str, int, str]]]
    months: Sequence[MonthView]
    compactions: Sequence[Compacted]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a page, the sessions (token, id) that its ledger shows, and the figures of the report."""

    text: str
    shown: frozenset[tuple[str, str]]
    rows: int
    clipped: int
    tokens: int


def window(now_us: int, days: int) -> tuple[int, int]:
    """First and last instant of the window, both inside, in microseconds since 1970 UTC."""
    return now_us - days * DAY, now_us


def render(projection: Projection, shares: Shares) -> Rendered:
    """The generated text of MEMORY.md. What one part leaves of its share goes to the next: head, ledger, index."""
    parts: list[str] = [TITLE]
    if projection.warning:
        parts.append(f"> [!warning] {projection.warning}")
    head, used = fill(projection.projects, projection.items, max(shares.head - estimate_tokens(TITLE) - 2, 0))
    for key, heading in SECTIONS:
        if head[key]:
            parts.append("\n".join([heading, "", *head[key]]))
    left = shares.head - used + shares.ledger
    ledger, shown, rows, spent = _ledger(projection, left)
    parts.append(ledger)
    index = _index(projection, left - spent + shares.index)
    if index:
        parts.append(index)
    text = "\n\n".join(parts)
    return Rendered(text, shown, rows, projection.in_window - rows, estimate_tokens(text))


def _ledger(projection: Projection, budget: int) -> tuple[str, frozenset[tuple[str, str]], int, int]:
    heading = f"## {LEDGER_HEADING}"
    used = estimate_tokens(heading) + 3
    if projection.in_window == 0:
        return f"{heading}\n\n- no in-window sessions yet.", frozenset(), 0, used + 10
    notice_cost = estimate_tokens(
        clipping_notice(projection.in_window, projection.in_window, projection.agent_id, projection.window_months)
    )
    candidates = projection.rows(budget // 24 + 2)
    whole = len(candidates) >= projection.in_window and (
        used + sum(tokens + 1 for _, _, tokens, _ in candidates) + 8 * len({day for *_, day in candidates}) <= budget
    )
    if not whole:
        used += notice_cost + 2
    lines: list[str] = []
    shown: set[tuple[str, str]] = set()
    day_before = ""
    for session, line, tokens, day in candidates:
        cost = tokens + 1 + (8 if day != day_before else 0)
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


def _index(projection: Projection, budget: int) -> str:
    heading = "## Temporal Index"
    used = estimate_tokens(heading) + 3
    lines: list[str] = []
    for month in projection.months:
        count = "1 session" if month.sessions == 1 else f"{month.sessions} sessions"
        extra = f", {month.compactions} compacted" if month.compactions else ""
        line = f"- {month.month} · {count}{extra} · {wikilink(month_page(projection.agent_id, month.month))}"
        used += estimate_tokens(line) + 1
        if used > budget:
            break
        lines.append(line)
    for compaction in projection.compactions:
        line = f"- {compaction.day} · {compaction.sentence} {wikilink(compaction.path, 'compaction')}"
        used += estimate_tokens(line) + 1
        if used > budget:
            break
        lines.append(line)
    return "\n".join([heading, "", *lines]) if lines else ""
