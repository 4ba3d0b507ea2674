"""Renders MEMORY.md: sections in order, within the budget, the same bytes for the same inputs on every machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from signet_sync.formats.artifact import LEDGER_HEADING
from signet_sync.formats.filename import segment_of
from signet_sync.formats.handle import short_handle
from signet_sync.formats.paths import month_page, targets, wikilink, write_agent_option
from signet_sync.formats.timestamps import DAY, day_of, short_day
from signet_sync.pages.board import Board, Line, blocks, choose
from signet_sync.pages.sections import SECTIONS, NodeView, SectionInputs, clause, inert, link_to, outcome_of, plain
from signet_sync.pages.session_log import WindowRow, clipping_notice
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import is_template, page_cell
from signet_sync.text.token_estimate import estimate_tokens, page_tokens

TITLE = "# Working Memory"
# Explains handles to a reader who does not know them.
HINT = "Each ^handle on this page opens with: signet-sync{} expand HANDLE"


class Shares(NamedTuple):
    """Tokens of MEMORY.md in all, for its scored sections and for its temporal index."""

    total: int
    head: int
    nodes: int


def shares(budget_tokens: int) -> Shares:
    """Returns the tokens of each part of a page: 45 % for the sections, 10 % for the index, the rest for the log."""
    return Shares(budget_tokens, budget_tokens * 45 // 100, budget_tokens // 10)


class Projection(NamedTuple):
    """All inputs of a page, newest first; what is iterated is read no further than the page has room.

    `candidates` gives so many of the best lines for sections, and what they are from. `rows` are those of the
    `in_window` sessions. `today_us` is the day from which days are counted.
    """

    agent_id: str
    warning: str
    candidates: Callable[[int], tuple[Sequence[Line], SectionInputs]]
    in_window: int
    window_months: Sequence[str]
    rows: Sequence[WindowRow]
    months: Sequence[tuple[str, int]]
    condensations: Iterable[NodeView]
    sessions: Iterable[NodeView]
    today_us: int


class Rendered(NamedTuple):
    """The text of a page, the sessions (token, id) in its session log, and the figures of the report.

    `scored`: it depends on the day.
    """

    text: str
    shown: frozenset[tuple[str, str]]
    rows: int
    clipped: int
    tokens: int
    scored: bool


def window(now_us: int, days: int) -> tuple[int, int]:
    """Returns first and last instant of the window, both included, in microseconds since 1970 UTC."""
    return now_us - days * DAY, now_us


def render(projection: Projection, shares: Shares) -> Rendered:
    """Returns the generated text of MEMORY.md.

    The sections get their share, and what the session log does not need of its own; the session log what they leave,
    and the index what that leaves. Under pressure the session log is cut first.
    """
    parts: list[str] = [TITLE]
    if projection.warning:
        parts.append(f"> [!warning] {projection.warning}")
    hint = HINT.format(write_agent_option(projection.agent_id))
    hint_costs = estimate_tokens(hint) + 2
    hinted = hint_costs * 10 <= shares.head
    total = shares.total - sum(estimate_tokens(part) + 1 for part in parts) - 1 - (hint_costs if hinted else 0)
    wanted, for_index = _render_log(projection, total).tokens, shares.nodes if projection.months else 0
    room = max(shares.head - shares.total + total, total - wanted - for_index)
    room = min(room, total - _least_ledger(projection))
    lines, seen = projection.candidates(max(room // _LINE, 1))
    head = choose(lines, SECTIONS, room)
    shown = blocks(head, SECTIONS, seen.unread, seen.cut)
    sections = "\n\n".join("\n".join([heading, "", *lines]) for heading, lines in shown)
    left = total - (page_tokens(sections) + 3 if sections else 0)
    ledger = _render_log(projection, left - for_index)
    index = _render_index(projection, left - ledger.tokens, head, ledger)
    parts += filter(None, [sections, ledger.text, index])
    if hinted and (sections or " ^" in index):
        parts.insert(1, hint)
    text = "\n\n".join(parts)
    clipped = projection.in_window - ledger.sessions
    return Rendered(text, ledger.shown, ledger.sessions, clipped, page_tokens(text), bool(lines))


# What a line of a section costs, in tokens.
_LINE = 24
# The least that a row of the session log costs.
LEAST_ROW = 56
_LEDGER_HEADING_COSTS = estimate_tokens(f"## {LEDGER_HEADING}") + 3
_DAY_COSTS = estimate_tokens("### 2026-03-28") + 1


def _least_ledger(projection: Projection) -> int:
    """Returns the cost of a session log section that shows no session: its heading, and how many it leaves out."""
    if projection.in_window == 0:
        return _LEDGER_HEADING_COSTS + 10
    return _LEDGER_HEADING_COSTS + estimate_tokens(_notice(projection, projection.in_window)) + 2


def _notice(projection: Projection, kept: int) -> str:
    return clipping_notice(kept, projection.in_window, projection.agent_id, projection.window_months)


class _Ledger(NamedTuple):
    """The session log as far as it fits: its text, tokens, rows, their sessions and number, the day of the oldest."""

    text: str
    tokens: int
    rows: tuple[str, ...] = ()
    shown: frozenset[tuple[str, str]] = frozenset()
    oldest: str = "9999-99-99"
    sessions: int = 0


def _render_log(projection: Projection, budget: int) -> _Ledger:
    heading, rows = f"## {LEDGER_HEADING}", projection.rows
    if projection.in_window == 0:
        return _Ledger(f"{heading}\n\n- no in-window sessions yet.", _least_ledger(projection))
    used = _LEDGER_HEADING_COSTS
    whole = sum(row.sessions for row in rows) >= projection.in_window and (
        used + sum(row.tokens + 1 for row in rows) + _DAY_COSTS * len({row.day for row in rows}) <= budget
    )
    if not whole:
        used = _least_ledger(projection)
    kept: list[WindowRow] = []
    lines: list[str] = []
    for row in rows:
        is_new_day = not kept or row.day != kept[-1].day
        cost = row.tokens + 1 + (_DAY_COSTS if is_new_day else 0)
        if used + cost > budget and not whole:
            break
        lines += [*(["", f"### {row.day}", ""] if is_new_day else []), row.line]
        kept.append(row)
        used += cost
    sessions = sum(row.sessions for row in kept)
    top = [heading, "", _notice(projection, sessions)] if sessions < projection.in_window else [heading]
    return _Ledger(
        "\n".join([*top, *lines]),
        used,
        tuple(row.line for row in kept),
        frozenset(row.session for row in kept),
        kept[-1].day if kept else "9999-99-99",
        sessions,
    )


def _render_index(projection: Projection, budget: int, head: Board, ledger: _Ledger) -> str:
    """Returns what neither sections nor session log show: earlier months, condensations, sessions."""
    heading = "## Temporal Index"
    told = {segment_of(path) for line in ledger.rows for path in targets(line)}
    told |= {segment_of(line.path) for line in head.lines["projects"] if line.path and line.session}

    def lines_of(nodes: Iterable[NodeView]) -> Iterator[str]:
        for node in nodes:
            earlier = (
                (sentence, path)
                for at_us, sentence, path in node.about
                if day_of(at_us) <= ledger.oldest and segment_of(path) not in told and not is_template(sentence)
            )
            sentence, path = next(earlier, ("", ""))
            if path and node.id not in head.shown:
                told.add(segment_of(path))
                line = node_line(node, sentence, projection.today_us)
                yield f"{line} {link_to(path)} {short_handle(node.id)}"

    months = (
        f"- {month} · {count_noun(sessions, 'session')} · {wikilink(month_page(projection.agent_id, month))}"
        for month, sessions in _earlier_months(projection, ledger)
    )
    groups = months, lines_of(projection.condensations), lines_of(projection.sessions)
    lines = _share_budget(groups, budget - estimate_tokens(heading) - 5)
    return "\n".join([heading, "", *lines]) if lines else ""


def _earlier_months(projection: Projection, ledger: _Ledger) -> list[tuple[str, int]]:
    """Returns the months with sessions that the session log neither shows nor links."""
    inside = projection.window_months
    counted_inside = sum(sessions for month, sessions in projection.months if month in inside)
    first = inside[-1] if inside and ledger.sessions == projection.in_window < counted_inside else None
    return [one for one in projection.months if one[0] not in inside or one[0] == first]


def _share_budget(groups: Sequence[Iterator[str]], budget: int) -> list[str]:
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


def node_line(node: NodeView, sentence: str, today_us: int) -> str:
    """Returns `- Mar 2 to Mar 6 · lantern, 2 sessions: …`."""
    first, last = short_day(node.earliest_us, today_us), short_day(node.latest_us, today_us)
    days = last if first == last or node.kind == "session" else f"{first} to {last}"
    count = f", {count_noun(node.parts, _PARTS[node.kind])}" if node.kind in _PARTS else ""
    thread = inert(page_cell(node.thread, 80))
    words = clause(plain(outcome_of(sentence, node.thread)), _NODE_LENGTH)
    return f"- {days} · {thread}{count}: {words}"


_NODE_LENGTH = 160
_PARTS = {"arc": "session", "epoch": "week"}
