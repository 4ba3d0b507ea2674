"""Renders MEMORY.md: sections in order, within the budget, the same bytes for the same inputs on every machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from signet_sync.formats.artifact import LEDGER_HEADING
from signet_sync.formats.filename import segment_of
from signet_sync.formats.handle import short_handle
from signet_sync.formats.paths import month_page, wikilink, write_agent_option
from signet_sync.formats.snapshot import LARGEST
from signet_sync.formats.timestamps import parse_instant, short_day
from signet_sync.pages.board import MORE, Board, blocks, choose
from signet_sync.pages.sections import (
    SECTIONS,
    BoardInputs,
    NodeView,
    candidates,
    clause,
    inert,
    link_to,
    outcome_of,
    plain,
)
from signet_sync.pages.session_log import WindowRow, make_clipping_notice
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import page_cell
from signet_sync.text.token_estimate import estimate_tokens

TITLE = "# Working Memory"
# Explains handles to a reader who does not know them.
HINT = "Each ^handle on this page opens with: signet-sync{} expand HANDLE"

_LOG = f"## {LEDGER_HEADING}"
# In tokens: a line of a section; the least that a row of the session log costs; its heading, and that of a day.
_LINE, LEAST_ROW = 24, 56
_LOG_COSTS, _DAY_COSTS = estimate_tokens(_LOG) + 3, estimate_tokens("### 2026-03-28") + 1
_NODE_LENGTH, _TOLD = 160, 60  # characters of a node, and by which its words are known again


class Projection(NamedTuple):
    """All inputs of a page, newest first; what is iterated is read no further than the page has room.

    `inputs` gives what so many lines of sections may show. `rows` are those of the `in_window` sessions. `nodes` gives
    condensations, or else sessions, that end before an instant. `today_us` is the day from which days are counted.
    """

    agent_id: str
    warning: str
    inputs: Callable[[int], BoardInputs]
    in_window: int
    window_months: Sequence[str]
    rows: Sequence[WindowRow]
    months: Sequence[tuple[str, int]]
    nodes: Callable[[bool, int], Iterable[NodeView]]
    today_us: int


class Rendered(NamedTuple):
    """The text of a page, the sessions (token, id) in its session log, and the figures of the report."""

    text: str
    shown: frozenset[tuple[str, str]]
    rows: int
    clipped: int
    tokens: int


def render(projection: Projection, budget: int) -> Rendered:
    """Returns the generated text of MEMORY.md within a budget of tokens.

    The sections get 45 %, the temporal index 10 %, the session log the rest; the sections also get what the log does
    not need, the log what they leave, and the index what that leaves. Under pressure the log is cut first.
    """
    for_sections = budget * 45 // 100
    parts: list[str] = [TITLE]
    if projection.warning:
        parts.append(f"> [!warning] {projection.warning}")
    hint = HINT.format(write_agent_option(projection.agent_id))
    total = budget - sum(estimate_tokens(part) + 1 for part in (*parts, hint)) - 2
    (_, wanted, _), for_index = _render_log(projection, total), budget // 10 if projection.months else 0
    room = max(for_sections - budget + total, total - wanted - for_index)
    room = min(room, total - _least_log(projection))
    seen = projection.inputs(max(room // _LINE, 1))
    head = choose(candidates(seen, projection.today_us), SECTIONS, room)
    shown = ["\n".join([heading, "", *some]) for heading, some in blocks(head, SECTIONS)]
    sections = "\n\n".join([*shown, *([MORE] if shown and (seen.more or head.left) else ())])
    left = total - (estimate_tokens(sections) + 3 if sections else 0)
    log, used, kept = _render_log(projection, left - for_index)
    index = _render_index(projection, left - used, head, kept)
    parts += filter(None, [sections, log, index])
    if sections or " ^" in index:
        parts.insert(1, hint)
    text = "\n\n".join(parts)
    rows, in_log = sum(row.sessions for row in kept), frozenset(row.session for row in kept)
    return Rendered(text, in_log, rows, projection.in_window - rows, estimate_tokens(text))


def _least_log(projection: Projection) -> int:
    """Returns the cost of a session log section that shows no session: its heading, and how many it leaves out."""
    count = projection.in_window
    if count == 0:
        return _LOG_COSTS + 10
    notice = make_clipping_notice(count, count, projection.agent_id, projection.window_months)
    return _LOG_COSTS + estimate_tokens(notice) + 2


def _render_log(projection: Projection, budget: int) -> tuple[str, int, list[WindowRow]]:
    """Returns the session log as far as it fits, its tokens, and the rows that it shows."""
    rows, count = projection.rows, projection.in_window
    if count == 0:
        return f"{_LOG}\n\n- no in-window sessions yet.", _least_log(projection), []
    used = _LOG_COSTS
    days = len({row.day for row in rows})
    whole = used + sum(row.tokens + 1 for row in rows) + _DAY_COSTS * days <= budget
    if sum(row.sessions for row in rows) < count or not whole:
        whole, used = False, _least_log(projection)
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
    shown = sum(row.sessions for row in kept)
    notice = ["", make_clipping_notice(shown, count, projection.agent_id, projection.window_months)]
    return "\n".join([_LOG, *(notice if shown < count else []), *lines]), used, kept


def _render_index(projection: Projection, budget: int, head: Board, kept: Sequence[WindowRow]) -> str:
    """Returns what is before the sessions of the log: months, condensations, and sessions that no section tells of."""
    heading, today_us = "## Temporal Index", projection.today_us
    before_us = (parse_instant(f"{kept[-1].day}T00:00Z") if kept else None) or LARGEST
    told: set[object] = {segment_of(line.path) for line in head.lines["projects"] if line.path and line.session}

    # Months that the session log neither shows nor links: the first of the window only if it lies partly before that.
    inside, count = projection.window_months, projection.in_window
    before = sum(sessions for month, sessions in projection.months if month in inside) > count
    partly = inside[-1] if inside and before and sum(row.sessions for row in kept) == count else None
    months = (
        f"- {month} · {count_noun(sessions, 'session')} · {wikilink(month_page(projection.agent_id, month))}"
        for month, sessions in projection.months
        if month not in inside or month == partly
    )

    def tell(nodes: Iterable[NodeView]) -> Iterator[str]:
        """Yields `- Mar 2 to Mar 6 · lantern, 2 sessions: …` of nodes whose words were not told yet."""
        for node in nodes:
            # That of a condensation is `2 sessions of 2026-W10: ` and the sentence of its newest session.
            of, _, said = node.label.partition(": ") if node.id[0] in "ae" else ("", "", node.label)
            words = clause(plain(outcome_of(said, node.thread)), _NODE_LENGTH)
            own = {words[:_TOLD], segment_of(node.path)}
            if not words or told & own:
                continue
            told.update(own)
            first, last = short_day(node.earliest_us, today_us), short_day(node.latest_us, today_us)
            days = f"{first} to {last}" if of and first != last else last
            thread = ", ".join(filter(None, [inert(page_cell(node.thread, 80)), of.partition(" of ")[0]]))
            yield f"- {days} · {thread}: {words} {link_to(node.path)} {short_handle(node.id)}"

    lines: list[str] = []
    budget -= estimate_tokens(heading) + 5
    condensations, sessions = (tell(projection.nodes(condensed, before_us)) for condensed in (True, False))
    for group, parts in ((months, 3), (condensations, 2), (sessions, 1)):
        share = budget // parts
        for line in group:
            if (cost := estimate_tokens(line) + 1) > share:
                break
            lines.append(line)
            share -= cost
            budget -= cost
    return "\n".join([heading, "", *lines]) if lines else ""
