"""Composes the session log: one row a session, from its best valid artifact; day pages; month pages that link them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from signet_sync.formats.paths import day_page, month_page, wikilink
from signet_sync.formats.timestamps import day_of, iso
from signet_sync.sync.index_records import HEADLESS, KINDS, weight
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import escape, flatten, page_cell
from signet_sync.text.token_estimate import estimate_tokens

_LINKED = 100  # of a day's sessions without a person
_LINKS = ("summary", "transcript", "compaction", "manifest")


class Part(NamedTuple):
    """What the session log needs of one artifact of a session. Instants in microseconds since 1970 UTC."""

    source_path: str
    source_kind: str
    session_id: str
    session_key: str | None
    project: str | None
    sentence: str | None
    captured_us: int
    membership_us: int
    noise: int


class LedgerRow(NamedTuple):
    """One session as every page shows it; `tokens` is the estimate of `line`."""

    agent_id: str
    session_token: str
    session_id: str
    membership_us: int
    day: str
    line: str
    tokens: int
    project: str | None
    sentence: str
    path: str
    kind: str


class WindowRow(NamedTuple):
    """A line of MEMORY.md's session log: token and id of its session; or no token, for `sessions` headless ones."""

    session: tuple[str, str]
    line: str
    tokens: int
    day: str
    sessions: int = 1


def compose(
    agent_id: str, token: str, parts: Sequence[Part], sentence_of_session: str | None = None
) -> LedgerRow | None:
    """Returns the row of one session, or None if it has no content or is noise; without a line if no person spoke.

    `sentence_of_session` replaces the best artifact's sentence.
    """
    content = [part for part in parts if part.source_kind in KINDS]
    best = max(content, key=lambda p: (weight(p.source_kind, p.noise), p.captured_us, p.source_path), default=None)
    if best is None or best.noise not in (0, HEADLESS):
        return None
    newest = {part.source_kind: part for part in sorted(parts, key=lambda p: (p.captured_us, p.source_path))}
    links = " ".join(wikilink(newest[kind].source_path, kind) for kind in _LINKS if kind in newest)
    sentence = flatten(sentence_of_session or best.sentence or "")
    session = page_cell(best.session_key or best.session_id)
    project = page_cell(best.project) if best.project else "none"
    line = f"- {iso(best.membership_us)} | session={session} | project={project} | {escape(sentence)} {links}"
    line = "" if best.noise == HEADLESS else line
    return LedgerRow(
        agent_id, token, best.session_id, best.membership_us, day_of(best.membership_us), line,
        estimate_tokens(line) if line else 0, (best.project.rstrip("/") or best.project) if best.project else None,
        sentence, best.source_path, best.source_kind,
    )  # fmt: skip


def make_clipping_notice(kept: int, total: int, agent_id: str, months: Iterable[str]) -> str:
    """Returns the first line of a clipped session log; its links reach every session of the window."""
    links = " ".join(wikilink(month_page(agent_id, month)) for month in months)
    return (
        f"- older ledger rows clipped: kept {kept} of {total} in-window sessions within projection budget. All: {links}"
    )


def add_headless(rows: Sequence[WindowRow], headless: Mapping[str, int], agent_id: str) -> list[WindowRow]:
    """Adds a line behind those of each day that has `headless` sessions, of which the numbers are given."""
    more = []
    for day, count in headless.items():
        line = _headless_line(count, wikilink(day_page(agent_id, day), "day"))
        more.append(WindowRow(("", day), line, estimate_tokens(line), day, count))
    return sorted([*rows, *more], key=lambda row: row.day, reverse=True)


def _headless_line(count: int, links: str) -> str:
    return f"- {count_noun(count, 'session')} without a person {links}"


def day_text(agent_id: str, day: str, lines: Sequence[str], headless: Sequence[str] = ()) -> str:
    """Returns the page of one UTC day: every session, newest first; `headless` are paths of such."""
    month = day[:7]
    back = wikilink(month_page(agent_id, month), month)
    total = count_noun(len(lines) + len(headless), "session")
    if headless:
        links = " ".join(wikilink(path, str(number)) for number, path in enumerate(headless[:_LINKED], 1))
        lines = [*lines, _headless_line(len(headless), links)]
    return "\n".join([f"# Sessions of {day}", "", f"{total} · all of {back}", "", *lines])


def month_text(agent_id: str, month: str, days: Sequence[tuple[str, int]]) -> str:
    """Returns the page of one month: its days, newest first, each with the number of its sessions."""
    total = sum(count for _, count in days)
    rows = [f"- {wikilink(day_page(agent_id, day), day)} · {count_noun(count, 'session')}" for day, count in days]
    return "\n".join([f"# Sessions of {month}", "", count_noun(total, "session"), "", *rows])
